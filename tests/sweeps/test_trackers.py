"""TensorBoard, MLflow and Weights & Biases: what is logged is read back from their real stores, offline."""

import inspect
import os
import struct
import sys

import numpy as np
import pytest

from neuralucb.runtime.errors import InputError
from neuralucb.sweeps import Store, sweep
from neuralucb.sweeps.trackers import MLflow, TensorBoard, WandB
from tests.processes import run_python
from tests.sweeps.helpers import tiny

pytestmark = pytest.mark.filterwarnings("ignore")  # theirs


@pytest.fixture
def runs(finished):
    return list(Store(finished).finished_runs())


def log(tracker, runs):
    tracker.start(tiny())
    for run in runs:
        tracker.run(run)
    tracker.end([])


def events(path):
    """The events of a file, each behind its length and between checksums."""
    from tensorboardX.proto.event_pb2 import Event

    content = path.read_bytes()
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        yield Event.FromString(content[12 : 12 + length])
        content = content[12 + length + 4 :]


def test_tensorboard_has_every_curve_and_setting(runs, tmp_path):
    pytest.importorskip("tensorboardX")
    log(TensorBoard(tmp_path / "events"), runs)
    assert {path.name for path in (tmp_path / "events").iterdir()} == {run.name for run in runs}
    for run in runs:
        (file,) = (tmp_path / "events" / run.name).iterdir()
        told = [(event.step, value) for event in events(file) for value in event.summary.value]
        curve = [(step, value.simple_value) for step, value in told if value.tag == "regret"]
        assert curve == list(zip(run.rounds, run.regret, strict=True))
        (settings,) = [value.tensor.string_val[0].decode() for _, value in told if value.tag.startswith("settings")]
        assert "dim = 4" in settings
        assert f"seed = {run.seed}" in settings


def test_mlflow_has_every_curve_and_setting(runs, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = pytest.importorskip("mlflow")
    uri = (tmp_path / "mlruns").as_uri()
    log(MLflow(uri), runs[:2])
    log(MLflow(uri), runs[2:3])  # into the same experiment
    client = mlflow.MlflowClient(uri)
    experiment = client.get_experiment_by_name("tiny")
    found = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    assert set(found) == {run.name for run in runs[:3]}
    for run in runs[:3]:
        logged = found[run.name]
        assert logged.info.status == "FINISHED"
        assert logged.data.params["algorithm"] == run.algorithm
        assert logged.data.params["dim"] == "4"
        history = client.get_metric_history(logged.info.run_id, "regret")
        assert [(each.step, each.value) for each in history] == list(zip(run.rounds, run.regret, strict=True))


def test_mlflow_takes_curves_of_a_thousand_points(runs, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = pytest.importorskip("mlflow")
    uri = (tmp_path / "mlruns").as_uri()
    long = runs[0]._replace(rounds=np.arange(1, 1001), regret=np.arange(1000.0), diverged_at=500)
    log(MLflow(uri, experiment="long"), [long])
    client = mlflow.MlflowClient(uri)
    (logged,) = client.search_runs([client.get_experiment_by_name("long").experiment_id])
    assert len(client.get_metric_history(logged.info.run_id, "regret")) == 1000
    assert logged.data.params["diverged_at"] == "500"


def wandb_records(path):
    """The records of a file of wandb, a log as LevelDB has it: in pieces, none of which crosses a block of 32 kB."""
    from wandb.proto.wandb_internal_pb2 import Record

    content, at, whole = path.read_bytes(), 7, b""
    while at < len(content):
        if 2**15 - at % 2**15 < 7:
            at += 2**15 - at % 2**15
        _, length, kind = struct.unpack("<IHB", content[at : at + 7])
        whole += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # the only piece, or the last
            yield Record.FromString(whole)
            whole = b""


WANDB = """
import sys, os, pathlib, subprocess
from neuralucb.sweeps import Store, WandB
store = Store(sys.argv[1])
runs = list(store.finished_runs())[:2]
tracker = WandB(folder=sys.argv[2], mode="offline")
tracker.start(store.sweep())
for run in runs:
    tracker.run(run)
tracker.end([])
children = pathlib.Path(f"/proc/self/task/{os.getpid()}/children")
print("children:", children.read_text() if children.exists() else "")
"""


@pytest.mark.waits
def test_wandb_has_every_curve_and_leaves_no_process(finished, runs, tmp_path):
    pytest.importorskip("wandb")
    ended = run_python("-c", WANDB, finished, tmp_path / "wandb", env=os.environ | {"WANDB_SILENT": "true"})
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1].strip() == "children:"
    found = {}
    for path in (tmp_path / "wandb" / "wandb").glob("offline-run-*/*.wandb"):
        records = list(wandb_records(path))
        (begun,) = [record.run for record in records if record.WhichOneof("record_type") == "run"]
        items = [{item.nested_key[0] or item.key: item.value_json for item in r.history.item} for r in records]
        curve = [(int(each["_step"]), float(each["regret"])) for each in items if "regret" in each]
        config = {item.key: item.value_json for item in begun.config.update}
        found[begun.display_name] = (begun.project, begun.run_group, config["dim"], curve)
    assert found == {
        run.name: ("tiny", "tiny", "4", list(zip(run.rounds, run.regret, strict=True))) for run in runs[:2]
    }


@pytest.mark.parametrize(
    ("tracker", "module", "extra"),
    [
        (TensorBoard("x"), "tensorboardX", "tensorboard"),
        (MLflow(), "mlflow", "mlflow"),
        (WandB(mode="offline"), "wandb", "wandb"),
    ],
)
def test_a_tracker_that_is_not_installed_names_its_extra(tmp_path, monkeypatch, tracker, module, extra):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"{module} is not installed; pip install 'neuralucb\[{extra}\]' brings it"):
        sweep(tiny(), workers=1, callbacks=[tracker])
    assert not list((tmp_path / "tiny").glob("runs/*"))  # before anything was run


@pytest.mark.parametrize("tracker", [TensorBoard, MLflow, WandB])
def test_a_tracker_is_short_enough_to_be_copied(tracker):
    assert len(inspect.getsource(tracker).splitlines()) < 40
