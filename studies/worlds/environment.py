"""The Python environment of a world: its packages do not go into ours, whose versions they would change."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path("out/environments")
STAMP = "complete"
INSTALL_S = 1800


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
    _call([sys.executable, "-m", "venv", "--clear", str(folder)], "python -m venv", folder)
    install = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "-q", "--no-deps"]
    _call([*install, "-r", str(requirements)], f"pip install -r {requirements}", folder)
    stamp.write_text(wanted, encoding="utf-8")
    return python


def _call(command: list[str], name: str, folder: Path) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_S)
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        raise Unavailable(
            f"{name} failed for {folder}: {said[-1] if said else 'no reason given'}; check the connection to the "
            "package index and the free space, and run the command again"
        ) from error
