"""The configuration: everything has a default, and what a file sets is checked."""

import multiprocessing
import subprocess
import sys

import pytest

from neuralucb import InputError
from neuralucb.service.arm_sizes import ArmSizes
from neuralucb.service.config import Config, Limits, Tokens, read_config
from neuralucb.service.server import check_address
from neuralucb.service.store import Candidate, Plan, Settings
from neuralucb.service.stores import open_store


def read(tmp_path, text):
    path = tmp_path / "config.toml"
    path.write_text(text)
    return read_config(path)


def test_nothing_need_be_set(tmp_path):
    assert read_config(None) == read(tmp_path, "") == Config()


def test_a_file_sets_what_it_names(tmp_path):
    config = read(
        tmp_path,
        """
        [bandit]
        algorithm = "lin-ucb"
        slots = 32
        interactions = [["context", "arm"]]
        options = { exploration = 0.5 }
        [events]
        default_reward = -1
        wait_seconds = 30
        reward_range = [-1, 1]
        [limits]
        queue = 9
        [tokens]
        admin = ["0123456789abcdef"]
        [store]
        sync = "each"
        arms = 64
        """,
    )
    assert config.plan == Plan("lin-ucb", {"exploration": 0.5}, 32, (("context", "arm"),))
    assert config.settings == Settings(default_reward=-1.0, wait_seconds=30, reward_range=(-1.0, 1.0))
    assert config.limits == Limits(queue=9)
    assert config.tokens == Tokens(admin=("0123456789abcdef",))
    assert (config.sync, config.arms) == ("each", 64)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "cannot be read"),
        ("[nothing]", "sections"),
        ("[token]", r"must have the sections .*, got 'token'\. Did you mean tokens\?"),
        ("[bandit]\nslot = 3", r"\[bandit\]: names must be one of .*, got 'slot'\. Did you mean slots\?"),
        ("[limits]\nqueue = -1", "queue must be a number"),
        ("[events]\nmode = 'fast'", "mode must be one of"),
        ("[events]\nwait_seconds = 'x'", "wait_seconds must be seconds"),
        ("[events]\nreward_range = [1, 0]", "reward_range must be two numbers"),
        ("[tokens]\nadmin = ['short']", "at least 16"),
        ("[store]\nsync = 'never'", "sync must be one of"),
        ("[store]\narms = 0", "arms must be a whole number"),
        ("[store]\narms = 2000", r"arms must be at most \[limits\] arms, 1000"),
        ("store = 3", "must be a section"),
        ("[bandit]\ninteractions = [['context']]", "interactions must be pairs"),
        ("[bandit]\nalgorithm = 5", "algorithm must be a name"),
        ("[bandit]\noptions = 3", "options must be a table"),
        ("[bandit]\nschedule = 3", "schedule must be text"),
        ("[bandit]\nwindow = 'x'", "window must be a whole number"),
        ("[bandit]\nslots = 64.5", "slots must be a whole number"),
        ("[limits]\nseconds = 0", "seconds must be positive"),
        ("[limits]\nconnections = 1.5", "connections must be a whole number"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(tmp_path, text, words):
    with pytest.raises(InputError, match=words):
        read(tmp_path, text)


def test_a_file_that_is_missing_was_not_found(tmp_path):
    with pytest.raises(InputError, match=r"--config .*absent\.toml cannot be read: it was not found\."):
        read_config(tmp_path / "absent.toml")
    with pytest.raises(InputError, match=r"cannot be read: Is a directory\."):
        read_config(tmp_path)


def test_other_addresses_than_loopback_need_tokens():
    for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8"):
        check_address(host, Config())
    for host in ("0.0.0.0", "::", "10.0.0.1", "example.org", ""):
        with pytest.raises(InputError, match="need tokens"):
            check_address(host, Config())
        check_address(host, Config(tokens=Tokens(admin=("0123456789abcdef",))))


def test_an_address_of_another_kind_is_refused_without_its_password():
    with pytest.raises(InputError, match="must be a folder") as told:
        open_store("mysql://user:secret@host/name", Plan())
    assert "secret" not in str(told.value)


UNUSABLE = [
    Plan(slots=2), Plan(interactions=(("weather", "arm"),)), Plan("oracle"), Plan("nope"), Plan("lin-ucb", floor=7),
    Plan("lin-ucb", options={"dim": 3}), Plan("lin-ucb", options={"foo": 3}), Plan("lin-ucb", schedule="often"),
]  # fmt: skip


@pytest.mark.parametrize("plan", UNUSABLE)
def test_a_plan_that_cannot_be_used_leaves_no_store_behind(tmp_path, plan):
    with pytest.raises(InputError, match="must|cannot|not known|not a setting"):
        open_store(str(tmp_path / "store"), plan)
    assert not (tmp_path / "store").exists()


def test_a_store_of_another_size_is_refused_and_what_could_not_be_readied_is_closed(tmp_path, monkeypatch):
    plan, folder = Plan("lin-ucb", slots=8), str(tmp_path / "store")
    with monkeypatch.context() as patch:
        patch.setattr(ArmSizes, "compile", refuse)
        with pytest.raises(MemoryError):
            open_store(folder, plan)
    assert not multiprocessing.active_children()
    with pytest.raises(InputError, match="slots must be 8"):
        open_store(folder, plan._replace(slots=16))


def refuse(*_):
    raise MemoryError


UNOPENED = """
import sys
from types import SimpleNamespace
from neuralucb.runtime.errors import StorageError
from neuralucb.service import server
from neuralucb.service.config import Config

def fail(*_):
    raise StorageError("the disk is gone")

server.Engine = fail
server.open_store = lambda *_, **__: SimpleNamespace(close=lambda: None)
try:
    server.serve(sys.argv[1], Config(), host="127.0.0.1", port=0)
except StorageError as problem:
    print(problem)
"""


@pytest.mark.waits
def test_a_service_whose_engine_cannot_be_opened_says_why(tmp_path):
    """In a process of its own: a server changes signals, logging and the collector of the one it is in."""
    arguments = [sys.executable, "-c", UNOPENED, str(tmp_path)]
    ended = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=True)
    assert ended.stdout == "the disk is gone\n"
    assert "Traceback" not in ended.stderr


def test_candidates_are_read_and_wrong_ones_refused(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text('[candidates.wide]\nalgorithm = "neural-ucb"\noptions = {width = 64}\nfloor = 0.1\n')
    assert dict(read_config(file).candidates) == {"wide": Candidate("neural-ucb", {"width": 64}, 0.1)}
    for text, words in (
        ("[candidates.Wide]\n", "name of a candidate"),
        ("[candidates.wide]\nwidth = 3\n", "must have fields of algorithm"),
        ("[candidates.wide]\nfloor = 3\n", "floor must be from 0 to 1"),
        ("[candidates.wide]\nalgorithm = 3\n", "algorithm must be a name"),
        ("[candidates.wide]\noptions = 3\n", "options must be names"),
        ("[candidates]\nwide = 3\n", "must have fields of"),
        ("candidates = 3\n", "must be sections"),
        ("[store]\nsnapshots = 0\n", "snapshots must be a whole number of at least 1"),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=words):
            read_config(file)
    file.write_text("[store]\nsnapshots = 24\n")
    assert read_config(file).retention == (24, 7)
