"""Presets: named bundles of settings and a schedule, which may differ by kind of problem."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from neuralucb.algorithms.shared_settings import PAPER
from neuralucb.runtime.errors import InputError, meant
from neuralucb.schedules import default_schedule

__all__ = ["PRESETS", "Bundle", "Preset", "find_preset"]

DATA_SETTINGS = frozenset({"input_scaling", "intercept", "drop", "repeat"})
"""How a problem is made of data."""

NETWORK_SETTINGS = frozenset({"width", "depth", "scaling", "encoding", "duplicate", "design"})
"""Shapes, which linear and kernel methods take over too, where they have them."""


class Bundle(NamedTuple):
    """A schedule (when to learn), and settings."""

    schedule: str
    settings: Mapping[str, Any]
    algorithm: str | None = None
    """the one that all settings are meant for; None for those that train a network"""

    def settings_for(self, algorithm: str, *, trains: bool) -> dict[str, Any]:
        """Those for an algorithm; a ridge regression or a kernel does not take λ, η and γ of a trained network.

        What was tuned for one algorithm says nothing about another: those get how the data are made, and no more.
        """
        if self.algorithm is not None:
            mine = set(self.settings) if algorithm == self.algorithm else DATA_SETTINGS
        else:
            mine = set(self.settings) if trains else DATA_SETTINGS | NETWORK_SETTINGS
        return {name: value for name, value in self.settings.items() if name in mine}


class Preset(NamedTuple):
    """Bundles under one name."""

    name: str
    summary: str
    separate: Bundle
    """for problems with one context per arm"""
    shared: Bundle
    """for problems with one context that all arms share"""

    def bundle(self, *, shared: bool) -> Bundle:
        """The bundle for a problem."""
        return self.shared if shared else self.separate


FROM_PAPER: dict[str, Any] = PAPER | {"input_scaling": "standard"}

REAL: dict[str, Any] = FROM_PAPER | {"width": 100, "design": "diagonal"}

TRAINED_REAL: dict[str, Any] = REAL | {"steps": 1000, "batch_size": 500, "step_size": 0.02, "regularization": 0.01}

AS_RELEASED: dict[str, Any] = {"scaling": "standard", "start": "warm"}

RELEASED: dict[str, Any] = (
    REAL
    | AS_RELEASED
    | {
        "initialization": "uniform",
        "biases": True,
        "step_size": 0.02,  # theirs is 0.01, on a loss without the half
        "regularization": 1e-5,
        "exploration": 1e-5,  # √(λν), ν = 1e-5 in the README of uclaml
        "input_scaling": "unit",
    }
)

PASSES: dict[str, Any] = {"rows": "passes", "early_end": 1e-3}
"""Of uclaml: up to 1000 steps in one shuffled order, until the mean loss of a pass is small."""

PRESETS = {
    preset.name: preset
    for preset in (
        Preset(
            "default",
            "what works untuned on data in any units; for synthetic problems the paper's",
            Bundle(default_schedule(shared=False), {}),
            Bundle(default_schedule(shared=True), {}),
        ),
        Preset(
            "paper",
            "the paper's experiments: synthetic J = t every 50 rounds; real data m = 100, diagonal Z, J = 1000",
            Bundle("synthetic", FROM_PAPER),
            Bundle("real", TRAINED_REAL),
        ),
        Preset(
            "released",
            "the paper's, read as its released code is: warm starts, and standard scaling without √m",
            Bundle("synthetic", FROM_PAPER | AS_RELEASED),
            Bundle("real", TRAINED_REAL | AS_RELEASED),
        ),
        Preset(
            "quick",
            "a tenth of the paper's work: warm start, 100 steps, often at first and every 50 rounds later",
            Bundle("10:200,50", FROM_PAPER | {"steps": 100, "start": "warm"}),
            Bundle("10:200,50", REAL | {"scaling": "standard", "start": "warm", "steps": 100, "step_size": 0.1}),
        ),
        Preset(
            "uclaml",
            "the authors' released code, github.com/uclaml/NeuralUCB; see docs/deviations.md",
            *2 * (Bundle("1:2000,100!", RELEASED | {"steps": 1000, "batch_size": 1} | PASSES),),
        ),
        Preset(
            "neuralts",
            "NeuralUCB in github.com/ZeroWeight/NeuralTS; see docs/deviations.md",
            *2 * (Bundle("1", RELEASED | {"steps": 100, "batch_size": 500}),),
        ),
        Preset(
            "literal",
            "Algorithms 1 and 2 to the letter: paper θ_0, duplication, gradient descent every round, theoretical γ_t",
            *2
            * (
                Bundle(
                    "1",
                    FROM_PAPER
                    | {
                        "initialization": "paper",
                        "duplicate": True,
                        "method": "gradient-descent",
                        "steps": 100,
                        "step_size": 2.5e-6,  # 1/(mTL + mλ) of Theorem 1 at T = 10 000
                        "confidence": "theoretical",
                    },
                ),
            ),
        ),
    )
}


def find_preset(name: str | None, *, synthetic: bool) -> Preset:
    """The preset of that name or in that file; for None the paper's on its synthetic problems, elsewhere the default.

    A name that ends in .toml is a file; see `preset_files`.
    """
    if name is None:
        return PRESETS["paper" if synthetic else "default"]
    if str(name).endswith(".toml"):
        from neuralucb.experiments.preset_files import read_preset

        return read_preset(name)
    if name not in PRESETS:
        raise InputError(
            f"preset {name!r} is not known; known: {', '.join(PRESETS)}, or the path of a .toml file."
            + meant(name, PRESETS)
        )
    return PRESETS[name]
