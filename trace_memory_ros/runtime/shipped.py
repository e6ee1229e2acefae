"""Checkpoints by path, or by the name under which the package ships them."""

from __future__ import annotations

from pathlib import Path

import trace_memory_ros


def weight_folders() -> list[Path]:
    """Where shipped checkpoints may lie: beside the checkout's Python, then in the installed share folder."""
    folders = [Path(trace_memory_ros.__file__).resolve().parents[1] / "weights"]
    try:
        from ament_index_python.packages import get_package_share_directory

        folders.append(Path(get_package_share_directory("trace_memory_ros")) / "weights")
    except LookupError:  # sourced, but this package is not installed there
        pass
    except ImportError:  # no ROS
        pass
    return folders


def find_checkpoint(name: str) -> Path:
    """The folder of a checkpoint given by path or shipped name. Raises `ValueError` naming where it was looked for."""
    if not name:
        raise ValueError(
            "parameter checkpoint is empty: give a checkpoint folder, or a shipped name such as origin_trace"
        )
    given = Path(name).expanduser()
    if given.is_dir():
        return given
    candidates = [folder / given.relative_to("weights") if given.parts[0] == "weights" else folder / given
                  for folder in weight_folders()]  # fmt: skip
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    known = sorted({path.name for folder in weight_folders() if folder.is_dir() for path in folder.iterdir()})
    places = ", ".join(str(path) for path in (given, *candidates))
    raise ValueError(f"checkpoint {name!r} is none of {places}; shipped are: {', '.join(known) or 'none'}")
