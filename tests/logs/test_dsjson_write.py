"""dsjson, written: Vowpal Wabbit reads and learns what was logged."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from neuralucb.logs import convert, read_chunks, write_log
from tests.logs.examples import EVENT, decisions, same, together, with_context, write_lines


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


def test_features_of_a_namespace_need_not_stand_together(tmp_path):
    events = [with_context(User=user, Geo={"lat": 2.0}) for user in ({"age": 1.0}, {"age": 1.5, "late": 3.0})]
    convert(write_lines(tmp_path / "log.dsjson", *events), tmp_path / "log.parquet")
    convert(tmp_path / "log.parquet", tmp_path / "again.dsjson")
    (chunk,) = read_chunks(tmp_path / "again.dsjson")
    assert chunk.names.shared == ("User/age", "User/late", "Geo/lat")
    assert_array_equal(chunk.shared, [[1, 0, 2], [1.5, 3, 2]])


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


@pytest.mark.parametrize("weight", [1.0, 1.5, 3.0, 1e10])
def test_weights_survive_dsjson(tmp_path, weight):
    chunk = decisions(5)._replace(weight=np.full(5, weight))
    write_log(tmp_path / "log.dsjson", [chunk])
    np.testing.assert_allclose(together(tmp_path / "log.dsjson").weight, weight, rtol=1e-5)


@pytest.mark.parametrize("weight", [0.5, 1e17])
def test_weights_that_dsjson_cannot_say_are_refused(tmp_path, weight):
    chunk = decisions(5)._replace(weight=np.asarray([1, 1, weight, 1, 1.0]))
    with pytest.raises(ValueError, match="decision 3 has weight .*, and dsjson can only express weights from 1"):
        write_log(tmp_path / "log.dsjson", [chunk])
    assert not (tmp_path / "log.dsjson").exists()
