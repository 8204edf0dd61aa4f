"""Child processes that never outlive their test."""

import os
import signal
import subprocess
from contextlib import contextmanager, suppress


@contextmanager
def started(args, **kwargs):
    """A process in a session of its own; whatever happens, it and all its children are killed at the end."""
    with subprocess.Popen(args, start_new_session=True, **kwargs) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
