"""Logs: formats that other tools read and write, round trips, and all that can be wrong with a line."""

import json
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from neuralucb import OnlineBandit, build
from neuralucb.logs import Skipped, check_log, convert, from_obp, open_log, read_chunks, recorded, to_obp, write_log

BY_DECISION = ("id", "time", "counts", "shared", "arm", "reward", "propensity", "weight")
BY_ARM = ("arms", "own", "probabilities")
EVENT = {
    "_label_cost": -1.0,
    "_label_probability": 0.5,
    "_label_Action": 2,
    "_labelIndex": 1,
    "Timestamp": "2026-02-04T16:31:29.2460000Z",
    "Version": "1",
    "EventId": "one",
    "a": [2, 1, 3],
    "c": {
        "User": {"age": 0.5, "visits": 3, "_hidden": 7},
        "_multi": [
            {"_tag": "first", "Item": {"price": 0.1, "new": True}},
            {"Item": {"new": False, "price": 0.2}},
            {"Item": {"price": 0.3}},
        ],
    },
    "p": [0.5, 0.25, 0.25],
    "VWState": {"m": "N/A"},
}


def decisions(count=100, arms=4, dim=3, *, shared=False, masked=False, seed=0, dtype=np.float32):
    """A chunk as a policy would leave it."""
    random = np.random.default_rng(seed)
    able = np.ones((count, arms), dtype=bool)
    if masked:
        able[:, 1:] = random.random((count, arms - 1)) < 0.6
    p = np.where(able, random.dirichlet(np.full(arms, 2.0), size=count) + 0.01, 0)
    p /= p.sum(axis=1, keepdims=True)
    arm = (p.cumsum(axis=1) > random.random((count, 1))).argmax(axis=1)
    contexts = random.normal(size=(count, dim) if shared else (count, arms, dim)).astype(dtype)
    chunk = recorded(contexts, arm, random.normal(size=count).round(3), p, available=able)
    return chunk._replace(time=np.datetime64("2026-01-01T00:00:00.123456", "us") + np.arange(count))


def together(path):
    chunks = list(read_chunks(path))
    joined = {name: np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in (*BY_DECISION, *BY_ARM)}
    return chunks[-1]._replace(**joined)


def same(one, two):
    for name in (*BY_DECISION, *BY_ARM):
        if getattr(one, name).dtype.kind == "f":
            assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-7, err_msg=name)
        else:
            assert_array_equal(getattr(one, name), getattr(two, name), name)
    assert one.names == two.names


def renumbered(chunk):
    """Arms with features of their own are told apart by these: dsjson lists those available, and numbers them anew."""
    begins = np.cumsum(chunk.counts) - chunk.counts
    owner = np.repeat(np.arange(len(begins)), chunk.counts)
    place = (np.arange(len(owner)) - begins[owner]).astype(np.int32)
    return chunk._replace(arms=place, arm=place[chunk.arms == chunk.arm[owner]])


def write_lines(path, *events):
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


def without(key):
    return {name: value for name, value in EVENT.items() if name != key}


def with_context(**changes):
    return EVENT | {"c": EVENT["c"] | changes}


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_a_log_survives_parquet_and_dsjson(tmp_path, shared, masked):
    chunk = decisions(9000, shared=shared, masked=masked)
    paths = [tmp_path / name for name in ("a.parquet", "b.dsjson", "c.parquet")]
    assert write_log(paths[0], [chunk]) == 9000
    same(together(paths[0]), chunk)
    expected = chunk if shared else renumbered(chunk)
    for source, target in pairwise(paths):
        assert convert(source, target) == 9000
        same(together(target), expected)
    log = open_log(paths[1])
    assert (log.arms, log.decisions) == (4, 9000)


def test_a_deterministic_choice_has_no_propensity_and_only_parquet_can_say_so(tmp_path):
    sure = np.eye(3)[[0, 1]]
    chunk = recorded(np.ones((2, 3, 1)), np.asarray([0, 1]), np.ones(2), sure)
    assert np.isnan(chunk.propensity).all()
    write_log(tmp_path / "log.parquet", [chunk])
    assert np.isnan(together(tmp_path / "log.parquet").propensity).all()
    assert check_log(tmp_path / "log.parquet").deterministic == 2
    for name in ("log.dsjson", "log.npz"):
        with pytest.raises(ValueError, match="decision 1 was deterministic"):
            convert(tmp_path / "log.parquet", tmp_path / name)
        assert not (tmp_path / name).exists()


def test_the_only_arm_there_is_has_a_true_propensity_of_one():
    able = np.asarray([[True, False], [True, True]])
    chunk = recorded(np.ones((2, 2, 1)), np.zeros(2, int), np.ones(2), np.asarray([[1.0, 0], [1, 0]]), available=able)
    assert_array_equal(chunk.propensity, [1.0, np.nan])


@pytest.mark.parametrize("shared", [False, True])
def test_ten_thousand_decisions_are_read_by_vowpal_wabbit_as_they_were_made(tmp_path, shared):
    vowpalwabbit = pytest.importorskip("vowpalwabbit")
    chunk = decisions(10_000, dim=2, shared=shared, masked=True)
    write_log(tmp_path / "log.dsjson", [chunk])
    workspace = vowpalwabbit.Workspace("--cb_explore_adf --dsjson --quiet")
    begins = np.cumsum(chunk.counts) - chunk.counts
    seen = []
    for line in (tmp_path / "log.dsjson").read_text().splitlines():
        examples = workspace.parse(line)
        labels = [one.get_label(vowpalwabbit.LabelType.CONTEXTUAL_BANDIT).costs for one in examples[1:]]
        chosen = [(place, costs[0].cost, costs[0].probability) for place, costs in enumerate(labels) if costs]
        assert len(chosen) == 1
        seen.append((len(labels), *chosen[0]))
        workspace.finish_example(examples)
    counts, place, cost, probability = (np.asarray(column) for column in zip(*seen, strict=True))
    assert_array_equal(counts, chunk.counts)
    assert_array_equal(chunk.arms[begins + place], chunk.arm)
    assert_allclose(cost, -chunk.reward, rtol=1e-6, atol=1e-7)
    assert_allclose(probability, chunk.propensity, rtol=1e-6)


def test_vowpal_wabbit_learns_from_our_log(tmp_path):
    vowpalwabbit = pytest.importorskip("vowpalwabbit")
    write_log(tmp_path / "log.dsjson", [decisions(500)])
    arguments = f"--cb_explore_adf --dsjson --quiet -d {tmp_path / 'log.dsjson'}"
    workspace = vowpalwabbit.Workspace(arguments)
    workspace.finish()
    assert workspace.get_weighted_examples() == 500


def test_a_log_of_vowpal_wabbit_is_read_with_keys_in_any_order(tmp_path):
    path = write_lines(tmp_path / "log.json", EVENT, dict(reversed(EVENT.items())), without("_labelIndex"))
    chunk = together(path)
    assert chunk.names.shared == ("User/age", "User/visits")
    assert chunk.names.own == ("Item/price", "Item/new")
    for row in range(3):
        assert_array_equal(chunk.own[3 * row : 3 * row + 3], [[0.1, 1], [0.2, 0], [0.3, 0]])
        assert_array_equal(chunk.probabilities[3 * row : 3 * row + 3], [0.25, 0.5, 0.25])
    assert_array_equal(chunk.shared, [[0.5, 3]] * 3)
    assert_array_equal(chunk.arm, [1, 1, 1])
    assert_array_equal(chunk.reward, [1, 1, 1])
    assert str(chunk.time[0]) == "2026-02-04T16:31:29.246000"


def test_words_and_lists_get_columns_of_their_own_that_stay(tmp_path):
    actions = [{"i": {"constant": 1, "id": "tea"}, "j": [{"hot": "yes"}, {"tags": [0.5, 0.25]}]}, {"i": {"id": "cola"}}]
    first = EVENT | {"a": [2, 1], "p": [0.5, 0.5], "c": {"weather": "sunny", "_multi": actions}}
    later = EVENT | {"c": {"weather": "snow", "mood": None, "_multi": EVENT["c"]["_multi"]}}
    path = write_lines(tmp_path / "log.dsjson", first, later)
    chunk = together(path)
    assert chunk.names.shared == ("weather=sunny", "weather=snow")
    assert chunk.names.own[:4] == ("i/constant", "i/id=tea", "j/hot=yes", "j/tags[0]")
    assert_array_equal(chunk.shared, np.eye(2))
    assert_array_equal(chunk.own[0, :5], [1, 1, 1, 0.5, 0.25])
    convert(path, tmp_path / "again.dsjson")
    again = json.loads((tmp_path / "again.dsjson").read_text().splitlines()[0])["c"]
    assert again["weather"] == "sunny"  # a word is a word again, and 0 is left out
    assert again["_multi"][1] == {"i": {"id": "cola"}}
    same(together(tmp_path / "again.dsjson"), chunk)


def test_features_that_appear_late_keep_the_columns_before_them(tmp_path):
    quick = [with_context(User={"age": float(n)}) for n in range(5000)]
    path = write_lines(tmp_path / "log.dsjson", *quick, with_context(User={"late": 2.0, "age": 1.0}))
    convert(path, tmp_path / "log.parquet")
    chunks = list(read_chunks(tmp_path / "log.parquet"))
    assert {chunk.names.shared for chunk in chunks} == {("User/age", "User/late")}
    assert_array_equal(np.concatenate([chunk.shared for chunk in chunks])[[0, 4999, 5000]], [[0, 0], [4999, 0], [1, 2]])
    assert open_log(path).names.shared == ("User/age", "User/late")


def test_what_vowpal_wabbit_would_not_learn_from_is_left_out_and_thinned_logs_have_weights(tmp_path):
    unlabelled = {name: value for name, value in EVENT.items() if not name.startswith("_label")}
    path = write_lines(tmp_path / "log.dsjson", EVENT | {"_skipLearn": True}, EVENT | {"pdrop": 0.75}, unlabelled)
    chunk = together(path)
    assert_array_equal(chunk.line, [2, 3])
    assert_array_equal(chunk.weight, [4, 1])
    assert_array_equal(chunk.reward, [1, np.nan])
    assert_array_equal(chunk.propensity, [0.5, 0.5])
    convert(path, tmp_path / "again.dsjson")
    same(together(tmp_path / "again.dsjson"), chunk)


BAD = {
    "a probability of 0": (EVENT | {"_label_probability": 0.0, "p": [0, 0.5, 0.5]}, "propensity must be above 0"),
    "a probability of 1.5": (EVENT | {"_label_probability": 1.5}, "propensity must be above 0 and at most 1, got 1.5"),
    "a probability of null": (EVENT | {"_label_probability": None}, "_label_probability is missing"),
    "a probability in words": (EVENT | {"_label_probability": "half"}, "_label_probability is not a number"),
    "a cost in words": (EVENT | {"_label_cost": "-1"}, "_label_cost is not a number"),
    "a cost of NaN": (EVENT | {"_label_cost": float("nan")}, "not JSON"),
    "a negative probability": (EVENT | {"p": [0.5, 0.75, -0.25]}, "a probability is below 0"),
    "probabilities that add to more": (EVENT | {"p": [0.5, 0.5, 0.5]}, "probabilities must add to 1, got 1.5"),
    "another probability": (EVENT | {"p": [0.25, 0.5, 0.25]}, "the propensity 0.5 is not the arm's probability"),
    "an action outside": (EVENT | {"_label_Action": 7, "_labelIndex": 6}, "_label_Action is not among"),
    "an action of true": (EVENT | {"_label_Action": True, "_labelIndex": None}, "_label_Action is not a whole number"),
    "two labels": (EVENT | {"_labelIndex": 2}, "name different actions"),
    "an index in words": (EVENT | {"_label_Action": None, "_labelIndex": "1"}, "the label's action a whole number"),
    "another action first": (EVENT | {"a": [1, 2, 3]}, "is not the first in a"),
    "a ranking with a hole": (EVENT | {"a": [2, 2, 3]}, "a must rank every action"),
    "a short ranking": (EVENT | {"a": [2, 1]}, "c has 3 actions, a ranks 2"),
    "a ranking in words": (EVENT | {"a": ["2", "1", "3"]}, "a must be a list of whole numbers"),
    "short probabilities": (EVENT | {"p": [0.5, 0.5]}, "p has 2 probabilities"),
    "no a": (without("a"), "a is missing"),
    "no c": ({key: EVENT[key] for key in ("a", "p")}, "c is missing"),
    "no actions": (EVENT | {"c": {}}, "_multi is missing"),
    "no label's action": ({k: v for k, v in without("_label_Action").items() if k != "_labelIndex"}, "_label_Action"),
    "no label's probability": (without("_label_probability"), "_label_probability is missing"),
    "a dangling reward": ({"EventId": "x", "RewardValue": 1.0}, "a reward without a decision"),
    "several decisions": (EVENT | {"c": {"_slots": []}}, "several decisions in one event"),
    "free text": (with_context(User={"_text": "hello"}), "_text is free text"),
    "everything dropped": (EVENT | {"pdrop": 1}, "pdrop must be"),
    "no time": (EVENT | {"Timestamp": "yesterday"}, "Timestamp is not a time"),
    "a list": ([1, 2], "not a JSON object"),
    "a huge feature": (with_context(User={"age": 10**400}), "an int too large"),
    "no arms": (EVENT | {"a": [], "p": [], "c": {"_multi": []}}, "there is no arm to choose from"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_line_is_refused_with_its_number_and_reason_or_skipped_and_counted(tmp_path, case):
    event, reason = BAD[case]
    path = write_lines(tmp_path / "log.dsjson", EVENT, event, EVENT)
    with pytest.raises(ValueError, match="log.dsjson line 2: ") as refused:
        list(read_chunks(path))
    skipped = Skipped()
    kept = list(read_chunks(path, skipped))
    assert skipped.count == 1
    assert_array_equal(np.concatenate([chunk.line for chunk in kept]), [1, 3])
    assert_array_equal(np.concatenate([chunk.own for chunk in kept])[:, 0], [0.1, 0.2, 0.3] * 2)
    if case != "a huge feature":
        assert reason in str(refused.value)
    with pytest.raises(ValueError, match="log.dsjson line 2"):
        convert(path, tmp_path / "log.parquet")
    assert not (tmp_path / "log.parquet").exists()


def paths_of(value, path=()):
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from paths_of(inner, (*path, key))


def test_whatever_stands_in_a_line_it_is_used_or_refused_and_never_breaks_the_reader(tmp_path):
    odd = [
        None,
        True,
        -1,
        0,
        1.5,
        10**30,
        1e308,
        "",
        "2",
        "é%s",
        [],
        [1],
        {},
        {"_x": 1},
        {"a": {"b": [None, {"c": "d"}]}},
    ]
    random, places = np.random.default_rng(5), list(paths_of(EVENT))[1:]
    events = []
    for _ in range(1500):
        event = json.loads(json.dumps(EVENT))
        *parents, last = places[random.integers(len(places))]
        inner = event
        for key in parents:
            inner = inner[key]
        if random.random() < 0.2 and isinstance(inner, dict):
            del inner[last]
        else:
            inner[last] = odd[random.integers(len(odd))]
        events += [event, EVENT]
    skipped = Skipped()
    chunks = list(read_chunks(write_lines(tmp_path / "log.dsjson", *events), skipped))
    lines = np.concatenate([chunk.line for chunk in chunks])
    assert skipped.count + len(lines) == 3000
    assert set(range(2, 3001, 2)) <= set(lines.tolist())  # the good ones between are all there, and right
    for chunk in chunks:
        good = np.flatnonzero(chunk.line % 2 == 0)
        begins = np.cumsum(chunk.counts) - chunk.counts
        assert_array_equal(chunk.shared[good, :2], [[0.5, 3]] * len(good))
        assert_array_equal(chunk.own[begins[good] + 1, :2], [[0.2, 0]] * len(good))
    write_log(tmp_path / "again.dsjson", chunks)
    assert sum(len(chunk.line) for chunk in read_chunks(tmp_path / "again.dsjson")) == len(lines)


def test_a_torn_last_line_is_told_apart(tmp_path):
    path = write_lines(tmp_path / "log.dsjson", EVENT, EVENT)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ValueError, match="line 2: the last line is torn"):
        list(read_chunks(path))


def parquet_with(tmp_path, **columns):
    """A log whose columns are what somebody else made of them."""
    import pyarrow as pa
    from pyarrow import parquet

    write_log(tmp_path / "good.parquet", [decisions(3, 2, 1)])
    good = parquet.read_table(tmp_path / "good.parquet")
    for name, values in columns.items():
        good = good.set_column(good.column_names.index(name), name, pa.array(values, good.schema.field(name).type))
    parquet.write_table(good, tmp_path / "bad.parquet")
    return tmp_path / "bad.parquet"


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"propensity": [0.5, 0.0, 0.5]}, "propensity must be above 0"),
        ({"propensity": [0.5, float("nan"), 0.5]}, "propensity is NaN"),
        ({"reward": [1.0, float("inf"), 0.0]}, "reward must be finite"),
        ({"reward": [1.0, float("nan"), 0.0]}, "reward is NaN"),
        ({"arm": [0, 9, 1]}, "arm 9 is not among the 2 available"),
        ({"arm": [0, None, 1]}, "a reward without a decision"),
        ({"arms": [[0, 1], [1, 1], [0, 1]]}, "an arm is listed twice"),
        ({"arms": [[0, 1], None, [0, 1]]}, "arms is missing"),
        ({"own": [[1.0, 2.0], [float("nan"), 2.0], [1.0, 2.0]]}, "a feature is NaN"),
        ({"own": [[1.0, 2.0], [1.0, 2.0, 3.0], [1.0, 2.0]]}, "own has 3 numbers"),
        ({"probabilities": [None, [0.5, 0.25, 0.25], None]}, "probabilities has 3 numbers for 2 arms"),
        ({"weight": [1.0, 0.0, 1.0]}, "weight must be positive"),
    ],
)
def test_a_bad_row_of_parquet_is_refused_or_skipped(tmp_path, columns, reason):
    columns = {"probabilities": [None] * 3, "propensity": [0.5] * 3, "arm": [0, 0, 0]} | columns
    path = parquet_with(tmp_path, **columns)
    with pytest.raises(ValueError, match=f"bad.parquet row 2: {reason}"):
        list(read_chunks(path))
    skipped = Skipped()
    assert_array_equal(np.concatenate([chunk.line for chunk in read_chunks(path, skipped)]), [1, 3])
    assert skipped.count == 1


def test_parquet_of_other_tools_is_read_and_its_types_are_checked(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    columns = {"arms": [[0, 1], [1]], "arm": [1, 1], "reward": [1, 0], "propensity": [0.5, 1.0]}
    parquet.write_table(pa.table(columns), tmp_path / "least.parquet")
    log = open_log(tmp_path / "least.parquet")
    assert (log.arms, log.names.shared, log.names.own) == (2, (), ())
    more = columns | {"shared": [[0.5], [1.5]], "own": [[1.0, 2.0], [3.0]]}
    parquet.write_table(pa.table(more), tmp_path / "more.parquet")
    (chunk,) = read_chunks(tmp_path / "more.parquet")
    assert chunk.names.own == ("own[0]",)
    assert_array_equal(chunk.own, [[1], [2], [3]])
    for change in ({"arm": ["a", "b"]}, {"arms": [0, 1]}, {"reward": [[1.0], [0.0]]}):
        parquet.write_table(pa.table(columns | change), tmp_path / "odd.parquet")
        with pytest.raises(ValueError, match=f"odd.parquet: column {next(iter(change))} must have"):
            open_log(tmp_path / "odd.parquet")
    for text, reason in (
        ("{", "not ours, or damaged"),
        ('{"version": 2, "shared": [], "own": [], "arms": 2}', "version 2"),
    ):
        parquet.write_table(
            pa.table(columns).replace_schema_metadata({"neuralucb.log": text}), tmp_path / "odd.parquet"
        )
        with pytest.raises(ValueError, match=reason):
            open_log(tmp_path / "odd.parquet")


def test_files_that_are_no_logs_say_so(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and then nothing")
    parquet.write_table(pa.table({"x": [1]}), tmp_path / "table.parquet")
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    np.savez(tmp_path / "table.npz", X=np.zeros(3))
    (tmp_path / "empty.dsjson").write_text("")
    (tmp_path / "folder.parquet").mkdir()
    for name, reason in {
        "folder.parquet": "Is a directory; name one file",
        "torn.parquet": "no Parquet, or torn",
        "table.parquet": "no column arm, reward, propensity, arms",
        "table.csv": "not in the Open Bandit Dataset's form",
        "table.npz": "has no n_rounds",
        "log.txt": "a log must end in .parquet",
        "none.dsjson": "No such file",
        "none.parquet": "No such file",
        "none.npz": "No such file",
        "none.csv": "No such file",
        "empty.dsjson": "has no decision",
    }.items():
        with pytest.raises(ValueError, match=name) as refused:
            open_log(tmp_path / name)
        assert reason in str(refused.value)


def feedback(rounds=50, actions=3, seed=0):
    """A dictionary with every key that Open Bandit Pipeline knows."""
    random = np.random.default_rng(seed)
    p = random.dirichlet(np.ones(actions), size=rounds) + 0.01
    p /= p.sum(axis=1, keepdims=True)
    action = (p.cumsum(axis=1) > random.random((rounds, 1))).argmax(axis=1)
    return {
        "n_rounds": rounds,
        "n_actions": actions,
        "context": random.normal(size=(rounds, 4)),
        "action_context": random.normal(size=(actions, 2)),
        "action": action,
        "position": None,
        "reward": random.integers(0, 2, rounds),
        "pscore": p[np.arange(rounds), action],
        "pi_b": p[:, :, None],
        "expected_reward": random.random((rounds, actions)),
    }


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"position": np.arange(50) % 3},
        {"reward": np.random.default_rng(3).normal(size=50)},
        {"action_context": ...},
        {"pi_b": ..., "expected_reward": ...},
    ],
)
@pytest.mark.parametrize("through", ["memory", "log.npz", "log.parquet"])
def test_an_obp_dictionary_keeps_its_keys_shapes_types_and_values(tmp_path, changes, through):
    given = {key: value for key, value in (feedback() | changes).items() if value is not ...}
    chunks = list(from_obp(given))
    if through != "memory":
        write_log(tmp_path / through, chunks)
        chunks = list(read_chunks(tmp_path / through))
    back = to_obp(chunks)
    assert set(back) == set(given)
    for key, value in given.items():
        assert type(back[key]) is type(value), key
        if isinstance(value, np.ndarray):
            assert (back[key].dtype, back[key].shape) == (value.dtype, value.shape), key
            assert_array_equal(back[key], value, key)
        else:
            assert back[key] == value


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"pscore": np.zeros(50)}, "round 1: propensity must be above 0"),
        ({"pscore": np.full(50, np.nan)}, "round 1: reward or pscore is NaN"),
        ({"action": np.full(50, 9)}, "round 1: arm 9 is not among"),
        ({"context": np.zeros((49, 4))}, "context must have shape \\(50, any\\), got \\(49, 4\\)"),
        ({"reward": None}, "reward must have shape"),
    ],
)
def test_a_bad_obp_dictionary_is_refused(changes, reason):
    with pytest.raises(ValueError, match=reason):
        list(from_obp(feedback() | changes))
    with pytest.raises(ValueError, match="has no pscore"):
        list(from_obp({key: value for key, value in feedback().items() if key != "pscore"}))


def test_what_obp_cannot_say_is_not_written(tmp_path):
    for chunk, reason in (
        (decisions(masked=True), "not all 4 arms available"),
        (decisions(), "features that change from decision to decision"),
        (decisions(shared=True)._replace(reward=np.full(100, np.nan)), "has no reward"),
    ):
        with pytest.raises(ValueError, match=reason):
            to_obp([chunk])


OPEN_BANDIT = """,timestamp,item_id,position,click,propensity_score,user_feature_0,user_feature_1,{}
0,2019-11-24 00:00:34.831996+00:00,2,1,0,0.25,aa,x,0.0,1.0,0.5
1,2019-11-24 01:00:00+01:00,0,3,1,0.5,bb,x,0.0,0.0,2.0
""".format(",".join(f"user-item_affinity_{item}" for item in range(3)))


def test_the_open_bandit_datasets_form_is_read_and_written(tmp_path):
    (tmp_path / "obd.csv").write_text(OPEN_BANDIT)
    (chunk,) = read_chunks(tmp_path / "obd.csv")
    assert chunk.names.shared == ("user_feature_0=aa", "user_feature_0=bb", "user_feature_1=x")
    assert_array_equal(chunk.shared, [[1, 0, 1], [0, 1, 1]])
    assert_array_equal(chunk.own[:, 0], [0, 1, 0.5, 0, 0, 2])
    assert_array_equal(chunk.arm, [2, 0])
    assert_array_equal(chunk.position, [1, 3])
    assert_array_equal(chunk.propensity, [0.25, 0.5])
    assert [str(time)[11:19] for time in chunk.time] == ["00:00:34", "00:00:00"]
    for name in ("obd.parquet", "again.csv"):
        convert(tmp_path / "obd.csv", tmp_path / name)
        (again,) = read_chunks(tmp_path / name)
        assert_array_equal(again.shared, chunk.shared)
        assert_array_equal(again.position, chunk.position)
        assert_array_equal(again.time, chunk.time)
    with pytest.raises(ValueError, match="Open Bandit Dataset's form"):
        write_log(tmp_path / "other.csv", [decisions()])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("2,2019-11-24,1,1,0,0.0,aa,x,0,0,0", "propensity must be above 0"),
        ("2,2019-11-24,7,1,0,0.5,aa,x,0,0,0", "arm 7 is not among the 3"),
        ("2,2019-11-24,1,1,maybe,0.5,aa,x,0,0,0", "click must be a number, got 'maybe'"),
        ("2,2019-11-24,1,1,0,0.5,aa,x,0,nan,0", "user-item_affinity_1 must be a number"),
        ("2,2019-11-24,1", "it has 3 values, the first line has 11"),
    ],
)
def test_a_bad_line_of_the_open_bandit_dataset_is_refused(tmp_path, row, reason):
    (tmp_path / "obd.csv").write_text(OPEN_BANDIT + row + "\n")
    with pytest.raises(ValueError, match=f"obd.csv line 4: {reason}"):
        list(read_chunks(tmp_path / "obd.csv"))


def test_check_finds_duplicates_and_all_that_is_wrong(tmp_path, command):
    torn = json.dumps(EVENT | {"EventId": "four"})[:-9]
    path = write_lines(tmp_path / "log.dsjson", EVENT, EVENT | {"EventId": "two", "_label_probability": 2}, EVENT)
    path.write_text(path.read_text() + torn)
    found = check_log(path)
    assert [line for line, _ in found.first] == [2, 3, 4]
    assert found.decisions == 2
    code, _, err = command("logs", "check", "log.dsjson")
    assert code == 1
    assert "log.dsjson:2: propensity must be above 0 and at most 1, got 2" in err
    assert "log.dsjson:3: duplicate id, got 'one' again" in err
    assert "log.dsjson:4: the last line is torn" in err
    write_lines(path, EVENT)
    assert command("logs", "check", "log.dsjson")[0] == 0


def test_convert_tells_what_it_skipped(tmp_path, command):
    write_lines(tmp_path / "log.dsjson", EVENT, EVENT | {"pdrop": 2}, EVENT)
    code, _, err = command("logs", "convert", "log.dsjson", "log.parquet")
    assert code == 2
    assert "log.dsjson line 2: pdrop must be" in " ".join(err.split())
    code, out, err = command("logs", "convert", "log.dsjson", "log.parquet", "--skip-bad")
    assert code == 0
    assert "2 decisions written to log.parquet" in out
    assert "1 decisions skipped" in err
    write_lines(tmp_path / "bad.dsjson", EVENT | {"_label_probability": 2}, EVENT | {"pdrop": 2}, EVENT, [])
    _, _, err = command("logs", "convert", "bad.dsjson", "log.parquet", "--skip-bad")
    assert [f"bad.dsjson:{line}" for line in (1, 2, 4)] == [text.rpartition(":")[0] for text in err.splitlines()[1:]]
    assert command("logs", "convert", "log.dsjson", "log.dsjson")[0] == 2
    assert command("logs", "convert", "log.dsjson", "log.exe")[0] == 2
    code, _, err = command("logs", "convert", "log.parquet", "/proc/nowhere/log.dsjson")
    assert (code, "cannot be written" in err, "Traceback" in err) == (2, True, False)


def test_convert_says_why_nothing_was_left_to_write(tmp_path, command):
    write_lines(tmp_path / "log.dsjson", EVENT | {"pdrop": 1})
    code, _, err = command("logs", "convert", "log.dsjson", "log.npz", "--skip-bad")
    assert code == 2
    assert "log.dsjson:1: pdrop must be" in err
    assert "has no decision that can be used" in err


def test_memory_does_not_grow_with_the_log(tmp_path):
    """Six times the decisions, the same peak of Python's and NumPy's memory."""
    import tracemalloc

    peaks = []
    for count in (10_000, 60_000):
        path = tmp_path / f"{count}.parquet"
        write_log(path, (decisions(5000, 2, 1, seed=seed) for seed in range(count // 5000)))
        tracemalloc.start()
        convert(path, tmp_path / f"{count}.dsjson")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0] + 1e6


def chance_log(path, *, shared=False, count=300):
    """Decisions by chance, whose reward is the first feature of the arm, or of all."""
    random = np.random.default_rng(0)
    contexts = random.normal(size=(count, 4) if shared else (count, 3, 4)).astype(np.float32)
    arms = random.integers(3, size=count)
    rewards = contexts[:, 0] * (arms - 1) if shared else contexts[np.arange(count), arms, 0]
    rewards[::50] = np.nan  # never seen
    write_log(path, [recorded(contexts, arms, rewards, np.full((count, 3), 1 / 3))])
    return contexts


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("ending", ["parquet", "dsjson"])
def test_a_bandit_is_trained_from_a_log_and_decides_well_at_once(tmp_path, command, shared, ending):
    contexts = chance_log(tmp_path / "log.parquet", shared=shared)
    if ending != "parquet":
        convert(tmp_path / "log.parquet", tmp_path / f"log.{ending}")
    settings = ["--set", "regularization=0.1", "--floor", "0.05"]
    log, model = str(tmp_path / f"log.{ending}"), str(tmp_path / "model")
    code, out, err = command("train", log, "--policy", "lin-ucb", *settings, "--out", model)
    assert code == 0, err
    assert "294 rewards" in out
    bandit = OnlineBandit.load(model)
    assert bandit.names == {"shared": [], "own": []} | {
        "shared" if shared else "own": [f"{'shared' if shared else 'own'}[{column}]" for column in range(4)]
    }
    decisions = bandit.select_many(contexts)
    best = np.where(contexts[:, 0] > 0, 2, 0) if shared else contexts[:, :, 0].argmax(axis=1)
    assert np.mean([decision.arm for decision in decisions] == best) > 0.9
    assert decisions[0].propensity > 0.01


def test_training_refuses_what_it_cannot_use(tmp_path, command):
    chance_log(tmp_path / "log.parquet")
    good = str(tmp_path / "log.parquet")
    for arguments, reason in (
        ([str(tmp_path / "none.parquet"), "--out", str(tmp_path / "m")], "none.parquet"),
        ([good, "--policy", "nothing", "--out", str(tmp_path / "m")], "not known"),
        ([good, "--policy", "oracle", "--out", str(tmp_path / "m")], "expected rewards"),
        ([good, "--policy", "lin-ucb", "--floor", "2", "--out", str(tmp_path / "m")], "floor must be"),
        (
            [good, "--set", "step_size=1e9", "--set", "width=8", "--set", "steps=20", "--out", str(tmp_path / "m")],
            "diverged",
        ),
    ):
        code, _, err = command("train", *arguments)
        assert code == 2, err
        assert reason in err
    empty = recorded(np.ones((3, 2, 2)), np.zeros(3, int), np.full(3, np.nan), np.full((3, 2), 0.5))
    write_log(tmp_path / "empty.parquet", [empty])
    with pytest.raises(ValueError, match="no reward to learn from"):
        OnlineBandit(build("lin-ucb", dim=2)).fit(open_log(tmp_path / "empty.parquet"))
    with pytest.raises(ValueError, match="3.*4|4.*3"):
        OnlineBandit(build("lin-ucb", dim=3)).fit(open_log(tmp_path / "log.parquet"))


def test_a_log_with_a_bad_row_teaches_nothing(tmp_path):
    import pyarrow.parquet as pq

    chance_log(tmp_path / "log.parquet", count=20_000)
    table = pq.read_table(tmp_path / "log.parquet")
    bad = table["propensity"].to_pylist()
    bad[-1] = 7.0
    index = table.schema.get_field_index("propensity")
    pq.write_table(table.set_column(index, "propensity", [bad]), tmp_path / "bad.parquet")
    bandit = OnlineBandit(build("lin-ucb", dim=4))
    with pytest.raises(ValueError, match="bad.parquet.*20000"):
        bandit.fit(open_log(tmp_path / "bad.parquet"))
    assert bandit.health().observed == 0
