"""Vowpal Wabbit's dsjson, written: labels first, since VW ignores those that come after the context."""

from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np

from neuralucb.logs.chunk import Chunk, take
from neuralucb.logs.dsjson_read import ARM
from neuralucb.runtime.decimals import decimal
from neuralucb.runtime.errors import InputError

__all__ = ["write_dsjson"]

PLACE = "\0"
"""Where numbers go in a template: JSON never contains this character, since strings escape it."""


def write_dsjson(path: Path, chunks: Iterable[Chunk]) -> int:
    """Write the decisions; returns how many. A deterministic one is refused, since dsjson cannot express it."""
    written = 0
    with path.open("wb") as file:
        for chunk in chunks:
            _refuse_deterministic(chunk)
            _refuse_weights(chunk)
            lines = np.empty(len(chunk.line), dtype=object)
            for count in np.unique(chunk.counts):
                same = chunk.counts == count
                lines[same] = list(_lines(take(chunk, same), int(count)))
            file.write("".join(lines).encode())
            written += len(lines)
    return written


def _refuse_deterministic(chunk: Chunk) -> None:
    deterministic = np.flatnonzero(np.isnan(chunk.propensity))
    if deterministic.size:
        raise InputError(
            f"decision {chunk.line[deterministic[0]]} was deterministic, and dsjson cannot express that: a "
            "probability of 1 would make every later estimate wrong. Log with a floor of "
            "exploration, or keep the log as Parquet."
        )


def _refuse_weights(chunk: Chunk) -> None:
    """dsjson has `pdrop`, the share of decisions that was dropped: a weight of 1/(1 - pdrop), which is at least 1."""
    odd = np.flatnonzero((chunk.weight < 1) | (1 - 1 / chunk.weight >= 1))
    if odd.size:
        raise InputError(
            f"decision {chunk.line[odd[0]]} has weight {chunk.weight[odd[0]]:g}, and dsjson can only express weights "
            "from 1 to 1e15, as pdrop. Divide all weights by the smallest, or keep the log as Parquet."
        )


def _lines(chunk: Chunk, count: int) -> Iterator[str]:
    """Decisions that all have `count` arms, as lines."""
    n = len(chunk.line)
    arms = chunk.arms.reshape(n, count)
    chosen = (arms == chunk.arm[:, None]).argmax(axis=1)
    others = np.arange(count - 1)[None, :]
    order = np.concatenate([chosen[:, None], others + (others >= chosen[:, None])], axis=1)
    ranking = _rows(order + 1)
    ranked = [""] * n if chunk.probabilities is None else _probabilities(chunk.probabilities.reshape(n, count), order)
    label = _labels(chunk, chosen, ranked)
    when = _times(chunk.time)
    ids = _ids(chunk)
    dropped = (1 - 1 / chunk.weight).tolist()
    drop = [f',"pdrop":{share!r}' if share else "" for share in dropped]
    context = _contexts(chunk, arms, count)
    for begin, time, event_id, ranks, inside, p, dropped in zip(
        label, when, ids, ranking, context, ranked, drop, strict=True
    ):
        yield f'{{{begin}{time}"Version":"1","EventId":{event_id},"a":[{ranks}],"c":{inside}{p}{dropped}}}\n'


def _labels(chunk: Chunk, chosen: np.ndarray, ranked: list[str]) -> list[str]:
    """What VW learns from. Without a reward only the probability is written, and only if `p` does not have it."""
    costs = [f'"_label_cost":{c},' if c else "" for c in _rows((0.0 - chunk.reward)[:, None], missing="")]
    return [
        f'{cost}"_label_probability":{p},"_label_Action":{place + 1},"_labelIndex":{place},'
        if cost or not known
        else ""
        for cost, known, p, place in zip(costs, ranked, _rows(chunk.propensity[:, None]), chosen.tolist(), strict=True)
    ]


def _probabilities(p: np.ndarray, order: np.ndarray) -> list[str]:
    return [f',"p":[{row}]' if row else "" for row in _rows(np.take_along_axis(p, order, axis=1), missing="")]


def _times(time: np.ndarray) -> list[str]:
    texts = np.datetime_as_string(time, unit="us").tolist()
    return [f'"Timestamp":"{text}Z",' if text != "NaT" else "" for text in texts]


def _ids(chunk: Chunk) -> list[str]:
    from orjson import dumps

    ids = (str(line) if given is None else given for given, line in zip(chunk.id, chunk.line.tolist(), strict=True))
    return [dumps(each).decode() for each in ids]


def _contexts(chunk: Chunk, arms: np.ndarray, count: int) -> Iterator[str]:
    """c of every decision. Names as `User/age` become namespaces again; words become words."""
    names = chunk.names
    if any(map(_is_ambiguous, names)) or any("=" in name for name in names.shared + names.own):
        yield from _sparse(chunk, arms, count)
        return
    before = _template(names.shared)[:-1] + ("," if names.shared else "") + '"_multi":['
    if names.own:
        template = before + ",".join([_template(names.own)] * count) + "]}"
        actions = _cells(names.own, chunk.own, count)
    else:
        template = before + PLACE + "]}"
        actions = ([",".join([f'{{"{ARM}":{{"{arm}":1}}}}' for arm in row])] for row in arms.tolist())
    texts = template.split(PLACE)
    parts = [""] * (2 * len(texts) - 1)
    parts[::2] = texts
    for row, action in zip(_cells(names.shared, chunk.shared, 1), actions, strict=True):
        parts[1::2] = row + action
        yield "".join(parts)


def _cells(names: tuple[str, ...], values: np.ndarray, count: int) -> Iterator[list[str]]:
    """What goes into the places of each decision's templates, of which it has `count`."""
    if not names:
        return repeat([], len(values) // count)
    if _list_of(names) is not None:
        texts = _rows(values)
        return (texts[first : first + count] for first in range(0, len(texts), count))
    order = _by_namespace(names)
    return (row.split(",") for row in _rows(values[:, order].reshape(-1, count * len(order))))


def _list_of(names: tuple[str, ...]) -> str | None:
    """The name of the list, if these are its numbers and nothing else: `own` for own[0], own[1], …"""
    name = names[0].removesuffix("[0]") if names else ""
    return name if name and "/" not in name and names == tuple(f"{name}[{n}]" for n in range(len(names))) else None


def _by_namespace(names: tuple[str, ...]) -> list[int]:
    """The columns in an order that keeps the features of a namespace together."""
    spaces: dict[str, list[int]] = {}
    for column, name in enumerate(names):
        space, slash, _ = name.partition("/")
        spaces.setdefault(space if slash else "", []).append(column)
    return list(chain.from_iterable(spaces.values()))


def _is_ambiguous(names: tuple[str, ...]) -> bool:
    """Whether a feature has the name of a namespace, so that no object can have both."""
    return bool({name.partition("/")[0] for name in names if "/" in name} & set(names))


def _template(names: tuple[str, ...]) -> str:
    """An object with a place for every feature, namespaces nested, {"User":{"age":PLACE}}; or one for all of a list."""
    from orjson import dumps

    def quoted(text: str) -> str:
        return dumps(text).decode()

    listed = _list_of(names)
    if listed is not None:
        return f"{{{quoted(listed)}:[{PLACE}]}}"
    spaces: dict[str, list[str]] = {}
    for column in _by_namespace(names):
        space, slash, rest = names[column].partition("/")
        spaces.setdefault(space if slash else "", []).append(rest if slash else names[column])
    parts = []
    for space, inner in spaces.items():
        body = ",".join(f"{quoted(name)}:{PLACE}" for name in inner)
        parts.append(f"{quoted(space)}:{{{body}}}" if space else body)
    return "{" + ",".join(parts) + "}"


def _sparse(chunk: Chunk, arms: np.ndarray, count: int) -> Iterator[str]:
    """For names with words: features that are not 0, and words as words, so that VW reads what it once wrote."""
    from orjson import dumps

    own = chunk.own.reshape(len(arms), count, -1)
    for row, listed in enumerate(arms.tolist()):
        context = _object(chunk.names.shared, chunk.shared[row])
        if chunk.names.own:
            context["_multi"] = [_object(chunk.names.own, own[row, place]) for place in range(count)]
        else:
            context["_multi"] = [{ARM: {str(arm): 1}} for arm in listed]
        yield dumps(context).decode()


def _object(names: tuple[str, ...], values: np.ndarray) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for column in np.flatnonzero(values):
        space, slash, rest = names[column].partition("/")
        into = made.setdefault(space, {}) if slash else made
        if type(into) is not dict:
            raise InputError(f"feature {space} has the name of a namespace, and dsjson cannot have both; rename it.")
        key, equals, word = (rest if slash else space).partition("=")
        if equals and values[column] == 1 and key not in into:
            into[key] = word
        else:
            into[key + equals + word] = decimal(values[column])
    return made


def _rows(values: np.ndarray, missing: str | None = None) -> list[str]:
    """Each row as numbers with commas between; `missing` in place of one that begins with NaN."""
    from orjson import OPT_SERIALIZE_NUMPY, dumps

    if not values.size:
        return [""] * len(values)
    texts = dumps(np.ascontiguousarray(values), option=OPT_SERIALIZE_NUMPY).decode()[2:-2].split("],[")
    if missing is None:
        return texts
    return [missing if text.startswith("null") else text for text in texts]
