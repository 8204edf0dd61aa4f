"""Ctrl-C that is not lost: Python ignores it where it arrives in a destructor, or beside the garbage collector."""

import signal
import sys
import threading

__all__ = ["keep_ctrl_c"]

RETRY_SECONDS = 0.05
"""By then whatever ignored it has ended."""


def keep_ctrl_c() -> None:
    """From now on send a Ctrl-C again that was ignored where no exception can be raised.

    JAX collects garbage in a callback of Python's collector. That is often the first Python code after a long
    computation, so that a Ctrl-C during it was raised there, printed as "Exception ignored", and the command went on.
    """
    if not hasattr(signal, "pthread_kill"):
        return
    report, main = sys.unraisablehook, threading.main_thread().ident

    def retry(ignored: "sys.UnraisableHookArgs") -> None:
        if not issubclass(ignored.exc_type, KeyboardInterrupt) or main is None:
            report(ignored)
            return
        again = threading.Timer(RETRY_SECONDS, signal.pthread_kill, (main, signal.SIGINT))
        again.daemon = True
        again.start()

    sys.unraisablehook = retry
