"""What mkdocstrings is told of docstrings: `Example:` holds a session of Python, and is shown as one."""

import re
from typing import Any

import griffe


class Sessions(griffe.Extension):
    """Google's name of the section is `Examples:`; another one would be read as text."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called by griffe for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^( *)Example:$", r"\1Examples:", obj.docstring.value, flags=re.MULTILINE)
