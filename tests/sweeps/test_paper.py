"""The paper's figures as sweeps."""

import pytest

from neuralucb.runtime.errors import InputError
from neuralucb.sweeps.batches import make_batches
from neuralucb.sweeps.paper import FIGURES, SCALES, paper_sweep

from .helpers import numbers, running


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("scale", SCALES)
def test_the_papers_figures_can_be_planned(figure, scale):
    sweep = paper_sweep(figure, scale)
    assert {part.problem for part in sweep.parts} == set(FIGURES[figure])
    if figure == "figure1":
        batches = make_batches(sweep, lanes=10**6)
        runs = {(batch.algorithm, batch.problem): len(batch.runs) for batch in batches}
        assert len(runs) == len(batches) == 27
        if scale == "paper":
            assert sweep.rounds == 10_000
            assert runs["neural-ucb", "h1"] == 4 * 3 * 3 * 10
            assert runs["neural-ucb0", "h2"] == 3 * 3 * 3 * 4 * 10


@pytest.mark.parametrize(("figure", "scale"), [("figure3", "smoke"), ("figure1", "huge")])
def test_what_the_paper_does_not_have_is_refused(figure, scale):
    with pytest.raises(InputError, match=r"(figure|scale) must be one of .*, got '(figure3|huge)'"):
        paper_sweep(figure, scale)


def test_smoke_ends_in_a_report(tmp_path):
    with running("reproduce", "figure1", "--scale", "smoke", "--out", "smoke", cwd=tmp_path) as process:
        assert process.wait(900) == 0, (tmp_path / "log").read_text()
    page = (tmp_path / "smoke" / "report.html").read_text()
    assert "78 of 78" in page
    assert len(numbers(tmp_path / "smoke")) == 78
    assert {path.name for path in (tmp_path / "smoke" / "figures").glob("regret.*")} == {
        "regret.svg", "regret.pdf", "regret.png",
    }  # fmt: skip
