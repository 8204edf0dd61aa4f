"""Everything that an `OnlineBandit` knows, changed by events alone: the same events live and from a journal."""

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from neuralucb.algorithms import rebuild
from neuralucb.online.annex import Annex, NoAnnex
from neuralucb.online.arms import ArmId, Arms
from neuralucb.online.codec import leaves_of, with_leaves
from neuralucb.online.compiled import Programs
from neuralucb.online.context_shape import ContextShape
from neuralucb.online.ledger import DecisionBatch, Ledger, column, refitted
from neuralucb.online.lesson_record import UNKNOWN, LessonRecord
from neuralucb.online.moments import Moments
from neuralucb.online.observations import Observations
from neuralucb.online.training_input import CaughtUp, TrainingInput
from neuralucb.policy import Belief, Origin

__all__ = ["Basis", "Event", "State"]

COUNTERS = ("decisions", "observed", "expired", "learned", "diverged", "refused", "clipped", "explored")
DECISION_COUNTERS = ("decisions", "expired", "explored")
"""Those that a rollback leaves as they are."""


class Event(NamedTuple):
    """One change: its kind, plain values, arrays."""

    kind: str
    fields: dict[str, Any]
    arrays: dict[str, np.ndarray]


class Basis(NamedTuple):
    """What new decisions are based on, read at one moment: the belief, its version, and the scale of rewards."""

    first: int
    """the number of the first decision"""
    belief: Belief
    version: int
    moments: Moments
    programs: Programs


class State:
    """Belief, observations, pending decisions, arms and counters. Only `apply` changes it."""

    def __init__(
        self,
        programs: Programs,
        shape: ContextShape,
        *,
        window: int | None,
        normalize: bool,
        capacity: int | None,
        annex: Annex | None = None,
    ) -> None:
        self.programs: Programs = programs
        self.shape: ContextShape = shape
        """of the contexts that are asked about"""
        self.kept: ContextShape = shape.noted(programs.note_size)
        """of what is kept of a decision: the context of its arm, and the policy's note"""
        self.normalize: bool = normalize
        self.initial_belief: Belief = programs.init()
        self.belief: Belief = self.initial_belief
        self.version: int = 0
        self.ledger: Ledger = Ledger()
        self.observations: Observations = Observations(self.kept, window)
        self.arms: Arms = Arms(shape, capacity, {}, {}, 0)
        self.moments: Moments = Moments()
        self.counts: dict[str, int] = dict.fromkeys(COUNTERS, 0)
        self.names: dict[str, list[str]] | None = None
        """of the features, if a log gave them"""
        self.annex: Annex = NoAnnex() if annex is None else annex
        self.generation: int = 0
        """how often observations were taken back, by a rollback or a removal"""
        self.barrier: int = 0
        """the last snapshot that cannot be returned to: of another policy, or with observations removed since"""
        self.relearns: bool = False
        """whether observations were removed that the belief still knows: the next lesson starts from nothing"""
        self.labels: dict[ArmId, int] = {}
        """a number for each arm that has brought a reward"""
        self.learned_at: int = 0
        """how many observations the last lesson started from"""
        self.lessons: LessonRecord = LessonRecord()
        self.loss: float = math.nan
        self.smallest_variance: float = math.inf
        self.training: TrainingInput | None = None
        self.caught_up: CaughtUp | None = None
        """of the lesson under way"""
        self._anticipating: Belief | None = None
        """`belief_with_pending`, as last computed"""
        self._decided_since: list[int] = []
        """numbers of decisions that it does not include yet"""
        self._buffer: list[tuple[Any, np.ndarray]] = []
        """observations that are not in the belief yet: a replay absorbs many at once"""
        self._buffered = 0  # rows in it
        self.gathering: float = 0.0
        """seconds for which observations may stay in the buffer: absorbing many costs little more than absorbing one"""
        self._absorbed_at = -math.inf
        self._kinds: dict[str, Callable[[dict[str, Any], dict[str, np.ndarray]], None]] = {
            "decide": self._decide,
            "reward": self._reward,
            "expire": self._expire,
            "fit": lambda fields, arrays: self._observe(fields, self.contexts_of(arrays), arrays["rewards"]),
            "names": self._name,
            "start": lambda fields, arrays: self._start(),
            "learn": self._learn,
            "abandon": lambda fields, arrays: self.abandon(),
            "note": lambda fields, arrays: None,
            "add arm": self._add_arm,
            "remove arm": self._remove_arm,
            "rollback": self._rollback,
            "adopt": self._adopt,
            "forget": self._forget,
        }

    def knows(self, kind: str) -> bool:
        """Whether this version has such events."""
        return kind in self._kinds

    def apply(self, event: Event) -> None:
        """Change the state by an event, which has been checked: nothing is refused here."""
        if event.kind != "decide":
            self._anticipating = None
        self._kinds[event.kind](event.fields, event.arrays)
        if "note" in event.fields:
            self.annex.apply(*event)

    def basis(self, count: int) -> Basis:
        """The basis of `count` new decisions, whose numbers are reserved."""
        return Basis(self.ledger.reserve(count), self.belief, self.version, self.moments, self.programs)

    def absorb_due(self) -> None:
        """Absorb the buffered observations, unless others were less than `gathering` seconds ago."""
        if self._buffered and time.monotonic() - self._absorbed_at >= self.gathering:
            self.absorb_buffer()

    def absorb_buffer(self, *, above: int = 0) -> None:
        """Absorb the buffered observations into the belief, if there are more than `above`."""
        if self._buffered <= above:
            return
        contexts, rewards = jax.tree.map(lambda *leaves: np.concatenate(leaves), *self._buffer)
        self._buffer.clear()
        self._buffered = 0
        self.belief, refused = self.programs.absorb(self.belief, contexts, rewards)
        self.counts["refused"] += refused
        self.version += len(rewards)
        self._absorbed_at = time.monotonic()

    def normalized(self, rewards: np.ndarray) -> np.ndarray:
        """Rewards in the policy's scale."""
        return self.moments.normalize(rewards) if self.normalize else rewards.astype(np.float32)

    def belief_with_pending(self) -> Belief:
        """The belief if every pending decision had brought its expected reward (as in GP-BUCB, Desautels et al. 2014).

        It follows from the pending decisions, in order, and from nothing else: after a restart it is the same to the
        last bit.
        """
        belief, numbers = self._anticipating, self._decided_since
        if belief is None:
            self.absorb_buffer()
            belief, numbers = self.belief, list(self.ledger.pending)
        if numbers:
            contexts = self.kept.unflatten(self.ledger.contexts(numbers))
            belief, _ = self.programs.absorb(belief, contexts, self.normalized(self.ledger.expected_rewards(numbers)))
        self._anticipating, self._decided_since = belief, []
        return belief

    def contexts_of(self, arrays: dict[str, np.ndarray]) -> Any:
        """The contexts among an event's arrays; decisions of others, which were only fitted, have a note of zeros."""
        count = len(arrays["c0"])
        return self.kept.unflatten(
            [
                arrays[f"c{leaf}"] if f"c{leaf}" in arrays else np.zeros((count, *size), kind)
                for leaf, (size, kind) in enumerate(self.kept.leaves)
            ]
        )

    def context_arrays(self, contexts: Any) -> dict[str, np.ndarray]:
        """Contexts as arrays of an event."""
        return {f"c{leaf}": array for leaf, array in enumerate(jax.tree.leaves(contexts))}

    def follow(self, other: "State") -> bool:
        """Observe what another state has observed since, sharing its rows; `absorb_buffer` does the rest.

        Returns False, and starts over from the first observation, if the other has taken back observations.
        """
        goes_on = self.generation == other.generation and self.observations.total <= other.observations.total
        if not goes_on:
            self.start_over()
            self.generation = other.generation
        total = self.observations.total
        self.observations.follow(other.observations)
        contexts, rewards = self.observations.since(total)
        if len(rewards):
            self.moments = self.moments.updated(rewards) if self.normalize else self.moments
            self.counts["observed"] += len(rewards)
            self._buffer.append((contexts, self.normalized(rewards)))
            self._buffered += len(rewards)
        return goes_on

    def start_over(self) -> None:
        """Know nothing of any reward."""
        self._buffer.clear()
        self._buffered, self.training = 0, None
        self.belief, self.version = self.initial_belief, self.version + 1
        self.observations = Observations(self.kept, self.observations.window)
        self.moments, self.lessons, self.loss, self.learned_at = Moments(), LessonRecord(), math.nan, 0
        self.counts |= dict.fromkeys(("observed", "learned", "diverged", "refused", "clipped"), 0)

    def twin(self) -> "State":
        """A state that has learned the same, with the same rows; what is pending stays with this one.

        Where observations were removed that the belief still knows, it has learned nothing, as this one is about to.
        """
        made = State(
            self.programs.of(self.programs.policy), self.shape, window=self.observations.window,
            normalize=self.normalize, capacity=None,
        )  # fmt: skip
        made.observations.follow(self.observations)
        fields, arrays = self.successor()
        made.apply(Event("adopt", {**fields, "barrier": 0}, arrays))
        made.moments, made.generation = self.moments, self.generation
        made.counts["observed"] = self.counts["observed"]
        if self.relearns:
            made.start_over()
        return made

    def successor(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Fields and arrays of the event `adopt`, with which another state continues as this one."""
        self.absorb_buffer()
        origin = self.programs.policy.origin
        assert origin is not None
        fields = {
            "origin": {**origin._asdict(), "settings": dict(origin.settings)},
            "counts": {name: self.counts[name] for name in ("learned", "diverged", "refused")},
            "learned_at": self.learned_at,
            "lessons": self.lessons._asdict(),
            "loss": self.loss if math.isfinite(self.loss) else None,
        }
        return fields, leaves_of(self.belief, "belief")

    def abandon(self) -> None:
        """Drop the lesson under way; it is due again."""
        if self.training is not None:
            self.learned_at, self.training = self.training.previous, None

    def export(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The whole state, as plain values and arrays."""
        return self.freeze()()

    def freeze(self) -> Callable[[], tuple[dict[str, Any], dict[str, np.ndarray]]]:
        """A function that exports the state of this moment later, without the lock: what takes time, however full."""
        self.absorb_buffer()
        ledger, belief, annex = self.ledger.freeze(), self.belief, self.annex.freeze()
        slots, features, assigned = self.arms.export()
        contexts, rewards = self.observations.in_window()
        fields = {
            "places": slots,
            "taken": assigned,
            "total": self.observations.total,
            "moments": list(self.moments),
            "counts": dict(self.counts),
            "names": self.names,
            "version": self.version,
            "relearns": self.relearns,
            "labels": list(self.labels),
            "generation": self.generation,
            "barrier": self.barrier,
            "learned_at": self.learned_at,
            "lessons": self.lessons._asdict(),
            "loss": self.loss if math.isfinite(self.loss) else None,  # JSON has no NaN
            "smallest_variance": self.smallest_variance if math.isfinite(self.smallest_variance) else None,
        }
        arrays = {f"history.{name}": array for name, array in self.context_arrays(contexts).items()}
        arrays |= {"history.rewards": rewards, "history.about": self.observations.about(), "features": features}

        def export() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
            pending, columns = ledger.export()
            named = {f"pending.{name}": array for name, array in columns.items()}
            noted, more = annex()
            named |= {f"annex.{name}": array for name, array in more.items()}
            every = {"pending": pending, **({"annex": noted} if noted else {}), **fields}
            return every, named | leaves_of(belief, "belief") | arrays

        return export

    def restore(self, fields: dict[str, Any], arrays: dict[str, np.ndarray], *, with_annex: bool = True) -> None:
        """Become what `export` described. Raises KeyError or ValueError, and changes nothing, if it does not fit."""
        belief = with_leaves(self.initial_belief, _group(arrays, "belief"), strict=True)
        observations = Observations(self.kept, self.observations.window)
        history = _group(arrays, "history")
        observations.restore(self.contexts_of(history), history["rewards"], fields["total"], history.get("about"))
        arms = self.arms.restored([tuple(each) for each in fields["places"]], arrays["features"], fields["taken"])
        ledger = Ledger.restored(fields["pending"], _group(arrays, "pending"), len(self.kept.leaves))
        stored = {"clipped": 0, **fields["counts"]}  # version 0.1 did not clip
        moments, counts = Moments(*fields["moments"]), {name: int(stored[name]) for name in COUNTERS}
        version, learned_at = int(fields["version"]), int(fields["learned_at"])
        past = {name: counts[name] for name in ("learned", "diverged")}
        lessons = LessonRecord.restored(fields.get("lessons"), **past, at=learned_at)
        if with_annex:
            self.annex.restore(fields.get("annex", {}), _group(arrays, "annex"))
        self._anticipating = None
        self.belief, self.observations, self.arms, self.ledger = belief, observations, arms, ledger
        self.moments, self.counts, self.version, self.learned_at = moments, counts, version, learned_at
        self.names, self.lessons = fields["names"], lessons
        self.generation, self.barrier = fields.get("generation", 0), fields.get("barrier", 0)
        self.relearns = fields.get("relearns", False)
        self.labels = {label: index for index, label in enumerate(fields.get("labels", ()))}
        self.loss = math.nan if fields["loss"] is None else float(fields["loss"])
        smallest = fields["smallest_variance"]
        self.smallest_variance = math.inf if smallest is None else float(smallest)

    def _decide(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        arms = None if fields["arms"] is None else tuple(fields["arms"])
        rows, leaves = arrays["rows"], self.kept.leaves
        context = tuple(arrays[f"c{leaf}"] for leaf in range(len(leaves)) if f"c{leaf}" in arrays)
        if len(context) < len(leaves) or context[-1].shape[1:] != leaves[-1][0]:
            context = refitted(context, leaves)  # made by a policy that was replaced meanwhile
        self.ledger.add(DecisionBatch(fields["first"], fields["version"], fields["time"], arms, rows, context))
        if self._anticipating is not None:
            self._decided_since += range(fields["first"], fields["first"] + len(rows))
        self.counts["decisions"] += len(rows)
        self.counts["explored"] += int(np.count_nonzero(column(rows, "chosen") != column(rows, "greedy")))
        self.smallest_variance = min(self.smallest_variance, float(column(rows, "width").min()) ** 2)

    def _reward(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        numbers, rewards = arrays["numbers"].tolist(), arrays["rewards"]
        contexts = self.kept.unflatten(self.ledger.contexts(numbers))
        times, arms = self.ledger.origins(numbers)
        codes = [self.labels.setdefault(arm, len(self.labels)) for arm in fields.get("labels", arms)]
        self.ledger.resolve(numbers, rewards.tolist())
        self._observe(fields, contexts, rewards, np.asarray([numbers, times, codes], np.float64).T)

    def _observe(
        self, fields: dict[str, Any], contexts: Any, rewards: np.ndarray, about: np.ndarray | None = None
    ) -> None:
        if self.normalize:
            self.moments = self.moments.updated(rewards)
        keep_from = None if self.training is None else self.training.total
        self.observations.add(contexts, rewards, keep_from=keep_from, about=about)
        self.counts["observed"] += len(rewards)
        self.counts["clipped"] += fields.get("clipped", 0)
        self._buffer.append((contexts, self.normalized(rewards)))
        self._buffered += len(rewards)

    def _expire(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        numbers = arrays["numbers"].tolist()
        self.ledger.resolve(numbers, None)
        self.counts["expired"] += len(numbers)

    def _add_arm(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.arms = self.arms.with_arm(fields["arm"], arrays["features"])

    def _remove_arm(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.arms = self.arms.without_arm(fields["arm"])

    def _name(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.names = fields["names"]

    def _start(self) -> None:
        self.abandon()
        self.absorb_buffer()
        contexts, rewards = self.observations.in_window()
        self.training = TrainingInput(
            self.initial_belief if self.relearns else self.belief, self.observations.total, contexts,
            self.normalized(rewards), self.learned_at, self.relearns,
        )  # fmt: skip
        self.learned_at = self.observations.total

    def _learn(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Replace the belief by the trained one, and absorb again what was observed since the lesson started."""
        self.absorb_buffer()
        training, self.training = self.training, None
        assert training is not None
        if fields["promoted"] or training.relearns:
            reached, self.caught_up = self.caught_up, None
            if reached is None or reached.lesson is not training:
                reached = CaughtUp(training, with_leaves(training.belief, arrays), training.total, 0)
            contexts, rewards = self.observations.since(reached.total)
            self.belief, refused = self.programs.absorb(reached.belief, contexts, self.normalized(rewards))
            self.counts["refused"] += reached.refused + refused + fields.get("refused", 0)
            self.version += 1
            self.relearns = False
        if not fields["promoted"]:
            self.counts["diverged"] += 1
            self._end_lesson(training.total, fields.get("failure", UNKNOWN))
            return
        self.counts["learned"] += 1
        self.loss = fields["loss"]
        self._end_lesson(training.total, None)

    def _forget(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Remove observations and pending decisions; the belief knows them until the next lesson has ended."""
        self._expire(fields, {"numbers": arrays["expired"]})
        if not len(arrays["numbers"]):
            return  # nothing of what waits is in the belief, nor would a rollback bring it back
        self.absorb_buffer()
        self.training = None
        self.observations = self.observations.without(arrays["numbers"])
        rewards = self.observations.in_window()[1]
        self.moments = Moments().updated(rewards) if self.normalize and len(rewards) else Moments()
        self.counts |= dict.fromkeys(("learned", "diverged", "refused", "clipped"), 0)
        self.counts["observed"] = len(rewards)
        self.lessons, self.learned_at, self.relearns = LessonRecord(), 0, True
        self.generation, self.barrier = self.generation + 1, fields["barrier"]

    def _end_lesson(self, at: int, failure: str | None) -> None:
        self.lessons = self.lessons.after_lesson(at, failure, self.counts["refused"])

    def _rollback(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Restore the belief and observations that `export` gave; decisions and arms stay as they are now."""
        self.absorb_buffer()
        now = self.ledger, self.arms, self.version + 1, {name: self.counts[name] for name in DECISION_COUNTERS}
        since = self.generation + 1, self.barrier
        self.training = None
        self.restore(fields, arrays, with_annex=False)
        self.ledger, self.arms, self.version, counts = now
        self.generation, self.barrier = since
        self.counts |= counts

    def _adopt(self, fields: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue with another policy, which has learned from the same observations; decisions stay."""
        self.absorb_buffer()
        self.abandon()
        origin = fields["origin"]
        programs = self.programs.of(rebuild(Origin(**{**origin, "settings": tuple(origin["settings"].items())})))
        kept = self.shape.noted(programs.note_size)
        if kept != self.kept:
            self.kept, self.observations = kept, self.observations.refit(kept)
            self.ledger.refit(kept.leaves)
        self.programs, self.initial_belief = programs, programs.init()
        self.belief = with_leaves(self.initial_belief, _group(arrays, "belief"), strict=True)
        self.version += 1
        self.counts |= fields["counts"]
        self.learned_at, self.lessons = fields["learned_at"], LessonRecord(**fields["lessons"])
        self.loss = math.nan if fields["loss"] is None else float(fields["loss"])
        self.barrier = fields["barrier"]


def _group(arrays: dict[str, np.ndarray], group: str) -> dict[str, np.ndarray]:
    """The arrays of a group, by their names within it."""
    return {name.split(".", 1)[1]: array for name, array in arrays.items() if name.startswith(f"{group}.")}
