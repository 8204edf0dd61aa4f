"""The command `neuralucb serve`. Needs the extra `serve`."""

import os
from pathlib import Path
from typing import Annotated

import typer

from neuralucb.runtime.errors import InputError

__all__ = ["serve"]


def serve(
    host: Annotated[str, typer.Option(help="The address to listen on; other than loopback only with tokens.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8080,
    store: Annotated[
        str, typer.Option(metavar="FOLDER|postgresql://…", help="Where everything is kept; made if it does not exist.")
    ] = "neuralucb-store",
    config: Annotated[Path | None, typer.Option(help="A TOML file: docs/serving.md.")] = None,
) -> None:
    """Decide for other programs, over HTTP: docs/serving.md; also with Personalizer's interface."""
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")  # a lesson must not take every core
    from neuralucb.runtime.compile_cache import keep_compiled

    try:
        from neuralucb.service.config import read_config
        from neuralucb.service.server import serve as serve_until_stopped
    except ModuleNotFoundError as missing:
        raise InputError(f"{missing.name} is missing: pip install 'neuralucb[serve]' installs the service.") from None
    keep_compiled()
    serve_until_stopped(store, read_config(config), host=host, port=port)
