"""One import: what `neuralucb` shows, how its records print, and that policies travel between processes."""

import ast
import copy
import dataclasses
import inspect
import io
import pickle
import typing
import zipfile
from importlib import import_module
from pathlib import Path

import gymnasium
import jax
import numpy as np
import pytest

import neuralucb
from neuralucb import InputError, OnlineBandit, Policy, build
from neuralucb.algorithms import ALGORITHMS, rebuild
from tests.processes import run_python

SOURCE = Path(neuralucb.__file__)
MODULES = ["policy", "history", "simulation", "settings", "schedules", "designs", "logs.warm_start", "logs.batches"]
ROOMS = [neuralucb, *(import_module(f"neuralucb.{name}") for name in (*neuralucb._ROOMS, *MODULES))]
LONG = {
    "Callable": lambda: lambda *arguments: None,
    "ndarray": lambda: np.zeros((300, 400)),
    "Array": lambda: np.zeros((300, 400)),
    "Any": lambda: {f"layer {n}": [np.zeros((300, 400))] * 50 for n in range(50)},
    "tuple": lambda: tuple(f"{n} of a thousand names" for n in range(1000)),
    "list": lambda: [f"{n} of a thousand names" for n in range(1000)],
    "Sequence": lambda: [f"{n} of a thousand names" for n in range(1000)],
    "dict": lambda: {n: [np.zeros(1000)] * 100 for n in range(1000)},
    "Mapping": lambda: {n: [np.zeros(1000)] * 100 for n in range(1000)},
    "str": lambda: "a long story\n" * 1000,
    "Path": lambda: Path("folder/" * 1000),
}
METADATA = 16_000
"""Bytes of a wheel that are not its modules: the license, README and a list of all files."""
STATISTICS = {"Result", "Comparison", "SweepResult"}
"""They print statistics, for which any values will not do; tests of their rooms look at that."""


def exported_records():
    found = (getattr(room, name) for room in ROOMS for name in room.__all__)
    records = {each for each in found if inspect.isclass(each) and is_record(each) and each.__name__ not in STATISTICS}
    return sorted(records, key=lambda record: (record.__module__, record.__name__))


def is_record(each):
    return hasattr(each, "_fields") or dataclasses.is_dataclass(each)


def filled(record):
    """One with the largest value that each field's type allows."""
    hints = typing.get_type_hints(record)
    names = record._fields if hasattr(record, "_fields") else [field.name for field in dataclasses.fields(record)]
    values = {name: long_value(hints[name]) for name in names}
    if hasattr(record, "_fields"):
        return record(**values)
    made = object.__new__(record)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


def long_value(hint):
    if hasattr(hint, "_fields"):
        return filled(hint)
    text = hint.__name__ if inspect.isclass(hint) and not typing.get_args(hint) else str(hint)
    records = [each for each in typing.get_args(hint) if hasattr(each, "_fields")]
    if records and "tuple" in text:
        return tuple(filled(records[0]) for _ in range(10))
    if records:
        return filled(records[0])
    return next((make() for name, make in LONG.items() if name in text), 1234.5678)


@pytest.mark.parametrize("record", exported_records(), ids=lambda record: f"{record.__module__}.{record.__name__}")
def test_every_record_fits_a_screen(record):
    text = repr(filled(record))
    assert len(text) <= 1000, text
    assert len(text.splitlines()) <= 25, text
    assert max(map(len, text.splitlines())) <= 130, text
    assert " at 0x" not in text


def test_a_record_inside_compiled_code_prints_shapes():
    printed = []

    @jax.jit
    def play(x):
        printed.append(repr(neuralucb.Slot(x, x[0])))
        return x

    play(np.zeros(3, np.float32))
    assert printed == ["Slot(x=float32[3], arm=float32[])"]


def test_a_policy_prints_how_it_was_made():
    text = repr(build("lin-ucb", dim=5, exploration=0.25, shared_by=3))
    assert text.startswith("Policy(algorithm='lin-ucb', dim=5, shared_by=3, exploration=0.25")
    assert repr(build("lin-ucb", dim=5)._replace(origin=None)).startswith("Policy(init=<init>, select=<select>")


def test_all_that_is_public_is_shown_and_none_of_it_is_private():
    shown = dir(neuralucb)
    assert {"build", "run", "compare", "OnlineBandit", "Result", "History", "Trace", "theory"} <= set(shown)
    assert set(neuralucb.__all__) <= set(shown)
    for name in shown:
        assert getattr(neuralucb, name) is not None
        assert name == "__version__" or not name.startswith("_")


def test_checkers_and_users_see_the_same_names():
    """The table of `__init__` and its block for type checkers; a name is added to both."""
    table = {(f"neuralucb.{home}", name) for home, names in neuralucb._HOMES.items() for name in names}
    table |= {("neuralucb", room) for room in neuralucb._ROOMS}
    block = next(node for node in ast.parse(SOURCE.read_text()).body if isinstance(node, ast.If))
    imported = {(node.module, alias.name) for node in block.body for alias in node.names}
    assert imported == table
    assert all(alias.asname == alias.name for node in block.body for alias in node.names)


def test_what_annotations_need_is_public():
    """Every type of ours that a public function takes or gives can be written by one import."""
    public = {getattr(neuralucb, name) for name in neuralucb.__all__ if inspect.isclass(getattr(neuralucb, name))}
    for name in neuralucb.__all__:
        function = getattr(neuralucb, name)
        if inspect.isfunction(function):
            for hint in typing.get_type_hints(function, localns={"gymnasium": gymnasium}).values():
                for part in (hint, *typing.get_args(hint)):
                    ours = inspect.isclass(part) and part.__module__.startswith("neuralucb.")
                    assert not ours or part in public or getattr(part, "_is_protocol", False), f"{name}: {part}"


def test_nothing_heavy_is_imported_before_it_is_needed():
    done = run_python(
        "-c",
        "import sys, neuralucb; dir(neuralucb)\n"
        "assert not {'jax', 'numpy'} & set(sys.modules)\n"
        "sys.argv = ['neuralucb', '--help']\n"
        "from neuralucb.cli.app import app\n"
        "app(standalone_mode=False)\n"
        "assert not {'jax', 'numpy'} & set(sys.modules)",
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.xfail(strict=True, reason="350 kB aimed at, and far above: docs/benchmarks.md")
def test_the_wheel_is_small():
    """Compressed as pip compresses it."""
    with zipfile.ZipFile(packed := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path in SOURCE.parent.rglob("*.py"):
            wheel.write(path, path.relative_to(SOURCE.parent.parent))
    assert len(packed.getvalue()) <= 350_000 - METADATA


@pytest.mark.parametrize("name", ALGORITHMS)
def test_policies_are_pickled_and_are_equal_again(name):
    policy = build(name, dim=5, rounds=10)
    again = pickle.loads(pickle.dumps(policy))
    assert again == policy
    assert again.origin == policy.origin
    assert rebuild(policy.origin) == policy
    assert copy.deepcopy(policy) == policy == copy.copy(policy)


def test_a_policy_in_another_process_chooses_the_same(tmp_path):
    policy = build("neural-ucb", dim=3, width=4, exploration=0.3, design="diagonal")
    code = (
        "import sys, pickle, jax, numpy as np\n"
        "policy = pickle.load(open(sys.argv[1], 'rb'))\n"
        "choice = policy.select(jax.random.key(1), policy.init(jax.random.key(0)), np.eye(3, dtype=np.float32))\n"
        "print(choice.score.tolist())"
    )
    (tmp_path / "policy").write_bytes(pickle.dumps(policy))
    done = run_python("-c", code, tmp_path / "policy")
    here = policy.select(jax.random.key(1), policy.init(jax.random.key(0)), np.eye(3, dtype=np.float32))
    assert done.stdout.strip() == str(here.score.tolist()), done.stderr


def test_a_policy_of_your_own_says_why_it_cannot_be_pickled_but_can_be_copied():
    mine = build("lin-ucb", dim=3)._replace(origin=None)
    with pytest.raises(pickle.PicklingError, match="only be pickled if `build` made it"):
        pickle.dumps(mine)
    with pytest.raises(pickle.PicklingError, match="only be pickled if `build` made it"):
        pickle.dumps(Policy(len, len, len, len), protocol=0)
    assert copy.deepcopy({"policy": mine})["policy"] == mine


def test_a_policy_of_an_unknown_algorithm_is_refused_when_it_is_read():
    origin = build("lin-ucb", dim=3).origin._replace(algorithm="of-another-process")
    with pytest.raises(InputError, match="of-another-process"):
        rebuild(origin)


def test_a_bandit_takes_a_policy_that_was_pickled():
    policy = pickle.loads(pickle.dumps(build("lin-ucb", dim=2)))
    with OnlineBandit(policy) as bandit:
        assert bandit.select(np.eye(2)).position in (0, 1)
