"""The paper's figures as sweeps."""

import numpy as np
import pytest

from neuralucb.runtime.errors import InputError
from neuralucb.sweeps.batches import make_batches
from neuralucb.sweeps.cost import estimate
from neuralucb.sweeps.engine import prepare, run_sweep
from neuralucb.sweeps.paper import FIGURES, SCALES, paper_sweep, table1_sizes
from neuralucb.sweeps.spec import Part, Sweep
from tests.sweeps.helpers import numbers, running


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


def test_figure_2_has_the_papers_grid_of_section_7_2_for_all_networks_in_both_readings():
    grids = {(part.algorithm, part.problem): part for part in paper_sweep("figure2", "paper", "race").parts}
    lambdas = [1e-1, 1e-2, 1e-3, 1e-4]
    neural = "neural-ucb", "neural-epsilon-greedy", "bootstrapped-nn", "neural-ucb0", "neural-epsilon-greedy0"
    for name in neural:
        assert grids[name, "magic"].grid["regularization"] == lambdas
        assert (len(grids[name, "magic"].grid.get("step_size", ())) == 8) == (not name.endswith("0"))
    assert grids["lin-ucb", "magic"].grid == {"exploration": [0.01, 0.1, 1, 10]}
    assert {part.schedule for part in grids.values()} == {"100"}
    released = paper_sweep("figure2", "paper", "race", "released")
    assert {part.algorithm for part in released.parts} == set(neural[:3])
    assert {part.preset for part in released.parts} == {"released"}
    assert released.name == "figure2-paper-race-released"


@pytest.mark.parametrize(("figure", "scale"), [("figure3", "smoke"), ("figure1", "huge")])
def test_what_the_paper_does_not_have_is_refused(figure, scale):
    with pytest.raises(InputError, match=r"(figure|scale) must be one of .*, got '(figure3|huge)'"):
        paper_sweep(figure, scale)


def test_a_figure_can_be_played_in_pieces():
    piece = paper_sweep("figure2", "paper", "race", problems=["shuttle", "magic"])
    whole = paper_sweep("figure2", "paper", "race")
    assert piece.name == "figure2-paper-race-shuttle-magic"
    assert all(part in whole.parts for part in piece.parts)
    assert len(piece.parts) == len(whole.parts) // 2


@pytest.mark.parametrize(("problems", "seen"), [(["magic", "h1"], "'h1'"), ([], "none")])
def test_problems_that_are_not_of_the_figure_are_refused(problems, seen):
    with pytest.raises(InputError, match=rf"problems must .*covertype, magic, shuttle, mnist, got {seen}"):
        paper_sweep("figure2", "smoke", problems=problems)


def test_sizes_stand_in_for_data_that_are_not_here_and_cost_as_much(tmp_path, monkeypatch):
    monkeypatch.setenv("NEURALUCB_DATA", str(tmp_path))
    sweep = Sweep("sizes", 20, (0,), (Part("neural-ucb", "shuttle", preset="paper"), Part("lin-ucb", "digits")))
    found = table1_sizes(sweep)
    assert list(found) == ["shuttle"]
    planned = make_batches(sweep, lanes=10, stand_ins=found)
    cost = estimate(planned, workers=1, gpu=False, stand_ins=found)
    made = found["shuttle"].make(input_scaling="standard", intercept=True, drop="none", repeat=False)
    assert (made.dim, made.arms, made.limit, made.shared) == (10, 7, 58_000, True)
    generator = np.random.default_rng(0)
    np.savez(tmp_path / "shuttle.npz", X=generator.normal(size=(58_000, 9)), y=np.arange(58_000) % 7)
    assert table1_sizes(sweep) == {}
    assert estimate(make_batches(sweep, lanes=10), workers=1, gpu=False) == cost


def test_a_job_that_was_only_planned_is_not_run(tmp_path, monkeypatch):
    monkeypatch.setenv("NEURALUCB_DATA", str(tmp_path))
    sweep = Sweep("sizes", 20, (0,), (Part("lin-ucb", "magic"),))
    job = prepare(sweep, tmp_path / "out", device="cpu", workers=1, stand_ins=table1_sizes(sweep))
    with pytest.raises(InputError, match="magic: not found in .*, and only planned .*`neuralucb data fetch magic`"):
        run_sweep(job)
    assert not (tmp_path / "out").exists()


@pytest.mark.waits
@pytest.mark.slow
def test_smoke_ends_in_a_report(tmp_path):
    with running("reproduce", "figure1", "--scale", "smoke", "--out", "smoke", cwd=tmp_path) as process:
        assert process.wait(900) == 0, (tmp_path / "log").read_text()
    page = (tmp_path / "smoke" / "report.html").read_text()
    assert "78 of 78" in page
    assert len(numbers(tmp_path / "smoke")) == 78
    assert {path.name for path in (tmp_path / "smoke" / "figures").glob("regret.*")} == {
        "regret.svg", "regret.pdf", "regret.png",
    }  # fmt: skip
