"""Drift of a float32 Z⁻¹: worst relative error of gᵀZ⁻¹g against float64, on gradients of a drifting network.

python benchmarks/precision.py
"""

import jax
import jax.numpy as jnp
import numpy as np

from neuralucb.designs import full
from neuralucb.gradients import dense
from neuralucb.networks.mlp import mlp

DIM = WIDTH = 20
ROUNDS = 3000


def gradients(low_rank: bool):
    """p = 420, the network's weights drifting slowly; nearly low-rank: contexts near a plane."""
    network = mlp(DIM, width=WIDTH)
    weights = network.init(jax.random.key(0))
    generator = np.random.default_rng(0)
    contexts = generator.normal(size=(ROUNDS, DIM)) / np.sqrt(DIM)
    if low_rank:
        basis = generator.normal(size=(2, DIM)) / np.sqrt(DIM)
        contexts = generator.normal(size=(ROUNDS, 2)) @ basis + 1e-3 * contexts

    def one(t, context):
        drifted = jax.tree.map(lambda w: w * (1 + 0.3 * jnp.sin(t / ROUNDS + w)), weights)
        return dense(network.tangent(drifted, context)[1])

    return jax.jit(jax.vmap(one))(np.arange(ROUNDS, dtype=np.float32), contexts.astype(np.float32))


def variances(rows, ridge, dtype):
    design = full(rows.shape[1], ridge=ridge, dtype=dtype)

    def step(z, g):
        g = g.astype(dtype)
        return design.add(z, g), g @ (z.inverse @ g)

    return np.asarray(jax.jit(lambda rows: jax.lax.scan(step, design.init(), rows)[1])(rows), np.float64)


def main() -> None:
    print("| gradients | λ | worst relative error in float32 | negative variances |")
    print("| --- | --- | --- | --- |")
    for low_rank in (False, True):
        rows = gradients(low_rank)
        for ridge in (1.0, 1e-3, 1e-5):
            with jax.enable_x64(True):
                exact, rough = (variances(rows, ridge, dtype) for dtype in ("float64", "float32"))
            error = np.abs(rough / exact - 1).max()
            name = "nearly low-rank" if low_rank else "drifting network"
            print(f"| {name} | {ridge:g} | {error:.1e} | {(rough < 0).sum()} of {len(rough)} |", flush=True)


if __name__ == "__main__":
    main()
