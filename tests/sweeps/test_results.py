"""Sweeps from Python: one call, and what it returns."""

import numpy as np
import pytest

from neuralucb.runtime.errors import InputError
from neuralucb.sweeps import Part, Sweep, engine, sweep, workers
from neuralucb.sweeps.workers import run_here
from tests.processes import run_python
from tests.sweeps.helpers import TINY, numbers, tiny

SPEC = {
    "name": "tiny",
    "rounds": 30,
    "seeds": range(3),
    "runs": [
        {
            "algorithms": ("lin-ucb", "uniform"),
            "problems": "h1",
            "grid": {"exploration": np.array([0.01, 1.0])},
            "settings": {"dim": np.int64(4)},
        }
    ],
}


@pytest.fixture
def here(monkeypatch):
    """Sweeps run in this process, since a new one takes seconds to start."""
    monkeypatch.setattr(
        engine, "run_in_processes", lambda *arguments, workers, follow: run_here(*arguments, follow=follow)
    )


@pytest.mark.usefixtures("here")
def test_a_dictionary_a_record_and_a_file_are_one_sweep(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = []
    result = sweep(SPEC, workers=1, progress=lambda *words: told.append(words))
    assert (str(result.folder), result.stored, result.failures) == ("tiny", 9, ())
    assert repr(result) == "SweepResult('tiny': 9 of 9 runs in 'tiny')"
    assert told[-1] == ("tiny", 9, 9)
    before = numbers(result.folder)
    assert sweep(tiny(), out="tiny").sweep == result.sweep  # refused if they were two; nothing is missing
    (tmp_path / "tiny.toml").write_text(TINY.replace('problems = ["h1", "h3"]', 'problems = ["h1"]'))
    assert sweep("tiny.toml").sweep.runs == 9
    assert sweep(tmp_path / "tiny.toml", out=tmp_path / "tiny").stored == 9
    assert numbers(result.folder) == before


@pytest.mark.usefixtures("here")
def test_a_result_gives_the_best_settings_both_ways_a_frame_its_runs_and_a_report(finished, capsys):
    result = sweep(SPEC, out=finished)
    linear, uniform = result.best()
    assert (linear.algorithm, uniform.algorithm) == ("lin-ucb", "uniform")
    assert linear.setting in ({"exploration": 0.01}, {"exploration": 1.0})
    assert linear.held_out_setting in ({"exploration": 0.01}, {"exploration": 1.0})
    assert (uniform.setting, uniform.held_out_setting) == ({}, {})
    frame = result.to_frame()
    assert list(frame.columns[:4]) == ["algorithm", "problem", "exploration", "seed"]
    assert frame.algorithm.tolist() == ["lin-ucb"] * 6 + ["uniform"] * 3
    assert frame.exploration.tolist()[:6] == [0.01] * 3 + [1.0] * 3
    assert frame.exploration[6:].isna().all()
    assert frame.seed.tolist() == [0, 1, 2] * 3
    chosen = frame[(frame.algorithm == "lin-ucb") & (frame.exploration == linear.setting["exploration"])]
    assert chosen.final_regret.mean() == pytest.approx(linear.regret.mean)
    by_name = {run.name: run for run in result.runs()}
    assert len(by_name) == 9
    run = by_name["lin-ucb-h1-exploration=0.01-seed2"]
    assert run.regret[-1] == pytest.approx(frame.final_regret[2])
    assert (run.settings["dim"], run.rounds.tolist()) == (4, list(range(1, 31)))
    assert result.report() == finished / "report.html"
    assert "9 of 9" in result.report().read_text()
    assert capsys.readouterr() == ("", "")  # not a word


@pytest.mark.usefixtures("here")
def test_settings_of_several_kinds_are_columns_of_a_frame(tmp_path):
    grid = {"steps": ["t", 5], "start": ["initial", "warm"]}
    parts = (Part("neural-ucb", "h1", grid, {"dim": 3, "width": 4}), Part("uniform", "h1", {}, {"dim": 3}))
    frame = sweep(Sweep("kinds", 4, (5,), parts), out=tmp_path / "out", workers=1).to_frame()
    assert frame.steps.tolist()[:4] == [5, 5, "t", "t"]
    assert frame.start.tolist()[:4] == ["initial", "warm"] * 2
    assert frame.seed.tolist() == [5] * 5


@pytest.mark.usefixtures("here")
def test_what_failed_is_in_the_result_and_the_same_call_tries_again(tmp_path, monkeypatch):
    sound = workers.run_batch

    def fails(batch, progress=None, kept=None):
        if batch.algorithm == "uniform":
            raise ValueError("no luck today")
        return sound(batch, progress, kept)

    with monkeypatch.context() as patch:
        patch.setattr(workers, "run_batch", fails)
        result = sweep(SPEC, out=tmp_path / "out", workers=1)
    assert [failure.reason for failure in result.failures] == ["ValueError: no luck today"]
    assert repr(result).splitlines()[1] == "  failed: uniform on h1, 3 runs: ValueError: no luck today)"
    assert (result.stored, len(result.to_frame())) == (6, 6)
    assert sweep(SPEC, out=tmp_path / "out", workers=1).stored == 9


@pytest.mark.parametrize(
    ("spec", "given", "message"),
    [
        (5, {}, "spec must be the path of a TOML file, a dictionary or a Sweep, got 5"),
        ("nowhere.toml", {}, "nowhere.toml cannot be read"),
        ({}, {}, r"spec: runs must be at least one \[\[runs\]\] table"),
        (SPEC | {"round": 5}, {}, "spec: round is not known here; known: .*rounds"),
        (SPEC | {"rounds": 0}, {}, "spec: rounds must be an integer of at least 1, got 0"),
        (
            {"runs": [{"algorithms": ["lin"], "problems": ["h1"]}]},
            {},
            r"spec: runs\[0\].algorithms is wrong: algorithm 'lin' is not known",
        ),
        (
            {"runs": [{"algorithms": ["lin-ucb"], "problems": ["h1"], "grid": {"exploration": -1}}]},
            {},
            r"spec: runs\[0\].exploration must be a list of values, got -1",
        ),
        (Sweep("none", 10, (), (Part("uniform", "h1"),)), {}, r"spec: seeds must be the number of seeds"),
        (SPEC, {"engine": "slurm"}, "engine must be one of local, ray, got 'slurm'"),
        (SPEC, {"device": "tpu"}, "device must be one of auto, cpu, gpu, got 'tpu'"),
        (SPEC, {"workers": 0}, "workers must be a whole number of at least 1, got 0"),
        (SPEC, {"address": "head:6379"}, "address goes with engine='ray', got 'head:6379'"),
        (SPEC, {"progress": 3}, "progress must be True, or a function of .*, got 3"),
        (SPEC, {"callbacks": "tensorboard"}, "callbacks must be a list, got 'tensorboard'"),
        (SPEC, {"callbacks": [dict]}, "callbacks must be objects, got the class dict; call it first"),
        (
            SPEC,
            {"callbacks": [print]},
            "callbacks must have the methods start, run, end, got <built-in function print>",
        ),
    ],
)
def test_what_cannot_be_swept_is_refused(tmp_path, monkeypatch, spec, given, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        sweep(spec, **given)


SCRIPT = """
import pathlib, sys
from neuralucb.algorithms import ALGORITHMS
from neuralucb.sweeps import sweep
pathlib.Path("ran").open("a").write("x")
print("above")
if {own}:
    ALGORITHMS["mine"] = ALGORITHMS["lin-ucb"]._replace(name="mine")
runs = [{{"algorithms": [{own} and "mine" or "lin-ucb", "uniform"], "problems": ["h1"], "settings": {{"dim": 4}}}}]
result = sweep({{"rounds": 20, "seeds": 2, "runs": runs}}, out="out", device="cpu", workers=2)
print("below", result)
"""


@pytest.mark.waits
@pytest.mark.parametrize(("own", "times"), [(False, 1), (True, 2)], ids=["named", "registered by the script"])
def test_a_script_needs_no_guard_and_workers_run_it_only_for_what_it_registers(tmp_path, own, times):
    (tmp_path / "script.py").write_text(SCRIPT.format(own=own))
    ended = run_python("script.py", cwd=tmp_path)
    assert ended.stdout == "above\nbelow SweepResult('sweep': 4 of 4 runs in 'out')\n", ended.stderr
    assert (ended.returncode, ended.stderr) == (0, "")
    assert len((tmp_path / "ran").read_text()) == times  # in one of the two workers, which got the batch of mine


@pytest.mark.waits
def test_a_script_that_fails_in_a_worker_says_so(tmp_path):
    wrong = SCRIPT.format(own=True).replace('print("above")', 'assert __name__ == "__main__", "only here"')
    (tmp_path / "script.py").write_text(wrong)
    ended = run_python("script.py", cwd=tmp_path)
    assert "2 of 4 runs" in ended.stdout, ended.stderr
    assert "script.py was run in a worker process, for the names that it registers, and failed there: " in ended.stdout
    assert "AssertionError: only here" in ended.stdout


@pytest.mark.waits
def test_a_prompt_or_a_notebook_can_run_a_sweep(tmp_path):
    """Neither has a file that a worker could run: as with `python -c`."""
    ended = run_python("-c", SCRIPT.format(own=True), cwd=tmp_path)
    assert "2 of 4 runs" in ended.stdout, ended.stderr
    assert (
        "failed: mine on h1, 2 runs: neuralucb.runtime.errors.InputError: algorithm 'mine' is not known" in ended.stdout
    )


def test_the_names_can_be_imported_without_pyarrow():
    code = """
import sys
from neuralucb.sweeps import MLflow, TensorBoard, WandB, FinishedRun, Callback, SweepResult, sweep
assert not {'pyarrow', 'pandas', 'jax', 'rich', 'matplotlib', 'wandb', 'mlflow', 'tensorboardX'} & set(sys.modules)
sys.modules['pyarrow'] = None
try:
    sweep({})
except ValueError as problem:
    print(problem)
"""
    ended = run_python("-c", code)
    assert ended.stdout == (
        "sweep needs pyarrow, which is not installed; pip install 'neuralucb[experiments]' brings it.\n"
    ), ended.stderr
