"""The paper's analysis as tools: kernel, effective dimension, confidence, bounds, and how often intervals hold.

What each quantity is, in plain words: docs/theory.md. Its letter in the paper: docs/symbols.md.
"""

from neuralucb.confidence import Assumptions, self_normalised, theoretical
from neuralucb.theory.bounds import Conditions, Horizon, conditions, corollary_1, least_steps, theorem_1
from neuralucb.theory.coverage import Coverage, measure_coverage
from neuralucb.theory.dimension import (
    EffectiveDimension,
    dimension_from_eigenvalues,
    dimensions_over_rounds,
    effective_dimension,
    effective_dimension_of,
)
from neuralucb.theory.directions import parallel_pair, require_regular
from neuralucb.theory.kernel import empirical_kernel, kernel_product, tangent_kernel
from neuralucb.theory.log_det import Estimate, estimate_log_det
from neuralucb.theory.norm import norm_bound, rkhs_norm_squared, smallest_eigenvalue
from neuralucb.theory.report import Report, analyse

__all__ = [
    "Assumptions",
    "Conditions",
    "Coverage",
    "EffectiveDimension",
    "Estimate",
    "Horizon",
    "Report",
    "analyse",
    "conditions",
    "corollary_1",
    "dimension_from_eigenvalues",
    "dimensions_over_rounds",
    "effective_dimension",
    "effective_dimension_of",
    "empirical_kernel",
    "estimate_log_det",
    "kernel_product",
    "least_steps",
    "measure_coverage",
    "norm_bound",
    "parallel_pair",
    "require_regular",
    "rkhs_norm_squared",
    "self_normalised",
    "smallest_eigenvalue",
    "tangent_kernel",
    "theorem_1",
    "theoretical",
]
