"""Batches: named by what they hold, and run."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from neuralucb.algorithms import NETWORKS, register_network
from neuralucb.sweeps.batches import forget_programs, make_batches, run_batch
from neuralucb.sweeps.spec import Part, Sweep
from neuralucb.sweeps.store import Store
from tests.sweeps.helpers import run_tiny, tiny, with_data


def test_batches_hold_every_run_once_and_are_named_by_what_they_hold():
    whole, cut = make_batches(tiny(), lanes=100), make_batches(tiny(), lanes=4)
    for batches in (whole, cut):
        runs = [(b.algorithm, json.dumps(r.swept), r.seed) for b in batches for r in b.runs]
        assert len(runs) == len(set(runs)) == 9
    assert max(len(batch.runs) for batch in cut) <= 4
    assert len({batch.name for batch in cut}) == len(cut)
    assert [batch.name for batch in cut] == [batch.name for batch in make_batches(tiny(), lanes=4)]
    assert {b.name for b in make_batches(tiny(rounds=31), lanes=4)}.isdisjoint(b.name for b in cut)
    assert [batch.algorithm for batch in cut[:2]] == ["lin-ucb", "uniform"]  # one of each shape first


def test_long_curves_are_thinned_to_a_thousand_points_and_say_so(tmp_path):
    run_tiny(tmp_path / "out", tiny(seeds=1, rounds=2345))
    table = Store(tmp_path / "out").read(["curve", "curve_every", "final_regret"])
    assert table["curve_every"][0].as_py() == 3
    assert len(table["curve"][0].as_py()) == 782
    np.testing.assert_allclose(table["curve"][0].as_py()[-1], table["final_regret"][0].as_py(), rtol=1e-6)


def test_data_are_not_mixed_in_one_folder(tmp_path, monkeypatch):
    sweep = Sweep("real", 20, (0, 1), (Part("uniform", "shuttle"),))
    with_data(tmp_path / "first", monkeypatch, 1)
    run_tiny(tmp_path / "out", sweep)
    (planned,) = make_batches(sweep, lanes=20)
    with_data(tmp_path / "second", monkeypatch, 2)
    with pytest.raises(ValueError, match=r"begun with other data of shuttle, .*second, which NEURALUCB_DATA names"):
        run_tiny(tmp_path / "out", sweep)
    forget_programs()
    with pytest.raises(ValueError, match="shuttle has other data here than where the sweep was planned"):
        run_batch(planned)  # as a worker that finds other data than were planned with
    manifest = tmp_path / "out" / "sweep.json"
    record = json.loads(manifest.read_text())
    del record["data"]
    manifest.write_text(json.dumps(record))
    run_tiny(tmp_path / "out", sweep)  # begun before data were recorded


def test_a_batch_of_the_papers_network_is_named_as_in_version_0_1_and_of_another_otherwise():
    """Version 0.1 had no setting `network`: stores that it began go on."""

    def name_with(**settings):
        (batch,) = make_batches(
            Sweep("x", 30, (0, 1), (Part("neural-ucb", "h1", {}, {"dim": 4, **settings}),)), lanes=9
        )
        return batch.name

    assert name_with() == name_with(network="mlp") == "neural-ucb-h1-b4d1ae9141928187"
    register_network("flat")(lambda task, settings: (lambda key: jnp.ones(task.dim, "float32"), jnp.dot))
    try:
        assert name_with(network="flat") != name_with()
    finally:
        del NETWORKS["flat"]
