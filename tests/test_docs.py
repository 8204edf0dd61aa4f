"""The examples in README and docs run as they stand, and the files they point to exist."""

import re
from pathlib import Path

import pytest

from neuralucb.algorithms import ALGORITHMS

ROOT = Path(__file__).parent.parent
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
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_every_setting_is_in_the_dictionary():
    words = (ROOT / "docs" / "symbols.md").read_text()
    missing = {
        setting.name for algorithm in ALGORITHMS.values() for setting in algorithm.settings if setting.symbol
    } - set(re.findall(r"`(\w+)`", words))
    assert not missing
