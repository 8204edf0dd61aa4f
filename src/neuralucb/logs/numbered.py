"""Actions of dsjson that are only numbered: where arms have no features, {"arm":{"3":1}} says which arm it is."""

from itertools import chain
from typing import Any

from neuralucb.logs.columns import MOST_ARMS

__all__ = ["ARM", "numbers_alike", "numbers_of"]

ARM = "arm"
"""The namespace in which an action has the number of its arm."""


def numbers_of(actions: list[dict[str, Any]]) -> list[int] | None:
    """The arms, if each action is only numbered; None if one is not. Keys that begin with _ say nothing, as in VW."""
    texts = []
    for action in actions:
        inner = action.get(ARM)
        if type(inner) is not dict or len(inner) != 1 or "_text" in action:
            return None
        ((text, value),) = inner.items()
        if value != 1 or not (text.isascii() and text.isdecimal()):
            return None
        if any(key != ARM and key[0:1] != "_" for key in action):
            return None
        texts.append(text)
    for text in texts:
        if len(text) > len(str(MOST_ARMS)) or int(text) >= MOST_ARMS:
            raise ValueError(f"arm {text:.20} is not in 0 to {MOST_ARMS - 1}; number arms from 0")
    return list(map(int, texts))


def numbers_alike(actions: list[dict[str, Any]]) -> list[int] | None:
    """The same for many actions at once, if there is nothing else in any of them."""
    inner = [action[ARM] for action in actions]
    texts = list(chain.from_iterable(inner))
    joined = "".join(texts)
    if (
        len(texts) != len(actions)
        or set(map(len, actions)) != {1}
        or set(map(len, inner)) != {1}
        or set(chain.from_iterable(map(dict.values, inner))) != {1}
        or not (joined.isascii() and joined.isdecimal())
        or max(map(len, texts)) > len(str(MOST_ARMS))
    ):
        return None
    numbers = list(map(int, texts))
    return numbers if max(numbers) < MOST_ARMS else None
