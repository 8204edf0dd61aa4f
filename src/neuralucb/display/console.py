"""Where commands print: text as it is, since a path or a reason may look like markup or an emoji's name."""

from rich.console import Console

__all__ = ["err", "out"]

out = Console(markup=False, emoji=False, highlight=False)


err = Console(stderr=True, markup=False, emoji=False, highlight=False)
