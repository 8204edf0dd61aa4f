"""The contract: one noun, four verbs. Every algorithm is a `Policy`; most are made by `policy(estimator, rule)`."""

import hashlib
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from neuralucb.history import History
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.precision import exact
from neuralucb.runtime.records import brief, show

__all__ = [
    "Belief",
    "Choice",
    "Context",
    "Estimator",
    "Info",
    "Note",
    "Noted",
    "Origin",
    "Policy",
    "Prediction",
    "Review",
    "Rule",
    "Slot",
    "check_slot",
    "check_vector",
    "combine",
    "fingerprint",
    "guard",
    "policy",
    "remember",
    "slot_shape",
]

Belief: TypeAlias = Any
Context: TypeAlias = Any
Review: TypeAlias = Callable[..., Any]
"""belief, history, and the unit that rewards had so far over that of the history, if another -> belief"""


@brief
class Slot(NamedTuple):
    """The context of one arm where all arms share one x: that x, and the number of the arm.

    Example:
        >>> import numpy as np
        >>> x = np.ones((3, 2), np.float32)  # the same two numbers for three arms
        >>> contexts = Slot(x, np.arange(3, dtype=np.int32))
        >>> contexts.x.shape, contexts.arm.shape
        ((3, 2), (3,))
    """

    x: jax.Array
    arm: jax.Array


@brief
class Prediction(NamedTuple):
    """What an estimator believes about K arms, and how much it has observed.

    Example:
        >>> one = Prediction(jnp.array([0.5, 0.4]), jnp.array([0.1, 0.3]), jnp.int32(7), jnp.float32(2.0))
        >>> int((one.mean + 2 * one.width).argmax())  # an optimist takes the less certain arm
        1
    """

    mean: jax.Array
    """[K] expected reward of each arm."""
    width: jax.Array
    """[K] width of the confidence interval, before its scale γ."""
    rounds: jax.Array
    """t, the number of observed rewards."""
    log_det: jax.Array
    """log(det Z_t / det λI), the information gathered so far."""


@brief
class Choice(NamedTuple):
    """The arm chosen, and why: mean, width, score and propensity of every arm.

    Example:
        >>> import jax, neuralucb, numpy as np
        >>> policy = neuralucb.build("lin-ucb", dim=2)
        >>> choice = policy.select(jax.random.key(1), policy.init(jax.random.key(0)), np.eye(2, dtype=np.float32))
        >>> choice.propensity.tolist()  # nothing is known yet: both arms tie
        [0.5, 0.5]
    """

    arm: jax.Array
    mean: jax.Array
    width: jax.Array
    score: jax.Array
    exploration: jax.Array
    """γ, the scale that turned widths into scores; 0 for rules without one."""
    propensity: jax.Array
    """[K] float32, the probability of each arm given belief, contexts and mask, before the key was drawn.

    A 1 where other arms were available means a deterministic choice, for which logs keep no number; see
    `rules.deterministic`.
    """


@brief
class Info(NamedTuple):
    """How one call to `learn` went.

    Example:
        >>> info = Info.nothing()
        >>> bool(info.diverged), float(info.loss)
        (False, nan)
    """

    loss: jax.Array
    """Mean of (f(x) - r)²/2 after training, over the history or a sample of it; NaN where nothing is trained."""
    diverged: jax.Array
    """Whether training produced NaN, infinity or an exploding loss."""

    @classmethod
    def nothing(cls) -> "Info":
        """For a policy that has nothing to train."""
        return cls(jnp.full((), jnp.nan, dtype=jnp.float32), jnp.zeros((), dtype=bool))


@brief
class Noted(NamedTuple):
    """The context of the arm played, and what its policy noted of the decision."""

    context: Context
    note: jax.Array
    """[n] float32; zeros where nothing is known, as of a decision that another policy made."""


@brief
class Note(NamedTuple):
    """What a policy wants to be told again with the reward, of what only the decision knew: n numbers."""

    size: int
    """n"""
    take: Callable[[Belief, Context, jax.Array, Choice], jax.Array]
    """belief, contexts, available, choice -> [n] float32. The arm and its propensity are those that were played; means,
    widths and scores may be those of another policy that chose, such as EXP4 with this one as an expert."""


@brief
class Origin(NamedTuple):
    """The arguments of `build`, as plain values.

    Example:
        >>> import neuralucb
        >>> origin = neuralucb.build("lin-ucb", dim=2, exploration=0.5).origin
        >>> origin.algorithm, dict(origin.settings)["exploration"]
        ('lin-ucb', 0.5)
    """

    algorithm: str
    dim: int
    rounds: int | None
    shared_by: int | None
    settings: tuple[tuple[str, Any], ...]


class Policy(NamedTuple):
    """init, select, observe, learn: pure functions over a belief, a pytree of fixed shape.

    A context is a pytree for one arm; contexts are the same with a leading arm axis.

    Example:
        >>> import jax, neuralucb, numpy as np
        >>> policy = neuralucb.build("lin-ucb", dim=2)
        >>> belief, contexts = policy.init(jax.random.key(0)), np.eye(2, dtype=np.float32)
        >>> choice = policy.select(jax.random.key(1), belief, contexts)
        >>> belief = policy.observe(belief, contexts[int(choice.arm)], 1.0)
    """

    init: Callable[[jax.Array], Belief]
    """key -> belief"""
    select: Callable[..., Choice]
    """key, belief, contexts, available -> Choice. It changes nothing."""
    observe: Callable[[Belief, Context, jax.Array], Belief]
    """belief, context, reward -> belief. Cheap; after every round: Z, ridge sums. Where there is a `note`, the context
    may be a `Noted`, with what was noted when this arm was chosen, however long ago."""
    learn: Callable[[jax.Array, Belief, History], tuple[Belief, Info]]
    """key, belief, history -> belief, Info. Costly; when the schedule says so: TrainNN."""
    origin: "Origin | None" = None
    """How `build` made it, so that it can be made again; None for a policy of your own."""
    review: "Review | None" = None
    """belief, history -> what `observe` accumulates, such as Z, computed anew; what was trained stays. If None, an
    `OnlineBandit` with a window starts it from nothing and observes the window again."""
    note: "Note | None" = None
    """For algorithms whose update needs what only the decision knew: propensities, or what other arms looked like."""

    def __repr__(self) -> str:
        if self.origin is None:
            return show("Policy", dict(zip(self._fields[:4], self[:4], strict=True)))
        algorithm, *task, settings = self.origin
        known = {name: value for name, value in zip(Origin._fields[1:], task, strict=False) if value is not None}
        return show("Policy", {"algorithm": algorithm, **known, **dict(settings)}, dense=True)

    def __copy__(self) -> "Policy":
        return self

    def __deepcopy__(self, memo: object) -> "Policy":
        return self

    def __reduce__(self) -> NoReturn:
        """A policy of `build` is pickled as its origin (see `algorithms.registry`); another one is only functions."""
        raise pickle.PicklingError(
            "a Policy can only be pickled if `build` made it: pickle keeps no functions made inside others. Give the "
            "other process what it takes to make the policy, or register the algorithm and use `build`."
        )


@brief
class Estimator(NamedTuple):
    """A policy without its rule of choice: it predicts mean and width for one arm's context.

    Example:
        >>> from neuralucb.confidence import constant
        >>> from neuralucb.estimators.features import exact_design, raw
        >>> from neuralucb.estimators.ridge import ridge
        >>> from neuralucb.rules import ucb
        >>> features = raw(dim=2)
        >>> optimist = policy(ridge(features, exact_design(features, ridge=1.0)), ucb(constant(1.0)))
    """

    init: Callable[[jax.Array], Belief]
    predict: Callable[[Belief, Context], Prediction]
    observe: Callable[[Belief, Context, jax.Array], Belief]
    learn: Callable[[jax.Array, Belief, History], tuple[Belief, Info]]
    check: Callable[[Context], None]
    """Raises InputError for a context of one arm that does not fit; sees shapes only."""
    review: "Review | None" = None
    """as of a `Policy`"""


Rule: TypeAlias = Callable[[jax.Array, Prediction, jax.Array], Choice]


def policy(estimator: Estimator, rule: Rule) -> Policy:
    """Make a policy that predicts with the estimator and chooses with the rule.

    Args:
        estimator: What is believed about the rewards, such as `estimators.ridge.ridge`.
        rule: How a choice follows from a prediction, such as `rules.ucb`.

    Returns:
        The policy, compiled on first use, its input checked.
    """
    return guard(combine(estimator, rule)._replace(review=None), estimator.check)


def combine(estimator: Estimator, rule: Rule) -> Policy:
    """The policy of `policy(estimator, rule)` without its checks, for another function to build upon."""

    def select(key: jax.Array, belief: Belief, contexts: Context, available: jax.Array) -> Choice:
        shared = Prediction._make((0, 0, None, None))
        # from Algorithm 1, line 6 to Algorithm 1, line 9: the loop over arms, side by side
        return rule(key, jax.vmap(estimator.predict, (None, 0), shared)(belief, contexts), available)

    return Policy(estimator.init, select, estimator.observe, estimator.learn, review=estimator.review)


def guard(bare: Policy, check: Callable[[Context], None]) -> Policy:
    """The policy as users see it: compiled on first use, with float64 available, and bad input refused.

    Args:
        bare: Four pure functions; `select` is always given `available`.
        check: Raises InputError for a context of one arm that does not fit; sees shapes only.

    Returns:
        A policy whose `select` and `observe` raise InputError for bad input, and whose `available` is optional.
    """
    init, choose, update, train = (exact(jax.jit(verb)) for verb in bare[:4])

    def select(key: jax.Array, belief: Belief, contexts: Context, available: jax.Array | None = None) -> Choice:
        arms = _check_contexts(contexts, check)
        return choose(key, belief, contexts, _check_available(available, arms))

    def observe(belief: Belief, context: Context, reward: jax.Array) -> Belief:
        if bare.note is not None and not isinstance(context, Noted):
            context = Noted(context, jnp.zeros(bare.note.size, jnp.float32))
        check(context if bare.note is None else context.context)
        if bare.note is not None and jnp.shape(context.note) != (bare.note.size,):
            raise InputError(
                f"note must be {bare.note.size} numbers, as `remember` takes them, got shape {jnp.shape(context.note)}."
            )
        _check_finite("context", context)
        _check_finite("reward", reward)
        if jnp.shape(reward) != ():
            raise InputError(f"reward must be one number, got shape {jnp.shape(reward)}.")
        return update(belief, context, reward)

    review = None if bare.review is None else exact(jax.jit(bare.review))
    note = None if bare.note is None else bare.note._replace(take=exact(jax.jit(bare.note.take)))
    return Policy(init, select, observe, train, review=review, note=note)


def remember(policy: Policy, belief: Belief, contexts: Context, available: jax.Array, choice: Choice) -> Context:
    """What is kept of a decision until its reward comes: the context of the arm chosen, with a note if there is one."""
    context = jax.tree.map(lambda leaf: leaf[choice.arm], contexts)
    if policy.note is None:
        return context
    return Noted(context, policy.note.take(belief, contexts, available, choice))


def fingerprint(belief: Belief) -> str:
    """The SHA-256 of a belief: two beliefs have the same one if and only if they are equal to the last bit.

    Args:
        belief: Any pytree of arrays, random keys included.

    Returns:
        64 hexadecimal digits, over the values, types and shapes of all arrays in their order.

    Example:
        >>> import numpy as np
        >>> fingerprint(np.zeros(2)) == fingerprint(-np.zeros(2))
        False
    """
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(belief):
        is_key = jnp.issubdtype(jnp.result_type(leaf), jax.dtypes.prng_key)
        array = np.asarray(jax.random.key_data(leaf) if is_key else leaf)
        digest.update(f"{array.dtype.str} {array.shape} ".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def check_vector(dim: int) -> Callable[[Context], None]:
    """A check that a context is one vector of `dim` numbers."""

    def check(context: Context) -> None:
        shape = getattr(context, "shape", None)
        if shape != (dim,):
            got = f"a {type(context).__name__}" if shape is None else f"shape {shape}"
            raise InputError(f"a context must be {dim} numbers, got {got}; `dim` is set to {dim}.")

    return check


def slot_shape(dim: int) -> Any:
    """The shape of a `Slot` with `dim` numbers."""
    return Slot._make((jax.ShapeDtypeStruct((dim,), "float32"), jax.ShapeDtypeStruct((), "int32")))


def check_slot(dim: int, arms: int) -> Callable[[Context], None]:
    """A check that a context is a `Slot` of `dim` numbers and an arm."""

    def check(context: Context) -> None:
        if not isinstance(context, Slot):
            raise InputError(f"a context must be a Slot(x, arm), got a {type(context).__name__}.")
        check_vector(dim)(context.x)
        if not isinstance(context.arm, jax.ShapeDtypeStruct | jax.core.Tracer) and not 0 <= int(context.arm) < arms:
            raise InputError(f"arm must be from 0 to {arms - 1}, got {context.arm}.")

    return check


def _check_contexts(contexts: Context, check: Callable[[Context], None]) -> int:
    """The number of arms, after the checks that a caller with bad input needs."""
    leaves = jax.tree.leaves(contexts)
    sizes = {jnp.shape(leaf)[0] if jnp.ndim(leaf) else None for leaf in leaves}
    if len(sizes) != 1 or None in sizes or 0 in sizes:
        shapes = ", ".join(str(jnp.shape(leaf)) for leaf in leaves)
        raise InputError(f"contexts must have a leading axis of arms, got shapes {shapes or 'of nothing'}.")
    check(jax.eval_shape(lambda tree: jax.tree.map(lambda leaf: leaf[0], tree), contexts))
    _check_finite("contexts", contexts)
    (arms,) = sizes
    assert arms is not None
    return arms


def _check_available(available: jax.Array | None, arms: int) -> jax.Array:
    if available is None:
        return jnp.ones(arms, dtype=bool)
    available = jnp.asarray(available)
    if available.shape != (arms,) or available.dtype != bool:
        raise InputError(
            f"available must be {arms} booleans, one per arm, got {available.dtype} of shape {available.shape}."
        )
    if not isinstance(available, jax.core.Tracer) and not np.asarray(available).any():
        raise InputError("available must allow at least one arm, got none.")
    return available


def _check_finite(name: str, tree: object) -> None:
    """Refuse NaN and infinity where values can be seen; inside compiled code the simulation reports divergence."""
    for leaf in jax.tree.leaves(tree):
        if not isinstance(leaf, jax.core.Tracer) and not np.isfinite(leaf).all():
            raise InputError(f"{name} must be finite, got NaN or infinity; clean or drop such rows first.")
