"""Z, the design matrix λI + Σ ggᵀ, behind one interface: exact, the paper's diagonal, and approximations between."""

from neuralucb.designs.design import Design, by_arm, by_layer, none
from neuralucb.designs.diagonal import diagonal
from neuralucb.designs.dual import Dual, dual
from neuralucb.designs.forgetting import Forgetting, forgetting
from neuralucb.designs.frequent_directions import FrequentDirections, frequent_directions, width_bounds
from neuralucb.designs.full import Full, drift, full, has_drifted
from neuralucb.designs.kronecker import Kronecker, kronecker
from neuralucb.designs.layers import block_diagonal, last_layer
from neuralucb.designs.random_projection import Projection, projection_error, random_projection

__all__ = [
    "Design",
    "Dual",
    "Forgetting",
    "FrequentDirections",
    "Full",
    "Kronecker",
    "Projection",
    "block_diagonal",
    "by_arm",
    "by_layer",
    "diagonal",
    "drift",
    "dual",
    "forgetting",
    "frequent_directions",
    "full",
    "has_drifted",
    "kronecker",
    "last_layer",
    "none",
    "projection_error",
    "random_projection",
    "width_bounds",
]
