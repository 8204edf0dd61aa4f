"""Draws the figures of gallery.md again, by its own code: `make figures`."""

import os
import re
import shutil
import tempfile
from pathlib import Path

import matplotlib as mpl

PAGE = Path(__file__).parent / "gallery.md"


def main() -> None:
    """Run every block of Python in an empty folder, and keep the pictures."""
    mpl.use("agg")
    names: dict[str, object] = {"__name__": "__gallery__"}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE):
            exec(compile(block, str(PAGE), "exec"), names)
        for picture in sorted(Path(folder).glob("*.png")):
            shutil.copy(picture, PAGE.parent / "figures")
            print(picture.name)


if __name__ == "__main__":
    main()
