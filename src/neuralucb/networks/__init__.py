"""Networks f(x; θ): the paper's and its kin, any pair of functions, and encodings for arms that share a context."""

from neuralucb.networks.cnn import cnn
from neuralucb.networks.embedding import embedding
from neuralucb.networks.encodings import ENCODINGS, concat, disjoint, heads
from neuralucb.networks.layer_norm import layer_norm
from neuralucb.networks.mlp import INITIALIZATIONS, SCALINGS, mlp
from neuralucb.networks.network import FirstLayer, Network, from_functions
from neuralucb.networks.residual import residual
from neuralucb.networks.stack import Front, Step, stack

__all__ = [
    "ENCODINGS",
    "INITIALIZATIONS",
    "SCALINGS",
    "FirstLayer",
    "Front",
    "Network",
    "Step",
    "cnn",
    "concat",
    "disjoint",
    "embedding",
    "from_functions",
    "heads",
    "layer_norm",
    "mlp",
    "residual",
    "stack",
]
