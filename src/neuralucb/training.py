"""TrainNN (Algorithm 2): gradient descent to the letter, and the minibatch version of the paper's experiments."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax, random

from neuralucb.history import History, shuffle_rows, spread_rows, total, zero_unless
from neuralucb.networks import block_descent, late_pull
from neuralucb.networks.late_pull import ByArm
from neuralucb.policy import Info
from neuralucb.runtime.precision import Number

__all__ = ["DECAYS", "ROWS", "Train", "careful_sgd", "draw_rows", "gradient_descent", "sgd"]

Apply: TypeAlias = Callable[[Any, Any], jax.Array]
Steps: TypeAlias = int | Literal["t"]
Decay: TypeAlias = Literal["none", "linear"]
Rows: TypeAlias = Literal["drawn", "passes"]
Train: TypeAlias = Callable[[jax.Array, Apply, Any, Any, History], tuple[Any, Info]]
"""key, f of many rows, θ to start from, θ_0, history -> θ, Info"""

DECAYS = ("none", "linear")

ROWS = ("drawn", "passes")
"""How minibatches come about: drawn with replacement, or in passes over all rows in one order, shuffled per call."""

CHUNK = 50
"""Minibatches whose rows are drawn at once; drawing them one by one costs as much as the step itself."""

EXPLOSION = 1e3
"""A loss this many times that of θ_0 and of predicting 0, whichever is larger, is called divergence even if finite."""

CHECKED = 1024
"""Rows by which `careful_sgd` compares the fit before and after, evenly spread over the history."""

WORSE = 0.1
"""A loss larger by this share is worse; less is the noise of minibatches."""

NEGLIGIBLE = 0.01
"""A loss larger by less than this share of the loss of predicting 0 is not worse, however well θ fitted before."""

SHORTER = 0.1
"""The steps of another try, over those of the last."""

NUDGE = 0.01
"""A loss no larger than after a change of every weight by this share, up or down at random, is not worse."""

EXACT = 1e-6
"""A loss below this share of that after a NUDGE is the rounding of float32: there is nothing to learn."""


class _Passes(NamedTuple):
    """How far a call is that goes through its rows in passes."""

    loss: jax.Array
    """Σ over the steps of this pass"""
    ended: jax.Array
    """whether a pass had a small loss: nothing moves any more"""
    made: jax.Array
    """steps up to the last pass, or to the end"""


class _State(NamedTuple):
    params: Any
    optimizer: Any
    peak_loss: jax.Array
    passes: _Passes | None = None


_Step: TypeAlias = Callable[[_State, jax.Array, jax.Array], _State]
"""state, the batch's rows, the number of the step -> state"""


def gradient_descent(*, step_size: Number, steps: Steps, pull: Number) -> Train:
    """Algorithm 2 to the letter: J steps of size η on the whole sum.

        θ ← θ - η ∇L(θ),   L(θ) = Σ_i (f(x_i; θ) - r_i)²/2 + pull ‖θ - θ_0‖²/2

    Departs from the paper in nothing when it starts from θ_0. Costs J · t evaluations of the network.
    """

    # λ, η, J and m of Algorithm 2, line 1 are arguments above, the rows and θ^(0) arguments here
    def train(key: jax.Array, apply: Apply, params: Any, initial: Any, history: History) -> tuple[Any, Info]:
        def step(_: jax.Array, state: _State) -> _State:
            def of(contexts: Any, rewards: jax.Array, weights: jax.Array) -> tuple[jax.Array, Any]:
                return jax.value_and_grad(_squared_error)(state.params, apply, contexts, rewards, weights)

            loss, gradient = total(history, of)  # of the sum in Algorithm 2, line 2
            moved = block_descent.descend(state.params, gradient, initial, step_size, pull)  # Algorithm 2, line 4
            return _moved(state, moved, (), loss / _at_least_one(history.seen, loss.dtype))

        count = history.rounds if steps == "t" else jnp.int32(steps)
        # from Algorithm 2, line 3 to Algorithm 2, line 5: the loop over steps
        end = lax.fori_loop(jnp.int32(0), count, step, _begin(params, ()))
        return _finish(apply, end, initial, history)  # Algorithm 2, line 6

    return train


def sgd(
    *,
    step_size: Number,
    steps: Steps,
    batch_size: int,
    pull: Number,
    optimizer: Any = None,
    decay: Decay = "none",
    rows: Rows = "drawn",
    early_end: Number = 0.0,
) -> Train:
    """J minibatch steps of size η: an unbiased step for L/t (the paper's experiments).

        θ ← θ - η [ (1/B) Σ_batch ∇(f - r)²/2 + (pull/t)(θ - θ_0) ],   rows drawn with replacement

    `optimizer`, an optax transformation, replaces the plain step; it starts afresh at every call.
    `decay`: with `linear` step j of J is shortened to (1 - j/J) η, so that a call ends without its noise.
    `rows`: with `passes` all rows have their turn, in an order shuffled at every call, again and again, as in the
    authors' released code; the call then ends after a pass whose mean (f - r)² is at most `early_end`.
    Costs J · B evaluations of the network.
    """
    walk = partial(
        _walk, step_size=step_size, steps=steps, batch_size=batch_size, pull=pull, decay=decay, rows=rows,
        early_end=early_end,
    )  # fmt: skip

    def train(key: jax.Array, apply: Apply, params: Any, initial: Any, history: History) -> tuple[Any, Info]:
        end = walk(key, apply, params, initial, history, optimizer=optimizer)
        return _finish(apply, end, initial, history)

    return train


def careful_sgd(
    *,
    step_size: Number,
    steps: Steps,
    batch_size: int,
    pull: Number,
    optimizer: Callable[[Number], Any] | None = None,
    decay: Decay = "none",
    rows: Rows = "drawn",
    early_end: Number = 0.0,
    retries: int,
) -> Train:
    """`sgd` that does not make the fit worse: a trust region on L/t, the loss with its pull, from call to call.

    A call after which L/t is larger than at its start by more than WORSE, or not finite, is made again from the same
    start with steps SHORTER, up to `retries` times. If none helps, θ stays as it was, and the call counts as diverged.
    L/t is compared on CHECKED rows, so that a call costs the same however long the history.

    Where the fit is EXACT, as while all rewards are equal, nothing is done: gradients would be those of rounding, which
    optimizers that divide by their size enlarge. For the same reason a loss near 0 is not worse if it is a hundredth
    of that of predicting 0, or no larger than after a NUDGE to every weight.

    Args:
        step_size: η of the first try.
        steps: J.
        batch_size: B.
        pull: The pull to θ_0.
        optimizer: step size -> an optax transformation; None for the plain step.
        decay: As in `sgd`.
        rows: As in `sgd`.
        early_end: As in `sgd`.
        retries: How many more tries there may be.
    """

    def train(key: jax.Array, apply: Apply, params: Any, initial: Any, history: History) -> tuple[Any, Info]:
        checked, count = spread_rows(history.seen, history.rewards.shape[0], most=CHECKED)
        observed = jnp.arange(len(checked), dtype=jnp.int32) < count
        contexts, rewards = jax.tree.map(
            lambda leaf: zero_unless(observed, leaf[checked]), (history.contexts, history.rewards)
        )
        share = observed.astype(rewards.dtype) / _at_least_one(count, rewards.dtype)

        def error(tried: Any) -> jax.Array:
            return _squared_error(tried, apply, contexts, rewards, share)

        def loss(tried: Any) -> jax.Array:
            squares = jax.tree.map(lambda w, w0: ((w - w0) ** 2).sum(), tried, initial)
            distance = jnp.stack(jax.tree.leaves(squares)).sum()
            strength = jnp.asarray(pull, distance.dtype) / _at_least_one(history.seen, distance.dtype)
            return error(tried) + 0.5 * strength * distance

        before = loss(params)
        of_zero = 0.5 * (share * rewards**2).sum().astype(before.dtype)
        nudged = loss(_nudged(key, params))
        bound = jnp.maximum((1 + WORSE) * before + NEGLIGIBLE * of_zero, nudged)

        def is_worse(after: jax.Array) -> jax.Array:
            return ~((after <= bound) & jnp.isfinite(after))

        def go_on(tried: tuple[jax.Array, Any, jax.Array]) -> jax.Array:
            return (tried[0] <= retries) & is_worse(tried[2])

        def attempt(tried: tuple[jax.Array, Any, jax.Array]) -> tuple[jax.Array, Any, jax.Array]:
            number = tried[0]
            eta = jnp.asarray(step_size, before.dtype) * SHORTER ** number.astype(before.dtype)
            inner = None if optimizer is None else optimizer(eta)
            walk = partial(_walk, step_size=eta, steps=steps, batch_size=batch_size, pull=pull, decay=decay, rows=rows)
            moved = walk(key, apply, params, initial, history, optimizer=inner, early_end=early_end).params
            return number + 1, moved, loss(moved)

        start = jnp.int32(0), params, jnp.where(before <= EXACT * nudged, before, jnp.inf)
        _, moved, after = lax.while_loop(go_on, attempt, start)
        failed = is_worse(after)
        kept = jax.tree.map(lambda new, old: jnp.where(failed, old, new), moved, params)
        return kept, Info(error(kept), failed)

    return train


def draw_rows(key: jax.Array, shape: tuple[int, ...], count: jax.Array) -> jax.Array:
    """Rows below count, with replacement; the bias of the remainder is below count/2³²."""
    bits = random.bits(key, shape, dtype=jnp.uint32)
    return (bits % _at_least_one(count, jnp.uint32)).astype(jnp.int32)


def _walk(
    key: jax.Array,
    apply: Apply,
    params: Any,
    initial: Any,
    history: History,
    *,
    step_size: Number,
    steps: Steps,
    batch_size: int,
    pull: Number,
    optimizer: Any,
    decay: Decay,
    rows: Rows,
    early_end: Number,
) -> _State:
    """The minibatch steps of one call."""
    count = history.rounds if steps == "t" else jnp.int32(steps)
    seen = history.seen
    one_row = batch_size == 1 and optimizer is None and decay == "none"
    by_arm = apply if one_row and isinstance(apply, ByArm) else None
    plain = optimizer is None and batch_size > 1 and rows == "drawn"
    moving = apply if plain and isinstance(apply, ByArm) and block_descent.is_worthwhile(apply, params) else None
    table = None if moving is None else block_descent.prepare(moving, history.contexts)
    dtype = jax.tree.leaves(params)[0].dtype
    shrink = jnp.asarray(step_size, dtype) * jnp.asarray(pull, dtype) / _at_least_one(seen, dtype)

    def batch_of(rows: jax.Array) -> tuple[Any, jax.Array, jax.Array]:
        """Contexts, rewards and weights."""
        contexts, rewards = jax.tree.map(
            lambda leaf: leaf[rows] if batch_size > 1 else lax.dynamic_slice_in_dim(leaf, rows[0], 1),
            (history.contexts, history.rewards),
        )
        weights = jnp.full(rewards.shape, 1 / batch_size, dtype=rewards.dtype) * (seen > 0).astype(rewards.dtype)
        return contexts, rewards, weights

    def left_at(index: jax.Array) -> jax.Array:
        """The share of η that is left at a step."""
        return 1 - index.astype(dtype) / count.astype(dtype) if decay == "linear" else jnp.ones((), dtype)

    def step(state: _State, rows: jax.Array, index: jax.Array) -> _State:
        loss, gradient = jax.value_and_grad(_squared_error)(state.params, apply, *batch_of(rows))
        pull_now = jnp.asarray(pull, dtype=loss.dtype) / _at_least_one(seen, loss.dtype)
        left = left_at(index)
        if optimizer is None:
            eta = jnp.asarray(step_size, dtype=loss.dtype) * left
            moved = block_descent.descend(state.params, gradient, initial, eta, pull_now)
            return _moved(state, _unless_ended(state, moved, state.params), (), loss)
        gradient = jax.tree.map(lambda g, w, w0: g + pull_now * (w - w0), gradient, state.params, initial)
        with jax.numpy_dtype_promotion("standard"):  # optax raises numbers to integer powers
            change, inner = optimizer.update(gradient, state.optimizer, state.params)
        moved = jax.tree.map(lambda w, dw: w + left * dw.astype(w.dtype), state.params, change)
        return _moved(state, _unless_ended(state, moved, state.params), inner, loss)

    def step_in_place(moving: ByArm, state: _State, rows: jax.Array, index: jax.Array) -> _State:
        """The plain step, by kernels of an NVIDIA GPU."""
        _, *target = batch_of(rows)

        def loss_of(params: Any, values: Callable[[Any], jax.Array]) -> jax.Array:
            return _squared_error(params, lambda params, _: values(params), None, *target)

        sizes = jnp.asarray(step_size, dtype) * left_at(index), jnp.asarray(pull, dtype) / _at_least_one(seen, dtype)
        loss, moved = block_descent.loss_and_move(moving, loss_of, state.params, initial, table, rows, *sizes)
        return _moved(state, moved, (), loss)

    def step_of_one_arm(by_arm: ByArm, state: _State, rows: jax.Array, index: jax.Array) -> _State:
        """The plain step, on θ with the block of the row's arm in place of all blocks."""
        slots, *target = batch_of(rows)
        arm = slots.arm[0]
        made = index if state.passes is None else jnp.where(state.passes.ended, state.passes.made, index)
        params, origin = late_pull.read(by_arm, state.params, initial, arm, made, shrink)

        def alone(params: Any, slots: Any) -> jax.Array:
            return by_arm.alone(params, slots.x[0])[None]

        loss, gradient = jax.value_and_grad(_squared_error)(params, alone, slots, *target)
        pull_now = jnp.asarray(pull, dtype) / _at_least_one(seen, dtype)
        moved = _unless_ended(state, block_descent.descend(params, gradient, origin, step_size, pull_now), params)
        until = made + 1 if state.passes is None else jnp.where(state.passes.ended, made, made + 1)
        return _moved(state, late_pull.write(by_arm, state.params, moved, arm, until), (), loss)

    one: _Step = step if by_arm is None else partial(step_of_one_arm, by_arm)
    if moving is not None:
        one = partial(lax.platform_dependent, cuda=partial(step_in_place, moving), default=step)
    start = _begin(params, () if optimizer is None else optimizer.init(params))
    if by_arm is not None:
        start = start._replace(params=late_pull.begin(by_arm, params))
    if rows == "passes":
        most = history.rewards.shape[0] if steps == "t" else min(steps * batch_size, history.rewards.shape[0])
        order = shuffle_rows(random.fold_in(key, 0), most, seen)
        end = _pass_by_pass(one, start, order, count, seen, batch_size=batch_size, early_end=early_end)
    else:
        end = _draw_by_draw(one, start, key, count, seen, batch_size=batch_size, chunk=CHUNK if steps == "t" else steps)
    if by_arm is None:
        return end
    made = count if end.passes is None else end.passes.made
    return end._replace(params=late_pull.settle(by_arm, end.params, initial, made, shrink))


def _draw_by_draw(
    one: _Step, start: _State, key: jax.Array, count: jax.Array, seen: jax.Array, *, batch_size: int, chunk: int
) -> _State:
    """As many steps as `count`, on rows drawn with replacement."""
    chunk = max(1, min(CHUNK, chunk))

    def steps_of_chunk(index: jax.Array, state: _State) -> _State:
        first = index * chunk
        rows = draw_rows(random.fold_in(key, index), (chunk, batch_size), seen)
        here = jnp.minimum(chunk, count - first)
        return lax.fori_loop(jnp.int32(0), here, lambda j, inner: one(inner, rows[j], first + j), state)

    return lax.fori_loop(jnp.int32(0), (count + chunk - 1) // chunk, steps_of_chunk, start)


def _pass_by_pass(
    one: _Step,
    start: _State,
    order: jax.Array,
    count: jax.Array,
    seen: jax.Array,
    *,
    batch_size: int,
    early_end: Number,
) -> _State:
    """At most `count` steps, in passes over the order; none after a pass with a small loss."""
    rows_of_pass = jnp.maximum(seen, 1)
    zero = jnp.zeros_like(start.peak_loss)

    def goes_on(walked: tuple[jax.Array, _State]) -> jax.Array:
        first, state = walked
        assert state.passes is not None
        return (first < count) & ~_all_ended(state.passes.ended)

    def one_pass(walked: tuple[jax.Array, _State]) -> tuple[jax.Array, _State]:
        first, state = walked
        # a batch may reach into the next pass; the step with the last row ends a pass
        last_row = (first * batch_size // rows_of_pass + 1) * rows_of_pass
        stop = jnp.minimum(jnp.maximum((last_row + batch_size - 1) // batch_size, first + 1), count)

        def go(index: jax.Array, inner: _State) -> _State:
            places = index * batch_size + jnp.arange(batch_size, dtype=jnp.int32)
            return one(inner, order[places % rows_of_pass], index)

        state = lax.fori_loop(first, stop, go, state)
        assert state.passes is not None
        squared = 2 * state.passes.loss / (stop - first).astype(zero.dtype)
        made = jnp.where(state.passes.ended, state.passes.made, stop)
        ended = state.passes.ended | (squared <= jnp.asarray(early_end, zero.dtype))
        return stop, state._replace(passes=_Passes(zero, ended, made))

    begin = start._replace(passes=_Passes(zero, jnp.zeros((), bool), jnp.int32(0)))
    return lax.while_loop(goes_on, one_pass, (jnp.int32(0), begin))[1]


@jax.custom_batching.custom_vmap
def _all_ended(ended: jax.Array) -> jax.Array:
    """Whether all lanes have ended: one condition for all of them, so that no step copies the weights of a lane."""
    return ended


@_all_ended.def_vmap
def _all_lanes_ended(size: int, batched: Any, ended: jax.Array) -> tuple[jax.Array, bool]:
    return (_all_ended(ended.all()) if batched[0] else _all_ended(ended)), False


def _unless_ended(state: _State, moved: Any, kept: Any) -> Any:
    if state.passes is None:
        return moved
    ended = state.passes.ended
    return jax.tree.map(lambda new, old: jnp.where(ended, old, new), moved, kept)


def _nudged(key: jax.Array, params: Any) -> Any:
    """Every weight times 1 + NUDGE or 1 - NUDGE."""
    leaves, structure = jax.tree.flatten(params)
    signs = [
        random.rademacher(one, w.shape, w.dtype) for one, w in zip(random.split(key, len(leaves)), leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, [w * (1 + NUDGE * sign) for w, sign in zip(leaves, signs, strict=True)])


def _squared_error(params: Any, apply: Apply, contexts: Any, rewards: jax.Array, weights: jax.Array) -> jax.Array:
    values = apply(params, contexts)
    return 0.5 * (weights.astype(values.dtype) * (values - rewards.astype(values.dtype)) ** 2).sum()


def _at_least_one(count: jax.Array, dtype: Any) -> jax.Array:
    """A divisor: nothing observed means nothing to learn, not 0/0."""
    return jnp.maximum(count, 1).astype(dtype)


def _begin(params: Any, optimizer: Any) -> _State:
    return _State(params, optimizer, jnp.zeros((), jax.tree.leaves(params)[0].dtype))


def _moved(state: _State, params: Any, optimizer: Any, loss: jax.Array) -> _State:
    passes = None if state.passes is None else state.passes._replace(loss=state.passes.loss + loss)
    return _State(params, optimizer, jnp.maximum(state.peak_loss, loss), passes)


def _finish(apply: Apply, state: _State, initial: Any, history: History) -> tuple[Any, Info]:
    """The trained parameters, and whether they can be trusted."""

    def of(contexts: Any, rewards: jax.Array, weights: jax.Array) -> tuple[jax.Array, jax.Array]:
        trained = _squared_error(state.params, apply, contexts, rewards, weights)
        return trained, 0.5 * (weights * rewards**2).sum().astype(trained.dtype)

    def of_initial() -> jax.Array:
        untrained = total(history, lambda *rows: _squared_error(initial, apply, *rows))
        return untrained / _at_least_one(history.seen, untrained.dtype)

    loss, of_zero = (part / _at_least_one(history.seen, part.dtype) for part in total(history, of))
    peak = jnp.maximum(state.peak_loss, loss)  # NaN, once there, stays
    finite = jnp.isfinite(peak)
    for leaf in jax.tree.leaves(state.params):
        finite &= jnp.isfinite(leaf).all()
    # while every reward was 0 there is no scale by which to call a loss large; θ_0 is asked only where it matters
    is_large = (of_zero > 0) & (peak > EXPLOSION * of_zero)
    exploded = is_large & (peak > EXPLOSION * lax.cond(is_large, of_initial, lambda: jnp.zeros_like(loss)))
    return state.params, Info(loss, ~finite | exploded)
