"""The tangent kernel against values by hand, quadrature, wide networks and explicit gradients."""

import math
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb import theory
from neuralucb.networks.encodings import disjoint
from neuralucb.networks.mlp import mlp
from neuralucb.policy import Slot
from neuralucb.runtime import memory
from neuralucb.theory import tangent_kernel
from tests.theory.helpers import sphere


def at_angle(alpha):
    return np.array([[1.0, 0.0], [math.cos(alpha), math.sin(alpha)]])


@pytest.mark.parametrize(
    ("alpha", "depth", "by_hand"),
    [
        (0, 2, 3 / 2),
        (0, 3, 2.0),
        (0, 7, 4.0),
        (math.pi / 2, 2, 1 / math.pi),
        (math.pi / 3, 2, 1 / 2 + math.sqrt(3) / (2 * math.pi)),
        (math.pi, 2, 0.0),
        # L = 3 at a right angle: Σ^(2) = H̃^(2) = 1/π, α = arccos(1/π) = 1.2468502, Σ^(3) = 0.4937311, H̃^(3) = 0.6857086
        (math.pi / 2, 3, 0.5897199),
        # L = 3 at 60°: Σ^(2) = 0.6089978, H̃^(2) = 0.9423311, α = 0.9159999, Σ^(3) = 0.6839057, H̃^(3) = 1.3514796
        (math.pi / 3, 3, 1.0176926),
        (math.pi, 3, 0.5 * (2 / math.pi)),
    ],
)
def test_kernel_has_the_values_computed_by_hand(alpha, depth, by_hand):
    assert_allclose(tangent_kernel(at_angle(alpha), depth=depth)[0, 1], by_hand, atol=1e-7)


def expectations(alpha):
    """2E[σ(u)σ(v)] and 2E[σ'(u)σ'(v)] of unit Gaussians at angle α, by quadrature in polar coordinates."""
    node, weight = np.polynomial.legendre.leggauss(60)
    low, high = alpha - math.pi / 2, math.pi / 2  # where both are positive
    phi, arc = (high - low) / 2 * node + (high + low) / 2, (high - low) / 2 * weight
    s, radial = np.polynomial.laguerre.laggauss(40)  # s = r²/2
    r_squared = (radial * 2 * s).sum()
    both = 2 * r_squared * (arc * np.cos(phi) * np.cos(phi - alpha)).sum() / (2 * math.pi)
    return both, 2 * radial.sum() * arc.sum() / (2 * math.pi)


@pytest.mark.parametrize("depth", [2, 3, 5])
@pytest.mark.parametrize("alpha", [1e-4, 0.3, 1.0, 2.0, 3.0, 3.14159])
def test_kernel_agrees_with_quadrature_of_the_gaussian_expectations(alpha, depth):
    angle, tangent = alpha, math.cos(alpha)
    for _ in range(depth - 1):
        sigma, derivative = expectations(angle)
        tangent = tangent * derivative + sigma
        angle = math.acos(min(1, sigma))
    for initialization, value in (("gaussian", (tangent + sigma) / 2), ("symmetric", tangent)):
        found = tangent_kernel(at_angle(alpha), depth=depth, initialization=initialization)[0, 1]
        assert_allclose(found, value, atol=1e-10)


def test_kernel_scales_with_the_norms():
    x, c = sphere(6, 4), np.array([0.1, 1, 2, 3, 0.5, 7])
    assert_allclose(tangent_kernel(c[:, None] * x, depth=3), np.outer(c, c) * tangent_kernel(x, depth=3), rtol=1e-12)


def test_very_small_and_large_norms_keep_their_digits():
    x = sphere(6, 4)
    for c in (1e-150, 1e150):
        assert_allclose(tangent_kernel(c * x, depth=3) / c / c, tangent_kernel(x, depth=3), rtol=1e-12)


def test_kernel_of_two_sets_is_a_block_of_the_kernel_of_both(monkeypatch):
    x = sphere(23, 5)
    monkeypatch.setattr("neuralucb.theory.linalg.TILE", 4)
    both = tangent_kernel(x, depth=4)
    assert_allclose(tangent_kernel(x[:9], x[9:], depth=4), both[:9, 9:], rtol=1e-12)
    assert_allclose(both, both.T, rtol=0, atol=0)
    v = np.random.default_rng(1).normal(size=(23, 3))
    assert_allclose(theory.kernel_product(x, depth=4)(v), both @ v, rtol=1e-10)


def padded(slots, arms):
    rows = np.zeros((len(slots.arm), arms, slots.x.shape[1]))
    rows[np.arange(len(slots.arm)), slots.arm] = slots.x
    return rows.reshape(len(rows), -1)


def test_kernel_of_slots_is_that_of_zero_padded_contexts():
    slots = Slot(np.repeat(sphere(5, 3), 2, axis=0), np.tile([0, 2], 5))
    assert_allclose(tangent_kernel(slots, depth=3), tangent_kernel(padded(slots, 3), depth=3), atol=1e-14)


def test_angles_keep_their_digits_between_nearly_parallel_contexts():
    tiny = 1e-7
    found = tangent_kernel(np.array([[1.0, 0.0], [1.0, tiny]]), depth=3)
    # H̃ falls by α/π per layer where α is small: H̃^(3) = 3 - 3α/π + O(α²)
    assert_allclose((2 - found[0, 1]) / (1.5 * tiny / math.pi), 1, atol=1e-5)


def distance(width, depth, initialization, duplicate, limit, x, repeats):
    network = mlp(x.shape[1], width=width, depth=depth, initialization=initialization, duplicate=duplicate)
    kernel = tangent_kernel(x, depth=depth, initialization=limit)
    contexts = jnp.asarray(x, jnp.float32)
    errors = [
        np.linalg.norm(theory.empirical_kernel(network, network.init(jax.random.key(seed)), contexts) - kernel)
        for seed in range(repeats)
    ]
    return np.sqrt(np.mean(np.square(errors)))


@pytest.mark.parametrize(("depth", "widths"), [(2, (64, 512, 4096, 32768)), (3, (32, 128, 512, 1024))])
def test_wide_networks_approach_the_kernel_as_one_over_the_root_of_the_width(depth, widths):
    x = sphere(6, 4)
    errors = [distance(width, depth, "gaussian", False, "gaussian", x, 6) for width in widths]
    slope = np.polyfit(np.log(widths), np.log(errors), 1)[0]
    assert -0.65 < slope < -0.35


@pytest.mark.parametrize(("initialization", "duplicate"), [("symmetric", False), ("paper", True)])
def test_networks_of_two_halves_approach_the_other_kernel(initialization, duplicate):
    x = sphere(5, 4)
    assert distance(20_000, 2, initialization, duplicate, initialization, x, 2) < 0.2
    assert distance(20_000, 2, initialization, duplicate, "gaussian", x, 2) > 1  # the control: not Definition 1's


@pytest.mark.usefixtures("wide")
def test_empirical_kernel_is_the_product_of_explicit_gradients(monkeypatch, key):
    monkeypatch.setattr("neuralucb.theory.kernel.GRADIENT_TILE", 3)
    network = mlp(4, width=6, depth=3, dtype="float64")
    params, x = network.init(key), jnp.asarray(sphere(7, 4))
    gradients = [
        np.concatenate([leaf.ravel() for leaf in jax.tree.leaves(jax.grad(network.apply)(params, row))]) for row in x
    ]
    G = np.stack(gradients) / math.sqrt(6)
    assert_allclose(theory.empirical_kernel(network, params, x), G @ G.T, rtol=1e-12)
    assert_allclose(theory.empirical_kernel(network, params, x[:2], x[2:]), G[:2] @ G[2:].T, rtol=1e-12)


def test_empirical_kernel_of_a_disjoint_network_knows_its_arms(key):
    network = disjoint(mlp(3, width=4096, fan_in=6), 2)
    slots = Slot(np.repeat(sphere(3, 3), 2, axis=0).astype(np.float32), np.tile(np.int32([0, 1]), 3))
    found = theory.empirical_kernel(network, network.init(key), slots)
    assert_allclose(found, tangent_kernel(slots, depth=2), atol=0.15)


@pytest.mark.parametrize(
    ("contexts", "message"),
    [
        (np.ones((3, 2), np.float32), "a context must be 4 numbers, got shape"),
        (np.ones(4, np.float32), "a context must be 4 numbers, got shape"),
        (np.ones((0, 4), np.float32), "contexts must be an array with one row per context"),
        ([[1.0, 2.0, 3.0, 4.0]], "contexts must be an array with one row per context.* got list"),
        (np.array([[1, 2, 3, 4], [1, 2, np.inf, 4]], np.float32), "finite, got NaN or infinity in row 1"),
    ],
)
def test_contexts_that_a_network_cannot_take_have_no_empirical_kernel(key, contexts, message):
    network = mlp(4, width=6)
    with pytest.raises(ValueError, match=message):
        theory.empirical_kernel(network, network.init(key), contexts)
    with pytest.raises(ValueError, match=message.replace("contexts", "others")):
        theory.empirical_kernel(network, network.init(key), np.ones((1, 4), np.float32), contexts)


def test_an_arm_that_a_network_does_not_have_is_refused(key):
    network = disjoint(mlp(3, width=6), 2)
    with pytest.raises(ValueError, match="arm must be from 0 to 1, got 7"):
        theory.empirical_kernel(network, network.init(key), Slot(np.ones((2, 3), np.float32), np.int32([0, 7])))


def test_kernels_are_judged_by_the_memory_of_the_machine_not_of_a_gpu(monkeypatch):
    class Device:
        def memory_stats(self):
            return {"bytes_limit": 10, "bytes_in_use": 0}

    monkeypatch.setattr(memory.jax, "devices", lambda: [Device()])
    monkeypatch.setattr(memory.jax, "default_backend", lambda: "gpu")
    assert memory.available_bytes() == 10
    assert memory.host_bytes() > 1e6
    assert tangent_kernel(sphere(9, 3), depth=2).shape == (9, 9)
    assert theory.effective_dimension_of(sphere(9, 3), depth=2, regularization=1.0).error == 0
    monkeypatch.setattr(memory, "host_bytes", lambda: 10)
    with pytest.raises(ValueError, match="a kernel matrix of 9 × 9 needs"):
        tangent_kernel(sphere(9, 3), depth=2)


def test_a_depth_between_integers_is_refused():
    with pytest.raises(TypeError, match="depth must be an integer, got 2.5"):
        tangent_kernel(np.eye(2), depth=2.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tangent_kernel(np.ones((2, 2)), depth=1), "depth must be at least 2, got 1"),
        (lambda: tangent_kernel(np.ones((2, 2)), depth=2, initialization="uniform"), "one of gaussian"),
        (lambda: tangent_kernel(np.ones((2, 2)), np.ones((2, 3)), depth=2), "others must be contexts of the same"),
        (lambda: tangent_kernel(1e200 * sphere(4, 3), depth=2), "within float64, got 1e.200 .* scale them down"),
        (lambda: tangent_kernel(1e-200 * sphere(4, 3), depth=2), "within float64, got 1e-200 .* scale them up"),
    ],
)
def test_bad_input_is_refused_with_the_cure(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.slow
def test_kernel_of_5000_contexts_takes_at_most_five_products_of_that_size():
    x, square = sphere(5000, 20), np.random.default_rng(0).normal(size=(5000, 5000))

    def fastest(work):
        times = []
        for _ in range(3):
            started = time.perf_counter()
            work()
            times.append(time.perf_counter() - started)
        return min(times)

    assert fastest(lambda: tangent_kernel(x, depth=3)) < 5 * fastest(lambda: square @ square)
