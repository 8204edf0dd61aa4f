"""The store: one owner, complete files, and damage that is named."""

import json
import shutil
import subprocess

import pytest

from neuralucb.runtime.errors import InputError
from neuralucb.sweeps.report import read_report
from neuralucb.sweeps.store import FAILURES, Store, source_commit
from tests.sweeps.helpers import run_tiny, tiny


def test_a_folder_of_another_sweep_is_refused(finished, tmp_path):
    with pytest.raises(InputError, match=r"holds another sweep, 'tiny'; .*neuralucb resume"):
        run_tiny(finished, tiny(seeds=2))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(InputError, match="not empty and holds no sweep"):
        run_tiny(tmp_path / "mine")
    with pytest.raises(InputError, match="holds no sweep"):
        Store(tmp_path / "nowhere").sweep()


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"sweep": 5}', '{"sweep": {}, "lanes": 0, "version": "0"}'])
def test_a_damaged_record_says_so(tmp_path, text):
    (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(InputError, match=r"sweep.json (is damaged|cannot be read)"):
        Store(tmp_path).sweep()


def test_a_damaged_batch_is_named(finished):
    victim = next(iter((finished / "runs").iterdir()))
    victim.write_bytes(victim.read_bytes()[:100])
    with pytest.raises(InputError, match=f"{victim.name} is damaged; delete it, then `neuralucb resume"):
        read_report(Store(finished))


def test_the_trace_of_a_killed_process_does_not_block_a_folder(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".sweep.json.123.part").touch()
    run_tiny(tmp_path / "out")
    with pytest.raises(InputError, match="could not be written|not empty"):
        run_tiny(tmp_path / "out" / "sweep.json")


def test_a_folder_has_one_owner_even_if_two_come_at_once(tmp_path):
    Store(tmp_path).open_for(tiny(), 20)
    with pytest.raises(InputError, match="begun by another process a moment ago"):
        Store(tmp_path).open_for(tiny(), 5000)


def test_pandas_can_read_the_store(finished):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(finished / "runs")
    assert len(frame) == 9
    assert frame.groupby("algorithm").final_regret.mean().notna().all()


def test_files_of_others_among_the_runs_are_refused(finished):
    other = finished / "runs" / "zzz.parquet"
    shutil.copy(min(other.parent.iterdir()), other)
    with pytest.raises(
        ValueError, match=r"runs/zzz.parquet: not part of this sweep; move it elsewhere, then `neuralucb res"
    ):
        run_tiny(finished)


def test_a_flipped_byte_is_damage_and_not_a_full_disk(finished):
    victim = min((finished / "runs").iterdir())
    content = victim.read_bytes()
    victim.write_bytes(content[:40] + bytes([content[40] ^ 255]) + content[41:])  # in a page: the footer is sound
    with pytest.raises(InputError, match=f"{victim.name} is damaged; delete it, then `neuralucb resume"):
        read_report(Store(finished))


@pytest.mark.skipif(shutil.which("git") is None, reason="no git here")
def test_the_commit_is_that_of_our_own_checkout(tmp_path):
    file = tmp_path / "store.py"
    file.touch()
    identity = ["-c", "user.name=x", "-c", "user.email=x@x"]

    def git(*arguments):
        subprocess.run(["git", "-C", tmp_path, *identity, *arguments], check=True, capture_output=True)

    def commit():
        source_commit.cache_clear()
        return source_commit(file)

    git("init")
    git("commit", "--allow-empty", "-m", "another project")
    assert commit() == ""  # installed below its checkout, and none of its files
    git("add", "store.py")
    git("commit", "-m", "ours")
    assert len(commit()) == 40
    file.write_text("changed")
    assert commit().endswith("-dirty")


@pytest.mark.parametrize("text", ["{", "[]", '{"reason": "none"}'])
def test_a_damaged_note_of_a_failure_is_named(tmp_path, text):
    (tmp_path / FAILURES).mkdir()
    (tmp_path / FAILURES / "x.json").write_text(text)
    with pytest.raises(InputError, match="failures/x.json is damaged; delete it"):
        Store(tmp_path).failures()


def test_a_failure_stored_by_version_0_1_has_no_traceback(tmp_path):
    (tmp_path / FAILURES).mkdir()
    record = {"algorithm": "uniform", "problem": "h1", "runs": 3, "swept": [{}], "reason": "ValueError: no luck"}
    (tmp_path / FAILURES / "x.json").write_text(json.dumps(record))
    (failure,) = Store(tmp_path).failures()
    assert str(failure) == "uniform on h1, 3 runs: ValueError: no luck"
    assert (failure.traceback, failure.last_lines()) == ("", [])
