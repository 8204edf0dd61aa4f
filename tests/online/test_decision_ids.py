"""Ids of decisions: unlike each other, the same after a restart, and refused if they were guessed."""

import shutil
from pathlib import Path

import pytest

from neuralucb import InputError, OnlineBandit
from neuralucb.online.decision_ids import DecisionIds
from tests.online.helpers import ARMS, contexts, linear

OLD = Path(__file__).parent.parent / "data" / "v0_1"


def test_an_id_tells_its_number_to_its_bandit_alone():
    ids = DecisionIds.new()
    assert [ids.number_of(ids.id_of(number)) for number in (0, 7, 10**19)] == [0, 7, 10**19]
    assert ids.id_of(7).startswith(f"{ids.name}-")
    assert ids.id_of(7).endswith("-7")
    codes = {ids.id_of(number).split("-")[1] for number in range(1000)}
    assert len(codes) == 1000
    assert {len(code) for code in codes} == {16}  # 64 bits in hexadecimal
    other = ids._replace(secret=DecisionIds.new().secret)
    code = ids.id_of(7).split("-")[1]
    for wrong in (other.id_of(7), f"{ids.name}-7", f"{ids.name}-{code}-8", f"{ids.name}-{code}-07", f"-{code}-7", "é-7",
                  "\ud800-7", f"{ids.name}-{code}-{'9' * 5000}", f"{ids.name}-{code}-٧", None, 7):  # fmt: skip
        with pytest.raises(InputError, match=f"is not of this bandit, whose ids begin with {ids.name}-"):
            ids.number_of(wrong)


def test_ids_are_the_same_after_a_restart_and_after_a_save(tmp_path):
    with OnlineBandit(linear(), journal=tmp_path / "journal") as one:
        pending = [decision.id for decision in one.select_many(contexts(0, 3, ARMS))]
        copy = OnlineBandit.load(one.save(tmp_path / "saved"))
        assert copy.select(contexts()).id == one.select(contexts()).id
    with OnlineBandit.load(tmp_path / "journal") as again:
        again.observe_many(pending, [1.0] * 3)
    copy.observe_many(pending, [1.0] * 3)


@pytest.mark.parametrize("kind", ["journal", "saved"])
def test_decisions_of_version_0_1_keep_their_ids_and_later_ones_have_codes(kind, tmp_path):
    shutil.copytree(OLD / kind, tmp_path / "old")
    made = []
    for _ in range(2):  # the second time from what this version wrote
        one = OnlineBandit.load(tmp_path / "old")
        old = next(iter(one.state.ledger.pending))
        assert one.explain(f"{one.name}-{old}").decision.id == f"{one.name}-{old}"
        for decision_id in made:
            one.explain(decision_id)
        made.append(one.select(contexts()[:, :2][0]).id)
        with pytest.raises(InputError, match="is not of this bandit"):
            one.explain(f"{one.name}-{made[-1].rpartition('-')[2]}")
        if kind == "saved":
            one.save(tmp_path / "old")
        one.close()
