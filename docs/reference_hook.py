"""Fills `reference.md` with every name that `neuralucb` exports, read from its table, so that none can be forgotten."""

import ast
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent.parent / "src" / "neuralucb" / "__init__.py"
MARK = "<!-- every exported name -->"


def exported() -> dict[str, tuple[str, ...]]:
    """The names of each room; read, not imported, so that the site is built without JAX."""
    for node in ast.parse(SOURCE.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_HOMES":
            return ast.literal_eval(node.value)
    raise ValueError(f"{SOURCE} has no table _HOMES")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by mkdocs for each page."""
    if page.file.src_uri != "reference.md":
        return markdown
    lines = []
    for home, names in exported().items():
        lines += [f"## neuralucb.{home}", *(f"::: neuralucb.{home}.{name}" for name in names)]
    return markdown.replace(MARK, "\n\n".join(lines))
