"""Where the run that is planned is not the one that the theory is about: told beside the numbers."""

import math
from typing import Any

import numpy as np

from neuralucb.theory.bounds import Conditions, Horizon
from neuralucb.theory.contexts import Directions
from neuralucb.theory.kernel import LIMITS

__all__ = ["noise_of", "not_proved", "unlike_the_paper"]

UNIT = 1e-5
"""What float32 makes of a norm of 1."""


def unlike_the_paper(settings: dict[str, Any], shared: bool, known: Directions, h: np.ndarray) -> list[str]:
    """What the network that is played, or the problem, has that the theory does not."""
    usual = {"scaling": "tangent", "biases": False} | ({"encoding": "disjoint"} if shared else {})
    other = [f"{name}={settings[name]}" for name, value in usual.items() if settings[name] != value]
    if settings["initialization"] not in LIMITS:
        other.append(f"initialization={settings['initialization']}")
    if settings["initialization"] == "paper" and not settings["duplicate"]:
        other.append("initialization=paper without duplicate, whose limit is another")
    notes = [f"H is that of the paper's network; the one played has {', '.join(other)}"] if other else []
    if np.abs(known.norm - 1).max() > UNIT or h.min() < 0 or h.max() > 1:
        notes.append(
            "the bound is stated for contexts of norm 1 and rewards between 0 and 1; here norms are "
            f"{known.norm.min():.2g} to {known.norm.max():.2g} and rewards {h.min():.2g} to {h.max():.2g}"
        )
    return notes


def noise_of(settings: dict[str, Any], problem: dict[str, Any], drawn: np.ndarray) -> tuple[float, list[str]]:
    """ν of the bounds: noise_bound, or the problem's own noise where that is larger, which a note tells.

    A problem that does not say how large its noise is, is judged by the noise that was drawn, three standard errors
    allowed. Labelled rows have none, so that any ν is enough.
    """
    assumed = float(settings["noise_bound"])
    noise = float(problem["noise"]) if "noise" in problem else float(np.sqrt(np.mean(np.square(drawn))))
    slack = 1.0 if "noise" in problem else 1 + 3 / math.sqrt(2 * len(drawn))
    if noise <= assumed * slack:
        return assumed, []
    return noise, [
        f"ν is the problem's noise, {noise:.3g}: noise_bound={assumed:g} is below it, and γ_t plays with that"
    ]


def not_proved(asked: Conditions, over: Horizon) -> list[str]:
    """Where λ is below what Theorem 1 asks for."""
    if over.regularization >= asked.regularization:
        return []
    return [
        f"the bound is not proved here: Theorem 1 asks for λ ≥ max(1, S⁻²) = {asked.regularization:.3g}, and λ is "
        f"{over.regularization:g}"
    ]
