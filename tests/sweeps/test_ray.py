"""A Ray cluster: one of its nodes is lost, cannot import the package, or needs a module of the user."""

import sys

import pytest

from neuralucb.algorithms import ALGORITHMS
from neuralucb.sweeps.batches import make_batches
from neuralucb.sweeps.engine import prepare, run_sweep
from neuralucb.sweeps.ray import run_on_cluster
from neuralucb.sweeps.spec import Part, Sweep
from neuralucb.sweeps.store import Store
from neuralucb.sweeps.workers import ignore, run_here
from tests.sweeps.helpers import numbers, tiny

pytestmark = [pytest.mark.waits, pytest.mark.filterwarnings("ignore")]  # Ray's own warnings


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        yield made
    finally:
        made.shutdown()


@pytest.fixture
def connect(cluster):
    """Connects this process to the cluster; disconnects it after the test."""
    import ray

    yield lambda **options: ray.init(address=cluster.address, log_to_driver=False, **options)
    ray.shutdown()


def test_a_lost_node_costs_its_batch_and_no_more(tmp_path, cluster, connect):
    sweep = tiny(rounds=20_000)
    batches = make_batches(sweep, lanes=2)
    here = Store(tmp_path / "local")
    here.open_for(sweep, 2)
    run_here(batches, here, ignore)
    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    connect()
    store = Store(tmp_path / "cluster")
    store.open_for(sweep, 2)
    assert len(batches) >= 4
    ended = []

    def tell(event):
        if event.regret is not None:
            ended.append(event)
            if len(ended) == 1:
                cluster.remove_node(second, allow_graceful=False)

    run_on_cluster(batches, store, tell, address=None, gpu=False)
    assert len(ended) == len(batches)
    assert numbers(tmp_path / "cluster") == numbers(tmp_path / "local")


def test_a_node_that_cannot_import_the_package_says_so(tmp_path, connect):
    """Its path has another neuralucb first, which raises."""
    (tmp_path / "broken" / "neuralucb").mkdir(parents=True)
    (tmp_path / "broken" / "neuralucb" / "__init__.py").write_text("raise ImportError('no neuralucb on this node')")
    connect(runtime_env={"env_vars": {"PYTHONPATH": str(tmp_path / "broken")}})
    store, sweep = Store(tmp_path / "out"), tiny()
    store.open_for(sweep, 20)
    events = []
    run_on_cluster(make_batches(sweep, lanes=20)[:1], store, events.append, address=None, gpu=False)
    (failure,) = store.failures()
    assert failure.reason == "ImportError: no neuralucb on this node"
    assert failure.traceback.count("Traceback (most recent call last)")
    assert [event.failure for event in events] == [failure]


def test_modules_of_the_user_are_imported_on_the_cluster(tmp_path, connect, monkeypatch):
    text = """
from neuralucb.algorithms import build, register_algorithm

@register_algorithm("on-ray")
def recipe(task, settings):
    return build("uniform", dim=task.dim)
"""
    (tmp_path / "module_for_ray.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    sweep = Sweep("own", 10, (0, 1), (Part("on-ray", "h1"),), imports=("module_for_ray",))
    connect()
    job = prepare(sweep, tmp_path / "out", device="cpu", engine="ray")
    try:
        assert run_sweep(job) == []
    finally:
        del ALGORITHMS["on-ray"], sys.modules["module_for_ray"]
    assert len(numbers(tmp_path / "out")) == 2
