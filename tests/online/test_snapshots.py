"""Saving and loading: bit for bit, completely or not at all, and damage is refused."""

import hashlib
import json
import os
import time

import numpy as np
import pytest

from neuralucb import OnlineBandit, StorageError
from neuralucb.algorithms import ALGORITHMS
from neuralucb.online import snapshots
from tests.nightly import in_ci
from tests.online.helpers import bandit, contexts, fingerprint, make, play, rewrite


def test_propensities_survive(tmp_path):
    one = bandit(floor=0.1)
    waiting = one.select(contexts())
    again = OnlineBandit.load(one.save(tmp_path / "saved"))
    read = again.explain(waiting.id).decision
    assert read.propensity == waiting.propensity
    np.testing.assert_array_equal(read.propensities, waiting.propensities)
    assert again.settings["floor"] == 0.1


KINDS = (
    "neural-mix", "neural-ucb", "neural-linear", "bootstrapped-nn", "lin-ucb", "kernel-ucb", "exp4", "ee-net",
)  # fmt: skip
"""beliefs that have little in common; the other algorithms' are alike to one of them"""


@pytest.mark.parametrize("name", in_ci([name for name in ALGORITHMS if not ALGORITHMS[name].sees_expected], *KINDS))
def test_a_loaded_bandit_continues_bit_for_bit(name, tmp_path):
    one = OnlineBandit(make(name), schedule="8", seed=3)
    play(one, 20)
    waiting = one.select(contexts(9))
    other = OnlineBandit.load(one.save(tmp_path / "saved"))
    for each in (one, other):
        each.observe(waiting.id, 0.5)
    np.testing.assert_array_equal(play(one, 15, seed=1), play(other, 15, seed=1))
    assert fingerprint(one)[1] == fingerprint(other)[1]
    assert one.select(contexts()).id == other.select(contexts()).id


def test_all_settings_and_arms_survive(tmp_path):
    settings = {"window": 30, "normalize": True, "count_pending": True, "schedule": "5:10,20", "seed": 11}
    one = OnlineBandit(make("lin-ucb"), **settings)
    one.add_arm("a", [0.0, 1.0])
    one.add_arm(2, [1.0, 0.0])
    for index in range(40):
        one.observe(one.select([0.1 * index]).id, 3.0 * index)
    one.select_many([[1.0], [2.0]])
    other = OnlineBandit.load(one.save(tmp_path / "saved"))
    assert {name: other.settings[name] for name in settings} == settings
    a, b = one.select([0.5]), other.select([0.5])
    np.testing.assert_array_equal(a.score, b.score)
    assert (a.arm, a.id) == (b.arm, b.id)
    same = {"loss": 0.0, "inverse_drift": 0.0}  # NaN is not equal to itself
    assert one.health()._replace(**same) == other.health()._replace(**same)


def test_saving_again_replaces_and_a_failed_save_leaves_the_old(tmp_path, monkeypatch):
    one = bandit()
    play(one, 3)
    folder = one.save(tmp_path / "saved")
    play(one, 3, seed=1)
    monkeypatch.setattr("neuralucb.online.keeper.step", lambda name: 1 / 0 if name == "snapshot manifest" else None)
    with pytest.raises(ZeroDivisionError):
        one.save(folder)
    monkeypatch.undo()
    assert OnlineBandit.load(folder).health().observed == 3
    one.save(folder)
    assert OnlineBandit.load(folder).health().observed == 6
    assert len(list(folder.glob("snapshot-*"))) == 3


def test_a_folder_that_cannot_be_loaded_is_refused_with_the_reason(tmp_path):
    with pytest.raises(StorageError, match="no snapshot"):
        OnlineBandit.load(tmp_path)
    folder = bandit().save(tmp_path / "saved")
    manifest = next(folder.glob("*.manifest.json"))
    text = manifest.read_text()
    manifest.write_text(text.replace('"format": 2', '"format": 3'))
    with pytest.raises(StorageError, match="format 3.*update"):
        OnlineBandit.load(folder)
    manifest.write_text(text)
    with pytest.raises(ValueError, match="policy"):
        OnlineBandit.load(folder, make("lin-ucb"))
    arrays = next(folder.glob("*.safetensors"))
    arrays.write_bytes(arrays.read_bytes()[:-1])
    with pytest.raises(StorageError, match="damaged"):
        OnlineBandit.load(folder)
    arrays.unlink()
    with pytest.raises(StorageError, match="cannot be read"):
        OnlineBandit.load(folder)


@pytest.mark.parametrize("damage", ["arrays", "pending", "settings"])
def test_malformed_contents_with_the_right_checksum_are_a_storage_error(damage, tmp_path):
    one = OnlineBandit(make("lin-ucb"))
    one.select(contexts())
    one.save(tmp_path / "whole")
    (whole,) = tmp_path.glob("whole/*.safetensors")
    (state,) = tmp_path.glob("whole/*.state.json")
    fields = json.loads(state.read_text())
    if damage == "settings":
        del fields["settings"]["normalize"]
    else:
        fields["state"]["pending"] = {}
    data = {
        whole.name: b"\xff" * 99 if damage == "arrays" else whole.read_bytes(),
        state.name: json.dumps(fields).encode(),
    }
    parts = {name: {"sha256": hashlib.sha256(part).hexdigest(), "bytes": len(part)} for name, part in data.items()}
    manifest = {"format": 1, "note": 0, "parts": parts}
    seal = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    for name, part in data.items():
        (whole.parent / name).write_bytes(part)
    next(whole.parent.glob("*.manifest.json")).write_text(json.dumps({"manifest": manifest, "sha256": seal}))
    for again in (lambda: OnlineBandit.load(whole.parent), lambda: OnlineBandit(make("lin-ucb"), journal=whole.parent)):
        with pytest.raises(StorageError, match="cannot|does not hold"):
            again()


def mutated(data, generator):
    data = bytearray(data)
    kind = generator.integers(4)
    if kind == 0:
        data[generator.integers(len(data))] ^= 1 << generator.integers(8)
    elif kind == 1:
        del data[generator.integers(len(data)) :]
    elif kind == 2:
        data += bytes(generator.integers(256, size=3).tolist())
    else:
        at = generator.integers(len(data))
        data[at : at + 8] = b"\xff" * 8
    return bytes(data)


def check_mutations(tmp_path, count):
    one = bandit()
    play(one, 5)
    folder = one.save(tmp_path / "saved")
    _, right = snapshots.read(folder)
    files = {path: path.read_bytes() for path in sorted(folder.iterdir())}
    generator, refused = np.random.default_rng(0), 0
    for index in range(count):
        path = list(files)[index % len(files)]
        rewrite(path, mutated(files[path], generator))
        try:
            _, read = snapshots.read(folder)
        except StorageError:
            refused += 1
        else:
            assert read.fields == right.fields or repr(read.fields) == repr(right.fields)
            assert all(np.array_equal(read.arrays[name], right.arrays[name]) for name in right.arrays)
        rewrite(path, files[path])
    assert refused > 0.8 * count


def test_a_mutated_snapshot_is_refused_or_right(tmp_path):
    check_mutations(tmp_path, 600)


@pytest.mark.slow
def test_ten_thousand_mutated_snapshots_are_refused_or_right(tmp_path):
    check_mutations(tmp_path, 10_000)


def test_snapshots_are_kept_by_number_by_day_and_if_they_are_pinned(tmp_path):
    one = OnlineBandit(make("lin-ucb"), journal=tmp_path)
    one.retain(2, days=3)
    now = time.time()
    for number in range(1, 10):
        assert number in snapshots.numbers(tmp_path)
        # 1 and 2 are of four days ago, 3 and 4 of two, 5 and 6 of yesterday
        days = {1: 4, 2: 4, 3: 2, 4: 2, 5: 1, 6: 1}.get(number, 0)
        os.utime(tmp_path / f"snapshot-{number:08d}.manifest.json", (now - 86400 * days,) * 2)
        if number == 2:
            snapshots.pin(tmp_path, 2, pinned=True)
        assert one.snapshot() == number + 1
    assert snapshots.numbers(tmp_path) == [2, 4, 6, 9, 10]
    assert snapshots.pinned(tmp_path) == {2}
    assert len(list(tmp_path.glob("journal-*"))) <= 6
    one.rollback(snapshot=2)
    one.close()
    OnlineBandit.load(tmp_path).close()
    snapshots.pin(tmp_path, 2, pinned=False)
    assert snapshots.pinned(tmp_path) == set()
