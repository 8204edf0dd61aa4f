"""Builds sdist and wheel, checks them, and tries each in empty environments: `make dist PYTHONS="3.11 3.12 3.13"`.

Each Python gets the newest dependencies; the oldest also gets the lowest that `pyproject.toml` allows. A Python that is
not on this machine is asked of uv; one that cannot be had fails, since a claim that was not tried is none.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
EXTRAS = ("experiments", "serve")
"""What is tried beside the core."""


def main(versions: list[str]) -> None:
    """Build, check, try."""
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        tools = environment(sys.executable, Path(folder) / "tools", "build", "twine")
        call(tools, "-m", "build", "--outdir", str(DIST), str(ROOT))
        (wheel,), (source,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
        call(tools, "-m", "twine", "check", "--strict", str(wheel), str(source))
        whole, pythons = f"{wheel}[{','.join(EXTRAS)}]", {each: interpreter(each, tools) for each in versions}
        for version, python in pythons.items():
            attempt(python, Path(folder) / f"wheel-{version}", whole, extras=EXTRAS)
            attempt(python, Path(folder) / f"source-{version}", str(source))
        oldest = min(versions, key=lambda version: [int(part) for part in version.split(".")])
        attempt(pythons[oldest], Path(folder) / f"lowest-{oldest}", whole, *lowest(), extras=EXTRAS)
    print(f"{wheel.name} and {source.name} work on Python {', '.join(versions)}")


def attempt(python: str, folder: Path, *packages: str, extras: Sequence[str] = ()) -> None:
    """Install into an empty environment, run the smoke test from outside the checkout, and remove it."""
    print(f"{folder.name}:", end=" ", flush=True)
    call(environment(python, folder, *packages), str(ROOT / ".ci" / "smoke.py"), *extras, cwd=folder)
    shutil.rmtree(folder)


def environment(python: str, folder: Path, *packages: str) -> str:
    """The Python of a new environment with these packages."""
    call(python, "-m", "venv", str(folder))
    made = str(folder / "bin" / "python")
    call(made, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return made


def lowest() -> list[str]:
    """The lowest versions that are allowed of what is needed directly, as `uv --resolution lowest-direct` has them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [project["dependencies"], *(project["optional-dependencies"][extra] for extra in EXTRAS)]
    return sorted({each.replace(">=", "==") for group in needed for each in group})


def interpreter(version: str, tools: str) -> str:
    """A Python of this version: the one that runs this, one on the path, pyenv's, or uv's."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    homes = sorted(
        (Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions").glob(f"{version}.*/bin/python")
    )
    for candidate in [shutil.which(f"python{version}"), *map(str, homes)]:
        if candidate and subprocess.run([candidate, "-c", ""], capture_output=True).returncode == 0:
            return candidate
    call(tools, "-m", "pip", "install", "--quiet", "uv")
    call(tools, "-m", "uv", "python", "install", version)
    return subprocess.check_output([tools, "-m", "uv", "python", "find", version], text=True).strip()


def call(*command: str, cwd: Path = ROOT) -> None:
    """Run a command; its failure ends all. PYTHONPATH would show it the checkout."""
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if subprocess.run(command, cwd=cwd, env=surroundings).returncode:
        raise SystemExit(f"failed: {' '.join(command)}")


if __name__ == "__main__":
    main(sys.argv[1:] or [f"{sys.version_info.major}.{sys.version_info.minor}"])
