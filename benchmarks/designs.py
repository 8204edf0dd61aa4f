"""Designs of Z against the full one: errors and correlations of widths along the same gradients, and runs of their own.

OPENBLAS_NUM_THREADS=1 NEURALUCB_DATA=FOLDER python benchmarks/designs.py h1 shuttle mnist --out designs.jsonl
python benchmarks/designs.py --out designs.jsonl --report docs

A run of NeuralUCB with the exact Z carries every other design along: all see the same gradients, and the exact one
chooses. Then each design plays a run of its own. Where p² numbers do not fit, the exact Z is the dual form with room
for all rounds. Writes a line per measurement as it comes; what is there already is not run again.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from neuralucb import InputError, run
from neuralucb.algorithms import ALGORITHMS, Task
from neuralucb.algorithms.shared_settings import design_for, network_for
from neuralucb.designs import Design
from neuralucb.display.figures import COLOURS, new_figure, save, tidy
from neuralucb.display.tables import markdown_table
from neuralucb.history import append, empty
from neuralucb.networks import Network
from neuralucb.policy import Policy
from neuralucb.problems import Problem, find_problem
from neuralucb.schedules import learning_rounds, read_schedule
from neuralucb.settings import read_settings
from neuralucb.simulation import draw_round, draw_world


class Case(NamedTuple):
    """A problem, how long it is played, and with which network."""

    rounds: int
    seeds: int
    exact: str
    settings: dict[str, Any]
    world: dict[str, Any]
    skip: tuple[str, ...] = ()


TRAINED = {
    "units": "given", "scaling": "standard", "initialization": "symmetric", "encoding": "heads", "start": "warm",
    "optimizer": "adam", "decay": "linear", "retries": 0, "step_size": 0.003, "steps": 100, "batch_size": 64,
    "depth": 2, "regularization": 0.1, "exploration": 0.1,
}  # fmt: skip
"""The same for all; nothing was tuned for a design."""

CASES = {
    "h1": Case(2000, 5, "full", TRAINED | {"width": 20}, {}),
    "shuttle": Case(2000, 3, "full", TRAINED | {"width": 50}, {"input_scaling": "standard"}),
    "mnist": Case(
        500, 1, "dual", TRAINED | {"width": 100}, {"input_scaling": "standard"},
        skip=("block-diagonal", "frequent-directions 128", "random-projection 32", "dual 512"),
    ),
}  # fmt: skip
SCHEDULE = "20:200,50"
VARIANTS: dict[str, dict[str, Any]] = {
    name: {"design": name} for name in ("full", "diagonal", "last-layer", "block-diagonal", "kronecker")
} | {
    f"{name} {size}": {"design": name, "design_size": size}
    for name, sizes in (("frequent-directions", (32, 128)), ("random-projection", (32, 128)), ("dual", (128, 512)))
    for size in sizes
}
TIMED, REPEATS = 100, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", choices=[*CASES, []])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--report", type=Path, help="folder of the docs: print the tables, and draw figures/designs.png"
    )
    options = parser.parse_args()
    for name in options.problems:
        for seed in range(CASES[name].seeds):
            if not any(each["kind"] == "carried" and each["seed"] == seed for each in read(options.out, name)):
                write(options.out, carry(name, seed))
        for variant in variants(name):
            if not any(each["kind"] == "own" and each["design"] == variant for each in read(options.out, name)):
                write(options.out, play(name, variant))
    if options.report is not None:
        report(options.out, options.report)


def variants(name: str) -> list[str]:
    """Those that fit, the exact one first."""
    whole = [f"dual {CASES[name].rounds}"] if CASES[name].exact == "dual" else ["full"]
    return whole + [each for each in VARIANTS if each not in (*CASES[name].skip, "full")]


def settings_of(name: str, variant: str) -> dict[str, Any]:
    case = CASES[name]
    own = VARIANTS.get(variant, {"design": "dual", "design_size": case.rounds})
    return read_settings(ALGORITHMS["neural-ucb"].settings, case.settings | own, of="neural-ucb")


def carry(name: str, seed: int) -> dict[str, Any]:
    """One run in which the exact Z chooses; what the others' widths would have been, for every arm of every round."""
    case, names, problem = CASES[name], variants(name), world_of(name)
    task = Task(problem.dim, case.rounds, problem.shared_by)
    with jax.enable_x64(True):
        network = network_for(task, settings_of(name, names[0]))
        policy = ALGORITHMS["neural-ucb"].recipe(task, settings_of(name, names[0]))
        designs = {each: design_for(network, settings_of(name, each)) for each in names[1:]}
        widths, states, gradients = follow(case, problem, policy, network, designs, seed)
        exact, others = widths[names[0]], {each: widths[each] for each in names[1:]}
        record: dict[str, Any] = {"kind": "carried", "problem": name, "seed": seed, "exact": names[0]}
        record["parameters"] = sum(
            leaf.size for leaf in jax.tree.leaves(jax.eval_shape(network.init, jax.random.key(0)))
        )
        record["designs"] = {each: compare(exact, found) for each, found in others.items()}
        if seed == 0:
            designs[names[0]] = design_for(network, settings_of(name, names[0]))
            record["cost"] = {each: cost(designs[each], states[each], gradients) for each in names}
            some = np.linspace(0, exact.size - 1, 400).astype(int)
            record["widths"] = {each: found.ravel()[some].tolist() for each, found in widths.items()}
    return record


def follow(
    case: Case, problem: Problem, policy: Policy, network: Network, designs: dict[str, Design], seed: int
) -> tuple[dict[str, np.ndarray], dict[str, Any], Any]:
    """[rounds, arms] widths by design, their states at the end, and the gradients of the last rounds."""
    key, data = jax.random.key(seed), jax.device_put(problem.data)
    world = draw_world(key, problem, data)

    def one_round(t: Any, belief: Any, states: dict[str, Any]) -> Any:
        now = draw_round(key, problem, data, world, t)
        choice = policy.select(jax.random.fold_in(key, t), belief, now.contexts)
        context = jax.tree.map(lambda leaf: leaf[choice.arm], now.contexts)
        reward = now.expected[choice.arm] + now.noise
        gradients = jax.vmap(lambda each: network.tangent(belief.params, each)[1])(now.contexts)
        widths = {
            each: jax.vmap(lambda g, each=each: designs[each].width(states[each], g))(gradients) for each in designs
        }
        played = jax.tree.map(lambda leaf: leaf[choice.arm], gradients)
        states = {each: designs[each].add(states[each], played) for each in designs}
        belief = policy.observe(belief, context, reward)
        return belief, states, context, reward, widths | {"exact": choice.width}, gradients

    step = jax.jit(one_round, donate_argnums=(1, 2))
    learn = jax.jit(policy.learn)
    belief, states = policy.init(key), {each: jax.jit(design.init)() for each, design in designs.items()}
    example = jax.tree.map(
        lambda leaf: jnp.zeros(leaf.shape[1:], leaf.dtype), draw_round(key, problem, data, world, jnp.int32(0)).contexts
    )
    history, kept, last = empty(example, capacity=case.rounds), [], []
    lessons = set(learning_rounds(read_schedule(SCHEDULE), rounds=case.rounds))
    start = time.time()
    belief = jax.tree.map(jnp.array, belief)  # θ_0 and θ are one buffer, which cannot be given away twice
    for t in range(case.rounds):
        belief, states, context, reward, widths, gradients = step(jnp.int32(t), belief, states)
        history = append(history, context, reward)
        kept.append({each: np.asarray(found, np.float64) for each, found in widths.items()})
        if t >= case.rounds - TIMED:
            last.append(gradients)
        if t + 1 in lessons:
            belief, _ = learn(jax.random.fold_in(key, t), belief, history)
        if (t + 1) % 200 == 0:
            print(problem.name, "seed", seed, "round", t + 1, f"{time.time() - start:.0f} s", flush=True)
    names = {"exact": "dual " + str(case.rounds) if case.exact == "dual" else "full"}
    found = {names.get(each, each): np.stack([row[each] for row in kept]) for each in kept[0]}
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *last)
    return found, states | {names["exact"]: belief.z}, stacked


def compare(exact: np.ndarray, found: np.ndarray) -> dict[str, float]:
    """Errors and correlations, over all arms of all rounds, and of the arms within a round.

    Where all units of an arm are off, its gradient and every width are 0, and there is no ratio.
    """
    ratio = found[exact > 0] / exact[exact > 0]
    a, b = exact - exact.mean(axis=1, keepdims=True), found - found.mean(axis=1, keepdims=True)
    scale = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    within = (a * b).sum(axis=1)[scale > 0] / scale[scale > 0]
    return {
        "median ratio": float(np.median(ratio)),
        "median error": float(np.median(np.abs(ratio - 1))),
        "95 % error": float(np.quantile(np.abs(ratio - 1), 0.95)),
        "correlation": float(np.corrcoef(exact.ravel(), found.ravel())[0, 1]),
        "within a round": float(within.mean()),
    }


def cost(design: Design, z: Any, gradients: Any) -> dict[str, float]:
    """Bytes of Z; seconds of a round, the widths of all arms and one update, from the state that a run has reached."""

    def one(state: Any, row: Any) -> Any:
        widths = jax.vmap(lambda g: design.width(state, g))(row)
        return design.add(state, jax.tree.map(lambda leaf: leaf[0], row)), widths.sum()

    program = jax.jit(lambda state, rows: jax.lax.scan(one, state, rows)[1])
    jax.block_until_ready(program(z, gradients))
    taken = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        jax.block_until_ready(program(z, gradients))
        taken.append((time.perf_counter() - start) / TIMED)
    return {"bytes": sum(leaf.nbytes for leaf in jax.tree.leaves(z)), "seconds": min(taken)}


def play(name: str, variant: str) -> dict[str, Any]:
    """A run of its own."""
    case = CASES[name]
    own = VARIANTS.get(variant, {"design": "dual", "design_size": case.rounds})
    record: dict[str, Any] = {"kind": "own", "problem": name, "design": variant}
    try:
        result = run(
            "neural-ucb",
            name,
            rounds=case.rounds,
            seeds=case.seeds,
            schedule=SCHEDULE,
            **case.settings,
            **case.world,
            **own,
        )
    except InputError as refused:
        return record | {"refused": str(refused)}
    seconds = result.seconds / case.seeds
    return record | {"regret": result.regret[:, -1].tolist(), "diverged": result.diverged, "seconds": seconds}


def world_of(name: str) -> Problem:
    found = find_problem(name)
    values = read_settings(found.settings, CASES[name].world, of=name)
    return found.make(**values)


def read(path: Path, problem: str) -> list[dict[str, Any]]:
    lines = path.read_text().splitlines() if path.exists() else []
    return [record for record in map(json.loads, lines) if record["problem"] == problem]


def write(path: Path, record: dict[str, Any]) -> None:
    with path.open("a") as lines:
        lines.write(json.dumps(record) + "\n")
    shown = {key: value for key, value in record.items() if key != "widths"}
    print(json.dumps(shown), flush=True)


def report(path: Path, docs: Path) -> None:
    """Print a table per problem, and draw widths against those of the exact Z."""
    names = [name for name in CASES if read(path, name)]
    figure, axes = new_figure(len(names), len(names), width=4.6, height=4.2, margin=1.6)
    for axis, name in zip(axes, names, strict=True):
        records = read(path, name)
        carried = [record for record in records if record["kind"] == "carried"]
        own = {record["design"]: record for record in records if record["kind"] == "own"}
        seeds = f"{len(carried)} seed{'s' * (len(carried) > 1)}"
        print(f"\n**{name}**, p = {carried[0]['parameters']}, T = {CASES[name].rounds}, {seeds}:\n")
        print(markdown_table([HEAD, *(row_of(each, carried, own.get(each, {})) for each in variants(name))]))
        draw(axis, name, carried[0])
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=7, markerscale=2, loc="outside right upper")
    save(figure, [docs / "figures" / "designs.png"])


HEAD = [
    "design", "median ratio", "median error", "95 % error", "correlation", "within a round",
    "regret (worst)", "memory of Z", "µs per round for Z",
]  # fmt: skip


def row_of(variant: str, carried: list[dict[str, Any]], own: dict[str, Any]) -> list[str]:
    found = [record["designs"][variant] for record in carried if variant in record["designs"]]
    means = [f"{np.mean([each[key] for each in found]):.3f}" if found else "exact" for key in HEAD[1:6]]
    price = carried[0]["cost"][variant]
    regret = f"{np.mean(own['regret']):.0f} ({max(own['regret']):.0f})" if "regret" in own else "not played"
    trouble = f", {own['diverged']} diverged" if own.get("diverged") else ""
    size = f"{price['bytes'] / 1e3:,.0f} kB"
    return [variant, *means, regret + trouble, size, f"{1e6 * price['seconds']:.0f}"]


def draw(axis: Any, name: str, record: dict[str, Any]) -> None:
    exact = np.asarray(record["widths"][record["exact"]])
    for index, variant in enumerate(VARIANTS):
        found = record["widths"].get(variant, [])
        if variant != record["exact"] and len(found):
            axis.scatter(exact, found, s=5, alpha=0.6, color=COLOURS[index % len(COLOURS)], label=variant)
    ends = [exact.min(), exact.max()]
    axis.plot(ends, ends, color="black", linewidth=0.8)
    axis.set(
        xscale="log",
        yscale="log",
        xlabel="width by the exact Z",
        ylabel="width",
        title=f"{name}, p = {record['parameters']}",
    )
    ticks = [tick for tick in (0.25, 0.5, 1, 2, 4, 8) if ends[0] <= tick <= ends[1]]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.xaxis.set_minor_formatter("")
    tidy(axis)


if __name__ == "__main__":
    main()
