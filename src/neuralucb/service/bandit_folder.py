"""The bandit of an embedded store's folder: a new one, one that learned from a log, or one that has served before."""

from pathlib import Path
from typing import Literal

from neuralucb.features import Vocabulary
from neuralucb.online import OnlineBandit, snapshots
from neuralucb.online.journal import Sync
from neuralucb.online.keeper import Saved, readable
from neuralucb.runtime.errors import InputError
from neuralucb.service.events import EventBook, plan_fields
from neuralucb.service.servable import servable
from neuralucb.service.store import Plan, Settings

__all__ = ["open_folder"]


def open_folder(
    folder: Path, plan: Plan, book: EventBook, sync: Sync, learning: Literal["background", "process"]
) -> OnlineBandit:
    """Open it, or make it by the plan; the book is its annex."""
    if snapshots.numbers(folder):
        with readable(folder):
            saved = Saved.read(folder, None, None)
        settings = {**saved.settings, "learning": learning, "sync": sync, "count_pending": False}
        if "annex" not in saved.snapshot.fields["state"]:  # it learned from a log, and has not served yet
            settings |= {"floor": plan.floor}
        bandit = OnlineBandit(saved.policy, **settings, journal=folder, annex=book)
    else:
        policy = servable(plan.algorithm, plan.options, plan.slots)
        bandit = OnlineBandit(
            policy, seed=plan.seed, schedule=plan.schedule, learning=learning, window=plan.window, floor=plan.floor,
            journal=folder, sync=sync, annex=book,
        )  # fmt: skip
    try:
        if book.plan is not None and plan.slots not in (book.plan.slots, Plan().slots):
            raise InputError(
                f"slots must be {book.plan.slots}, with which {folder} was made, got {plan.slots}; leave it out, or "
                "choose another folder."
            )
        if book.plan is None:
            names = _trained_names(bandit, plan, folder)
            bandit.record({"plan": plan_fields(plan), "settings": Settings()._asdict(), "slots": names})
    except BaseException:
        bandit.close()
        raise
    return bandit


def _trained_names(bandit: OnlineBandit, plan: Plan, folder: Path) -> list[str]:
    """The vocabulary of a bandit that learned from a log; none for a new one."""
    origin = bandit.policy.origin
    if origin is None or origin.shared_by is not None or origin.dim != plan.slots:
        raise InputError(
            f"{folder} has a model for contexts that are not of {plan.slots} slots; train it with "
            f"`neuralucb train LOG --slots {plan.slots}`, or set as many slots as it has."
        )
    if bandit.names is None:
        return []
    return Vocabulary.from_slot_names(bandit.names["own"]).names
