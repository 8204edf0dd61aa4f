"""Ctrl-C ends what runs, wherever it arrives."""

from tests.processes import run_python

ARRIVES = """
import gc, signal, time
from neuralucb.runtime.interrupts import keep_ctrl_c

signal.signal(signal.SIGINT, signal.default_int_handler)
keep_ctrl_c()
waiting = {where!r}

def collected(*_):
    global waiting
    if waiting == "collector":
        waiting = ""
        signal.raise_signal(signal.SIGINT)

class Ends:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

gc.callbacks.append(collected)
try:
    Ends() if waiting == "destructor" else gc.collect()
    time.sleep(60)
    print("went on")
except KeyboardInterrupt:
    print("stopped")
"""


def test_ctrl_c_in_a_destructor_or_beside_the_collector_is_not_lost():
    for where in ("destructor", "collector"):
        ended = run_python("-c", ARRIVES.format(where=where))
        assert (ended.stdout.strip(), ended.stderr) == ("stopped", "")
