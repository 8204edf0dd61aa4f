"""Where commands print. Text is printed as it is: a path or a message may look like markup or an emoji's name."""

from rich.console import Console

__all__ = ["err", "out"]

out: Console = Console(markup=False, emoji=False, highlight=False)

err: Console = Console(stderr=True, markup=False, emoji=False, highlight=False)
