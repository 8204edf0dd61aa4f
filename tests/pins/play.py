"""Runs whose numbers must not change: every registered algorithm, and `OnlineBandit` through a crash.

`python play.py FILE.npz` writes them all, bit for bit, with whichever `neuralucb` is on the path;
`benchmarks/same_numbers.py` compares two source trees that way. It uses public names only, so that it plays old and new
trees alike.
"""

import json
import shutil
import sys
import tempfile
from itertools import product
from pathlib import Path

import jax
import numpy as np
from safetensors.numpy import load_file

import neuralucb
from neuralucb.algorithms import ALGORITHMS
from neuralucb.problems import reveal

ROUNDS, SEEDS, DIM, ARMS = 60, (3, 4), 5, 4
SMALL = {"width": 8, "steps": 8, "batch_size": 8, "networks": 3, "budget": 40}
PAPER = {
    "regularization": 1.0, "width": 20, "depth": 2, "initialization": "gaussian", "scaling": "tangent",
    "encoding": "disjoint",
    "step_size": 0.05, "steps": "t", "batch_size": 50, "start": "initial", "optimizer": "plain", "decay": "none",
    "retries": 0, "units": "given", "design": "full",
}  # fmt: skip
"""The defaults of version 0.1 for algorithms that train a network."""

LATER = (
    "neural-mix",
    "banditron",
    "epoch-greedy",
    "exp4",
    "gloc",
    "gp-ucb",
    "lin-ts",
    "online-cover",
    "perturbed-history",
    "ucb-glm",
    "neural-linear",
    "neural-linear-lm",
    "neural-bandit",
    "bbq",
    "bdqn",
    "neural-perturbed-history",
    "neural-lin-ucb",
    "ee-net",
    "neural-perturbed",
    "deep-ensemble",
    "neural-variance-lin-ucb",
)
"""Algorithms that version 0.1 does not have."""

VARIED = {"design": ("full", "diagonal"), "scaling": ("tangent", "standard")}
PROBLEMS = ("synthetic", "labelled")
BANDITS = {
    "plain": {},
    "windowed": {"window": 25, "normalize": True, "floor": 0.1},
    "counting": {"count_pending": True},
}
FIRST, SECOND = 40, 20
"""Decisions before and after the crash."""


def cases():
    """(algorithm, problem, settings) of every run."""
    for name, algorithm in ALGORITHMS.items():
        if name in LATER:
            continue
        varied = [setting.name for setting in algorithm.settings if setting.name in VARIED]
        for problem, values in product(PROBLEMS, product(*(VARIED[each] for each in varied))):
            yield name, problem, dict(zip(varied, values, strict=True))


def label(name, problem, settings):
    return "/".join([name, problem, *settings.values()])


def play(name, problem, settings):
    """Arms, regret and final belief of two seeds, played in turn by one compiled program."""
    given = _settings(name, **SMALL) | settings
    world = _world(problem)
    world = world._replace(data=jax.device_put(world.data))
    shared = world.arms if world.shared else None
    with jax.enable_x64(True):

        def one(seed):
            policy = neuralucb.build(name, dim=world.dim, shared_by=shared, **given)
            return neuralucb.simulate(
                jax.random.key(seed),
                policy,
                reveal(world) if ALGORITHMS[name].sees_expected else world,
                rounds=ROUNDS,
                schedule=neuralucb.read_schedule("7:30,10"),
            )

        end = jax.jit(lambda seeds: jax.lax.map(one, seeds))(np.asarray(SEEDS, np.uint32))  # compiled sooner than vmap
        numbers = {"arm": np.asarray(end.trace.arm), "regret": np.asarray(end.trace.regret)}
        return numbers | {f"belief{index:02}": _plain(leaf) for index, leaf in enumerate(jax.tree.leaves(end.belief))}


def play_online(kind):
    """An `OnlineBandit` that decides, learns, is cut off without a word, and goes on from its journal."""
    settings = _settings("neural-ucb", **SMALL, design="diagonal", start="warm")
    policy = neuralucb.build("neural-ucb", dim=DIM, **settings)
    arguments = {"seed": 5, "schedule": "6:18,9", "snapshot_every": 30, **BANDITS[kind]}
    with tempfile.TemporaryDirectory() as folder:
        there, copy, saved = (Path(folder) / name for name in ("journal", "copy", "saved"))
        with neuralucb.OnlineBandit(policy, journal=there, sync="none", **arguments) as bandit:
            before = _decide(bandit, FIRST, seed=0)
            shutil.copytree(there, copy)  # as a kill would leave it: nothing was closed
        with neuralucb.OnlineBandit(policy, journal=copy, sync="none", **arguments) as bandit:
            after = _decide(bandit, SECOND, seed=1)
            health = bandit.health()
            bandit.save(saved)
        numbers = {f"before.{name}": value for name, value in before.items()}
        numbers |= {f"after.{name}": value for name, value in after.items()}
        numbers["counts"] = np.asarray([health.decisions, health.observed, health.pending, health.learned])
        beliefs = load_file(_newest(saved)).items()
        return numbers | {f"saved.{name}": array for name, array in beliefs if name.startswith("belief")}


def fingerprint(numbers):
    """What is recorded: arms whole; of every float array its size, mean and one projection; others as they are."""
    return {
        name: _projections(array) if array.dtype.kind == "f" and name.startswith(("belief", "saved")) else array
        for name, array in numbers.items()
    }


def everything():
    """Every number of every run, by its name."""
    played = {label(*case): play(*case) for case in cases()}
    played |= {f"online/{kind}": play_online(kind) for kind in BANDITS}
    return {f"{run}|{name}": array for run, numbers in played.items() for name, array in numbers.items()}


def _settings(name, **given):
    """The defaults of version 0.1 and the settings given, as far as the algorithm has them."""
    own = {setting.name for setting in ALGORITHMS[name].settings}
    paper = PAPER if "steps" in own else {}
    return {key: value for key, value in (paper | given).items() if key in own}


def _world(problem):
    if problem == "synthetic":
        return neuralucb.synthetic("h1", dim=DIM, arms=ARMS)
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(90, DIM))
    labels = np.argmax(rows @ generator.normal(size=(DIM, 3)), axis=1)
    return neuralucb.labelled(rows, labels, input_scaling="standard")


def _decide(bandit, count, seed):
    """Decisions over a varying number of arms; rewards come three decisions late, the last ones never."""
    generator = np.random.default_rng(seed)
    waiting, made = [], []
    for _ in range(count):
        contexts = generator.normal(size=(int(generator.integers(2, 6)), DIM)).astype(np.float32)
        decision = bandit.select(contexts)
        waiting.append((decision.id, float(np.sin(contexts[decision.position].sum()))))
        made.append((decision.position, *np.asarray(decision.score)[:2]))
        if len(waiting) > 3:
            bandit.observe(*waiting.pop(0))
    positions, *scores = zip(*made, strict=True)
    return {"position": np.asarray(positions), "score": np.asarray(scores)}


def _newest(saved):
    return max(saved.rglob("*.safetensors"))


def _projections(array):
    flat = array.astype(np.float64).ravel()
    return np.asarray([flat.size, flat.mean(), flat @ np.cos(np.arange(1.0, flat.size + 1)) / max(1, flat.size) ** 0.5])


def _plain(leaf):
    is_key = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)


if __name__ == "__main__":
    np.savez(sys.argv[1], **everything())
    print(json.dumps({"neuralucb": neuralucb.__file__}))
