"""What mkdocs is told of the pages: equations as MathML, a page of reference per room, and links out of the folder."""

import ast
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "neuralucb"
MARK = "<!-- every exported name -->"
FEW = 4
"""The most columns that a narrow screen can show side by side."""
EQUATION = re.compile(r"^```math\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


def exported() -> dict[str, list[str]]:
    """The names of each room; read, not imported, so that the site is built without JAX."""
    top, rooms = (_assigned(SOURCE / "__init__.py", name) for name in ("_HOMES", "_ROOMS"))
    found = {home: list(names) for home, names in top.items()}
    for room in rooms:
        names = found.setdefault(room, [])
        others = {name for home in found if home != room for name in found[home]} if room == "online" else set()
        names += [name for name in _assigned(SOURCE / room / "__init__.py", "__all__") if name not in {*names, *others}]
    return dict(sorted(found.items()))


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Called by mkdocs once: a page for each room."""
    for room, names in exported().items():
        lines = [f"# neuralucb.{room}", _summary(room), *(f"::: neuralucb.{room}.{name}" for name in names)]
        files.append(File.generated(config, _page(room), content="\n\n".join(lines)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by mkdocs for each page."""
    if page.file.src_uri == "reference.md":
        markdown = markdown.replace(MARK, "\n".join(_table()))
    markdown = markdown.replace("```text words\n", "```text\n")  # the second word is for the tests
    return EQUATION.sub(lambda found: _equation(found[1]), markdown)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Called by mkdocs with each page as HTML: tables and figures scroll by themselves where the screen is narrow."""
    if "<p>```" in html:
        raise PluginError(f"{page.file.src_uri} has a block that is shown as text; its first line is not understood.")
    html = re.sub(r"<table>.*?</table>", _scrolling, html, flags=re.DOTALL)
    return html.replace("<p><img ", '<p class="figure"><img loading="lazy" ')


def _assigned(path: Path, name: str) -> Any:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return ast.literal_eval(node.value)
    raise ValueError(f"{path} has no {name}")


def _summary(room: str) -> str:
    path = SOURCE / room.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.get_docstring(ast.parse(file.read_text())) or ""


def _page(room: str) -> str:
    return f"reference/{room.replace('.', '_')}.md"


def _table() -> list[str]:
    lines = ["| room | names |", "| --- | --- |"]
    for room, names in exported().items():
        links = [f"[{name}]({_page(room)}#neuralucb.{room}.{name})" for name in names]
        lines.append(f"| [{room}]({_page(room)}) | {', '.join(links)} |")
    return lines


def _scrolling(table: re.Match[str]) -> str:
    """A table in a box that scrolls; one of many columns is not squeezed into the screen."""
    columns = table[0].partition("</tr>")[0].count("<th")
    return f'<div class="wide{" many" if columns > FEW else ""}">{table[0]}</div>'


def _equation(latex: str) -> str:
    """One equation per line of the block."""
    parts = [convert(line, display="block") for line in latex.strip().splitlines()]
    return '<div class="equation">' + "".join(parts) + "</div>"
