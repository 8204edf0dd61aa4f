"""What a decision service asks of its store, and the records that go in and come out.

A store owns everything that must outlive the process: decisions, rewards, the model, the vocabulary of the encoder,
arms and settings. There are two: the embedded one (`embedded.py`: one process, a journal folder) and PostgreSQL (many
stateless replicas, one learner). Everything above, HTTP and batching and encoding, knows this interface only.

**Life of an event.** An event is one decision, named by an id that the caller chose or we made.

    decide ──► waiting ──reward──► observed          aggregation "earliest": the first reward is learned at once
                  │                                  aggregation "sum": rewards add up, and are learned when time is up
                  └──time is up──► defaulted         no reward came: `default_reward` is learned
    decide, deferred ──► inactive ──activate──► waiting (time counts from the activation)
                            └──time is up──► expired   never activated: nothing is learned

Time is up `wait_seconds` after the decision (or activation) by the clock of the store, so also across restarts. A
reward that comes later is late: counted, not learned. One for an inactive event is kept, and counts when that is
activated.

**Durability.** A method that returns has made durable what it reports, to the degree that the store promises: nothing
acknowledged is lost by `kill -9`. What it raises has not happened, or may be repeated: all methods are idempotent.

**Threads.** Methods block, and are called from several threads at once, never from an event loop: `decide` from one
thread, `reward` and `activate` from one, all others from any. None waits for a lesson.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from neuralucb.runtime.errors import InputError

__all__ = [
    "Activated",
    "Activity",
    "Aggregation",
    "Answer",
    "Arm",
    "Candidate",
    "CandidateReport",
    "Explained",
    "Forgotten",
    "LessonReport",
    "Mode",
    "Outcome",
    "Plan",
    "Refusal",
    "Request",
    "Reward",
    "Rewarded",
    "Settings",
    "SnapshotRecord",
    "Status",
    "Store",
    "StoreHealth",
    "UnknownEventError",
]

Aggregation: TypeAlias = Literal["earliest", "sum"]
Mode: TypeAlias = Literal["online", "apprentice"]
Status: TypeAlias = Literal["inactive", "waiting", "observed", "defaulted", "expired"]
Rewarded: TypeAlias = Literal["learned", "kept", "repeated", "late", "unknown"]
"""What became of a reward.

learned   the event has its reward now
kept      it counts later: the event is inactive, or rewards are summed until time is up
repeated  ignored: the event already has its reward ("earliest"), or a reward with this `reward_id`
late      ignored: time was up, and the event has its default reward, or has expired
unknown   ignored: there is no such event, or it is too long ago to be remembered
"""
Activated: TypeAlias = Literal["activated", "repeated", "late", "unknown"]
"""What became of an activation: `repeated` if the event was active already, `late` if it has expired."""


class Plan(NamedTuple):
    """Which bandit a new store gets. A store that exists continues as it was made, and refuses another plan's size."""

    algorithm: str = "neural-mix"
    options: Mapping[str, Any] = {}
    """settings of the algorithm, as `build` takes them"""
    slots: int = 128
    """numbers in a context: the size of the encoder"""
    interactions: tuple[tuple[str, str], ...] = ()
    """of features, as `neuralucb.features.Encoder` takes them"""
    floor: float = 0.05
    """share of decisions made uniformly at random, so that every propensity is known and positive"""
    seed: int = 0
    schedule: str | None = None
    """when to learn, in observations; None for `default_schedule`"""
    window: int | None = None
    """learn from the last so many observations only"""


class Candidate(NamedTuple):
    """A policy that does not decide, but learns from the same traffic and is valued by it."""

    algorithm: str = "neural-mix"
    options: Mapping[str, Any] = {}
    """settings of the algorithm, as `build` takes them"""
    floor: float | None = None
    """share of decisions that it would make at random; None: as the service does"""
    schedule: str | None = None
    """when it learns, in observations; None: as the service does"""


class Settings(NamedTuple):
    """What an operator may change while the service runs; one for all replicas of a store."""

    mode: Mode = "online"
    """apprentice: the first arm is answered, and learned from"""
    default_reward: float = 0.0
    wait_seconds: float | None = 600.0
    """how long an event waits for rewards; None: for ever, and then `sum` is not possible"""
    aggregation: Aggregation = "earliest"
    learning: bool = True
    """False pauses lessons; rewards are recorded all the same"""
    reward_range: tuple[float, float] | None = None
    """rewards outside are refused by the service, before the store sees them"""
    excluded: tuple[str, ...] = ()
    """ids of arms that are not chosen, whoever asks"""
    pinned: str | None = None
    """the id of an arm that is answered wherever it is allowed, and learned from"""
    floor: float | None = None
    """share of decisions made uniformly at random; None: as the plan says"""
    schedule: str | None = None
    """when to learn, in observations; None: as the plan says"""
    rate: float | None = None
    """decisions per second that each process accepts, over a few seconds; None: as many as it can"""


class Request(NamedTuple):
    """One decision to make, checked and encoded."""

    event_id: str
    """at most 256 characters"""
    contexts: np.ndarray
    """[K, slots] float32, finite: one row per arm, as the encoder made it"""
    arms: tuple[str, ...]
    """K distinct ids, in the caller's order"""
    allowed: np.ndarray
    """[K] bool, at least one True: the arms that may be chosen"""
    features: Any
    """context and arms as they came, as `shown.in_json` takes them: for `explain`, audit and export alone"""
    digest: bytes
    """16 bytes over everything that makes two requests the same; with it a repeat is told from another request"""
    deferred: bool = False
    """whether the event is inactive until it is activated"""
    imposed: int | None = None
    """the position that is answered whatever the policy prefers: the caller's own choice, or that of a pinned arm"""
    user: str | None = None
    """the key by which data of one person can be deleted"""


class Answer(NamedTuple):
    """A decision that is durable."""

    event_id: str
    arms: tuple[str, ...]
    position: int
    """of the arm to use"""
    propensities: np.ndarray
    """[K] float64, as recorded, sums to 1 but for rounding; 0 for arms that were not allowed; 1 for one imposed"""
    score: np.ndarray
    """[K] float64, finite: by which the policy ranks the arms; all as decimals of its precision"""
    preferred: int
    """the allowed arm with the highest score: with an imposed one, what the policy would have done"""
    version: int
    """of the model that decided"""
    time: float
    """seconds since 1970"""
    repeated: bool = False
    """whether it was made earlier: the same event id, the same digest"""


class Refusal(NamedTuple):
    """Why one request of a batch was not decided; the others were."""

    code: Literal["conflict", "invalid"]
    """conflict: the event id belongs to another request (409). invalid: the policy cannot score it (400)."""
    message: str


class Reward(NamedTuple):
    """A reward, checked: finite, within `reward_range`."""

    event_id: str
    value: float
    reward_id: str | None = None
    """chosen by the caller: with `sum`, a second reward with the same one is not added again"""


class Explained(NamedTuple):
    """Everything known about one event."""

    answer: Answer
    mean: np.ndarray
    width: np.ndarray
    exploration: float
    """γ, the scale that turned widths into scores"""
    status: Status
    reward: float | None
    """what was, or so far would be, learned"""
    features: bytes | None
    """as in the request; None if the store no longer has them"""
    user: str | None = None


class Arm(NamedTuple):
    """An arm that callers need not describe in every request."""

    id: str
    features: Any
    """JSON, as the encoder takes it"""


class SnapshotRecord(NamedTuple):
    """A state to which the store can return."""

    number: int
    time: float
    observations: int
    version: int
    bytes: int
    pinned: bool = False
    """kept whatever the retention says"""


class Forgotten(NamedTuple):
    """What was removed."""

    observations: int
    """that the model had learned from, or was about to"""
    pending: int
    """events that waited for a reward, and have expired now"""


class UnknownEventError(InputError):
    """There is no such event, or it is too long ago."""


class Outcome(NamedTuple):
    """A recent decision and what became of it, in few numbers: what policies can be valued with."""

    number: int
    """rises with time"""
    time: float
    """of the decision, seconds since 1970"""
    arm: str
    """the one used"""
    propensity: float
    """of it; 1 where the choice was deterministic or imposed"""
    is_first: bool
    """whether it is the first arm that was allowed, which an application without a bandit would use"""
    first_propensity: float
    """of that first arm"""
    least_propensity: float
    """of the allowed arm that was least likely"""
    allowed: int
    """how many arms were allowed"""
    explored: bool
    """whether another arm had the highest mean, and nothing was imposed"""
    status: Status
    reward: float | None
    due: float | None
    """when its time is up"""
    stands_for: int = 1
    """decisions that it represents, where only some are remembered"""


class LessonReport(NamedTuple):
    """How one lesson went."""

    time: float
    """of its end, seconds since 1970"""
    observations: int
    promoted: bool
    loss: float | None
    failure: str | None
    seconds: float


class Activity(NamedTuple):
    """What happened lately, for the dashboard: bounded, however much traffic there is."""

    outcomes: Sequence[Outcome]
    """oldest first; a uniform sample of recent decisions, or all of them. It goes back further than events wait for
    their rewards: else it would have clicks, which come soon, and lack what nobody clicked"""
    lessons: Sequence[LessonReport]
    """oldest first"""


class CandidateReport(NamedTuple):
    """How a candidate does, over the decisions made since it was added."""

    name: str
    candidate: Candidate
    since: float
    """seconds since 1970: when it was added, or valued anew"""
    observations: int
    """that it has learned from"""
    lessons: int
    decisions: int
    """complete ones with which it was valued"""
    values: Mapping[str, Any]
    """`Value` of the `candidate` itself, and over the same decisions of what was `served`, the `baseline`, `uniform`,
    and the `difference` of the candidate to what was served"""
    failure: str | None
    """what is wrong, if anything"""


class StoreHealth(NamedTuple):
    """What a person on call, and `/metrics`, want to know. Counters never fall, but by a new store."""

    role: str
    """embedded, replica or learner"""
    failure: str | None
    """what is wrong, if anything: nothing more can be written, lessons fail, …; None is healthy"""
    writable: bool
    """whether decisions are accepted: `/health/ready` says so"""
    learning: str
    """when the last good lesson was, in words"""
    counters: Mapping[str, float]
    """decisions, explored, observed, defaulted, expired, late, repeated, unknown, lessons, lessons_failed, …"""
    gauges: Mapping[str, float]
    """pending, model_version, model_age_seconds, vocabulary, slots_free, history_bytes, loss, …; all finite"""


class Store(Protocol):
    """The interface. Errors of the disk or the database are StorageError; the service answers 503, and may try again.

    Opened by `open_store(address, plan)` in `stores.py`: a folder, or `postgresql://…`, for which it calls
    `neuralucb.service.postgres.open_postgres(address, plan)`.
    """

    @property
    def plan(self) -> Plan:
        """With which the store was made, which may be long ago: the encoder takes its `slots` and `interactions`."""

    def vocabulary(self) -> list[str]:
        """The names of features that have a slot of their own; the i-th has slot i. Grows at its end, never else."""

    def assign_slots(self, names: Sequence[str]) -> Mapping[str, int]:
        """Slots for names that the caller's encoder has not seen, in order, while `slots` allow; durable on return.

        A name that has one already, from another replica say, gets that one; a name missing from the answer has none,
        and never will, and is hashed by the encoder. Which names get slots is `neuralucb.features.Vocabulary.assign`,
        over the names in `vocabulary()`: under the store's lock, so that all replicas agree. Called before `decide`,
        never by it.
        """

    def decide(self, requests: Sequence[Request]) -> list[Answer | Refusal]:
        """Decide requests together, with one model, in order; two with one event id may be among them."""

    def begin(self, requests: Sequence[Request]) -> Callable[[], list[Answer | Refusal]]:
        """Begin `decide`; what is returned ends it: all that is begun must end, in that order and thread."""

    def reward(self, rewards: Sequence[Reward]) -> list[Rewarded]:
        """Record rewards, in order."""

    def activate(self, event_ids: Sequence[str]) -> list[Activated]:
        """Let deferred events count, in order."""

    def settle(self) -> int:
        """Give events whose time is up what they get: a default reward, their sum, or nothing; returns how many.

        The service calls it about once per second. A store whose learner settles need do nothing in replicas.
        """

    def explain(self, event_id: str) -> Explained | None:
        """One event; None if it is not known, or no longer."""

    def arms(self) -> list[Arm]:
        """Registered arms, in the order in which they were put; used for requests that name none."""

    def put_arm(self, arm: Arm) -> bool:
        """Add an arm or replace its features; returns whether it is new."""

    def remove_arm(self, arm_id: str) -> bool:
        """Returns whether there was such an arm."""

    def settings(self) -> Settings:
        """The current ones."""

    def configure(self, settings: Settings) -> None:
        """Use these from now on, durably, in all replicas within a second.

        Raises InputError for one that the store cannot change.
        """

    def amend(self, change: Callable[[Settings], Settings]) -> Settings:
        """Change the settings that count at this moment, and return the new ones: two at once are both kept.

        change  may be called twice, and raises InputError for what it refuses
        """

    def snapshot(self) -> SnapshotRecord:
        """Make one now."""

    def snapshots(self) -> list[SnapshotRecord]:
        """Those that exist, oldest first."""

    def pin(self, number: int, *, pinned: bool = True) -> SnapshotRecord:
        """Keep a snapshot whatever the retention says, or no longer. Raises InputError if there is none."""

    def rollback(self, number: int) -> SnapshotRecord:
        """Return to a snapshot: model and observations as they were; events, arms, vocabulary and settings stay.

        Raises InputError if there is no such snapshot.
        """

    def forget(
        self, event_ids: Sequence[str] | None, since: float | None, until: float | None, arm: str | None
    ) -> Forgotten:
        """Remove observations: of these events, or of decisions from `since` on and before `until`, of an arm if given.

        Returns at once; the model is learned again from the rest in the next lesson. Snapshots that know them cannot be
        returned to. Raises InputError for a period that is empty or to come, UnknownEventError for an unknown event.
        """

    def deciding(self) -> tuple[str, Candidate]:
        """The name of the policy that decides, and what it is."""

    def candidates(self) -> list[CandidateReport]:
        """Other policies that learn from the same traffic."""

    def put_candidate(self, name: str, candidate: Candidate) -> bool:
        """Add one, or replace one of another kind; returns whether it is new.

        Raises InputError for one that cannot be made, and in a store that has none.
        """

    def remove_candidate(self, name: str) -> bool:
        """Returns whether there was such a candidate."""

    def promote(self, name: str) -> None:
        """Let a candidate decide from now on, with what it has learned; what decided becomes a candidate.

        Raises InputError if there is none of that name, or it has failed.
        """

    def health(self) -> StoreHealth:
        """Cheap enough to be asked every second."""

    def activity(self) -> Activity:
        """Recent decisions and lessons, for the dashboard; asked every few seconds while somebody looks."""

    def close(self) -> None:
        """Sync, and release what is held. Closing twice does no harm."""
