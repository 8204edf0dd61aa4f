"""Data sets by name: where they are, how they are fetched, and that they are those of Table 1."""

import zlib
from http.client import IncompleteRead
from pathlib import Path

import numpy as np
import pytest

from neuralucb import InputError, run
from neuralucb.problems.datasets import SETS, data_folder, data_path, fetch, find_set, load


def test_a_bundled_set_needs_no_download():
    result = run("lin-ucb", "wine", rounds=150, seeds=2, exploration=0.1)
    assert result.final_regret.max() < 60  # chance would lose 100 of 150


@pytest.mark.parametrize("ask", [find_set, fetch, data_path])
def test_a_bundled_set_has_nothing_to_fetch(ask):
    with pytest.raises(InputError, match="digits comes with scikit-learn: there is nothing to fetch"):
        ask("digits")


def test_a_missing_set_says_what_to_put_where(monkeypatch, tmp_path):
    monkeypatch.setenv("NEURALUCB_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"neuralucb data fetch magic.*magic.npz"):
        load("magic")
    with pytest.raises(InputError, match="known: covertype, magic, shuttle, mnist"):
        fetch("irises")


@pytest.mark.parametrize(
    "problem", [EOFError("cut off"), IncompleteRead(b""), zlib.error("bad"), OSError("no route"), KeyError("url")]
)
def test_a_download_that_breaks_leaves_nothing(monkeypatch, tmp_path, problem):
    import sklearn.datasets

    def breaks(**_):
        raise problem

    monkeypatch.setenv("NEURALUCB_DATA", str(tmp_path))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", breaks)
    with pytest.raises(InputError, match="magic could not be downloaded"):
        fetch("magic")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_under_the_users_own_is_not_one_named_after_the_sign(monkeypatch, tmp_path):
    """Only a shell turns ~ into the home folder, and not within quotes."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NEURALUCB_DATA", "~/sets")
    assert data_path("statlog") == tmp_path / "sets" / "shuttle.npz"


def test_a_folder_that_cannot_be_written_is_found_out_before_the_download(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NEURALUCB_DATA", str(tmp_path / "file"))
    with pytest.raises(InputError, match="cannot be written .*NEURALUCB_DATA"):
        fetch("magic")


def test_no_network_leaves_nothing_behind(monkeypatch, tmp_path):
    import sklearn.datasets

    def unreachable(**_):
        raise OSError("no route")

    monkeypatch.setenv("NEURALUCB_DATA", str(tmp_path))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", unreachable)
    with pytest.raises(InputError, match=r"could not be downloaded \(no route\); put .*magic.npz"):
        fetch("magic")
    assert list(tmp_path.iterdir()) == []


def test_what_was_downloaded_is_checked_and_kept_whole(monkeypatch, tmp_path):
    import sklearn.datasets

    rows = SETS["magic"].rows
    monkeypatch.setenv("NEURALUCB_DATA", str(tmp_path))
    good = np.zeros((rows, 10)), np.array(["g", "h"])[np.arange(rows) % 2]
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **_: good)
    assert fetch("magic") == tmp_path / "magic.npz"
    assert load("magic").rows().shape == (rows, 10)
    assert (tmp_path / "magic.sha256").exists()
    (tmp_path / "magic.npz").unlink()
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **_: (good[0][:9], good[1][:9]))
    with pytest.raises(InputError, match="magic as downloaded has 9 rows"):
        fetch("magic")


def test_a_download_shows_how_far_it_is(monkeypatch, tmp_path):
    import time

    import sklearn.datasets

    def slow(*, data_home, **_):
        Path(data_home, "part").write_bytes(bytes(1000))
        time.sleep(0.5)
        raise OSError("line went dead")

    monkeypatch.setenv("NEURALUCB_DATA", str(tmp_path))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", slow)
    seen = []
    with pytest.raises(InputError, match="line went dead"):
        fetch("magic", seen.append)
    assert seen[-1] == 1000
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", SETS)
def test_the_papers_sets_have_the_counts_of_table_1(name):
    if not (data_folder() / f"{name}.npz").exists():
        pytest.skip(f"{name} is not in {data_folder()}")
    table = load(name)
    rows, labels = table.rows(), table.taken["y"]
    assert rows.shape == (SETS[name].rows, SETS[name].features)
    assert len(np.unique(labels)) == SETS[name].classes
