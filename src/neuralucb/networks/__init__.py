"""Networks f(x; θ): the paper's, any pair of functions, and encodings for arms that share a context."""

from neuralucb.networks.encodings import ENCODINGS, concat, disjoint, heads
from neuralucb.networks.mlp import INITIALIZATIONS, SCALINGS, mlp
from neuralucb.networks.network import FirstLayer, Network, from_functions

__all__ = [
    "ENCODINGS",
    "INITIALIZATIONS",
    "SCALINGS",
    "FirstLayer",
    "Network",
    "concat",
    "disjoint",
    "from_functions",
    "heads",
    "mlp",
]
