"""Strict JAX for all tests: no silent promotion of types or ranks. Compiled programs are kept between runs."""

import ctypes
import gc
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

# before JAX is imported, and in the environment, so that child processes keep their programs there too
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(Path(__file__).parent.parent / ".cache" / "programs")
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES"] = "none"  # a GPU's; their path would be part of every key

import jax
import pytest
from _pytest import python

from neuralucb.cli import app


def _most_bytes():
    """Of a worker; without a bound each reached 6 GB at the end of all tests. Forgetting costs seconds, each time."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError, AttributeError):  # not everywhere
        memory = 0
    return max(2_500_000_000, 0.6 * memory / workers)


MOST_BYTES = _most_bytes()


def _share_contexts(programs=100):
    """One context of MLIR for many programs of a thread: JAX makes one for each, a third of compiling a small one.

    After so many programs there is a new one, since a context keeps all types and locations that it has seen.
    """
    make, mine = mlir.make_ir_context, threading.local()

    def shared():
        mine.left = getattr(mine, "left", 0) - 1
        if mine.left < 0:
            mine.context, mine.left = make(), programs
        return mine.context

    mlir.make_ir_context = shared


def _with_options():
    """Let `fast_programs` change options of XLA after it has read its flags."""
    make = compiler.get_compile_options

    def options(*args, **kwargs):
        made = make(*args, **kwargs)
        if _fast.is_set() and (given := made.executable_build_options.debug_options).xla_backend_optimization_level < 1:
            given.xla_backend_optimization_level = 1
        return made

    compiler.get_compile_options = options


_fast = threading.Event()

with suppress(ImportError, AttributeError):  # not JAX's public interface: without it tests take longer, no more
    from jax._src import compiler
    from jax._src.interpreters import mlir

    _share_contexts()
    _with_options()

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# importing tests and tracing make many objects; by default each thousand of them are looked through for garbage
gc.set_threshold(50_000, 20, 20)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """One worker more than cores, since there is nearly always one that waits for a child process or a disk."""
    return 1 + (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def pytest_collection_modifyitems(items):
    """Tests that wait come first, in one worker; of these the browser's last, since CI installs it meanwhile."""
    items.sort(key=lambda item: (item.get_closest_marker("waits") is None, "browser" in item.fixturenames))


def pytest_collection_finish():
    """Modules and collected tests stay to the end: no search for garbage looks at them again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Call a test with room for all frames below it; see `_with_room`."""
    return _with_room(pyfuncitem)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown():
    """Forget compiled programs before they fill the memory; those that are needed again are in the cache on disk."""
    if _resident_bytes() > MOST_BYTES:
        jax.clear_caches()
        gc.collect()
        _return_freed_memory()


@pytest.fixture
def key():
    return jax.random.key(7)


@pytest.fixture
def fast_programs():
    """For tests that compute longer than they compile, unlike most: programs that run twice as fast."""
    _fast.set()
    yield
    _fast.clear()


@pytest.fixture
def wide():
    """64-bit types for tests that trace float64 beliefs themselves."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def as_users_have_it():
    """JAX's usual promotion, which optax relies on; for all threads, unlike JAX's own context managers."""
    usual = {"jax_numpy_dtype_promotion": "standard", "jax_numpy_rank_promotion": "allow"}
    strict = {name: getattr(jax.config, name) for name in usual}
    for name, value in usual.items():
        jax.config.update(name, value)
    yield
    for name, value in strict.items():
        jax.config.update(name, value)


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """Runs a command in this process: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(app, "_leave", sys.exit)  # not out of the tests

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["neuralucb", *map(str, arguments)])
        code = 0
        try:
            app.main()
        except SystemExit as end:
            code = end.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def _with_room(item):
    return python.pytest_pyfunc_call(item)


# Python keeps frames in chunks of 16 KB, and maps and unmaps memory whenever a call crosses into the next one: half of
# the system time of tracing, where calls are deep. A frame that claims 2 MB gets a chunk of 4 MB, and those below it
# take what is left; pages that are not touched cost nothing.
_with_room.__code__ = _with_room.__code__.replace(co_stacksize=2**18)


def _resident_bytes():
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux
        return 0


def _return_freed_memory():
    """Else glibc keeps it, and a process that stays near the bound forgets its programs test after test."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):  # not in musl
        libc.malloc_trim(0)
