"""An evaluation in a file of its own, for whoever reads it later."""

from __future__ import annotations

import json
from pathlib import Path

from trace_memory_ros.evidence.results import Evaluation
from trace_memory_ros.files import atomic
from trace_memory_ros.files.plain import PlainDataError

FILE_NAME = "evaluation.json"


def write_evaluation(out_dir: Path, evaluation: Evaluation) -> Path:
    """Write `<out_dir>/evaluation.json` in one move; returns its path. Raises ValueError for a number not finite."""
    out_dir.mkdir(parents=True, exist_ok=True)
    path = out_dir / FILE_NAME
    atomic.write(path, json.dumps(evaluation.to_dict(), allow_nan=False))
    return path


def read_evaluation(path: Path) -> Evaluation:
    """Read an evaluation from its file or from the folder that holds it. Raises PlainDataError naming the file."""
    file = path / FILE_NAME if path.is_dir() else path
    try:
        return Evaluation.from_dict(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise PlainDataError(
            f"{file} does not exist: give the folder that `trace-memory evaluate BAGS --checkpoint` wrote"
        ) from error
    except PlainDataError as error:
        raise PlainDataError(f"{file}: {error}") from error
    except (OSError, ValueError) as error:
        raise PlainDataError(f"{file} cannot be read as JSON ({error}): evaluate again") from error
