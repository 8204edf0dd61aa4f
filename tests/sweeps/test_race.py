"""Races: what is played to its end is what the full grid plays, whatever happens on the way."""

import shutil

import numpy as np
import pytest

from neuralucb.display.sweep_report import write_report
from neuralucb.experiments import run_grid
from neuralucb.runtime.errors import InputError
from neuralucb.schedules import learning_rounds, read_schedule
from neuralucb.sweeps import workers
from neuralucb.sweeps.batches import Outcome
from neuralucb.sweeps.callbacks import FinishedRun
from neuralucb.sweeps.engine import prepare, run_sweep
from neuralucb.sweeps.race import Stage, few_sizes, races_of, stages_of
from neuralucb.sweeps.report import read_best, read_report
from neuralucb.sweeps.spec import Part, Sweep
from neuralucb.sweeps.store import Store, as_table
from tests.sweeps.helpers import numbers, run_tiny

GRID = {"exploration": [0.01, 1.0, 1000.0], "step_size": [0.01, 1000.0]}


def sweep(search="race", **more):
    """Of six settings, two are useless, two of the others diverge, and one is far too slow."""
    part = Part("neural-ucb", "h1", GRID, {"dim": 4, "width": 4, "steps": 20}, schedule="10")
    return Sweep("raced", 80, tuple(range(4)), (part, Part("uniform", "h1", {}, {"dim": 4})), search=search, **more)


@pytest.fixture(scope="module")
def raced(tmp_path_factory):
    return run_tiny(tmp_path_factory.mktemp("raced") / "out", sweep())


def test_stages_are_an_eighth_a_quarter_half_and_all_rounds_and_then_all_seeds():
    racing = (0, 2, 4, 6, 8)
    stages = stages_of(1000, range(10), "50")
    assert stages == (*(Stage(stop, racing) for stop in (150, 250, 500, 1000)), Stage(1000, tuple(range(10))))
    assert stages_of(1000, range(3), "1000") == (Stage(1000, (0, 1, 2)),)  # it learns only once: nothing in between


def test_lanes_of_a_gpu_are_filled_up_to_few_sizes_by_at_most_an_eighth():
    sizes = [few_sizes(lanes) for lanes in range(1, 1000)]
    assert all(lanes <= size <= 1.125 * lanes for lanes, size in enumerate(sizes, start=1))
    assert len(set(sizes)) <= 64


def test_a_race_plays_what_the_full_grid_plays_to_the_last_bit(raced, tmp_path):
    grid = run_tiny(tmp_path / "grid", sweep("grid"))
    played, all_runs = numbers(raced.folder), numbers(grid.folder)
    assert 0 < len(played) < len(all_runs)
    assert {key: all_runs[key] for key in played} == played
    assert read_best(raced)[0].setting == read_best(grid)[0].setting


def test_a_race_with_one_batch_missing_has_workers_for_those_that_follow(raced, tmp_path):
    folder = shutil.copytree(raced.folder, tmp_path / "out", ignore=shutil.ignore_patterns("runs"))
    next((folder / "stages").glob("*.parquet")).unlink()
    (folder / "runs").mkdir()
    assert prepare(sweep(), folder, device="cpu", workers=3).workers == 3


def test_a_race_that_ended_and_lost_a_stage_is_played_again_from_there(raced, tmp_path):
    folder = shutil.copytree(raced.folder, tmp_path / "out")
    next((folder / "stages").glob("*.parquet")).unlink()
    job = prepare(sweep(), folder, device="cpu")
    assert run_sweep(job) == []
    assert numbers(folder) == numbers(raced.folder)


def test_files_of_others_among_the_runs_of_a_race_are_named_at_its_end(raced, tmp_path):
    folder = shutil.copytree(raced.folder, tmp_path / "out")
    next((folder / "stages").glob("*.parquet")).unlink()
    shutil.copy(next((folder / "runs").glob("*.parquet")), folder / "runs" / "theirs.parquet")
    with pytest.raises(InputError, match=r"theirs\.parquet: not part of this sweep"):
        run_sweep(prepare(sweep(), folder, device="cpu"))


def test_to_plan_a_race_that_has_begun_writes_nothing(raced, tmp_path):
    folder = shutil.copytree(raced.folder, tmp_path / "mine")
    shutil.rmtree(folder / "race")
    job = prepare(sweep(), folder, device="cpu")
    assert not (folder / "race").exists()
    run_sweep(job)
    assert job.store.read_races() == raced.read_races()


def test_the_store_says_what_was_dropped_when_and_why(raced):
    race, alone = raced.read_races()
    assert race["over"]
    assert len(race["left"]) + len(race["dropped"]) == race["settings"] == 6
    reasons = {each["why"] for each in race["dropped"]}
    assert "diverged" in reasons
    for each in race["dropped"]:
        assert each["setting"] not in race["left"]
        assert each["round"] in [stage["rounds"] for stage in race["stages"]]
        if each["why"] == "worse":
            assert each["difference"] > 0
            assert each["p"] < sweep().race_error
        else:
            assert all(0 < at <= each["round"] for at in each["diverged"].values())
    assert alone["left"] == [{}]
    assert not list((raced.folder / "stages").glob("*.safetensors"))  # no state is left behind


def test_the_report_shows_the_race(raced):
    page = write_report(raced).read_text()
    assert "Races on h1" in page
    assert "of the rounds of the full grid" in page
    assert "Incomplete" not in page
    assert (raced.folder / "figures" / "race-h1.png").exists()
    assert read_report(raced).best[0].settings == 6


def test_a_race_that_is_killed_and_loses_states_and_a_stage_ends_as_if_nothing_had_happened(
    raced, tmp_path, monkeypatch
):
    """Killed after every second batch; the first stage that it stored, and some states, are lost too."""
    store, ended, lost = Store(tmp_path / "out"), False, set()
    while not ended:
        monkeypatch.setattr(workers, "run_batch", _stop_after(2))
        try:
            run_tiny(store.folder, sweep())
            ended = True
        except KeyboardInterrupt:
            pass
        monkeypatch.undo()
        for kind in ("*.safetensors", "*.parquet"):
            for path in [each for each in (store.folder / "stages").glob(kind) if kind not in lost][:1]:
                lost.add(kind)
                path.unlink()
    assert len(lost) == 2
    assert numbers(store.folder) == numbers(raced.folder)
    assert [each["dropped"] for each in store.read_races()] == [each["dropped"] for each in raced.read_races()]


def test_a_setting_that_beat_others_and_then_diverged_gives_them_back(tmp_path):
    """The best by far diverges at the end: what it had beaten is played on, and the next best wins."""
    race = race_of({0.1: 10.0, 1.0: 20.0, 10.0: 30.0}, diverges={0.1: 90}, folder=tmp_path / "out")
    assert race.over
    assert [record["why"] for record in race.dropped.values()] == ["diverged", "worse"]
    assert Store(tmp_path / "out").read_races()[0]["left"] == [{"exploration": 1.0}]


def test_a_race_in_which_all_settings_diverge_chooses_nothing(tmp_path):
    race = race_of({0.1: 10.0, 1.0: 20.0}, diverges={0.1: 5, 1.0: 60}, folder=tmp_path / "out")
    assert race.over
    assert not race.left
    assert read_best(Store(tmp_path / "out")) == []


def test_folders_of_another_search_are_refused(raced, finished):
    with pytest.raises(InputError, match="holds the results of search = race, got search = grid"):
        prepare(sweep("grid"), raced.folder, device="cpu")
    part = Part("lin-ucb", "h1", {"exploration": [0.01, 1.0]}, {"dim": 4})
    with pytest.raises(InputError, match="holds the results of search = grid, got search = race; name another folder"):
        prepare(Sweep("tiny", 30, (0, 1, 2), (part,), search="race"), finished, device="cpu")


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"search": "gird"}, "search must be one of grid, race, got 'gird'"),
        ({"search": "race", "race_error": 5}, "race_error must be a probability between 0 and 1, got 5"),
        ({"search": "race", "seeds": (0,)}, "seeds must be at least 2 in a race.*got 1"),
        ({"search": "race"}, "needs a grid of at least two settings"),
    ],
)
def test_what_cannot_be_raced_is_refused(wrong, match):
    with pytest.raises(InputError, match=match):
        Sweep(**{"name": "wrong", "rounds": 10, "seeds": (0, 1), "parts": (Part("uniform", "h1"),), **wrong})


def test_a_race_on_a_cluster_is_refused(tmp_path):
    with pytest.raises(InputError, match="engine must be local for search = race.*got ray"):
        prepare(sweep(), tmp_path / "out", device="cpu", engine="ray")


def test_the_winner_is_the_full_grids_at_a_third_of_its_cost():
    """On curves made up: of twelve settings, two are nearly equal; the others are behind by a tenth and more."""
    generator = np.random.default_rng(0)
    level = np.asarray([100, 102, 110, 120, *range(130, 210, 10)], float)
    slow = np.linspace(0.5, 1.0, 200)[None, None]  # regret grows more and more slowly
    world = generator.normal(1, 0.1, size=(1, 60, 1))
    pace = level[:, None, None] * world + 4 * generator.normal(size=(12, 60, 1))
    curves = (pace * np.cumsum(slow[..., ::-1], axis=-1) / slow.sum()).astype(np.float32)
    assert_races_find_the_winner(curves, np.zeros((12, 60), int), "10", races=20, wins=19, generator=generator)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "problem", "grid", "settings"),
    [
        ("kernel-ucb", "h1", {"bandwidth": [0.1, 1.0, 10.0], "exploration": [0.01, 0.1, 1.0, 10.0]}, {"budget": 100}),
        ("neural-ucb", "h1", {"exploration": [0.01, 0.1, 1.0, 10.0], "step_size": [0.001, 0.01, 0.1],
                              "regularization": [0.1, 10.0]}, {"steps": 100}),
        ("neural-epsilon-greedy", "h1", {"epsilon": [0.001, 0.01, 0.1, 0.2], "step_size": [0.001, 0.01, 0.1],
                                         "regularization": [0.1, 10.0]}, {"steps": 100}),
    ],
)  # fmt: skip
def test_the_winner_is_the_full_grids_in_95_of_100_races(algorithm, problem, grid, settings):
    fixed = {name: [value] for name, value in {"dim": 8, **settings}.items()}
    results = run_grid(algorithm, problem, grid | fixed, rounds=400, seeds=40, schedule="20")
    curves = np.stack([result.regret for result in results]).astype(np.float32)
    diverged = np.stack([result.diverged_at for result in results])
    assert_races_find_the_winner(curves, diverged, "20", races=100, wins=95, generator=np.random.default_rng(0))


def assert_races_find_the_winner(curves, diverged, schedule, *, races, wins, generator):
    """Races between settings with these curves, each on ten of the seeds; trained as the schedule says."""
    settings, seeds, rounds = curves.shape
    found, share, steps = 0, 0.0, 0.0
    trained = np.isin(np.arange(1, rounds + 1), learning_rounds(read_schedule(schedule), rounds=rounds)).cumsum()
    for _ in range(races):
        chosen = generator.permutation(seeds)[:10]
        store = Played(curves[:, chosen], diverged[:, chosen])
        part = Part("lin-ucb", "h1", {"exploration": list(range(1, settings + 1))}, {"dim": 4}, schedule=schedule)
        (race,) = races_of(Sweep("known", rounds, tuple(range(10)), (part,), search="race"), lanes=1000, gpu=False)
        while missing := race.advance(store):
            for batch in missing:
                store.play(batch)
        race.save(store)
        sound = ~(diverged[:, chosen] > 0).any(axis=1)
        means = np.where(sound, curves[:, chosen, -1].mean(axis=1), np.inf)
        found += store.record["left"][0]["exploration"] - 1 == means.argmin()
        share += (store.last / rounds).mean() / races
        steps += (np.where(store.last > 0, trained[store.last - 1], 0) / trained[-1]).mean() / races
    assert found >= wins
    assert share <= 1 / 3
    assert steps <= 1 / 3


class Played:
    """Stands for a store: runs as far as they were played, read from curves that are known."""

    def __init__(self, curves, diverged):
        self.curves, self.diverged, self.done = curves, diverged, set()
        self.last = np.zeros(curves.shape[:2], int)
        """the round up to which each run was played"""

    def play(self, batch):
        self.done.add(batch.name)
        for run in batch.runs:
            self.last[int(run.swept["exploration"]) - 1, run.seed] = batch.until or batch.rounds

    def missing(self, batches):
        return [batch for batch in batches if batch.name not in self.done]

    def runs_of(self, batch):
        last = batch.until or batch.rounds
        return [self._run(run, last) for run in batch.runs]

    def _run(self, run, last):
        row = int(run.swept["exploration"]) - 1
        at = int(self.diverged[row, run.seed])
        curve = self.curves[row, run.seed, :last]
        return FinishedRun(
            "lin-ucb", "h1", run.swept, run.settings, run.seed, np.arange(1, last + 1), curve, at * (at <= last), 0.0
        )

    def write_race(self, name, record):
        self.record = record

    def forget_kept(self, names):
        pass


def race_of(regret, *, diverges, folder, rounds=100, seeds=10):
    """A race to its end between settings with these regrets, of which some diverge at these rounds. Nothing is run."""
    part = Part("lin-ucb", "h1", {"exploration": list(regret)}, {"dim": 4}, schedule="10")
    made = Sweep("made up", rounds, tuple(range(seeds)), (part,), search="race")
    store = Store(folder)
    store.open_for(made, 8)
    (race,) = races_of(made, lanes=8, gpu=False)
    generator = np.random.default_rng(0)
    while missing := race.advance(store):
        for batch in missing:
            store.write(batch, as_table(batch, _outcome(batch, regret, diverges, generator)))
    race.save(store)
    return race


def _outcome(batch, regret, diverges, generator):
    last = batch.until or batch.rounds
    share = np.arange(1, last + 1) / batch.rounds
    final = np.asarray([regret[run.swept["exploration"]] for run in batch.runs]) + generator.normal(
        size=len(batch.runs)
    )
    at = np.asarray([diverges.get(run.swept["exploration"], 0) for run in batch.runs])
    curves = np.outer(final, share).astype(np.float32)
    return Outcome(curves[:, -1].astype(float), curves, 1, np.where(at <= last, at, 0), 1.0, 0.0, "cpu")


def _stop_after(count):
    """A `run_batch` that is interrupted after so many batches."""
    sound, left = workers.run_batch, count

    def stopped(batch, progress=None, kept=None):
        nonlocal left
        if left == 0:
            raise KeyboardInterrupt
        left -= 1
        return sound(batch, progress, kept)

    return stopped
