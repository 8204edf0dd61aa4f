"""Tables of words: the same cells in a terminal and as Markdown, markup printed as it is."""

import io

from rich.console import Console
from rich.text import Text

from neuralucb.display.tables import markdown_table, terminal_table

ROWS = [["name", "value"], ["a [red]b[/red]", "1"], ["c", "20"]]


def printed(rows, *, width=80, color=False, **options):
    file = io.StringIO()
    Console(file=file, markup=False, width=width, force_terminal=color).print(terminal_table(rows, **options))
    return file.getvalue()


def test_the_first_columns_are_aligned_to_the_left_and_the_others_to_the_right():
    lines = printed(ROWS, title="both").splitlines()
    assert [line.rstrip() for line in lines] == [
        "both",
        "name            value",
        "a [red]b[/red]      1",
        "c                  20",
    ]
    assert printed(ROWS, title="", left=2).splitlines()[-1].rstrip() == "c               20"


def test_a_text_brings_its_style_to_a_terminal_only():
    rows = [*ROWS, ["d", Text("wrong", style="red")]]
    assert "\x1b[31mwrong" in printed(rows, title="", color=True)
    assert "\x1b" not in printed(rows, title="")


def test_long_words_are_folded_where_the_terminal_is_narrow():
    text = printed([["name", "value"], ["short", "x" * 30]], title="", width=20)
    assert text.count("x") == 30
    assert "short" in text


def test_markdown_has_a_rule_below_its_head_and_ends_with_a_newline():
    assert markdown_table([["a", "b"], ["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
