"""Networks given as `network=`: from Flax, Equinox and plain functions, with one output or one per arm."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from neuralucb import InputError, OnlineBandit, build, labelled, run, run_grid
from neuralucb.algorithms import Task, register_network
from neuralucb.algorithms.networks import make_network
from neuralucb.estimators.features import exact_design, last_layer
from neuralucb.gradients import dense
from neuralucb.networks import concat, disjoint, from_functions, heads, mlp
from neuralucb.policy import Slot
from neuralucb.sweeps import Part
from tests.problems.rows import X, Y

DIM, ARMS = 4, 3
CONTEXT = np.linspace(-1, 1, DIM).astype(np.float32)
SMALL = {"steps": 5, "batch_size": 4, "design": "diagonal"}


def linear(outputs=(), inputs=DIM):
    """A pair: one matrix, or one vector."""
    return (
        lambda key: jax.random.normal(key, (*outputs, inputs), "float32"),
        lambda weights, x: weights @ x,
    )


def linen(outputs=1):
    nn = pytest.importorskip("flax.linen")

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(outputs)(nn.relu(nn.Dense(8)(x)))

    return Net()


def nnx_pair(outputs=1):
    nnx = pytest.importorskip("flax.nnx")

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.hidden = nnx.Linear(DIM, 8, rngs=rngs)
            self.out = nnx.Linear(8, outputs, rngs=rngs)

        def __call__(self, x):
            return self.out(nnx.relu(self.hidden(x)))

    graph, _ = nnx.split(nnx.eval_shape(lambda: Net(nnx.Rngs(0))))

    def init(key):
        return nnx.split(Net(nnx.Rngs(key)))[1]

    return init, lambda params, x: nnx.merge(graph, params)(x)


def equinox_pair(outputs="scalar"):
    eqx = pytest.importorskip("equinox")
    make = lambda key: eqx.nn.MLP(DIM, outputs, 8, 1, key=key)  # noqa: E731
    _, static = eqx.partition(make(jax.random.key(0)), eqx.is_array)
    return lambda key: eqx.filter(make(key), eqx.is_array), lambda params, x: eqx.combine(params, static)(x)


def haiku_style():
    """init takes a context too, to see its size."""
    return (lambda key, x: jax.random.normal(key, x.shape, "float32")), (lambda weights, x: weights @ x)


NETWORKS = {
    "linen": (linen, "given:Net"),
    "nnx": (nnx_pair, "given:network"),
    "equinox": (equinox_pair, "given:network"),
    "haiku-style": (haiku_style, "given:network"),
    "network": (lambda: mlp(DIM, width=4), "given:network"),
    "three functions": (lambda: (*linear(), lambda weights, x: x), "given:network"),
}


@pytest.mark.parametrize("kind", NETWORKS)
def test_networks_of_every_library_decide_and_learn(kind):
    make, name = NETWORKS[kind]
    policy = build("neural-ucb", dim=DIM, network=make(), **SMALL)
    assert dict(policy.origin.settings)["network"].startswith(name)
    with OnlineBandit(policy, schedule="3") as bandit:
        for reward in (0.0, 1.0, 0.5, 1.0):
            bandit.observe(bandit.select(np.stack([CONTEXT, -CONTEXT])).id, reward)
        assert bandit.health().learned == 1
        assert bandit.health().failure is None


@pytest.mark.parametrize(
    "make", [linen, nnx_pair, equinox_pair, lambda outputs: linear((outputs,))], ids=["linen", "nnx", "equinox", "pair"]
)
def test_where_arms_share_a_context_each_has_its_output(make):
    network = make_network_of(make(ARMS), Task(DIM, None, ARMS))
    params = network.init(jax.random.key(0))
    scores = [float(network.apply(params, Slot(CONTEXT, np.int32(arm)))) for arm in range(ARMS)]
    assert len(set(scores)) == ARMS
    value, _ = network.tangent(params, Slot(CONTEXT, np.int32(1)))
    assert_allclose(value, scores[1])


def make_network_of(given, task):
    policy = build("neural-epsilon-greedy", dim=task.dim, shared_by=task.shared_by, network=given)
    settings = dict(policy.origin.settings)
    return make_network(settings["network"], task, settings)


@pytest.mark.parametrize("given", [linear(inputs=DIM + ARMS), haiku_style()], ids=["fixed size", "any size"])
def test_one_output_sees_the_arm_as_a_one_hot_vector(given):
    network = make_network_of(given, Task(DIM, None, ARMS))
    params = network.init(jax.random.key(0))
    assert params.shape == (DIM + ARMS,)
    assert_allclose(network.apply(params, Slot(CONTEXT, np.int32(2))), params[:DIM] @ CONTEXT + params[-1], rtol=1e-5)


@pytest.mark.parametrize(
    ("network", "shared_by", "message"),
    [
        (linear(), ARMS, "returns one number for a context of 4 numbers that 3 arms share; let it return 3 numbers"),
        (mlp(DIM), ARMS, "does not see the arm, for a context of 4 numbers that 3 arms share; let it return 3"),
        (linear((2,)), ARMS, r"returns shape \(2,\) for a context of 4 numbers that 3 arms share"),
        (linear((2,)), None, "must return one number for one context of 4 numbers, got"),
        (linear(inputs=9), None, "cannot take a context of 4 numbers: TypeError"),
        (mlp(9), None, "takes .*9.* but a context has 4 numbers"),
        ((lambda key: jnp.ones(DIM, "int32"), lambda weights, x: (weights * x).sum()), None, "real numbers, got int32"),
        ("my-cnn", None, "network .f. must be one of mlp, residual, .*, got 'my-cnn'"),
        ("given:cnn", None, "given in Python in another one; give it again, or register it by name"),
        (3, None, "must be a Network, a pair of functions .*got 3"),
        ((1, 2), None, "must be a Network, a pair of functions"),
        (lambda x: x, None, "must be a Network, a pair of functions"),
    ],
)
def test_a_network_that_does_not_fit_is_refused_with_the_cure(network, shared_by, message):
    with pytest.raises(InputError, match=message):
        build("neural-ucb", dim=DIM, shared_by=shared_by, network=network)


def test_what_only_the_papers_network_has_is_refused_with_others():
    for setting in ({"network_precision": "float64"}, {"confidence": "theoretical"}):
        with pytest.raises(InputError, match=f"{next(iter(setting))} must be .* with network=given:"):
            build("neural-ucb", dim=DIM, network=linear(), **setting)


def test_the_same_network_is_the_same_policy_and_another_is_another():
    pair = linear()
    first, again = (build("neural-ucb", dim=DIM, network=pair, **SMALL) for _ in range(2))
    other = build("neural-ucb", dim=DIM, network=linear(), **SMALL)
    assert first.select is again.select
    assert other.origin != first.origin


def test_results_name_the_network_and_grids_take_several():
    register_network("straight")(lambda task, settings: linear((task.shared_by,), task.dim))
    toy = labelled(X, Y)
    sizes = {"rounds": 20, "seeds": 2, "schedule": "10"}
    grid = {"network": ["mlp", "straight", linear((toy.arms,), toy.dim)], "steps": [3], "width": [4]}
    results = run_grid("neural-epsilon-greedy", toy, grid, **sizes)
    names = [result.as_json()["settings"]["network"] for result in results]
    assert names[:2] == ["mlp", "straight"]
    assert names[2].startswith("given:")
    paper = run("neural-epsilon-greedy", toy, **sizes, steps=3, width=4)
    assert paper.final_regret.tolist() == results[0].final_regret.tolist()


def test_a_sweep_refuses_a_network_that_other_processes_cannot_know():
    for given in ({"settings": {"network": linear()}}, {"grid": {"network": [linen()]}}):
        with pytest.raises(InputError, match="network must be plain data in a sweep.*register it by name in a module"):
            Part("neural-ucb", "h1", **given)


ENCODED = {
    "alone": lambda: (mlp(DIM, width=6, depth=3), CONTEXT),
    "biases": lambda: (mlp(DIM, width=6, biases=True), CONTEXT),
    "disjoint": lambda: (disjoint(mlp(DIM, width=6), ARMS), Slot(CONTEXT, np.int32(1))),
    "concat": lambda: (concat(mlp(DIM + ARMS, width=6), ARMS), Slot(CONTEXT, np.int32(1))),
    "heads": lambda: (heads(mlp(DIM, width=6), ARMS), Slot(CONTEXT, np.int32(1))),
}


@pytest.mark.parametrize("kind", ENCODED)
def test_the_network_is_linear_in_its_last_layer(kind):
    network, context = ENCODED[kind]()
    params = network.init(jax.random.key(0))
    slope = jax.grad(network.apply)(params, context)[-1]
    phi = dense(network.last_layer(params, context))
    assert_allclose(slope.ravel(), np.sqrt(6) * phi, rtol=1e-5)
    assert last_layer(network).size == phi.size


def test_the_last_layer_of_given_functions_is_theirs_and_a_missing_one_is_told():
    init, apply = linear((ARMS,))
    network = from_functions(init, apply, example=CONTEXT, features=lambda weights, x: x, arms=ARMS)
    block = network.last_layer(init(jax.random.key(0)), Slot(CONTEXT, np.int32(2)))
    assert_allclose(dense(block), np.r_[np.zeros(2 * DIM), CONTEXT])
    z = exact_design(last_layer(network), ridge=1.0, dtype="float32")
    assert z.init().inverse.shape == (ARMS, DIM, DIM)
    with pytest.raises(InputError, match=r"must tell its last hidden layer .* \(init, apply, features\)"):
        last_layer(from_functions(*linear(), example=CONTEXT))
    with pytest.raises(InputError, match="features must return a vector"):
        from_functions(*linear(), example=CONTEXT, features=lambda weights, x: x.sum())
    with pytest.raises(InputError, match="apply must return 3 numbers, one per arm"):
        from_functions(*linear(), example=CONTEXT, arms=ARMS)
