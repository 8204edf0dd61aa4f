"""NeuralMix: NeuralUCB at several pulls and two LinUCB, mixed by how well each predicts. What `build` makes."""

from collections.abc import Mapping
from typing import Any

from neuralucb.algorithms.algorithm import Algorithm, Task
from neuralucb.algorithms.shared_settings import (
    DESIGN,
    EXPLORATION,
    NETWORK,
    REGULARIZATION,
    TRAINING,
    check_training,
    design_for,
    in_units,
    linear_features,
    network_for,
    training_for,
)
from neuralucb.confidence import constant
from neuralucb.estimators.features import Features, exact_design, quadratic
from neuralucb.estimators.mixture import mixture
from neuralucb.estimators.neural import neural
from neuralucb.estimators.ridge import ridge
from neuralucb.policy import Estimator, Policy, combine
from neuralucb.rules import ucb
from neuralucb.runtime.precision import Number
from neuralucb.settings import integer, number

__all__ = ["NEURAL_MIX"]

APART = 30.0
"""The factor between the pulls of two networks."""

RIDGE = 1.0
"""λ of the regressions, in learned units."""

PRODUCTS = 10.0
"""What a product of two of d inputs is multiplied by, over √d: in learned units its deviation is near 1/√d."""

MOST_FEATURES = 256
"""Features up to which a regression is a member; its Z⁻¹ is exact, and a decision reads all of it."""

MOST_NUMBERS = 2**20
"""Numbers in Z⁻¹ of a regression, over all arms, up to which it is a member."""


def neural_mix(task: Task, settings: Mapping[str, Any]) -> Policy:
    """NeuralMix: optimism over a mixture of NeuralUCB at the pulls λ/30, λ and 30λ, LinUCB, and LinUCB on products.

    Both LinUCB are there twice: one remembers everything, one counts what was n rounds ago (1 - 1/M)^n.

        U_a = Σ_j w_j a_j (f_j(x_a) + γ σ' width_j(x_a) + γ σ' κ/√(1 + n_a)),
        w_j ∝ p_j exp(-s (E_j - min E) / (2σ²)),   σ² = min E/N

    where p_j is 1 for a network and 1/2 for a LinUCB, and σ' is σ, at least 1/2 and at most 1, the deviation of the
    rewards. The term with n_a, the plays of arm a, is only there where arms share a context.
    a_j is 1, and three times the slope of rewards over the predictions that member j made when the arm was chosen
    where less than a third of them comes true. E_j sums the squared errors of a_j times those predictions, N the
    weights of those rounds, each ρ times that of the next. Little noisy data want a strong pull, a straight line or a
    parabola, much clean data a free network, drift wants to forget: the members that predict best decide. A LinUCB that
    forgets has the width of the one that does not, or exploration would never end. Every other term f_j + γ_j width_j
    is NeuralUCB's index, or LinUCB's: where all of them bound the expected reward, their mixture does, whatever the
    weights, of which a_j is a part: U_a/Σ_j w_j a_j is such a mixture.

    The regressions are left out where they would have more than MOST_FEATURES features, or MOST_NUMBERS in Z⁻¹.
    A decision costs what three NeuralUCB and two LinUCB cost, a training what three cost, side by side as lanes.
    Departs from the paper in: the mixture; and γ, which is in units of the noise.
    """

    def make(shown: Task) -> Policy:
        network = network_for(shown, settings)

        def network_at(pull: Number) -> Estimator:
            own = {**settings, "regularization": pull}
            return neural(network, design_for(network, own), training_for(shown, own), start=settings["start"])

        middle = settings["regularization"]
        pulls = middle / APART, middle, middle * APART
        plain = linear_features(shown)
        each = plain, quadratic(plain, task.dim, scale=PRODUCTS / task.dim**0.5)  # without the intercept
        small = [features for features in each if _is_small(features, shown)]
        recent = settings["recent"]
        regressions = [_regression(features) for features in small]
        forgetting = [_regression(features, memory=recent) for features in small] if recent else []
        shape = {name: settings[name] for name in ("discount", "sharpness", "novelty")}
        estimator, note = mixture(network_at, pulls, regressions, forgetting, arms=task.shared_by or 0, **shape)
        return combine(estimator, ucb(constant(settings["exploration"])))._replace(note=note)

    return in_units(task, settings, make)


def _regression(features: Features, *, memory: int = 0) -> Estimator:
    return ridge(features, exact_design(features, ridge=RIDGE, memory=memory), memory=memory)


def _is_small(features: Features, task: Task) -> bool:
    arms = task.shared_by or 1
    size = features.size // arms
    return size <= MOST_FEATURES and arms * size**2 <= MOST_NUMBERS


NEURAL_MIX = Algorithm(
    "neural-mix",
    "NeuralUCB at several pulls and linear and quadratic LinUCB, mixed by how well each predicts",
    "ours; its members are Zhou, Li & Gu 2020, Algorithm 1, and Li, Chu, Langford & Schapire 2010",
    "the mixture of members; and γ, which is in units of the noise",
    (
        EXPLORATION._replace(default=0.15, meaning="scale of the interval, in units of the noise"),
        REGULARIZATION._replace(default=0.3, meaning="pull to θ_0 and ridge in Z_0 of the network in the middle"),
        number("discount", "ρ", 0.998, "weight of a validated round over that of the next", above=0, most=1),
        number("sharpness", "s", 0.1, "how much better predictions weigh", above=0),
        number("novelty", "κ", 16.0, "width of an arm that was never played, where arms share a context", least=0),
        integer("recent", "M", 100, "observations that count for two more regressions, which forget; 0: none", least=0),
        *TRAINING,
        *NETWORK,
        *DESIGN,
    ),
    neural_mix,
    check_training,
    title="NeuralMix",
    family="default",
)
