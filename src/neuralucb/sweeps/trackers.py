"""Callbacks for what people log to: TensorBoard, MLflow, and Weights & Biases. Each needs the extra of its name."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralucb.runtime.errors import InputError
from neuralucb.sweeps.callbacks import FinishedRun
from neuralucb.sweeps.spec import Sweep

if TYPE_CHECKING:
    from neuralucb.sweeps.store import Failure

__all__ = ["MLflow", "TensorBoard", "WandB"]

AT_ONCE = 500
"""Metrics per request: MLflow takes at most 1000."""


class TensorBoard:
    """Regret curves and settings as TensorBoard's event files, in one folder per run.

    Args:
        folder: Where `tensorboard --logdir` will look.

    Example:
        >>> neuralucb.sweep("mine.toml", callbacks=[TensorBoard("events")])  # doctest: +SKIP
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder: Path = Path(folder)

    def start(self, sweep: Sweep) -> None:
        """Check that tensorboardX is installed."""
        self._writer = _require("tensorboardX", "tensorboard").SummaryWriter

    def run(self, run: FinishedRun) -> None:
        """Write one run."""
        with self._writer(str(self.folder / run.name)) as writer:
            for t, regret in zip(run.rounds, run.regret, strict=True):
                writer.add_scalar("regret", float(regret), int(t))
            writer.add_text("settings", "\n".join(f"    {name} = {value}" for name, value in _facts(run).items()))

    def end(self, failures: "Sequence[Failure]") -> None:
        """Nothing is open."""


class MLflow:
    """One run of MLflow per run: settings as parameters, regret as a metric.

    Args:
        uri: Of the tracking server or store; None for MLflow's own choice (MLFLOW_TRACKING_URI).
        experiment: Its name; None for the sweep's.

    Example:
        >>> neuralucb.sweep("mine.toml", callbacks=[MLflow("http://127.0.0.1:5000")])  # doctest: +SKIP
    """

    def __init__(self, uri: str | None = None, *, experiment: str | None = None) -> None:
        self.uri: str | None = uri
        self.experiment: str | None = experiment

    def start(self, sweep: Sweep) -> None:
        """Find or create the experiment."""
        self._mlflow, name = _require("mlflow", "mlflow"), self.experiment or sweep.name
        self._client = self._mlflow.MlflowClient(self.uri)
        found = self._client.get_experiment_by_name(name)
        self._experiment = found.experiment_id if found else self._client.create_experiment(name)

    def run(self, run: FinishedRun) -> None:
        """Log one run."""
        entities, log = self._mlflow.entities, self._client.log_batch
        made = self._client.create_run(self._experiment, run_name=run.name).info.run_id
        log(made, params=[entities.Param(name, str(value)) for name, value in _facts(run).items()])
        points = zip(run.rounds, run.regret, strict=True)
        metrics = [entities.Metric("regret", float(regret), 0, int(t)) for t, regret in points]
        for first in range(0, len(metrics), AT_ONCE):
            log(made, metrics=metrics[first : first + AT_ONCE])
        self._client.set_terminated(made)

    def end(self, failures: "Sequence[Failure]") -> None:
        """Nothing is open."""


class WandB:
    """One run of Weights & Biases per run: settings as its config, regret over rounds.

    Args:
        project: Its name; None for the sweep's.
        folder: Where wandb keeps its files.
        mode: "online", "offline" (which needs no account) or "disabled"; None for wandb's own choice (WANDB_MODE).

    Example:
        >>> neuralucb.sweep("mine.toml", callbacks=[WandB("bandits", mode="offline")])  # doctest: +SKIP
    """

    def __init__(self, project: str | None = None, *, folder: str | Path = ".", mode: str | None = None) -> None:
        self.project: str | None = project
        self.folder: Path = Path(folder)
        self.mode: str | None = mode

    def start(self, sweep: Sweep) -> None:
        """Check that wandb is installed."""
        self._wandb, self._sweep = _require("wandb", "wandb"), sweep.name
        self.folder.mkdir(parents=True, exist_ok=True)

    def run(self, run: FinishedRun) -> None:
        """Log one run."""
        where: dict[str, Any] = {"dir": str(self.folder), "mode": self.mode, "reinit": "create_new"}
        what = {"project": self.project or self._sweep, "group": self._sweep, "name": run.name, "config": _facts(run)}
        with self._wandb.init(**what, **where) as log:
            for t, regret in zip(run.rounds, run.regret, strict=True):
                log.log({"regret": float(regret)}, step=int(t))

    def end(self, failures: "Sequence[Failure]") -> None:
        """End wandb's background process, unless a run of the user's needs it."""
        if self._wandb.run is None:
            self._wandb.teardown()


def _facts(run: FinishedRun) -> dict[str, Any]:
    """What was run."""
    named = {"algorithm": run.algorithm, "problem": run.problem, "seed": run.seed, "diverged_at": run.diverged_at}
    return {**run.settings, **named}


def _require(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise InputError(f"{module} is not installed; pip install 'neuralucb[{extra}]' brings it.") from None
