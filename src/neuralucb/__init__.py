"""Neural contextual bandits: NeuralUCB (Zhou, Li & Gu 2020), its baselines and its experiments.

All that is public is here: `neuralucb.<TAB>` shows it. What a name needs is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.2.0"

_HOMES = {
    "algorithms": (
        "Algorithm",
        "Task",
        "build",
        "register_algorithm",
        "register_network",
    ),
    "experiments": (
        "Aggregate",
        "Comparison",
        "Difference",
        "Estimate",
        "Improvement",
        "Rank",
        "Result",
        "Summary",
        "Traces",
        "compare",
        "run",
        "run_grid",
    ),
    "history": ("History",),
    "networks": (
        "Network",
        "from_functions",
    ),
    "online": (
        "Decision",
        "Explanation",
        "Health",
        "Lesson",
        "OnlineBandit",
    ),
    "online.environments": (
        "Played",
        "as_environment",
        "play_environment",
    ),
    "policy": (
        "Choice",
        "Estimator",
        "Info",
        "Origin",
        "Policy",
        "Prediction",
        "Slot",
        "fingerprint",
    ),
    "problems": (
        "Definition",
        "Problem",
        "Round",
        "from_file",
        "from_function",
        "labelled",
        "register_problem",
        "rewards",
        "synthetic",
    ),
    "runtime.errors": (
        "InputError",
        "StorageError",
        "UnsoundError",
    ),
    "schedules": (
        "Phase",
        "Schedule",
        "read_schedule",
    ),
    "settings": ("Setting",),
    "simulation": (
        "Detail",
        "Outcome",
        "Trace",
        "simulate",
    ),
    "sweeps": (
        "Callback",
        "FinishedRun",
        "MLflow",
        "Part",
        "Sweep",
        "SweepResult",
        "TensorBoard",
        "Tuned",
        "WandB",
        "sweep",
        "tune",
    ),
}
"""Where each public name comes from. A new one is added here and, for type checkers, below; a test compares the two."""

_ROOMS = (
    "algorithms", "evaluation", "experiments", "features", "logs", "networks", "online", "problems", "sweeps", "theory",
)  # fmt: skip
"""Rooms that work as `neuralucb.theory.analyse` without an import of their own."""

if TYPE_CHECKING:
    from neuralucb import (
        algorithms as algorithms,
        evaluation as evaluation,
        experiments as experiments,
        features as features,
        logs as logs,
        networks as networks,
        online as online,
        problems as problems,
        sweeps as sweeps,
        theory as theory,
    )
    from neuralucb.algorithms import (
        Algorithm as Algorithm,
        Task as Task,
        build as build,
        register_algorithm as register_algorithm,
        register_network as register_network,
    )
    from neuralucb.experiments import (
        Aggregate as Aggregate,
        Comparison as Comparison,
        Difference as Difference,
        Estimate as Estimate,
        Improvement as Improvement,
        Rank as Rank,
        Result as Result,
        Summary as Summary,
        Traces as Traces,
        compare as compare,
        run as run,
        run_grid as run_grid,
    )
    from neuralucb.history import History as History
    from neuralucb.networks import Network as Network, from_functions as from_functions
    from neuralucb.online import (
        Decision as Decision,
        Explanation as Explanation,
        Health as Health,
        Lesson as Lesson,
        OnlineBandit as OnlineBandit,
    )
    from neuralucb.online.environments import (
        Played as Played,
        as_environment as as_environment,
        play_environment as play_environment,
    )
    from neuralucb.policy import (
        Choice as Choice,
        Estimator as Estimator,
        Info as Info,
        Origin as Origin,
        Policy as Policy,
        Prediction as Prediction,
        Slot as Slot,
        fingerprint as fingerprint,
    )
    from neuralucb.problems import (
        Definition as Definition,
        Problem as Problem,
        Round as Round,
        from_file as from_file,
        from_function as from_function,
        labelled as labelled,
        register_problem as register_problem,
        rewards as rewards,
        synthetic as synthetic,
    )
    from neuralucb.runtime.errors import (
        InputError as InputError,
        StorageError as StorageError,
        UnsoundError as UnsoundError,
    )
    from neuralucb.schedules import Phase as Phase, Schedule as Schedule, read_schedule as read_schedule
    from neuralucb.settings import Setting as Setting
    from neuralucb.simulation import Detail as Detail, Outcome as Outcome, Trace as Trace, simulate as simulate
    from neuralucb.sweeps import (
        Callback as Callback,
        FinishedRun as FinishedRun,
        MLflow as MLflow,
        Part as Part,
        Sweep as Sweep,
        SweepResult as SweepResult,
        TensorBoard as TensorBoard,
        Tuned as Tuned,
        WandB as WandB,
        sweep as sweep,
        tune as tune,
    )
else:  # a checker that saw __getattr__ would take any name for a public one
    _HOME = {name: home for home, names in _HOMES.items() for name in names}
    __all__ = sorted(_HOME)

    def __getattr__(name):
        """Import on first use, so that `neuralucb --help` does not wait for JAX."""
        if name in _ROOMS:
            return import_module(f"neuralucb.{name}")
        if name not in _HOME:
            raise AttributeError(f"module 'neuralucb' has no attribute {name!r}")
        return getattr(import_module(f"neuralucb.{_HOME[name]}"), name)

    def __dir__():
        return sorted([*_HOME, *_ROOMS, "__version__"])
