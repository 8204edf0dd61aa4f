"""What people log to: a protocol of three methods, and ready ones for TensorBoard, MLflow and Weights & Biases."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from neuralucb.runtime.errors import InputError
from neuralucb.sweeps.spec import Sweep

__all__ = ["Callback", "FinishedRun", "MLflow", "TensorBoard", "WandB"]


class FinishedRun(NamedTuple):
    """One algorithm with one setting and one seed, played to its end."""

    algorithm: str
    problem: str
    settings: dict[str, Any]
    seed: int
    rounds: np.ndarray
    """[points] after which rounds `regret` is told"""
    regret: np.ndarray
    """[points] cumulative regret"""
    diverged_at: int
    """the round of divergence; 0 if none"""

    @property
    def name(self) -> str:
        """Readable, and unlike that of any other run of the sweep."""
        swept = "-".join(f"{name}={value}" for name, value in self.settings.items())
        return "-".join(part for part in (self.algorithm, self.problem, swept, f"seed{self.seed}") if part)


class Callback(Protocol):
    """Told what a sweep does, in the process that started it; what it raises ends the sweep."""

    def start(self, sweep: Sweep) -> None:
        """Before the first run."""

    def run(self, run: FinishedRun) -> None:
        """After each run; those of a batch come together."""

    def end(self, failures: Sequence[str]) -> None:
        """After the last, with what failed; also when the sweep is interrupted."""


class TensorBoard:
    """Regret curves and settings as event files, one folder per run. Needs the extra `tensorboard`."""

    def __init__(self, folder: str | Path) -> None:
        self.folder: Path = Path(folder)

    def start(self, sweep: Sweep) -> None:
        """Check that it can be used."""
        _require("tensorboardX", "tensorboard")

    def run(self, run: FinishedRun) -> None:
        """Write one run."""
        from tensorboardX import SummaryWriter

        with SummaryWriter(str(self.folder / run.name)) as writer:
            for t, regret in zip(run.rounds, run.regret, strict=True):
                writer.add_scalar("regret", float(regret), int(t))
            writer.add_text("settings", "\n".join(f"    {name} = {value}" for name, value in run.settings.items()))

    def end(self, failures: Sequence[str]) -> None:
        """Nothing is open."""


class MLflow:
    """A run of MLflow per run, with settings as parameters and regret as a metric. Needs the extra `mlflow`."""

    def __init__(self, uri: str | None = None, experiment: str | None = None) -> None:
        self.uri: str | None = uri
        self.experiment: str | None = experiment

    def start(self, sweep: Sweep) -> None:
        """Open the experiment, named after the sweep unless told otherwise."""
        client = _require("mlflow", "mlflow").MlflowClient(self.uri)
        name = self.experiment or sweep.name
        found = client.get_experiment_by_name(name)
        self._client, self._experiment = client, found.experiment_id if found else client.create_experiment(name)

    def run(self, run: FinishedRun) -> None:
        """Log one run."""
        from mlflow.entities import Metric, Param

        made = self._client.create_run(self._experiment, run_name=run.name).info.run_id
        told = {**run.settings, "algorithm": run.algorithm, "problem": run.problem, "seed": run.seed}
        metrics = [Metric("regret", float(regret), 0, int(t)) for t, regret in zip(run.rounds, run.regret, strict=True)]
        self._client.log_batch(made, metrics, [Param(name, str(value)) for name, value in told.items()])
        self._client.set_terminated(made, "FAILED" if run.diverged_at else "FINISHED")

    def end(self, failures: Sequence[str]) -> None:
        """Nothing is open."""


class WandB:
    """A run of Weights & Biases per run; `mode="offline"` needs no account. Needs the extra `wandb`."""

    def __init__(self, project: str | None = None, *, folder: str | Path = ".", mode: str = "offline") -> None:
        self.project: str | None = project
        self.folder: Path = Path(folder)
        self.mode: str = mode

    def start(self, sweep: Sweep) -> None:
        """Check that it can be used."""
        self._wandb = _require("wandb", "wandb")
        self.project = self.project or sweep.name
        self.folder.mkdir(parents=True, exist_ok=True)

    def run(self, run: FinishedRun) -> None:
        """Log one run."""
        told = {**run.settings, "algorithm": run.algorithm, "problem": run.problem, "seed": run.seed}
        with self._wandb.init(
            project=self.project, name=run.name, config=told, dir=self.folder, mode=self.mode, reinit="create_new"
        ) as log:
            for t, regret in zip(run.rounds, run.regret, strict=True):
                log.log({"regret": float(regret)}, step=int(t))

    def end(self, failures: Sequence[str]) -> None:
        """End its background process."""
        self._wandb.teardown()


def _require(module: str, extra: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        raise InputError(f"{module} is not installed; pip install 'neuralucb[{extra}]' brings it.") from None
