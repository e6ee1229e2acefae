"""Results of a run, part by part, each in its own file as soon as it is known."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trace_memory_ros.files import atomic

Figures = dict[str, Any]
FAILURE = "failure"


class Store:
    """JSON files of one run's folder. A part counts only for the settings that it was measured with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, part: str, settings: Figures | None = None) -> Figures | None:
        """A part's figures, or None where it is missing, damaged or of other settings (None: any)."""
        try:
            found = json.loads((self.folder / f"{part}.json").read_text(encoding="utf-8"))
            known = settings is None or found["settings"] == json.loads(json.dumps(settings))
            return dict(found["figures"]) if known else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, part: str, settings: Figures, figures: Figures) -> Figures:
        """Keep a part, in one move; returns `figures`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        atomic.write(self.folder / f"{part}.json", json.dumps({"settings": settings, "figures": figures}, indent=1))
        return figures

    def get(self, part: str, settings: Figures, measure: Callable[[], Figures]) -> Figures:
        """The part as kept, or measured now and kept."""
        kept = self.read(part, settings)
        return kept if kept is not None else self.write(part, settings, measure())

    def remove(self, part: str) -> None:
        """Forget a part."""
        (self.folder / f"{part}.json").unlink(missing_ok=True)
