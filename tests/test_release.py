"""The pieces of a release agree: version, citation, changelog, bounds, navigation. Nothing is built."""

import ast
import re
import tomllib
from pathlib import Path

import neuralucb

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_version_citation_and_changelog_agree():
    newest, *_ = re.findall(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), flags=re.MULTILINE)[1]
    assert newest == cited == neuralucb.__version__


def test_every_version_of_the_changelog_says_what_moved_numbers():
    parts = re.split(r"^## (?=\d)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
    assert all("Numerics" in part for part in parts)


def test_claimed_pythons_are_those_of_the_support_page():
    claimed = [each.rsplit(" ", 1)[1] for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)]
    assert PROJECT["requires-python"] == f">={claimed[0]}"
    assert f"Python {claimed[0]} to {claimed[-1]}" in (ROOT / "docs" / "support.md").read_text()


def test_every_dependency_has_a_lowest_version_that_can_be_tried():
    extras = PROJECT["optional-dependencies"]
    wanted = PROJECT["dependencies"] + extras["experiments"] + extras["serve"]
    assert [each for each in wanted if ">=" not in each] == []


def test_every_page_is_in_the_navigation_of_the_site():
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text()))
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    homes = next(
        ast.literal_eval(node.value)
        for node in ast.parse((ROOT / "src" / "neuralucb" / "__init__.py").read_text()).body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_HOMES"
    )
    rooms = {f"reference/{room.replace('.', '_')}.md" for room in {*homes, *neuralucb._ROOMS}}
    assert listed == pages | rooms
