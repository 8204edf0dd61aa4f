"""Logs at their edges: what other tools and damaged files bring, each refused with its line or read as it is meant."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from neuralucb.logs import Skipped, check_log, convert, from_obp, open_log, read_chunks, recorded, to_obp, write_log
from neuralucb.logs import dsjson_read as dsjson
from neuralucb.logs import json_features as features
from neuralucb.logs.check import _Ids
from neuralucb.logs.dsjson_read import Events

from .test_logs import EVENT, OPEN_BANDIT, decisions, feedback, same, together, with_context, write_lines


def other_parquet(path, **columns):
    """A log as another tool might write it: two decisions, no metadata, types as pyarrow finds them."""
    import pyarrow as pa
    from pyarrow import parquet

    least = {"arms": [[0, 1], [0, 1]], "arm": [1, 0], "reward": [1.0, 0.0], "propensity": [0.5, 0.5]}
    parquet.write_table(pa.table(least | columns), path)
    return path


def lines_kept(path, skipped):
    return [line for chunk in read_chunks(path, skipped) for line in chunk.line.tolist()]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"arm": [1, 2**32]}, "arm 4294967296 is not among the 2 available"),
        ({"arm": [1.0, 0.7]}, "arm must be a whole number, got 0.7"),
        ({"arms": [[0, 1], [0, 2**32 + 1]]}, "arms must be whole numbers"),
        ({"arms": [[0.0, 1.0], [0.0, 1.9]]}, "arms must be whole numbers"),
        ({"arms": [[0, 1], [0, None]]}, "arms must be whole numbers"),
        ({"arms": [[0, 1], [0, 1_999_999_999]]}, "an arm is not in 0 to 65535"),
        ({"probabilities": [[0.5, 0.5], [0.5, float("nan")]]}, "some probabilities are NaN"),
        ({"expected": [[0.5, 0.5], [0.5, float("nan")]]}, "some expected rewards are NaN"),
        ({"position": [1.0, 1.5]}, "position must be a whole number, got 1.5"),
    ],
)
def test_no_number_of_parquet_is_cut_or_wrapped(tmp_path, columns, reason):
    path = other_parquet(tmp_path / "log.parquet", **columns)
    with pytest.raises(ValueError, match=f"log.parquet row 2: {reason}"):
        list(read_chunks(path))
    skipped = Skipped()
    assert (lines_kept(path, skipped), skipped.count) == ([1], 1)
    assert open_log(path).arms == 2


def test_a_log_without_any_arm_is_no_log(tmp_path):
    import pyarrow as pa

    path = other_parquet(tmp_path / "log.parquet", arms=pa.nulls(2))
    with pytest.raises(ValueError, match="log.parquet has no decision that can be used"):
        open_log(path)


def test_types_of_other_tools_are_read_as_they_are_meant(tmp_path):
    import pyarrow as pa

    path = other_parquet(
        tmp_path / "log.parquet", id=[7, 8], shared=[[1], [2]], own=[[0.5, 0.1], [0.25, 0.5]], propensity=pa.nulls(2)
    )
    convert(path, tmp_path / "again.parquet")
    for name in ("log.parquet", "again.parquet"):
        (chunk,) = read_chunks(tmp_path / name)
        assert chunk.id.tolist() == ["7", "8"]
        assert np.isnan(chunk.propensity).all()  # a column without a type is one of nulls: deterministic
        assert_array_equal(chunk.own[:, 0], [0.5, 0.1, 0.25, 0.5])
        assert_array_equal(chunk.shared[:, 0], [1, 2])


def test_whole_rewards_stay_whole_where_some_were_not_seen(tmp_path):
    chunk = decisions(4)._replace(reward=np.asarray([1, 0, 1, 1]))
    later = chunk._replace(reward=np.asarray([1.0, np.nan, 0.0, 1.0]))
    write_log(tmp_path / "log.parquet", [chunk, later])
    convert(tmp_path / "log.parquet", tmp_path / "again.parquet")
    for name in ("log.parquet", "again.parquet"):
        assert_array_equal(together(tmp_path / name).reward, [1, 0, 1, 1, 1, np.nan, 0, 1])
    with pytest.raises(ValueError, match="decision 2 has the reward 0.5, but the first had whole numbers"):
        write_log(tmp_path / "odd.parquet", [chunk, later._replace(reward=np.asarray([1.0, 0.5, 0.0, 1.0]))])


@pytest.mark.parametrize("time", [["2020-01-01", "yesterday"], [1577836800000, 1577836800000]])
def test_a_column_of_times_must_have_times(tmp_path, time):
    path = other_parquet(tmp_path / "log.parquet", time=time)
    with pytest.raises(ValueError, match="log.parquet: column time must have timestamps, got"):
        list(read_chunks(path))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"action": np.full(50, 2**32)}, "round 1: arm 4294967296 is not among"),
        ({"action": np.full(50, 1e30)}, "round 1: action must be a whole number"),
        ({"action": np.full(50, 0.9)}, "round 1: action must be a whole number"),
        ({"pi_b": np.full((50, 3, 1), np.nan)}, "round 1: pi_b has NaN"),
        ({"expected_reward": np.full((50, 3), np.nan)}, "round 1: expected_reward has NaN"),
        ({"context": np.full((50, 4), "a")}, "context must have numbers, got an array of <U1"),
        ({"reward": np.full(50, "a")}, "reward must have numbers"),
        ({"position": np.full(50, 0.5)}, "position must have whole numbers"),
        ({"n_rounds": np.asarray([50, 50])}, "n_rounds must be one whole number"),
        ({"n_actions": 2.5}, "n_actions must be one whole number, got 2.5"),
        ({"n_actions": 10**9}, "n_actions must be at most 65536"),
        ({"context": [[1.0], [1.0, 2.0]]}, "context must be an array"),
    ],
)
@pytest.mark.parametrize("through", ["memory", "npz"])
def test_an_odd_obp_dictionary_is_refused_in_words(tmp_path, changes, reason, through):
    given = {name: value for name, value in (feedback() | changes).items() if value is not None}
    if through == "memory":
        with pytest.raises(ValueError, match=reason):
            list(from_obp(given))
    elif "must be an array" not in reason:
        np.savez(tmp_path / "log.npz", **given)
        with pytest.raises(ValueError, match="log.npz") as refused:
            list(read_chunks(tmp_path / "log.npz"))
        assert reason.removeprefix("round 1: ")[:30] in str(refused.value)


def test_an_obp_dictionary_may_have_lists_and_none(tmp_path):
    given = feedback() | {"expected_reward": None, "action_context": None, "pi_b": None}
    listed = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in given.items()}
    back = to_obp(from_obp(listed))
    assert set(back) == {"n_rounds", "n_actions", "context", "action", "position", "reward", "pscore"}
    assert_array_equal(back["context"], given["context"])


@pytest.mark.parametrize("through", ["memory", "log.npz", "log.parquet"])
def test_an_obp_dictionary_keeps_whole_numbers_of_32_bits(tmp_path, through):
    given = feedback() | {"position": np.arange(50, dtype=np.int32) % 3}
    given |= {name: given[name].astype(np.int32) for name in ("action", "reward")}
    chunks = list(from_obp(given))
    if through != "memory":
        write_log(tmp_path / through, chunks)
        chunks = list(read_chunks(tmp_path / through))
    back = to_obp(chunks)
    for name in ("action", "reward", "position"):
        assert back[name].dtype == np.int32, name
        assert_array_equal(back[name], given[name])


def test_an_npz_with_none_in_it_names_the_key(tmp_path):
    np.savez(tmp_path / "log.npz", **feedback())  # position is None, which only a pickle can say
    with pytest.raises(ValueError, match=r"log.npz cannot be read: position is no plain array; leave out what is None"):
        list(read_chunks(tmp_path / "log.npz"))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("2,2019-11-24,1.7,1,0,0.5,aa,x,0,0,0\n", "item_id must be a whole number, got '1.7'"),
        ("2,2019-11-24,4294967296,1,0,0.5,aa,x,0,0,0\n", "item_id must be a whole number, got '4294967296'"),
        ("2,2019-11-24,1,0.5,0,0.5,aa,x,0,0,0\n", "position must be a whole number, got '0.5'"),
        ("2,yesterday,1,1,0,0.5,aa,x,0,0,0\n", "timestamp must be a time, got 'yesterday'"),
        ("2,0001-01-01 00:00:00+14:00,1,1,0,0.5,aa,x,0,0,0\n", "timestamp must be a time"),
        ("2,2019-11-24,1,1,0,0.5,aa,x,0,0,0.2", "the last line is torn"),
    ],
)
def test_no_value_of_a_csv_is_cut_and_no_torn_line_is_believed(tmp_path, row, reason):
    path = tmp_path / "obd.csv"
    path.write_text(OPEN_BANDIT + row)
    with pytest.raises(ValueError, match=f"obd.csv line 4: {reason}"):
        list(read_chunks(path))
    skipped = Skipped()
    assert (lines_kept(path, skipped), skipped.count) == ([2, 3], 1)
    path.write_text(OPEN_BANDIT + "\n")  # a blank line at the end is nothing
    assert lines_kept(path, None) == [2, 3]


def test_clicks_may_be_whole_at_first_and_fractions_later(tmp_path):
    head, row, _ = OPEN_BANDIT.splitlines(keepends=True)
    (tmp_path / "obd.csv").write_text(head + row * 5000 + row.replace(",1,0,0.25", ",1,0.5,0.25"))
    for name in ("log.parquet", "again.csv"):
        assert convert(tmp_path / "obd.csv", tmp_path / name) == 5001
        assert np.concatenate([chunk.reward for chunk in read_chunks(tmp_path / name)])[-1] == 0.5
    assert (tmp_path / "again.csv").read_text().splitlines()[1].startswith("0,2019-11-24 00:00:34.831996+00:00,2,1,0,")


def test_a_csv_is_written_in_pieces(tmp_path):
    (tmp_path / "obd.csv").write_text(OPEN_BANDIT)
    from neuralucb.logs import open_bandit as openbandit

    (chunk,) = read_chunks(tmp_path / "obd.csv")
    sizes = []

    def chunks():
        for _ in range(3):
            sizes.append((tmp_path / "out.csv").stat().st_size if (tmp_path / "out.csv").exists() else 0)
            yield chunk._replace(own=np.tile(chunk.own, (2000, 1)), **repeated(chunk, 2000))

    assert openbandit.write_csv(tmp_path / "out.csv", chunks()) == 12_000
    assert sizes[2] > sizes[1]  # the second piece was on its way before the third was asked for


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"propensity": [[0.5, 0.5], [0.0, 1.0]]}, "decision 2: propensity must be above 0 and at most 1, got 0"),
        ({"propensity": [[0.5, 0.5], [-0.5, 1.5]]}, "decision 2: propensity must be above 0 and at most 1, got -0.5"),
        ({"propensity": [[0.5, 0.5], [0.5, 0.1]]}, "decision 2: probabilities must add to 1, got 0.6"),
        ({"propensity": [[0.5, 0.5], [np.nan, np.nan]]}, "decision 2: propensity is NaN"),
        ({"reward": [1.0, np.inf]}, "decision 2: reward must be finite, .*, got inf"),
        ({"reward": [1.0]}, r"reward must have shape \(2,\)"),
        ({"arm": [0, -1]}, "decision 2: arm must be a whole number in 0 to 1, got -1"),
        ({"arm": [0, 2]}, "decision 2: arm must be a whole number in 0 to 1, got 2"),
        ({"arm": [0, 0.5]}, "decision 2: arm must be a whole number in 0 to 1, got 0.5"),
        ({"arm": [[0, 0]]}, r"arm must have shape \(2,\)"),
        ({"contexts": [[[1.0], [1.0]], [[np.nan], [1.0]]]}, "decision 2: a feature is NaN"),
        ({"available": [[True, True], [False, True]]}, "decision 2: arm 0 is not among the 1 available"),
        ({"available": [[True, True]]}, r"available must have shape \(2, 2\)"),
    ],
)
def test_nothing_is_recorded_that_no_log_may_hold(changes, reason):
    given = {"contexts": np.ones((2, 2, 1)), "arm": [0, 0], "reward": [1.0, 0.0], "propensity": np.full((2, 2), 0.5)}
    with pytest.raises(ValueError, match=reason):
        recorded(**(given | {name: np.asarray(value) for name, value in changes.items()}))


@pytest.mark.parametrize("ending", ["parquet", "dsjson", "npz", "csv"])
def test_nothing_is_written_that_could_not_be_read_back(tmp_path, ending):
    path = tmp_path / f"log.{ending}"
    good = decisions(3, shared=True)
    for changes, reason in (
        (
            {"propensity": np.asarray([0.5, 1.5, 0.5]), "probabilities": None},
            "decision 2 cannot .*: propensity must be",
        ),
        ({"reward": np.asarray([1.0, 1.0, np.inf])}, "decision 3 cannot be written to .*: reward must be finite"),
        ({"shared": np.full((3, 3), np.nan)}, "decision 1 cannot be written to .*: a feature is NaN"),
        ({"arm": np.asarray([0, 9, 0])}, "decision 2 cannot be written to .*: arm 9 is not among the 4"),
    ):
        with pytest.raises(ValueError, match=reason):
            write_log(path, [good._replace(**changes)])
    with pytest.raises(ValueError, match="there is no decision to write"):
        write_log(path, [])
    assert not path.exists()


@pytest.mark.parametrize("ending", ["parquet", "npz", "csv"])
def test_a_log_of_which_nothing_can_be_used_is_not_converted(tmp_path, ending):
    for events in ([EVENT | {"pdrop": 1}], []):
        path = write_lines(tmp_path / "log.dsjson", *events)
        with pytest.raises(ValueError, match="log.dsjson has no decision that can be used"):
            convert(path, tmp_path / f"out.{ending}", Skipped())
        assert not (tmp_path / f"out.{ending}").exists()
        assert not check_log(path).sound


def test_a_csv_with_a_column_twice_is_refused(tmp_path):
    (tmp_path / "obd.csv").write_text(OPEN_BANDIT.replace("user_feature_1", "click"))
    with pytest.raises(ValueError, match="obd.csv has more than one column click"):
        list(read_chunks(tmp_path / "obd.csv"))


def test_an_empty_log_is_found_by_check(tmp_path):
    found = check_log(write_lines(tmp_path / "log.dsjson"))
    assert (found.sound, found.first) == (False, [(1, "there is no decision in it")])


@pytest.mark.parametrize("ending", ["parquet", "dsjson"])
def test_every_bad_decision_is_told_once_however_far_passes_go(tmp_path, ending):
    bad = np.asarray([3, 5, 9000, 19_999])
    if ending == "dsjson":
        events = [EVENT | ({"pdrop": 2} if n in bad else {}) for n in range(20_000)]
        path = write_lines(tmp_path / "log.dsjson", *events)
    else:
        import pyarrow as pa
        from pyarrow import parquet

        write_log(tmp_path / "good.parquet", [decisions(20_000, 2, 1)])
        table = parquet.read_table(tmp_path / "good.parquet")
        weight = np.where(np.isin(np.arange(20_000), bad), -1.0, 1.0)
        table = table.set_column(table.column_names.index("weight"), "weight", pa.array(weight))
        path = tmp_path / "log.parquet"
        parquet.write_table(table, path)
    skipped = Skipped()
    log = open_log(path, skipped)
    next(log.chunks())  # a pass that stops early
    for _ in range(2):
        assert sum(len(chunk.line) for chunk in log.chunks()) == 20_000 - 4
        assert skipped.count == 4
    assert [line for line, _ in skipped.first] == (bad + 1).tolist()


def test_ids_are_told_apart_in_time_that_grows_with_their_number():
    ids, seen = _Ids(), []
    numbers = [f"id {n}" for n in np.random.default_rng(0).integers(30_000, size=40_000)]
    for first in range(0, 40_000, 500):
        lines = np.arange(first, first + 500)
        seen += [line for line, _ in ids.seen_before(np.asarray(numbers[first : first + 500], object), lines)]
    known = set()
    assert seen == [line for line, one in enumerate(numbers) if one in known or known.add(one)]
    assert len(ids.runs) < 12  # runs double in length, so that few are searched and an id is moved few times


NUMBERED = EVENT | {"c": {"_multi": [{"arm": {str(arm): 1}} for arm in range(3)]}}


def numbered(*arms):
    return EVENT | {"c": {"_multi": [{"arm": {arm: 1}} for arm in arms]}}


def nested(depth):
    inner = 1
    for _ in range(depth):
        inner = {"a": inner}
    return inner


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (NUMBERED, EVENT, "it mixes with lines before it"),
        (EVENT, NUMBERED, "it mixes with lines before it"),
        (NUMBERED, EVENT | {"c": {"_multi": [{}, {}, {}]}}, "it mixes with lines before it"),
        (NUMBERED, numbered("0", "²", "2"), "it mixes with lines before it"),
        (NUMBERED, numbered("0", "99999999999", "2"), "arm 99999999999 is not in 0 to 65535"),
        (NUMBERED, numbered("0", "1999999999", "2"), "arm 1999999999 is not in 0 to 65535"),
        (NUMBERED, numbered("0", "1", "1"), "an arm is listed twice"),
        (EVENT, with_context(User=nested(900)), "its features are nested too deeply"),
        (EVENT, EVENT | {"Timestamp": "0001-01-01T00:00:00+14:00"}, "Timestamp is not a time"),
    ],
)
@pytest.mark.parametrize("before", [1, 70])
def test_an_event_of_another_kind_is_refused_with_its_line_or_skipped(tmp_path, first, second, reason, before):
    path = write_lines(tmp_path / "log.dsjson", *[first] * before, second, *[first] * before)
    with pytest.raises(ValueError, match=f"log.dsjson line {before + 1}: {reason}"):
        list(read_chunks(path))
    skipped = Skipped()
    assert len(lines_kept(path, skipped)) == 2 * before
    assert skipped.count == 1


def test_other_digits_are_features_and_not_arms(tmp_path):
    (chunk,) = read_chunks(write_lines(tmp_path / "log.dsjson", numbered("0", "²", "2")))
    assert chunk.names.own == ("arm/0", "arm/²", "arm/2")
    assert_array_equal(chunk.arms, [0, 1, 2])


def test_what_is_not_to_be_learned_from_is_not_checked(tmp_path):
    odd = EVENT | {"_skipLearn": True, "a": [2, 1], "c": {"_multi": [{"_text": "free"}]}}
    assert lines_kept(write_lines(tmp_path / "log.dsjson", EVENT, odd, {"_skipLearn": True}, EVENT), None) == [1, 4]


def test_features_of_a_namespace_need_not_stand_together(tmp_path):
    events = [with_context(User=user, Geo={"lat": 2.0}) for user in ({"age": 1.0}, {"age": 1.5, "late": 3.0})]
    convert(write_lines(tmp_path / "log.dsjson", *events), tmp_path / "log.parquet")
    convert(tmp_path / "log.parquet", tmp_path / "again.dsjson")
    (chunk,) = read_chunks(tmp_path / "again.dsjson")
    assert chunk.names.shared == ("User/age", "User/late", "Geo/lat")
    assert_array_equal(chunk.shared, [[1, 0, 2], [1.5, 3, 2]])


def test_events_read_at_once_are_read_as_each_alone(tmp_path):
    random = np.random.default_rng(0)

    def shuffled(space):
        return {name: space[name] for name in random.permutation(list(space)).tolist()}

    def event(n):
        user = shuffled({"age": float(n), "hour": n % 24, "new": n == 70})
        return with_context(User=user, One={"x": -n}, None_={}, List=[n, 0.5, n + 1])

    events = [event(n) for n in range(200)]
    path = write_lines(tmp_path / "log.dsjson", *events)
    chunk, alone = together_wide(path), Events()
    for line, one in enumerate(events, 1):
        alone.add(line, one)
    same(chunk, alone.chunk(None))
    place = {name: column for column, name in enumerate(chunk.names.shared)}
    wanted = {
        "User/age": range(200),
        "User/hour": np.arange(200) % 24,
        "List[2]": range(1, 201),
        "One/x": range(0, -200, -1),
    }
    for name, values in wanted.items():
        assert_array_equal(chunk.shared[:, place[name]], values)
    assert_array_equal(np.flatnonzero(chunk.shared[:, place["User/new"]]), [70])


@pytest.mark.parametrize(
    "odd", [[1.0, "2", 3.0], [1.0, None, 3.0], {"a": 1, "b": 2, "c": 3}, "abc", [1.0, 2.0], [[1, 2, 3]]]
)
def test_a_list_may_hold_anything_among_lists_of_numbers(tmp_path, odd):
    plain, other = with_context(User=[1.0, 2.0, 3.0]), with_context(User=odd)
    chunk = together_wide(write_lines(tmp_path / "log.dsjson", *[plain] * 30, other, *[plain] * 30))
    alone = Events()
    for line, one in enumerate([*[plain] * 30, other, *[plain] * 30], 1):
        alone.add(line, one)
    same(chunk, alone.chunk(None))


ODD = (
    {"x": 5}, {"x": None}, {"x": False}, {"x": True}, {"x": "a"}, {"x": "b"}, {"x": "5"}, {"x": []}, {"x": {}},
    {"k": {"a": 1}}, {"k": [["a", 1]]}, {"k": {"": {"a": 2}}}, {"k": [{"a": 3}]}, {"k": ["a", {"a": "a"}, 7]},
    {"k": {"a": None, "b": 2}}, {"k": {"a": 2, "b": None}}, {"k": {"_a": 9, "b": 2}}, {"_k": "w", "x": "a"}, {},
    {"x": 1, "k": {"w": "a", "n": 2.5}}, {"k": {"n": 2.5, "w": "a"}, "x": 1}, {"0": 1}, {"k": [0, None, "0"]},
)  # fmt: skip


def test_what_was_read_once_is_read_the_same_again():
    remembers, forgets = features.Features(), features.Features()
    for item in (*ODD, *ODD, *reversed(ODD)):
        remembers.add(item)
        forgets.forget_layouts()
        forgets.add(item)
    assert remembers.names == forgets.names
    assert_array_equal(remembers.rows(), forgets.rows())
    assert_array_equal(remembers.rows()[len(ODD) : 2 * len(ODD)], remembers.rows()[: len(ODD)])


def test_features_without_names_are_one_list_and_odd_names_survive(tmp_path):
    write_log(tmp_path / "log.dsjson", [decisions(2, dim=2)])
    text = (tmp_path / "log.dsjson").read_text()
    assert '"_multi":[{"own":[' in text
    vowpalwabbit = pytest.importorskip("vowpalwabbit")
    workspace = vowpalwabbit.Workspace("--cb_explore_adf --dsjson --quiet --noconstant")
    read = [example for line in text.splitlines() for example in workspace.parse(line)]
    seen = [[value for _, value in example.iter_features()] for example in read if example.num_namespaces()]
    assert_array_equal(seen, decisions(2, dim=2).own)
    odd = decisions(3, shared=True, dim=3)
    odd = odd._replace(names=odd.names._replace(shared=("a\0b", "100%s", 'q"[0]')))
    write_log(tmp_path / "odd.dsjson", [odd])
    same(together(tmp_path / "odd.dsjson"), odd)


def test_a_feature_may_have_the_name_of_a_namespace_but_not_in_one_decision(tmp_path):
    path = write_lines(tmp_path / "log.dsjson", with_context(User=2.0), EVENT)
    convert(path, tmp_path / "again.dsjson")
    same(together(tmp_path / "again.dsjson"), together(path))
    both = decisions(1, shared=True, dim=2)
    with pytest.raises(ValueError, match="feature x has the name of a namespace"):
        write_log(tmp_path / "both.dsjson", [both._replace(names=both.names._replace(shared=("x", "x/y")))])


def test_a_decision_without_reward_and_probabilities_keeps_its_propensity(tmp_path):
    chunk = decisions(3)._replace(probabilities=None, reward=np.asarray([1.0, np.nan, np.nan]))
    write_log(tmp_path / "log.dsjson", [chunk])
    (back,) = read_chunks(tmp_path / "log.dsjson")
    assert_array_equal(back.reward, chunk.reward)
    assert_array_equal(back.propensity, chunk.propensity)
    vowpalwabbit = pytest.importorskip("vowpalwabbit")
    workspace = vowpalwabbit.Workspace(f"--cb_explore_adf --dsjson --quiet --invert_hash {tmp_path / 'model'}")
    for line in (tmp_path / "log.dsjson").read_text().splitlines()[1:]:
        examples = workspace.parse(line)
        workspace.learn(examples)
        workspace.finish_example(examples)
    workspace.finish()
    assert "weighted_labeled_examples 0\n" in (tmp_path / "model").read_text()


def test_chunks_are_small_where_there_are_many_columns(tmp_path):
    events = [with_context(User={"country": f"c{n % 2000}"}) for n in range(6000)]
    sizes = [chunk.shared.size + chunk.own.size for chunk in read_chunks(write_lines(tmp_path / "log.dsjson", *events))]
    assert max(sizes) < 1.1 * dsjson.NUMBERS
    events = [with_context(User={"id": f"c{n}"}) for n in range(5000)]
    with pytest.raises(ValueError, match="line 4097: feature 'User/id=c4096' is one of more than 4096; drop identif"):
        list(read_chunks(write_lines(tmp_path / "log.dsjson", *events)))


def test_layouts_of_words_are_forgotten_and_columns_are_not(tmp_path, monkeypatch):
    monkeypatch.setattr(features, "LAYOUTS", 3)
    words = [{"country": f"c{n % 7}", "hour": f"h{n % 5}", "x": float(n)} for n in range(9000)]
    path = write_lines(tmp_path / "log.dsjson", *(with_context(User=user) for user in words))
    chunk = together_wide(path)
    place = {name: column for column, name in enumerate(chunk.names.shared)}
    rows = np.arange(9000)
    assert_array_equal(chunk.shared[rows, [place[f"User/country=c{n % 7}"] for n in rows]], 1)
    assert_array_equal(chunk.shared[:, place["User/x"]], rows)
    assert_array_equal(chunk.shared.sum(axis=1), 2 + rows)


def test_reading_takes_as_long_for_events_that_are_left_out():
    """One event in two is bad: the others are not counted again for each of them."""
    import time

    def seconds(count):
        batch, start = Events(), time.process_time()
        for line in range(count):
            batch.add(line, EVENT)
            with pytest.raises(ValueError, match="neither"):
                batch.add(line, {key: EVENT[key] for key in "ac"})
        return time.process_time() - start

    seconds(100)
    assert seconds(4000) < 8 * seconds(1000) + 0.1


def together_wide(path):
    chunks = list(read_chunks(path))
    width = chunks[-1].shared.shape[1]
    wide = [np.pad(chunk.shared, ((0, 0), (0, width - chunk.shared.shape[1]))) for chunk in chunks]
    return chunks[-1]._replace(shared=np.concatenate(wide))


def repeated(chunk, times):
    names = ("line", "id", "time", "counts", "arms", "arm", "reward", "propensity", "weight", "position")
    return {name: np.tile(getattr(chunk, name), times) for name in names} | {
        "shared": np.tile(chunk.shared, (times, 1))
    }


@pytest.mark.parametrize(
    "first",
    [
        NUMBERED | {"_label_probability": 0.0},
        with_context(User={f"f{number}": 1.0 for number in range(4096)}) | {"_label_probability": 0.0},
        with_context(User={"age": 1.0, "odd": 1e39}),
        with_context(Other={"x": 1.0}) | {"a": [2, 2, 3]},
        with_context(Other={"x": 1.0}, _multi=[{"Item": {"price": 1.0}}, {"_text": "words"}, {}]),
    ],
)
def test_an_event_that_cannot_be_used_decides_nothing_about_the_others(tmp_path, first):
    good = [EVENT | {"EventId": str(number)} for number in range(20)]
    alone = open_log(write_lines(tmp_path / "alone.dsjson", *good))
    skipped = Skipped()
    log = open_log(write_lines(tmp_path / "log.dsjson", first, *good), skipped)
    assert skipped.count == 1
    assert (log.names, log.decisions) == (alone.names, 20)
    for one, other in zip(log.chunks(), alone.chunks(), strict=True):
        assert_array_equal(one.shared, other.shared)
        assert_array_equal(one.own, other.own)


@pytest.mark.parametrize("changes", [{"_label_cost": 1e39}, {"_label_cost": -1e39}])
def test_a_reward_beyond_float32_is_refused(tmp_path, changes):
    with pytest.raises(ValueError, match=r"line 1: reward must be finite, and at most 3\.4e\+38 in size, got"):
        list(read_chunks(write_lines(tmp_path / "log.dsjson", EVENT | changes)))


def test_a_feature_beyond_float32_is_refused(tmp_path):
    event = with_context(User={"age": 1e39})
    with pytest.raises(ValueError, match=r"line 1: a feature is NaN or infinite, or above 3\.4e\+38 in size"):
        list(read_chunks(write_lines(tmp_path / "log.dsjson", event)))


@pytest.mark.parametrize("weight", [1.0, 1.5, 3.0, 1e10])
def test_weights_survive_dsjson(tmp_path, weight):
    chunk = decisions(5)._replace(weight=np.full(5, weight))
    write_log(tmp_path / "log.dsjson", [chunk])
    np.testing.assert_allclose(together(tmp_path / "log.dsjson").weight, weight, rtol=1e-5)


@pytest.mark.parametrize("weight", [0.5, 1e17])
def test_weights_that_dsjson_cannot_say_are_refused(tmp_path, weight):
    chunk = decisions(5)._replace(weight=np.asarray([1, 1, weight, 1, 1.0]))
    with pytest.raises(ValueError, match="decision 3 has weight .*, and dsjson can only say weights from 1"):
        write_log(tmp_path / "log.dsjson", [chunk])
    assert not (tmp_path / "log.dsjson").exists()


def test_parquet_with_a_column_twice_is_refused(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    columns = [pa.array([[0, 1]]), pa.array([1]), pa.array([0]), pa.array([1.0]), pa.array([0.5])]
    names = ["arms", "arm", "arm", "reward", "propensity"]
    parquet.write_table(pa.Table.from_arrays(columns, names), tmp_path / "log.parquet")
    with pytest.raises(ValueError, match="log.parquet has more than one column named arm; rename them"):
        check_log(tmp_path / "log.parquet")


def test_missing_features_are_not_zeros(tmp_path):
    path = other_parquet(tmp_path / "log.parquet", own=[[0.5, 0.1], None])
    with pytest.raises(ValueError, match="row 2: own is missing; an empty list says that there are no features"):
        list(read_chunks(path))


def test_a_csv_is_not_written_with_positions_that_nobody_knows(tmp_path):
    (tmp_path / "log.csv").write_text(OPEN_BANDIT)
    convert(tmp_path / "log.csv", tmp_path / "log.dsjson")
    with pytest.raises(ValueError, match="a .csv must have the position of every decision, which is not known"):
        convert(tmp_path / "log.dsjson", tmp_path / "again.csv")


def test_arms_keep_their_type_in_memory(tmp_path):
    write_log(tmp_path / "log.parquet", from_obp(feedback()))
    assert to_obp(open_log(tmp_path / "log.parquet").chunks())["action"].dtype == feedback()["action"].dtype
