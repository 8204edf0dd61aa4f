"""The guide's three examples, each through Python, the command line, a sweep with two processes and `OnlineBandit`."""

import importlib
import json
import shutil

import jax
import numpy as np
import pytest
from pyarrow import dataset

from neuralucb import OnlineBandit, build, run
from neuralucb.algorithms import find_algorithm
from neuralucb.problems import build_problem
from neuralucb.simulation import draw_rounds
from tests.extending.conftest import EXAMPLES

NEURAL_LINEAR = {"dim": 4, "noise": 0.1, "width": 8, "steps": 30, "step_size": 0.1}
CNN = {
    "network": "digits-cnn", "optimizer": "adam", "step_size": 0.003, "steps": 40, "batch_size": 32,
    "start": "warm", "regularization": 0.001,
}  # fmt: skip
PRICES = {"customers": 400, "exploration": 0.25, "regularization": 0.1, "budget": 400}
RUNS = {
    "neural_linear": ("my-neural-linear", "h1", NEURAL_LINEAR),
    "digits_cnn": ("neural-epsilon-greedy", "digits", CNN),
    "price_table": ("kernel-ucb", "prices", PRICES),
}
ROUNDS, SCHEDULE = 400, "20"
each_example = pytest.mark.parametrize("name", RUNS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with the examples in it."""
    for path in EXAMPLES.glob("*.py"):
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def final_regret(name):
    algorithm, problem, settings = RUNS[name]
    importlib.import_module(name)
    return run(algorithm, problem, rounds=ROUNDS, seeds=2, schedule=SCHEDULE, **settings).final_regret


@each_example
def test_an_example_has_at_most_forty_lines_and_is_shown_as_it_is(name):
    text = (EXAMPLES / f"{name}.py").read_text()
    assert len(text.splitlines()) <= 40
    assert f"```python\n{text}```" in (EXAMPLES.parent / "extending.md").read_text()


def regret_by_chance(name):
    """Final regret of uniform on the same problem."""
    _, problem, settings = RUNS[name]
    of_problem = {key: value for key, value in settings.items() if key in ("dim", "noise", "customers")}
    return run("uniform", problem, rounds=ROUNDS, seeds=2, **of_problem).final_regret


@each_example
def test_it_learns(name, folder):
    assert (final_regret(name) < 0.7 * regret_by_chance(name)).all()


@each_example
def test_the_command_line_gives_the_same_numbers(name, folder, command):
    algorithm, problem, settings = RUNS[name]
    options = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    sizes = ["--rounds", ROUNDS, "--seeds", 2, "--schedule", SCHEDULE]
    code, out, err = command("--import", name, "run", algorithm, problem, *sizes, *options, "--json")
    assert code == 0, err
    assert json.loads(out)["final_regret"]["per_seed"] == pytest.approx(final_regret(name).tolist())


def test_a_sweep_with_two_processes_runs_them_all_and_resumes(folder, command):
    (folder / "mine.toml").write_text(sweep_of_all())
    code, _, err = command("sweep", "mine.toml", "--workers", 2, "--out", "out")
    assert code == 0, err
    found = {row["algorithm"]: row["final_regret"] for row in rows(folder)}
    assert json.loads((folder / "out" / "sweep.json").read_text())["sweep"]["import"] == list(RUNS)
    for name, (algorithm, *_) in RUNS.items():
        assert found[algorithm] < 0.7 * regret_by_chance(name)[0]
    next((folder / "out" / "runs").glob("kernel-ucb-*.parquet")).unlink()
    code, _, err = command("resume", "out", "--workers", 1)
    assert code == 0, err
    assert {row["algorithm"]: row["final_regret"] for row in rows(folder)} == found


def rows(folder):
    return dataset.dataset(folder / "out" / "runs").to_table(["algorithm", "final_regret"]).to_pylist()


def sweep_of_all():
    lines = [f"rounds = {ROUNDS}", "seeds = 1", f'schedule = "{SCHEDULE}"', f"import = {json.dumps(list(RUNS))}"]
    for algorithm, problem, settings in RUNS.values():
        values = ", ".join(f"{key} = {json.dumps(value)}" for key, value in settings.items())
        lines += [
            "[[runs]]",
            f'algorithms = ["{algorithm}"]',
            f'problems = ["{problem}"]',
            f"settings = {{ {values} }}",
        ]
    return "\n".join(lines)


@each_example
def test_an_online_bandit_learns_with_it(name, folder):
    importlib.import_module(name)
    algorithm, problem, settings = RUNS[name]
    known = {setting.name for setting in find_algorithm(algorithm).settings}
    made = build_problem(problem, {key: value for key, value in settings.items() if key not in known})
    policy = build(
        algorithm,
        dim=made.dim,
        shared_by=made.shared_by,
        **{key: value for key, value in settings.items() if key in known},
    )
    drawn = jax.device_get(draw_rounds(jax.random.key(0), made, rounds=ROUNDS))
    earned = []
    with OnlineBandit(policy, schedule=SCHEDULE) as bandit:
        if made.shared:
            for arm in range(made.arms):
                bandit.add_arm(arm)
        for t in range(ROUNDS):
            contexts = drawn.contexts.x[t, 0] if made.shared else drawn.contexts[t]
            decision = bandit.select(contexts)
            bandit.observe(decision.id, float(drawn.expected[t, decision.position] + drawn.noise[t]))
            earned.append(drawn.expected[t, decision.position])
        assert bandit.health().failure is None
    later, best, chance = (
        values[ROUNDS // 2 :].mean() for values in (np.asarray(earned), drawn.expected.max(1), drawn.expected.mean(1))
    )
    assert later - chance > 0.25 * (best - chance)
