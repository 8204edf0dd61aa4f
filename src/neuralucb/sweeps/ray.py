"""The Ray engine: the same batches on a cluster, one task per batch. Needs the extra `ray`."""

import logging
import socket
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax

from neuralucb.runtime.child import name_and_message
from neuralucb.runtime.compile_cache import keep_compiled
from neuralucb.runtime.errors import InputError
from neuralucb.runtime.extensions import add_modules, folders, imported
from neuralucb.sweeps.batches import Batch, run_batch
from neuralucb.sweeps.store import Store, as_table
from neuralucb.sweeps.workers import Event, Listener

__all__ = ["disconnected_afterwards", "run_on_cluster"]

ANSWER_SECONDS = 5.0
"""How long a cluster may take to answer."""

RETRIES = 5
"""How often Ray gives a batch to another worker when one is lost."""


def run_on_cluster(batches: Sequence[Batch], store: Store, tell: Listener, *, address: str | None, gpu: bool) -> None:
    """Run every batch as a task. Its rows are sent back and stored here, so that nodes need no common folder."""
    try:
        import ray
    except ImportError:
        raise InputError("engine=ray needs Ray: pip install 'neuralucb[ray]'.") from None
    if not ray.is_initialized():
        try:
            _require_answer(address)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # JAX warns of the fork with which Ray starts its processes
                ray.init(address=address, log_to_driver=False, include_dashboard=False, logging_level=logging.ERROR)
        except ConnectionError as problem:
            raise InputError(f"--address {address} does not answer: {problem}.") from None
    needs: dict[str, Any] = {"num_gpus": 1} if gpu else {"num_cpus": 1}
    task = ray.remote(max_retries=RETRIES, **needs)(_work)
    named = imported(), folders()
    running = {task.remote(batch, gpu, *named): batch for batch in batches}
    while running:
        (ended, *_), _ = ray.wait(list(running), num_returns=1)
        batch = running.pop(ended)
        total = len(batch.runs) * batch.rounds
        try:
            table, regret = ray.get(ended)
        except ray.exceptions.RayError as problem:
            failure = store.note_failure(batch, _reason(problem), str(problem))
            tell(Event(0, batch, total, total, failure=failure))
            continue
        store.write(batch, table)
        tell(Event(0, batch, total, total, regret=regret))


@contextmanager
def disconnected_afterwards() -> Iterator[None]:
    """Leave the cluster at the end, and end a local one, unless this process was connected at the beginning."""
    try:
        import ray
    except ImportError:
        yield  # whoever needs it says so
        return
    connected = ray.is_initialized()
    try:
        yield
    finally:
        if not connected:
            ray.shutdown()


def _require_answer(address: str | None) -> None:
    """Raise ConnectionError if nothing listens there, since Ray would wait for minutes. Names like auto are Ray's."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_SECONDS).close()
    except (OSError, OverflowError) as problem:
        raise ConnectionError(str(problem)) from None


def _reason(problem: Any) -> str:
    """Why a task failed, in one line: the exception of the worker, or what Ray says of a worker that was lost."""
    cause = getattr(problem, "cause", None)
    words = name_and_message(cause if isinstance(cause, BaseException) else problem)
    return [line.strip() for line in words.splitlines() if line.strip()][-1]


def _work(batch: Batch, gpu: bool, modules: Sequence[str], where: Sequence[str]) -> tuple[Any, float]:
    """In a worker of the cluster: a batch as rows, and its mean final regret. The user's modules are imported first."""
    if not gpu:
        jax.config.update("jax_platforms", "cpu")
    keep_compiled()
    sys.path += [folder for folder in where if folder not in sys.path]  # on another machine they may not exist
    add_modules(modules)
    outcome = run_batch(batch)
    return as_table(batch, outcome), float(outcome.final_regret.mean())
