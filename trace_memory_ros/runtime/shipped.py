"""What the package ships besides Python: checkpoints and message definitions, wherever it was installed from."""

from __future__ import annotations

import os
from pathlib import Path

import trace_memory_ros
from trace_memory_ros.files.home import opened

PACKAGE = "trace_memory_ros"


def share_folders() -> list[Path]:
    """Where `weights/`, `msg/` and `config/` may lie: in a checkout, in a wheel, in the sourced ROS 2 workspaces."""
    package = Path(trace_memory_ros.__file__).resolve().parent
    prefixes = [prefix for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if prefix]
    return [package.parent, package / "share", *(Path(prefix) / "share" / PACKAGE for prefix in prefixes)]


def weight_folders() -> list[Path]:
    """Where shipped checkpoints may lie."""
    return [folder / "weights" for folder in share_folders()]


def message_files() -> list[Path]:
    """This package's `.msg` files, from the first place that has any. Raises `ValueError` naming all places."""
    folders = [folder / "msg" for folder in share_folders()]
    for folder in folders:
        files = sorted(folder.glob("*.msg"))
        if files:
            return files
    places = ", ".join(str(folder) for folder in folders)
    raise ValueError(
        f"no .msg files in {places}: install {PACKAGE} again, by pip or by colcon, and source colcon's install folder"
    )


def shipped_file(path: str) -> Path:
    """A shipped file by a path such as `config/memory_node.yaml`. Raises `ValueError` naming all places."""
    places = [folder / path for folder in share_folders()]
    for place in places:
        if place.is_file():
            return place
    raise ValueError(f"{' and '.join(map(str, places))} are no files: install {PACKAGE} again, by pip or by colcon")


def find_checkpoint(name: str) -> Path:
    """The folder of a checkpoint given by path or shipped name. Raises `ValueError` naming where it was looked for."""
    if not name:
        raise ValueError(
            "parameter checkpoint is empty: give a checkpoint folder, or a shipped name such as origin_trace"
        )
    given = opened(name)
    if given.is_dir():
        return given
    candidates = [folder / given.relative_to("weights") if given.parts[0] == "weights" else folder / given
                  for folder in weight_folders()]  # fmt: skip
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    known = sorted({path.name for folder in weight_folders() if folder.is_dir() for path in folder.iterdir()})
    places = ", ".join(dict.fromkeys(str(path) for path in (given, *candidates)))  # one, where it is absolute
    raise ValueError(f"checkpoint {name!r} is none of {places}; shipped are: {', '.join(known) or 'none'}")
