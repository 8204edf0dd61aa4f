"""Sweeps: read, planned, run, stored, resumed, judged and shown."""

import html
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

from neuralucb import run
from neuralucb.display.sweep_report import write_report
from neuralucb.sweeps import engine, selection, spec
from neuralucb.sweeps import workers as local
from neuralucb.sweeps.batches import Outcome, make_batches
from neuralucb.sweeps.engine import prepare, run_sweep
from neuralucb.sweeps.paper import FIGURES, SCALES, paper_sweep
from neuralucb.sweeps.selection import band, bootstrap, contests, difference, read_grids
from neuralucb.sweeps.spec import Part, Sweep, read_sweep
from neuralucb.sweeps.store import SCHEMA, Store, as_table

TINY = """
name = "tiny"
rounds = 30
seeds = 3

[[runs]]
algorithms = ["lin-ucb", "uniform"]
problems = ["h1", "h3"]
grid = { exploration = [0.01, 1.0] }
settings = { dim = 4 }
"""


def tiny(seeds=3, rounds=30):
    grid = {"exploration": [0.01, 1.0]}
    parts = [Part(name, "h1", grid if name == "lin-ucb" else {}, {"dim": 4}) for name in ("lin-ucb", "uniform")]
    return Sweep("tiny", rounds, tuple(range(seeds)), tuple(parts))


class Nobody:
    """A console that nobody looks at."""

    is_terminal = False

    def print(self, *_, **__):
        pass


def run_tiny(folder, sweep=None):
    """A sweep in this process: a new one would take seconds to start."""
    job = prepare(sweep or tiny(), folder, device="cpu", workers=1, engine="local")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "run_in_processes", lambda *arguments, workers: local.run_here(*arguments))
        report, _ = run_sweep(job, Nobody(), address=None, command="neuralucb resume here")
    return report


def numbers(folder):
    """Every run of a store, by what it is."""
    table = dataset.dataset(folder / "runs").to_table()
    rows = table.select(["algorithm", "problem", "swept", "seed", "final_regret", "curve", "diverged_at"]).to_pylist()
    keys = [tuple(row[name] for name in ("algorithm", "problem", "swept", "seed")) for row in rows]
    assert len(set(keys)) == len(keys), "a run is there twice"
    return dict(zip(keys, [(row["final_regret"], row["curve"], row["diverged_at"]) for row in rows], strict=True))


def test_a_sweep_is_read_from_toml(tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY)
    sweep = read_sweep(tmp_path / "tiny.toml")
    assert (sweep.name, sweep.rounds, sweep.seeds) == ("tiny", 30, (0, 1, 2))
    assert [(part.algorithm, part.problem) for part in sweep.parts] == [
        ("lin-ucb", "h1"), ("uniform", "h1"), ("lin-ucb", "h3"), ("uniform", "h3"),
    ]  # fmt: skip
    assert sweep.parts[0].grid == {"exploration": [0.01, 1.0]}
    assert sweep.parts[1].grid == {}  # uniform has no exploration
    assert Sweep.from_json(json.loads(json.dumps(sweep.as_json()))).as_json() == sweep.as_json()


@pytest.mark.parametrize("sweep", [tiny(), paper_sweep("figure1", "smoke"), Sweep("odd", 9, (3, 1), tiny().parts)])
def test_a_sweep_written_as_toml_is_read_as_itself(tmp_path, sweep):
    (tmp_path / "a.toml").write_text(spec.as_toml(sweep))
    assert read_sweep(tmp_path / "a.toml").as_json() == sweep.as_json()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rounds = 30", "rounds = ", "is not TOML: .*line 3"),
        ("rounds = 30", "rounds = 0", "line 3: rounds must be a whole number"),
        ("rounds = 30", "round = 30", "line 3: round is not known here; known: name"),
        ("seeds = 3", "seeds = [1, 1]", "line 4: seeds must be a number of runs, or different seeds"),
        (
            '"lin-ucb", "uniform"',
            '"linucb"',
            "line 7: algorithms is wrong: .*'linucb' is not known; known: neural",
        ),
        ('"h1", "h3"', '"h9"', "line 8: problems is wrong: problem 'h9' is not known"),
        ("{ exploration = [0.01, 1.0] }", "{ explore = [1] }", "line 9: explore is not a setting of these; they have"),
        ("{ exploration = [0.01, 1.0] }", "{ exploration = 1 }", "exploration must be a list of values, got 1"),
        ("{ dim = 4 }", "{ dim = 4, exploration = 1 }", "exploration stands in both grid and settings"),
        ("{ dim = 4 }", '"much"', "line 10: settings must be a table"),
        ("[[runs]]", "[run]", "line 6: run is not known here"),
        ("[0.01, 1.0]", "[0.01, -1.0]", r"line 9: exploration is wrong: exploration \(α\) must be a number"),
        ("[0.01, 1.0]", "[1, 1.0]", "line 9: exploration has a value twice"),
        ("exploration = [0.01, 1.0]", "dim = [4, 8]", "line 9: dim stands in both|dim is the problem's"),
        ("rounds = 30", 'schedule = "nope"', "line .*: schedule is wrong"),
        ("rounds = 30", 'preset = "nope"', "line .*: preset is wrong: preset 'nope' is not known"),
        ("rounds = 30", "rounds = 3000000000", "line 3: rounds must be below"),
        ("seeds = 3", "seeds = [true, false]", "line 4: seeds must be"),
        ('"lin-ucb", "uniform"', '"lin-ucb", "lin-ucb"', "line 7: algorithms has lin-ucb on h1 a second time"),
        ('name = "tiny"', 'name = "../x"', "line 2: name must be a word or two"),
        ("rounds = 30", "# round = 5\nround = 30", "line 4: round is not known"),
        ("[0.01, 1.0]", '[0.1, "0.10"]', "line 9: exploration has a value twice"),
        ("[0.01, 1.0]", '["1e-1", 0.1]', "line 9: exploration has a value twice"),
        ("rounds = 30", 'schedule = ""', "line 3: schedule is wrong"),
        ("rounds = 30", "schedule = 0", "line 3: schedule is wrong: .*[^.][.]$"),
        ('name = "tiny"', f'name = "{"a" * 300}"', "line 2: name must be a word or two, at most 100 letters"),
        ("seeds = 3", "seeds = 3\nseeds = 4", "is not TOML: .*line 5, .*in: seeds = 4[.]$"),
        ("{ dim = 4 }", '{ noise = "#", dim = 0 }', "line 10: (dim|noise) is wrong"),
    ],
)
def test_a_bad_toml_names_line_and_key(tmp_path, old, new, message):
    (tmp_path / "bad.toml").write_text(TINY.replace(old, new))
    with pytest.raises(ValueError, match=message):
        read_sweep(tmp_path / "bad.toml")


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


def test_batches_hold_every_run_once_and_are_named_by_what_they_hold():
    whole, cut = make_batches(tiny(), lanes=100), make_batches(tiny(), lanes=4)
    for batches in (whole, cut):
        runs = [(b.algorithm, json.dumps(r.swept), r.seed) for b in batches for r in b.runs]
        assert len(runs) == len(set(runs)) == 9
    assert max(len(batch.runs) for batch in cut) <= 4
    assert len({batch.name for batch in cut}) == len(cut)
    assert [batch.name for batch in cut] == [batch.name for batch in make_batches(tiny(), lanes=4)]
    assert {b.name for b in make_batches(tiny(rounds=31), lanes=4)}.isdisjoint(b.name for b in cut)
    assert [batch.algorithm for batch in cut[:2]] == ["lin-ucb", "uniform"]  # one of each shape first


@pytest.mark.parametrize(
    ("runs", "lanes"), [(2, 20), (10, 20), (20, 10), (30, 15), (53, 20), (60, 15), (120, 20), (648, 18)]
)
def test_batches_are_even_in_number_where_they_can_be_so_that_two_processes_end_together(runs, lanes):
    sweep = Sweep("even", 30, tuple(range(runs)), (Part("uniform", "h1"),))
    assert engine._cpu_lanes(sweep) == lanes


def test_a_sweep_gives_what_run_gives_and_its_report(tmp_path):
    page = run_tiny(tmp_path / "out").read_text()
    alone = run("lin-ucb", "h1", rounds=30, seeds=3, dim=4, exploration=0.01)
    stored = numbers(tmp_path / "out")
    for seed in range(3):
        final, curve, _ = stored["lin-ucb", "h1", '{"exploration": 0.01}', seed]
        np.testing.assert_allclose(final, alone.final_regret[seed], rtol=1e-5)
        np.testing.assert_allclose(curve, alone.regret[seed], rtol=1e-5)
    assert "9 of 9" in page
    assert html.escape(spec.as_toml(tiny())) in page  # how to run it anew
    assert page.count("<svg") == 2
    assert not re.search(r"(src|href)=[\"']?http", page)  # nothing is fetched from elsewhere
    assert {path.suffix for path in (tmp_path / "out" / "figures").iterdir()} == {".svg", ".pdf", ".png"}
    assert "lin-ucb" in (tmp_path / "out" / "best.md").read_text()


def test_only_what_is_missing_is_run_again(tmp_path):
    run_tiny(tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "runs").iterdir()}
    gone = next(iter(before))
    expected = numbers(tmp_path / "out")
    gone.unlink()
    job = prepare(tiny(), tmp_path / "out", device="cpu", workers=1, engine="local")
    assert len(job.left) == 1
    assert "of which" in job.in_words()
    run_tiny(tmp_path / "out")
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "runs").iterdir()}
    assert set(after) == set(before)
    assert all(after[path] == before[path] for path in before if path != gone)
    assert numbers(tmp_path / "out") == expected


def test_a_folder_of_another_sweep_is_refused(tmp_path):
    run_tiny(tmp_path / "out")
    with pytest.raises(ValueError, match=r"holds another sweep, 'tiny'; .*neuralucb resume"):
        run_tiny(tmp_path / "out", tiny(seeds=2))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(ValueError, match="not empty and holds no sweep"):
        run_tiny(tmp_path / "mine")
    with pytest.raises(ValueError, match="holds no sweep"):
        Store(tmp_path / "nowhere").sweep()


def test_a_batch_that_fails_is_noted_and_the_others_go_on(tmp_path, monkeypatch):
    from neuralucb.sweeps import workers as local

    sound = local.run_batch

    def fails(batch, progress=None):
        if batch.algorithm == "uniform":
            raise ValueError("no luck today")
        return sound(batch, progress)

    monkeypatch.setattr(local, "run_batch", fails)
    page = run_tiny(tmp_path / "out").read_text()
    assert "no luck today" in page
    assert "3 runs are missing" in page
    monkeypatch.setattr(local, "run_batch", sound)
    page = run_tiny(tmp_path / "out").read_text()
    assert "no luck" not in page
    assert "Incomplete" not in page


def test_compiling_ahead_changes_no_number_and_what_fails_is_noted(tmp_path, monkeypatch):
    """As on a GPU: while one batch runs, the programs of the next are compiled."""
    from neuralucb.sweeps import batches
    from neuralucb.sweeps import workers as local

    sweep, sound = tiny(), batches._compile
    run_tiny(tmp_path / "now", sweep)

    def compile_one(batch):
        if batch.algorithm == "uniform":
            raise ValueError("no room today")
        return sound(batch)

    monkeypatch.setattr(batches, "_compile", compile_one)
    store = Store(tmp_path / "ahead")
    planned = make_batches(sweep, lanes=3)
    store.open_for(sweep, 3, {})
    local.run_here(planned, store, lambda event: None, ahead=2)
    assert len(store.missing(planned)) == 1
    assert "no room today" in next((tmp_path / "ahead" / "failures").iterdir()).read_text()
    monkeypatch.setattr(batches, "_compile", sound)
    local.run_here(planned, store, lambda event: None, ahead=2)
    ahead, now = (numbers(tmp_path / folder) for folder in ("ahead", "now"))
    assert {run: regret for run, (regret, *_) in ahead.items()} == pytest.approx(
        {run: regret for run, (regret, *_) in now.items()}
    )


def test_progress_counts_what_batches_cost_not_their_rounds():
    from neuralucb.display.progress import Watcher
    from neuralucb.sweeps.cost import estimate
    from neuralucb.sweeps.workers import Event

    first, then = make_batches(tiny(), lanes=20)
    watcher = Watcher([first, then], {first.name: 1.0, then.name: 99.0})
    watcher.hear(Event(0, first, 90, 90, regret=1.0))
    assert (watcher.done, watcher.whole, watcher.finished) == (1.0, 100.0, 6)
    watcher.hear(Event(0, then, 45, 90))
    assert watcher.done == 50.5
    cost = estimate([first, then], workers=2, gpu=False)
    assert cost.seconds == sum(cost.of_batch.values()) / 2


def test_a_process_that_dies_costs_its_batch_and_no_other(tmp_path):
    """A batch that kills its process every time is given up; the one beside it is not."""
    code = """
import os
from neuralucb.sweeps import local
sound = local.run_batch
def run_batch(batch, progress=None):
    if batch.algorithm == "uniform":
        os._exit(9)
    return sound(batch, progress)
local.run_batch = run_batch
"""
    (tmp_path / "sitecustomize.py").write_text(code)
    (tmp_path / "tiny.toml").write_text(TINY)
    ended = command("sweep", "tiny.toml", "--workers", "2", "--out", "out", cwd=tmp_path, path=tmp_path).wait(300)
    text = (tmp_path / "log").read_text()
    assert ended == 1, text
    assert text.count("its process died 2 times") == 2
    assert {key[0] for key in numbers(tmp_path / "out")} == {"lin-ucb"}
    assert len(numbers(tmp_path / "out")) == 12
    succeeds("resume", "out", cwd=tmp_path)
    assert len(numbers(tmp_path / "out")) == 18


def test_an_alias_is_stored_and_found_under_one_name(tmp_path):
    (tmp_path / "a.toml").write_text(TINY.replace('"h1", "h3"', '"statlog"').replace("settings = { dim = 4 }", ""))
    assert {part.problem for part in _read_without_data(tmp_path / "a.toml")} == {"shuttle"}


def _read_without_data(path):
    reader = spec._Reader(path, path.read_text())
    reader._check = lambda *_: None  # the data need not be there
    return reader.sweep(tomllib.loads(path.read_text())).parts


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"sweep": 5}', '{"sweep": {}, "lanes": 0, "version": "0"}'])
def test_a_damaged_record_says_so(tmp_path, text):
    (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(ValueError, match=r"sweep.json (is damaged|cannot be read)"):
        Store(tmp_path).sweep()


def test_a_damaged_batch_is_named(tmp_path):
    run_tiny(tmp_path / "out")
    victim = next(iter((tmp_path / "out" / "runs").iterdir()))
    victim.write_bytes(victim.read_bytes()[:100])
    with pytest.raises(ValueError, match=f"{victim.name} is damaged; delete it, then `neuralucb resume"):
        run_tiny(tmp_path / "out")


def test_the_trace_of_a_killed_process_does_not_block_a_folder(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".sweep.json.123.part").touch()
    run_tiny(tmp_path / "out")
    with pytest.raises(ValueError, match="could not be written|not empty"):
        run_tiny(tmp_path / "out" / "sweep.json")


def test_a_folder_has_one_owner_even_if_two_come_at_once(tmp_path):
    Store(tmp_path).open_for(tiny(), 20)
    with pytest.raises(ValueError, match="begun by another process a moment ago"):
        Store(tmp_path).open_for(tiny(), 5000)


def test_a_full_disk_stops_with_what_is_safe(tmp_path, monkeypatch):
    def full(self, batch, table):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Store, "write", full)
    with pytest.raises(ValueError, match=r"No space left on device.*0 of 2 batches are safe.*neuralucb resume"):
        run_tiny(tmp_path / "out")


def test_long_curves_are_thinned_to_a_thousand_points_and_say_so(tmp_path):
    run_tiny(tmp_path / "out", tiny(seeds=1, rounds=2345))
    table = Store(tmp_path / "out").read(["curve", "curve_every", "final_regret"])
    assert table["curve_every"][0].as_py() == 3
    assert len(table["curve"][0].as_py()) == 782
    np.testing.assert_allclose(table["curve"][0].as_py()[-1], table["final_regret"][0].as_py(), rtol=1e-6)


def test_pandas_can_read_the_store(tmp_path):
    run_tiny(tmp_path / "out")
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(tmp_path / "out" / "runs")
    assert len(frame) == 9
    assert frame.groupby("algorithm").final_regret.mean().notna().all()


def stored(folder, grids, seeds):
    """A store with these final regrets: {algorithm: {setting: [regret of each seed]}}."""
    parts = [
        Part(name, "h1", {"exploration": list(settings)} if name == "lin-ucb" else {})
        for name, settings in grids.items()
    ]
    sweep = Sweep("made up", 10, tuple(range(seeds)), tuple(parts))
    store = Store(folder)
    store.open_for(sweep, 1000)
    for batch in make_batches(sweep, lanes=1000):
        regret = np.array([grids[batch.algorithm][run.swept.get("exploration")][run.seed] for run in batch.runs])
        curves = np.outer(regret, np.linspace(0.1, 1, 10)).astype(np.float32)
        outcome = Outcome(regret.astype(float), curves, 1, np.zeros(len(regret), np.int32), 1.0, 0.5, "cpu")
        store.write(batch, as_table(batch, outcome))
    return store


def test_the_best_setting_both_ways_and_paired_differences(tmp_path):
    # on all seeds 1.0 wins, on seeds 0 and 2 it is 0.1
    grids = {"lin-ucb": {0.1: [1, 9, 1, 9], 1.0: [4, 2, 4, 2]}, "uniform": {None: [14, 12, 14, 12]}}
    ours, theirs = contests(read_grids(stored(tmp_path, grids, 4)))
    assert ours.grid.settings[ours.best] == {"exploration": 1.0}
    assert ours.estimate.mean == 3
    assert ours.worst == 4
    assert ours.grid.settings[ours.chosen] == {"exploration": 0.1}
    assert ours.honest.mean == 9
    paired = difference(theirs, ours)
    assert (paired.mean, paired.low, paired.high) == (10, 10, 10)  # paired: the seeds' own spread is gone


def test_intervals_are_the_same_however_much_is_drawn_at_a_time(monkeypatch):
    curves = np.random.default_rng(1).random((7, 5)).cumsum(axis=1)
    at_once = bootstrap(curves[:, -1]), band(curves)
    monkeypatch.setattr(selection, "DRAWN", 70)
    assert bootstrap(curves[:, -1]) == at_once[0]
    np.testing.assert_allclose(band(curves), at_once[1], rtol=1e-12)
    draws = np.random.default_rng(0).integers(0, 7, (selection.BAND_RESAMPLES, 7))
    np.testing.assert_allclose(band(curves), np.quantile(curves[draws].mean(axis=1), [0.025, 0.975], axis=0))


def test_the_bootstrap_covers_the_mean_about_as_often_as_it_says():
    generator = np.random.default_rng(3)
    hits = [low <= 5 <= high for _, low, high in (bootstrap(generator.normal(5, 2, 30)) for _ in range(300))]
    assert 0.88 < np.mean(hits) < 0.98
    narrow = [low <= 6 <= high for _, low, high in (bootstrap(generator.normal(5, 2, 30)) for _ in range(300))]
    assert np.mean(narrow) < 0.6  # a wrong mean must not be covered as often


@pytest.mark.parametrize(
    ("cheap", "kept_above", "missing", "there"),
    [([1, 1], 1, 0, "2 of 4"), ([0, 1], 0, 1, "3 of 4")],  # the cheaper setting is lost, or one seed of it
)
def test_a_setting_with_missing_runs_cannot_win(tmp_path, cheap, kept_above, missing, there):
    store = stored(tmp_path, {"lin-ucb": {0.1: cheap, 1.0: [4, 2]}}, 2)
    table = store.read(SCHEMA.names)
    (path,) = (tmp_path / "runs").iterdir()
    parquet.write_table(table.filter(pa.compute.greater(table["final_regret"], kept_above)), path)
    (contest,) = contests(read_grids(store))
    assert contest.missing == missing  # a setting without any run is not known here, but counted on the page
    assert contest.grid.settings[contest.best] == {"exploration": 1.0}
    assert there in write_report(store, command="again").read_text()


# a run of its own, killed


def command(*arguments, cwd, path=""):
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "XDG_CACHE_HOME": str(cwd / "cache"), "PYTHONPATH": str(path)}
    with (cwd / "log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "neuralucb.cli", *arguments], cwd=cwd, env=environment, stdout=log, stderr=log
        )


def succeeds(*arguments, cwd):
    assert command(*arguments, cwd=cwd).wait(timeout=900) == 0, (cwd / "log").read_text()


def kill_and_resume(tmp_path, arguments, times, longest):
    """Kill a command at random moments, then let it end; an uninterrupted one must give the same numbers."""
    succeeds(*arguments, "--out", "whole", cwd=tmp_path)
    generator = np.random.default_rng(8)
    for _ in range(times):
        victim = command(*arguments, "--out", "killed", cwd=tmp_path)
        time.sleep(generator.uniform(1, longest))
        victim.send_signal(signal.SIGKILL)
        victim.wait()
    two = [command(*arguments, "--out", "killed", cwd=tmp_path) for _ in range(2)]  # side by side on one folder
    assert [each.wait(timeout=900) for each in two] == [0, 0], (tmp_path / "log").read_text()
    assert {path.name for path in (tmp_path / "killed" / "runs").glob("*.parquet")} == {
        path.name for path in (tmp_path / "whole" / "runs").glob("*.parquet")
    }
    assert numbers(tmp_path / "killed") == numbers(tmp_path / "whole")
    assert (tmp_path / "killed" / "report.html").exists()


def test_what_is_killed_goes_on_and_ends_as_if_nothing_had_happened(tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY.replace("rounds = 30", "rounds = 3000"))
    kill_and_resume(tmp_path, ["sweep", "tiny.toml", "--workers", "2"], times=4, longest=10)


def test_smoke_ends_in_a_report(tmp_path):
    succeeds("reproduce", "figure1", "--scale", "smoke", "--out", "smoke", cwd=tmp_path)
    page = (tmp_path / "smoke" / "report.html").read_text()
    assert "78 of 78" in page
    assert len(numbers(tmp_path / "smoke")) == 78
    assert {path.name for path in (tmp_path / "smoke" / "figures").glob("regret.*")} == {
        "regret.svg", "regret.pdf", "regret.png",
    }  # fmt: skip


@pytest.mark.slow
def test_smoke_survives_twenty_kills(tmp_path):
    kill_and_resume(tmp_path, ["reproduce", "figure1", "--scale", "smoke"], times=20, longest=60)


# the page, in a real browser


def chromium():
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    return found or pytest.skip("no Chromium here to look at the page with")


@pytest.mark.parametrize(("width", "height"), [(1400, 1600), (500, 1600)], ids=["wide", "phone"])
def test_the_page_looks_right_in_a_browser(tmp_path, width, height):
    browser = chromium()
    page = run_tiny(tmp_path / "out")
    measured = tmp_path / "measured.html"
    script = "<script>document.title = document.documentElement.scrollWidth + ' ' + innerWidth</script></body>"
    measured.write_text(page.read_text().replace("</body>", script))
    options = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},{height}"]
    options.append(f"--user-data-dir={tmp_path / 'profile'}")
    dom = subprocess.run(
        [*options, "--dump-dom", measured.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    inside, window = (int(part) for part in dom.stdout.split("<title>")[1].split("</title>")[0].split())
    assert inside <= window, "the page is wider than the window"
    picture = tmp_path / "page.png"
    subprocess.run([*options, f"--screenshot={picture}", page.as_uri()], capture_output=True, timeout=120, check=True)
    from matplotlib.image import imread

    pixels = imread(picture)
    assert pixels.shape[:2] == (height, width)
    assert (pixels[..., :3].min(axis=2) < 0.5).mean() > 0.005  # something is drawn
    colours = np.unique(pixels[..., :3].reshape(-1, 3).round(1), axis=0)
    assert len(colours) > 20


# a cluster, one of whose nodes is lost


@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_a_lost_node_costs_its_batch_and_no_more(tmp_path):
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    from neuralucb.sweeps.ray import run_on_cluster
    from neuralucb.sweeps.workers import run_here

    sweep = tiny(rounds=20_000)
    batches = make_batches(sweep, lanes=2)
    here = Store(tmp_path / "local")
    here.open_for(sweep, 2)
    run_here(batches, here, lambda event: None)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        second = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        ray.init(address=cluster.address, log_to_driver=False)
        store = Store(tmp_path / "cluster")
        store.open_for(sweep, 2)
        assert len(batches) >= 4
        ended = []

        def tell(event):
            if event.regret is not None:
                ended.append(event)
                if len(ended) == 1:
                    cluster.remove_node(second, allow_graceful=False)

        run_on_cluster(batches, store, tell, address=None, gpu=False)
        assert len(ended) == len(batches)
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert numbers(tmp_path / "cluster") == numbers(tmp_path / "local")
