"""docs/algorithms.md lists what is registered. `python -m tests.test_algorithms_page` writes its tables anew."""

from pathlib import Path

import pytest

from neuralucb.algorithms import ALGORITHMS, FAMILIES

PAGE = Path(__file__).parent.parent / "docs" / "algorithms.md"
BEGIN, END = "<!-- tables of the registry: begin -->\n", "<!-- tables of the registry: end -->\n"


def row(algorithm):
    title = algorithm.title or algorithm.name
    return f"| `{algorithm.name}` | {title} | {algorithm.summary} | {algorithm.citation} | {algorithm.departs} |\n"


def tables():
    """A table for each family, in their order, with the algorithms by name."""
    text = ""
    for family, title in FAMILIES.items():
        kin = sorted(name for name, one in ALGORITHMS.items() if family and one.family == family)
        if kin:
            text += f"\n### {title[0].upper()}{title[1:]}\n\n| name | in tables | idea | paper | departs from it in |\n"
            text += "| --- | --- | --- | --- | --- |\n" + "".join(row(ALGORITHMS[name]) for name in kin)
    return text + "\n"


def test_the_page_has_the_tables_of_the_registry():
    page = PAGE.read_text()
    assert page.split(BEGIN)[1].split(END)[0] == tables(), "run: python -m tests.test_algorithms_page"


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_has_a_family_a_paper_and_words_that_fit_a_table(name):
    algorithm = ALGORITHMS[name]
    assert algorithm.family in FAMILIES
    assert algorithm.family
    for words in (algorithm.title, algorithm.summary, algorithm.citation, algorithm.departs):
        assert "|" not in words
        assert "\n" not in words
    assert algorithm.summary
    assert algorithm.citation
    assert algorithm.departs


if __name__ == "__main__":
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + tables() + END + rest.split(END)[1])
