"""Presets: named bundles of settings and a schedule."""

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["PRESETS", "Preset", "find_preset"]


class Preset(NamedTuple):
    """Settings for every algorithm that has them, and when to learn."""

    name: str
    summary: str
    schedule: str
    settings: Mapping[str, Any]


PRESETS = {
    preset.name: preset
    for preset in (
        Preset(
            "paper", "the paper's synthetic experiments: every 50 rounds, J = t, from θ_0; the default", "synthetic", {}
        ),
        Preset(
            "quick",
            "a tenth of the work: warm start, 100 steps, often at first and every 50 rounds later",
            "10:200,50",
            {"steps": 100, "start": "warm"},
        ),
        Preset(
            "literal",
            "Algorithms 1 and 2 to the letter: paper θ_0, duplication, gradient descent every round, theoretical γ_t",
            "1",
            {
                "initialization": "paper",
                "duplicate": True,
                "method": "gradient-descent",
                "steps": 100,
                "step_size": 2.5e-6,  # 1/(mTL + mλ) of Theorem 1 at T = 10 000
                "confidence": "theoretical",
            },
        ),
    )
}


def find_preset(name: str) -> Preset:
    """The preset of that name; an unknown one lists the known."""
    if name not in PRESETS:
        raise ValueError(f"preset {name!r} is not known; known: {', '.join(PRESETS)}.")
    return PRESETS[name]
