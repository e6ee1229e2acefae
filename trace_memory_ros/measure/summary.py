"""`summary.json`: the machine-readable result that every measuring command leaves beside its human output."""

import json
import math
import os
import platform
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from trace_memory_ros import __version__
from trace_memory_ros.files import atomic

SCHEMA = 1
FILE_NAME = "summary.json"
_FIELDS = {"schema": int, "command": str, "commit": str, "machine": dict, "figures": dict}


class SummaryError(ValueError):
    """A summary that is missing, unreadable or of another schema; the message names the file and the remedy."""


class Summary(NamedTuple):
    """What `read_summary` returns; `figures` nests freely down to JSON scalars and lists."""

    schema: int
    command: str
    commit: str
    machine: dict[str, Any]
    figures: dict[str, Any]


def write_summary(out_dir: Path, command: str, figures: dict[str, Any]) -> Path:
    """Write `<out_dir>/summary.json` in one move, so that a reader never sees half of it; returns its path.

    `figures` may hold numpy and torch scalars and arrays. Raises `SummaryError` for a key that is not a
    string, a value that JSON cannot hold, or a NaN or infinite number (write None where nothing was measured).
    """
    document = {
        "schema": SCHEMA,
        "command": command,
        "commit": commit(),
        "machine": machine(),
        "figures": _plain(figures, "figures"),
    }
    out_dir.mkdir(parents=True, exist_ok=True)
    path = out_dir / FILE_NAME
    atomic.write(path, json.dumps(document, indent=2, allow_nan=False) + "\n")
    return path


def read_summary(path: Path) -> Summary:
    """Read a summary from its file or from the folder that holds it; raises `SummaryError`."""
    file = path / FILE_NAME if path.is_dir() else path
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SummaryError(f"{file} does not exist: run the command that measures it first") from error
    except (OSError, ValueError) as error:
        raise SummaryError(f"{file} cannot be read as JSON ({error}): run the command that wrote it again") from error
    if not isinstance(document, dict):
        raise SummaryError(f"{file} holds a {type(document).__name__}, expected an object with {', '.join(_FIELDS)}")
    if document.get("schema") != SCHEMA:
        raise SummaryError(
            f"{file} has schema {document.get('schema')!r}, this version reads {SCHEMA}: "
            "run the command that wrote it again with this version"
        )
    for name, kind in _FIELDS.items():
        if not isinstance(document.get(name), kind):
            raise SummaryError(f"{file}: `{name}` is {document.get(name)!r}, expected {kind.__name__}")
    return Summary(**{name: document[name] for name in _FIELDS})


def known(value: float | None) -> float | None:
    """A figure that may be no finite number, as of a training that went astray: None then."""
    return value if value is not None and math.isfinite(value) else None


def commit() -> str:
    """Commit of the checkout this code runs from, with `-dirty` if it is edited; elsewhere `v<package version>`."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return f"v{__version__}"
    try:
        described = subprocess.run(
            ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return f"v{__version__}"
    return described.stdout.strip()


def machine() -> dict[str, Any]:
    """Processor, cores this process may use, memory in GiB, Python and torch; nothing that names a host or a user."""
    import torch

    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    models = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or "unknown")


def _plain(value: Any, where: str) -> Any:
    """`value` as JSON types; `where` is its dotted path, for the error."""
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        if value - value != 0.0:
            raise SummaryError(f"{where} is {value}: write None where nothing was measured")
        return value
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise SummaryError(f"{where} has the key {key!r} ({type(key).__name__}): keys must be strings")
        return {key: _plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if hasattr(value, "tolist"):
        return _plain(value.tolist(), where)
    raise SummaryError(f"{where} is a {type(value).__name__}: convert it to numbers, strings, lists or dicts")
