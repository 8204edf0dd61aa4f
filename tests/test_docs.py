"""The examples in README and docs run as they stand and print what they show; links lead somewhere; commands parse.

A block of Python that prints is followed by a block of text with its output, in which `…` stands for anything. In a
block of `text words` the numbers may be others: those of a long run with a network differ between processors.
"""

import code
import contextlib
import io
import re
import shlex
import sys
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import jax
import pytest
import typer

from neuralucb.algorithms import ALGORITHMS, NETWORKS
from neuralucb.cli.app import app
from neuralucb.logs import FORMATS
from neuralucb.problems import PROBLEMS
from neuralucb.sweeps import prepare, read_sweep, run_sweep
from tests.nightly import in_ci

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "neuralucb"
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
COMPUTE_LONG = ("README.md", "production.md", "first_bandit.md")
"""Pages whose examples compute for longer than they compile."""
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


class Block(NamedTuple):
    language: str
    text: str


def blocks(page):
    found = re.findall(r"^```([\w ]*)\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return [Block(*each) for each in found]


def same_text(printed, shown, *, words=False):
    """Equal words; numbers within one per cent, since another processor rounds otherwise; … is anything."""
    if words:  # a number may be longer or shorter than the one shown, and columns are padded
        printed, shown = (" ".join(text.split()) for text in (printed, shown))
    pattern = "".join(".*" if part == "…" else re.escape(part) for part in re.split("(…)", NUMBER.sub("#", shown)))
    if not re.fullmatch(pattern, NUMBER.sub("#", printed), flags=re.DOTALL):
        return False
    if words or "…" in shown:
        return True
    pairs = zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True)
    return all(abs(float(a) - float(b)) <= 0.01 * abs(float(b)) + 1e-6 for a, b in pairs)


def assert_prints(printed, following, page):
    """What an example printed is what the page shows, line by line."""
    language = getattr(following, "language", "")
    assert language in ("text", "text words"), f"{page.name} does not show the output:\n{printed}"
    lines, shown = printed.rstrip().splitlines(), following.text.rstrip().splitlines()
    assert len(lines) == len(shown), f"{page.name} shows {len(shown)} lines, printed were:\n{printed}"
    for line, wanted in zip(lines, shown, strict=True):
        same = same_text(line.rstrip(), wanted.rstrip(), words="words" in language)
        assert same, f"{page.name} shows {wanted!r}, printed was {line!r}"
    assert not re.search(r"\bnan\b|diverged [1-9]", printed), f"{page.name} shows a run that is not sound:\n{printed}"


@pytest.fixture
def known_names():
    """Examples may register algorithms and more; the other tests must not see them."""
    tables = (ALGORITHMS, NETWORKS, PROBLEMS, FORMATS)
    before = [dict(table) for table in tables]
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):  # as users have it
        yield
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)


def is_played_in_ci(page):
    """`make docs` plays the gallery and all tutorials in any case."""
    return page.name == "first_bandit.md" or (page.parent.name != "tutorials" and page.name != "gallery.md")


@pytest.mark.usefixtures("known_names")
@pytest.mark.parametrize(
    "page", in_ci(PAGES, *filter(is_played_in_ci, PAGES)), ids=lambda page: str(page.relative_to(ROOT))
)
def test_examples_run_and_print_what_is_shown(page, tmp_path, monkeypatch, request):
    if page.name in COMPUTE_LONG:
        request.getfixturevalue("fast_programs")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__example__"}
    found = blocks(page)
    for block, following in zip_longest(found, found[1:]):
        if block.language == "toml":
            (tmp_path / "mine.toml").write_text(block.text)
            job = prepare(read_sweep(tmp_path / "mine.toml"), Path("mine"), device="cpu", workers=1, engine="local")
            assert run_sweep(job) == []
        elif block.language == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                if page.name == "README.md":
                    paste(block.text, monkeypatch)
                else:
                    exec(compile(block.text, str(page), "exec"), names)
            if printed.getvalue().strip():
                assert_prints(printed.getvalue(), following, page)


def paste(text, monkeypatch):
    """Run an example as if it were pasted into a new interpreter, where an empty line ends a block."""
    monkeypatch.setattr(sys, "displayhook", lambda value: None)
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)  # a library's hook would swallow the error
    console, errors = code.InteractiveConsole(), []
    console.write = errors.append
    for line in [*text.splitlines(), ""]:
        console.push(line)
    assert not errors, "".join(errors)


def commands(page):
    for block in blocks(page):
        if block.language == "console":
            for line in block.text.splitlines():
                if line.startswith("$ neuralucb"):
                    yield shlex.split(line[2:], comments=True)[1:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_that_are_shown_exist_with_their_options(page):
    for arguments in commands(page):
        command, rest = typer.main.get_command(app), arguments
        while rest[0] == "--import":
            rest = rest[2:]
        if rest[0] == "--version":
            continue
        while hasattr(command, "commands") and rest:
            command, rest = command.commands[rest[0]], rest[1:]
        with command.make_context("neuralucb", list(rest), resilient_parsing=False):
            pass


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page.read_text()):
        if not target.startswith("http"):
            path = page.parent / target if target else page
            assert path.exists(), target
            if DOCS in page.parents:  # what is outside of this folder is not on the site
                assert path.resolve().is_relative_to(DOCS), target
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


def test_the_comparison_of_output_tells_apart_what_differs():
    assert same_text("mean 437.2 of 4 seeds", "mean 438 of 4 seeds")
    assert same_text("took 3 s on cpu", "took … s on …")
    assert not same_text("mean 450 of 4 seeds", "mean 437 of 4 seeds")
    assert not same_text("mean 437 of 5 runs", "mean 437 of 5 seeds")
    assert same_text("      loss  0.0265", "      loss  0.5", words=True)
    assert not same_text("      lost  0.0265", "      loss  0.0265", words=True)


def test_a_pasted_example_that_fails_is_noticed(monkeypatch):
    for wrong in ("1 / 0", "for _ in range(2):\n    one = 1\n\n    two = 2", "if True:\n    one = 1\ntwo = 2"):
        with pytest.raises(AssertionError, match="Error"):
            paste(wrong, monkeypatch)
