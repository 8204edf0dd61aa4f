"""Cost against T, K, d, m, L, lanes and processes, with the slope that was fitted beside the one that is expected.

    python benchmarks/scaling.py                    # four minutes; ends with an error if a slope is off
    python benchmarks/scaling.py --axes K d         # some of it; what was measured is kept in --out
    taskset -c 0 python benchmarks/scaling.py --axes profile     # on one core, as the page has it
    python benchmarks/scaling.py --axes --page      # docs/results/scaling.md and its figure, from what was kept

Every cost is the best of three runs of a compiled program on one thread, compiling not counted. Sizes are chosen so
that what is varied is what costs; the slope is that of a line through the logarithms. Then the main kernels beside this
machine's measured limits, a large product and a large copy.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false"

import jax
import jax.numpy as jnp
import numpy as np

from neuralucb.algorithms import find_algorithm
from neuralucb.designs import diagonal, full
from neuralucb.experiments.lanes import Lanes, Program, compile_program
from neuralucb.history import History
from neuralucb.networks.mlp import mlp
from neuralucb.problems import synthetic
from neuralucb.settings import read_settings
from neuralucb.training import sgd

__all__ = ["AXES", "main"]

DOCS = Path(__file__).parent.parent / "docs"
NEVER = "1000000"
SMALL: dict[str, Any] = {"depth": 2, "width": 20, "units": "given", "scaling": "tangent", "initialization": "gaussian"}


class Case(NamedTuple):
    """One program to time."""

    rounds: int = 400
    arms: int = 4
    dim: int = 20
    lanes: int = 1
    schedule: str = NEVER
    settings: dict[str, Any] = SMALL


class Axis(NamedTuple):
    """What is varied, and how the cost should grow with it."""

    values: tuple[int, ...]
    case: Callable[[int], Case]
    slope: float
    tolerance: float
    why: str


DIAGONAL = SMALL | {"design": "diagonal"}
AXES: dict[str, Axis] = {
    "T": Axis(
        (1000, 2000, 4000, 8000),
        lambda rounds: Case(rounds, schedule="50", settings=SMALL | {"design": "full", "steps": 50}),
        1.0, 0.15, "as many steps in every lesson: a round costs the same early and late",
    ),
    "T, J = t": Axis(
        (2000, 4000, 8000),
        lambda rounds: Case(rounds, schedule="50", settings=DIAGONAL | {"steps": "t"}),
        2.0, 0.3, "lessons as long as the history; rounds and short lessons pull it towards 1",
    ),
    "K": Axis(
        (32, 64, 128, 256),
        lambda arms: Case(arms=arms, settings=DIAGONAL | {"width": 100}),
        1.0, 0.25, "one gradient and width per arm",
    ),
    "d": Axis(
        (256, 512, 1024, 2048),
        lambda dim: Case(dim=dim, settings=DIAGONAL | {"width": 100}),
        1.0, 0.25, "p = m(d + 1), diagonal Z",
    ),
    "m": Axis(
        (20, 40, 80),
        lambda width: Case(200, settings=SMALL | {"width": width, "design": "full"}),
        2.0, 0.4, "p = m(d + 1), full Z: p² per round; above 2 where Z no longer fits a cache",
    ),
    "L": Axis(
        (5, 9, 17, 33),
        lambda depth: Case(settings=DIAGONAL | {"width": 64, "depth": depth}),
        1.0, 0.25, "p = m(d + 1) + (L - 2)m², diagonal Z",
    ),
    "lanes": Axis(
        (2, 4, 8, 16),
        lambda lanes: Case(1000, lanes=lanes, settings=SMALL | {"design": "full"}),
        1.0, 0.25, "each lane costs the same, in groups that fit the cache",
    ),
}  # fmt: skip
PROCESSES, PROFILE, LOAD = "processes", "profile", "load"
PROCESSES_AXIS = Axis(
    (1, 2),
    lambda _: Case(8000, settings=SMALL | {"design": "full"}),
    -1.0,
    0.25,
    "time per run: processes share nothing but the memory",
)

MISSING = """

Processes were not measured: other work had the second core. In [sweeps](../benchmarks.md#sweeps) two processes were
1.88 times as fast as one."""
BUSY = """

Other work ran beside this on the same cores: costs, and the slopes through them, are uncertain, and one that is off
here may be so for that reason. To be measured again on a quiet machine."""


class Fit(NamedTuple):
    """The costs of an axis, and their slope."""

    axis: Axis
    seconds: list[float]
    slope: float

    @property
    def is_off(self) -> bool:
        """Whether the slope is further from what is expected than tolerated."""
        return abs(self.slope - self.axis.slope) > self.axis.tolerance


class Kernel(NamedTuple):
    """A kernel, and the least it could take: its operations at the speed of a product, its bytes at that of a copy."""

    name: str
    seconds: float
    limit: float
    bound: str


def main() -> None:
    """Measure, print, and end with an error if a slope is off."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--axes", nargs="*", choices=[*AXES, PROCESSES, PROFILE], default=[*AXES, PROCESSES, PROFILE])
    parser.add_argument("--out", type=Path, default=DOCS.parent / "out" / "scaling.json")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        _be_a_process()
        return
    given.out.parent.mkdir(parents=True, exist_ok=True)
    kept = json.loads(given.out.read_text()) if given.out.exists() else {}
    for name in given.axes:
        kept[name] = _profile() if name == PROFILE else _costs(name)
        kept.setdefault(LOAD, []).append(os.getloadavg()[0])
        given.out.write_text(json.dumps(kept, indent=1))
        for row in _rows(name, kept[name]):
            print(" | ".join(row), flush=True)
    if given.page:
        _write_page(kept)
    fits = {name: _fit(name, costs) for name, costs in kept.items() if name not in (PROFILE, LOAD)}
    off = [f"{name} ({fit.slope:.2f}, expected {fit.axis.slope:g})" for name, fit in fits.items() if fit.is_off]
    if off:
        sys.exit(f"slopes are off: {', '.join(off)}")


def _costs(name: str) -> list[float]:
    if name == PROCESSES:
        return _processes(PROCESSES_AXIS.values)
    return [_seconds(AXES[name].case(value)) for value in AXES[name].values]


def _fit(name: str, costs: list[float]) -> Fit:
    axis = PROCESSES_AXIS if name == PROCESSES else AXES[name]
    return Fit(axis, costs, float(np.polyfit(np.log(axis.values), np.log(costs), 1)[0]))


def _rows(name: str, kept: Any) -> list[list[str]]:
    if name == PROFILE:
        return [[kept[0]], *(_kernel_row(Kernel(*each)) for each in kept[1])]
    return [_row(name, _fit(name, kept))]


def _program(case: Case) -> tuple[Program, Lanes]:
    algorithm = find_algorithm("neural-ucb")
    settings = read_settings(algorithm.settings, {"optimizer": "plain", "retries": 0, **case.settings}, of="neural-ucb")
    traced = {one.name: np.full(case.lanes, settings[one.name], np.float64) for one in algorithm.settings if one.traced}
    lanes = Lanes(np.arange(case.lanes, dtype=np.uint32), traced)
    problem = synthetic("h1", dim=case.dim, arms=case.arms)
    program = compile_program(
        algorithm, problem, settings, lanes, rounds=case.rounds, schedule=case.schedule, threads=1
    )
    return program, lanes


def _seconds(case: Case) -> float:
    program, lanes = _program(case)
    return _best(lambda: program.run(lanes))


def _best(call: Callable[[], Any], times: int = 3) -> float:
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def _processes(counts: Sequence[int]) -> list[float]:
    """Seconds per run, with as many processes at a time, each pinned to a core; they compile before they are timed."""
    found = []
    for count in counts:
        command = [sys.executable, __file__, "--child"]
        children = [
            subprocess.Popen(
                ["taskset", "-c", str(core), *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for core in sorted(os.sched_getaffinity(0))[:count]
        ]
        for child in children:
            child.stdout.readline()
        for child in children:
            child.stdin.write("go\n")
            child.stdin.flush()
        seconds = [float(child.communicate()[0]) for child in children]
        found.append(max(seconds) / count)
    return found


def _be_a_process() -> None:
    program, lanes = _program(PROCESSES_AXIS.case(0))
    program.run(lanes)
    print("ready", flush=True)
    sys.stdin.readline()
    print(_best(lambda: program.run(lanes)))


def _profile() -> tuple[str, list[Kernel]]:
    """The main kernels at sizes beyond a core's cache where there is a choice."""
    single, double, copied = _product_speed(jnp.float32), _product_speed(jnp.float64), _copy_speed()
    limits = (
        f"a product of 2048 × 2048 matrices: {single / 1e9:.0f} GFLOP/s in float32, {double / 1e9:.0f} in float64; "
        f"a copy of 256 MB: {copied / 1e9:.1f} GB/s read and written"
    )
    rng = np.random.default_rng(0)

    def step(dim: int, width: int, batch: int) -> Kernel:
        rows, steps = 5000, 500
        network = mlp(dim, width=width)
        start = network.init(jax.random.key(0))
        contexts = rng.normal(size=(rows, dim)).astype(np.float32) / np.sqrt(dim)
        history = History(
            jnp.asarray(contexts, jnp.float32), jnp.zeros(rows, jnp.float32), jnp.int32(rows), jnp.int32(rows)
        )
        train = sgd(step_size=1e-3, steps=steps, batch_size=batch, pull=1.0)
        compiled = jax.jit(lambda key: train(key, network.apply_many, start, start, history))
        key = jax.random.key(1)
        jax.block_until_ready(compiled(key))
        took = _best(lambda: jax.block_until_ready(compiled(key))) / steps
        # forward, and backward for the weights (inputs need no gradient); weights read twice and written, rows gathered
        flops, moved = 4 * batch * width * (dim + 1), 4 * (4 * width * (dim + 1) + 3 * batch * dim)
        return _kernel(f"training step, d = {dim}, m = {width}, B = {batch}", took, flops / single, moved / copied)

    def widths(size: int, arms: int, name: str) -> list[Kernel]:
        is_full = name == "full"
        with jax.enable_x64(True):
            design = full(size, ridge=1.0) if is_full else diagonal(jnp.zeros(size, jnp.float32), ridge=1.0)
            z = design.init()
            gradients = jnp.asarray(rng.normal(size=(arms, size)), jnp.float32) / np.sqrt(size)
            score = jax.jit(lambda z, g: jax.vmap(lambda one: design.width(z, one))(g)).lower(z, gradients).compile()
            jax.block_until_ready(score(z, gradients))
            scoring = _best(lambda: [jax.block_until_ready(score(z, gradients)) for _ in range(20)]) / 20
            add = jax.jit(design.add, donate_argnums=0).lower(z, gradients[0]).compile()
            z = jax.block_until_ready(add(z, gradients[0]))

            def repeat() -> None:
                nonlocal z
                for _ in range(20):
                    z = add(z, gradients[0])
                jax.block_until_ready(z)

            adding = _best(repeat) / 20
        bytes_of_z, speed = (8 * size * size, double) if is_full else (4 * size, single)
        flops = 2 * arms * size * size if is_full else 3 * arms * size
        label = f"{name} Z, p = {size}"
        return [
            _kernel(f"scores of {arms} arms, {label}", scoring, flops / speed, (bytes_of_z + 4 * arms * size) / copied),
            # Z⁻¹ is read for Z⁻¹g, then read and written
            _kernel(f"update, {label}", adding, 0.0, (3 if is_full else 2) * bytes_of_z / copied),
        ]

    kernels = [step(20, 20, 50), step(784, 100, 500)]
    kernels += widths(420, 4, "full") + widths(2020, 10, "full") + widths(784_100, 10, "diagonal")
    return limits, kernels


def _kernel(name: str, seconds: float, computing: float, moving: float) -> Kernel:
    return Kernel(name, seconds, max(computing, moving), "product" if computing > moving else "copy")


def _product_speed(dtype: Any) -> float:
    """Operations per second."""
    size = 2048
    with jax.enable_x64(True):
        matrix = jnp.ones((size, size), dtype)
        product = jax.jit(jnp.matmul)
        jax.block_until_ready(product(matrix, matrix))
        return 2 * size**3 / _best(lambda: jax.block_until_ready(product(matrix, matrix)))


def _copy_speed() -> float:
    """Bytes read and written per second."""
    source = np.ones(2**25, np.float64)
    target = np.empty_like(source)
    np.copyto(target, source)
    return 2 * source.nbytes / _best(lambda: np.copyto(target, source))


def _row(name: str, fit: Fit) -> list[str]:
    costs = ", ".join(f"{value}: {1e3 * cost:.3g} ms" for value, cost in zip(fit.axis.values, fit.seconds, strict=True))
    verdict = "**off**" if fit.is_off else "as expected"
    return [name, costs, f"{fit.slope:.2f}", f"{fit.axis.slope:g} ± {fit.axis.tolerance:g}", verdict, fit.axis.why]


def _kernel_row(kernel: Kernel) -> list[str]:
    times = f"{kernel.seconds / kernel.limit:.2g}"
    return [kernel.name, f"{kernel.seconds * 1e6:.4g} µs", f"{kernel.limit * 1e6:.3g} µs", kernel.bound, times]


def _write_page(kept: dict[str, Any]) -> None:
    fits = {name: _fit(name, kept[name]) for name in [*AXES, PROCESSES] if name in kept}
    limits, kernels = kept.get(PROFILE, ("not measured", []))

    def table(rows: list[list[str]]) -> str:
        return "\n".join("| " + " | ".join(row) + " |" for row in [rows[0], ["---"] * len(rows[0]), *rows[1:]])

    slopes = table([
        ["against", "cost", "slope", "expected", "", "why"],
        *(_row(name, fit) for name, fit in fits.items()),
    ])  # fmt: skip
    profile = table([
        ["kernel", "measured", "limit", "bound by", "times the limit"],
        *(_kernel_row(Kernel(*kernel)) for kernel in kernels),
    ])  # fmt: skip
    loads = kept.get(LOAD, [0.0])
    missing = ("" if PROCESSES in kept else MISSING) + (BUSY if max(loads) > (os.cpu_count() or 1) else "")
    device = f"{os.cpu_count()} cores (load {min(loads):.1f} to {max(loads):.1f} meanwhile), jax {jax.__version__}"
    (DOCS / "results" / "scaling.md").write_text(f"""# How cost grows

`python benchmarks/scaling.py --page`, {device}: NeuralUCB on h1, one
thread, the best of three runs of a compiled program, compiling not counted. The slope is that of a line through the
logarithms of size and cost; the script ends with an error if one is further from what is expected than its tolerance.

{slopes}{missing}

![cost against size, by axis](../figures/scaling.png)

## Distance to the machine's limits

On one core: {limits}. A kernel's limit is the larger of its operations at the speed of that product, and the
bytes that it must move at the speed of that copy; what fits a cache
may be faster than a large copy, so that a number below 1 is possible.

{profile}
""")
    _draw(fits)


def _draw(fits: dict[str, Fit]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 4, figsize=(13, 6), layout="constrained", squeeze=False)
    for axis in axes.flat[len(fits) :]:
        axis.set_axis_off()
    for axis, (name, fit) in zip(axes.flat, fits.items(), strict=False):
        values = np.asarray(fit.axis.values, float)
        axis.loglog(values, fit.seconds, "o-", label=f"measured, {fit.slope:.2f}")
        middle = np.exp(np.mean(np.log(fit.seconds)) + fit.axis.slope * (np.log(values) - np.mean(np.log(values))))
        axis.loglog(values, middle, "--", color="gray", label=f"slope {fit.axis.slope:g}")
        axis.set(title=name, xticks=values, xticklabels=[f"{value:g}" for value in values])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
        axis.legend(frameon=False, fontsize=8)
    figure.supylabel("seconds")
    figure.savefig(DOCS / "figures" / "scaling.png", dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
