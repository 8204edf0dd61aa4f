"""The examples in README and docs run as they stand, and the files they point to exist."""

import re
from pathlib import Path

import pytest

from neuralucb.algorithms import ALGORITHMS
from neuralucb.sweeps import prepare, read_sweep, run_sweep

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "neuralucb"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.fixture
def known_algorithms():
    """Examples may register algorithms; the other tests must not see them."""
    before = dict(ALGORITHMS)
    yield
    ALGORITHMS.clear()
    ALGORITHMS.update(before)


@pytest.mark.usefixtures("known_algorithms")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__example__"}
    for number, block in enumerate(re.findall(r"```toml\n(.*?)```", page.read_text(), flags=re.DOTALL)):
        (tmp_path / "mine.toml").write_text(block)
        job = prepare(
            read_sweep(tmp_path / "mine.toml"), Path(f"mine{number or ''}"), device="cpu", workers=1, engine="local"
        )
        assert run_sweep(job) == []
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page.read_text()):
        if not target.startswith("http"):
            path = page.parent / target if target else page
            assert path.exists(), target
            assert not anchor or anchor in anchors(path), f"{target}#{anchor}"


def anchors(page):
    """The headings of a page, as links name them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_every_file_of_the_architecture_exists():
    named = re.findall(r"`([\w/]+\.py)`", (ROOT / "docs" / "architecture.md").read_text())
    assert len(named) > 40
    assert [name for name in named if not any((base / name).exists() for base in (ROOT, SOURCE))] == []


def test_every_setting_is_in_the_dictionary():
    words = (ROOT / "docs" / "symbols.md").read_text()
    missing = {
        setting.name for algorithm in ALGORITHMS.values() for setting in algorithm.settings if setting.symbol
    } - set(re.findall(r"`(\w+)`", words))
    assert not missing
