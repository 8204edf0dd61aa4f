"""Progress: one kind for users, the kinds of version 0.1 still read, and a line on stderr."""

import io

import pytest

from neuralucb import InputError
from neuralucb.runtime import progress
from neuralucb.runtime.progress import as_meter, stderr_meter


@pytest.mark.parametrize("kind", [1, 2, 3, "any"])
def test_a_function_is_told_stage_done_and_total_and_older_kinds_still_work(kind):
    seen = []
    functions = {
        1: lambda stage: lambda done, total: seen.append((stage, done, total)),
        2: lambda done, total: seen.append(("a", done, total)),
        3: lambda stage, done, total: seen.append((stage, done, total)),
        "any": lambda *told: seen.append(told),
    }
    as_meter(functions[kind])("a")(1, 2)
    assert seen == [("a", 1, 2)]


def test_nothing_is_told_where_nothing_is_wanted():
    assert as_meter(None) is as_meter(False) is None
    with pytest.raises(InputError, match="progress must be True, or a function of the stage.* got 'yes'"):
        as_meter("yes")


def test_true_writes_to_stderr_and_not_to_stdout(capsys):
    as_meter(True)("lin-ucb on h1")(3, 3)
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "lin-ucb on h1: 100%, 0 s\n"


def test_a_log_gets_few_lines_and_a_terminal_one_that_is_redrawn(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for file, lines in ((io.StringIO(), 1), (Terminal(), 1)):
        report = stderr_meter(file)("a")
        for done in range(1, 101):
            report(done, 100)
        assert file.getvalue().count("\n") == lines
    monkeypatch.setattr(progress, "REDRAW_SECONDS", 0)
    file = Terminal()
    report = stderr_meter(file)("a")
    for done in (50, 100):
        report(done, 100)
    assert file.getvalue().count("\r") == 2
    assert file.getvalue().count("\n") == 1
