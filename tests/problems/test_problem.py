"""A problem promises arms, contexts and rewards: others are refused, and so is what memory does not hold."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralucb import InputError, Problem, Round, build, read_schedule, run, simulate, synthetic
from neuralucb.policy import Slot
from neuralucb.problems import check_problem, from_file, from_function, labelled, reveal, rewards
from neuralucb.runtime import memory
from tests.problems.rows import X, Y


def made(draw, init=lambda key, data: (), **options):
    return Problem(5, 4, init, draw, name="mine", **options)


CONTEXTS = jnp.ones((4, 5), jnp.float32)
ONES = jnp.ones(4, jnp.float32)
NONE = jnp.float32(0)
SLOT = Slot(CONTEXTS, jnp.arange(4, dtype=jnp.int32))


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (
            labelled(X, Y)._replace(arms=7),
            r"must give contexts of 7 arms, .* got Slot of shape \(2, 3\), \(2,\); set arms",
        ),
        (labelled(X, Y)._replace(dim=7), "must give contexts of 7 numbers per arm"),
        (labelled(X, Y)._replace(shared=False), "draw of labelled must give contexts as an array"),
        (made(lambda *_: Round(SLOT, ONES, NONE)), "contexts as an array .arms, dim., or shared=True with a Slot"),
        (made(lambda *_: Round(CONTEXTS, ONES, NONE), shared=True), "contexts as a Slot, as shared is True"),
        (
            made(lambda *_: Round(CONTEXTS, ONES[:3], NONE)),
            r"expected as one number per arm, shape \(4,\), got .*\(3,\)",
        ),
        (
            made(lambda *_: Round(CONTEXTS, ONES, ONES)),
            r"noise as one number, shape \(\), got an array of shape \(4,\)",
        ),
        (made(lambda *_: (CONTEXTS, ONES, NONE)), "draw of mine must return a Round, got tuple"),
        (made(lambda key, data: None), "draw of mine must be a function that JAX can trace; it raised TypeError: "),
        (made(None, init=lambda key, data: 1 / 0), "init of mine must be .*ZeroDivisionError: division by zero"),
    ],
)
def test_a_problem_that_does_not_give_what_it_promises_is_refused(problem, message):
    with pytest.raises(InputError, match=message):
        run("lin-ucb", problem, rounds=10, seeds=1)
    policy = build("lin-ucb", dim=5, shared_by=4 if problem.shared else None)
    with pytest.raises(InputError, match=message):
        simulate(jax.random.key(0), policy, problem, rounds=10, schedule=read_schedule("5"))


def test_problems_that_keep_their_promise_pass_whatever_their_contexts():
    images = made(lambda *_: Round(jnp.ones((4, 1, 5)), ONES, NONE))
    trees = made(lambda *_: Round({"a": CONTEXTS, "b": ONES}, ONES, NONE))
    for problem in (
        images,
        trees,
        reveal(labelled(X, Y)),
        synthetic("h2"),
        made(lambda *_: Round(SLOT, ONES, 0.0), shared=True),
    ):
        check_problem(problem)


def test_more_arms_than_memory_holds_are_refused_with_the_figure(monkeypatch):
    """Nothing is allocated: a billion arms take as long to refuse as ten."""
    monkeypatch.setattr(memory, "host_bytes", lambda: 20 * 10**9)
    for problem in (synthetic("h1", arms=10**9), from_function(lambda x: x[0], dim=20, arms=10**9)):
        with pytest.raises(
            InputError, match=r"with 1000000000 arms of 20 numbers, needs 8\d.0 GB and .* take fewer arms"
        ):
            run("lin-ucb", problem, rounds=10, seeds=1)
    with pytest.raises(InputError, match=r"one round of h1, with 1000000000 arms"):
        run("lin-ucb", "h1", rounds=10, seeds=1, arms=10**9)


def test_a_compiled_lane_that_memory_does_not_hold_is_refused_before_it_runs(monkeypatch):
    """A million gradients need more than the contexts of a million arms: the compiler tells how much."""
    monkeypatch.setattr(memory, "host_bytes", lambda: 10**9)
    with pytest.raises(InputError, match=r"one lane of neural-ucb on h1, with 1000000 arms of 20 numbers, needs .* GB"):
        run("neural-ucb", "h1", rounds=10, seeds=1, arms=10**6)


def test_more_rows_than_memory_holds_are_refused_before_they_are_copied(monkeypatch, tmp_path):
    np.savez(tmp_path / "mine.npz", X=X, y=Y)
    (tmp_path / "mine.csv").write_text("a,y\n" + "1.5,0\n" * 500)
    monkeypatch.setattr(memory, "host_bytes", lambda: 1000)
    figure = r"needs 0.0 GB and 0.0 GB are free; "
    for make in (lambda: labelled(X, Y, repeat=True), lambda: rewards(X, np.ones((40, 2)))):
        with pytest.raises(InputError, match=f"scaling . of 40 × . numbers {figure}take fewer rows or columns"):
            make()
    for name in ("mine.npz", "mine.csv"):
        with pytest.raises(InputError, match=f"reading .*{name} {figure}keep fewer rows or columns in it"):
            from_file(tmp_path / name, "y")


def test_huge_virtual_rows_are_refused_without_being_touched(monkeypatch):
    monkeypatch.setattr(memory, "host_bytes", lambda: 20 * 10**9)
    huge = np.broadcast_to(np.float32(1), (10**9, 100))
    with pytest.raises(InputError, match=r"scaling X of 1000000000 × 100 numbers needs 2000.0 GB"):
        labelled(huge, np.broadcast_to(0, 10**9))
    with pytest.raises(InputError, match=r"scaling R of 1000000000 × 100 numbers needs 2000.0 GB"):
        rewards(huge, huge)


def test_rounds_that_memory_does_not_hold_are_refused(monkeypatch):
    monkeypatch.setattr(memory, "host_bytes", lambda: 20 * 10**9)
    with pytest.raises(InputError, match=r"the regret of 1000 seeds over 2000000000 rounds needs 16000.0 GB"):
        run("lin-ucb", "h1", rounds=2 * 10**9, seeds=1000)
    with pytest.raises(
        InputError, match=r"history of 2000000000 rounds of labelled needs 48.0 GB .* take fewer rounds"
    ):
        run("lin-ucb", labelled(X, Y, repeat=True), rounds=2 * 10**9, seeds=1)
