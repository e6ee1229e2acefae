"""The Python environment of a world: its packages do not go into ours, whose versions they would change."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path("out/environments")
STAMP = "complete"
INSTALL_S = 1800
REMEDY = "check the connection to the package index and the free space, and run the command again"


class Unavailable(RuntimeError):
    """A world that cannot be set up or started here; the message says what failed and what to do about it."""


def interpreter(requirements: Path, folder: Path) -> Path:
    """The Python of the environment at `folder`, made first where it is not there yet or was made for other pins.

    requirements: exact versions, one a line, of everything that is installed. Raises `Unavailable`.
    """
    wanted = f"{sys.version}\n{requirements.read_text(encoding='utf-8')}"
    stamp, python = folder / STAMP, folder / "bin" / "python"
    if python.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    call([sys.executable, "-m", "venv", "--clear", str(folder)], f"python -m venv failed for {folder}", REMEDY)
    install = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "-q", "--no-deps"]
    call([*install, "-r", str(requirements)], f"pip install -r {requirements} failed for {folder}", REMEDY)
    stamp.write_text(wanted, encoding="utf-8")
    return python


def call(
    command: list[str],
    failed: str,
    remedy: str,
    timeout_s: float = INSTALL_S,
    cwd: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> str:
    """What a command prints. variables: of its environment, beside ours.

    Raises `Unavailable`, which says what `failed`, the last that the command said, and the remedy.
    """
    env = {**os.environ, **(variables or {})}
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=timeout_s, cwd=cwd, env=env)
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        raise Unavailable(f"{failed}: {said[-1] if said else 'no reason given'}; {remedy}") from error
    return done.stdout
