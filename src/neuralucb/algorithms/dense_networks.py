"""The networks that come with the package, by name, and the settings that only some of them have."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from neuralucb.algorithms.algorithm import Task
from neuralucb.algorithms.networks import DEFAULT, NETWORKS, NamedNetwork
from neuralucb.networks.cnn import cnn
from neuralucb.networks.embedding import embedding
from neuralucb.networks.encodings import ENCODINGS, concat, disjoint, heads
from neuralucb.networks.layer_norm import layer_norm
from neuralucb.networks.mlp import mlp
from neuralucb.networks.network import Network
from neuralucb.networks.residual import residual
from neuralucb.runtime.errors import InputError
from neuralucb.settings import Setting, integer

__all__ = ["FRONTS", "category_columns", "check_fronts"]

AUTO = "auto"

OURS = (DEFAULT, "residual", "layer-norm", "embedding", "cnn")

SHAPE = ("width", "depth", "initialization", "scaling", "duplicate", "biases")


def category_columns(settings: Mapping[str, Any]) -> tuple[int, ...]:
    """The columns that the network reads as codes of categories, and that must not be scaled."""
    return tuple(_categories(settings)) if settings.get("network") == "embedding" else ()


def check_fronts(settings: Mapping[str, Any]) -> None:
    """Refuse categories and images for a network of ours that would not look at them; one of the user's may."""
    network = settings.get("network", DEFAULT)
    for name, unset, reader in (("categories", "", "embedding"), ("image", AUTO, "cnn")):
        if network in OURS and network != reader and settings.get(name, unset) != unset:
            raise InputError(
                f"{name} must not be set with network={network}, which does not look at it, got {settings[name]!r}; "
                f"take network={reader}."
            )


def _read_categories(value: Any) -> str:
    """COLUMN:COUNT,… in order of the columns, from text or a dictionary."""
    text = ",".join(f"{column}:{count}" for column, count in value.items()) if isinstance(value, Mapping) else value
    if not isinstance(text, str) or not re.fullmatch(r"(\s*\d+\s*:\s*\d+\s*(,|$))*", text):
        raise InputError("must be columns and how many categories each has, such as 0:5,3:12")
    pairs = sorted(tuple(map(int, pair.split(":"))) for pair in text.split(",") if pair.strip())
    if len({column for column, _ in pairs}) < len(pairs):
        raise InputError("must name each column once")
    return ",".join(f"{column}:{count}" for column, count in pairs)


def _read_image(value: Any) -> str:
    """auto, or HEIGHTxWIDTH or HEIGHTxWIDTHxCHANNELS, from text or a tuple."""
    text = "x".join(map(str, value)) if isinstance(value, tuple | list) else value
    if not isinstance(text, str) or (text != AUTO and not re.fullmatch(r"\d+x\d+(x\d+)?", text)):
        raise InputError("must be auto, or an image's height, width and perhaps channels, such as 28x28 or 32x32x3")
    return text


FRONTS = (
    Setting(
        "categories",
        "",
        "",
        "columns that are categories, and how many each has; for network=embedding",
        "COLUMN:COUNT,…, such as 0:5,3:12",
        _read_categories,
        False,
    ),
    integer("embedding_size", "", 4, "numbers per category; for network=embedding"),
    Setting(
        "image",
        "",
        AUTO,
        "height, width and perhaps channels; for network=cnn",
        "auto (a square), or such as 28x28 or 32x32x3",
        _read_image,
        False,
    ),
)
"""Settings of what comes before the dense layers."""


def _mlp_for(task: Task, settings: Mapping[str, Any]) -> Network:
    """The paper's fully connected network, with ReLU."""
    return _encoded(task, settings, mlp)


def _residual_for(task: Task, settings: Mapping[str, Any]) -> Network:
    """Dense layers that each add to what they see."""
    return _encoded(task, settings, residual)


def _layer_norm_for(task: Task, settings: Mapping[str, Any]) -> Network:
    """Dense layers, normalized before ReLU."""
    return _encoded(task, settings, layer_norm)


def _embedding_for(task: Task, settings: Mapping[str, Any]) -> Network:
    """Categories as trained vectors, then dense layers."""

    def make(dim: int, **shape: Any) -> Network:
        return embedding(dim, categories=_categories(settings), size=settings["embedding_size"], **shape)

    return _encoded(task, settings, make, encodings=("heads", "concat"))


def _cnn_for(task: Task, settings: Mapping[str, Any]) -> Network:
    """Two convolutions, then dense layers."""
    image = None if settings["image"] == AUTO else tuple(map(int, settings["image"].split("x")))
    return _encoded(task, settings, lambda dim, **shape: cnn(dim, image=image, **shape), encodings=("heads",))


for _network in (
    NamedNetwork(DEFAULT, "the paper's: fully connected, with ReLU", _mlp_for, dense=True, intercept=True),
    NamedNetwork("residual", "fully connected, with skip connections", _residual_for, dense=True, intercept=True),
    NamedNetwork("layer-norm", "fully connected, layers normalized", _layer_norm_for, dense=True, intercept=True),
    NamedNetwork(
        "embedding", "categories as trained vectors (categories=)", _embedding_for, dense=True, intercept=True
    ),
    NamedNetwork("cnn", "two convolutions for images (image=)", _cnn_for, dense=True),
):
    NETWORKS[_network.name] = _network


def _encoded(
    task: Task, settings: Mapping[str, Any], make: Callable[..., Network], *, encodings: Sequence[str] = ENCODINGS
) -> Network:
    """The network of these settings; where arms share a context, as their encoding has it."""
    shape = {name: settings[name] for name in SHAPE} | {"dtype": settings["network_precision"]}
    arms, encoding = task.shared_by, settings["encoding"]
    if arms is None:
        return make(task.dim, **shape)
    if encoding not in encodings:
        raise InputError(
            f"encoding must be {' or '.join(encodings)} with network={settings['network']}, got {encoding!r}; set "
            "encoding=heads."
        )
    dim = task.dim + (arms if encoding == "concat" else 0)
    padded = task.dim * arms if encoding == "disjoint" else None
    network = make(dim, **shape, fan_in=padded)
    return {"disjoint": disjoint, "heads": heads, "concat": concat}[encoding](network, arms)


def _categories(settings: Mapping[str, Any]) -> dict[int, int]:
    pairs = (pair.split(":") for pair in settings["categories"].split(",") if pair)
    return {int(column): int(count) for column, count in pairs}
