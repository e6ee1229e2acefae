"""Report pages: Jinja2 templates that lie beside the code, and the frame, looks and parts that they share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_SHARED = Path(__file__).parent


def render(template: Path, **values: Any) -> str:
    """HTML of a page that needs no other file; `template` may extend `frame.html` and import `parts.html`.

    Values are text and are escaped; what a template marks `safe` is SVG of `measure.drawing`. Raises
    jinja2.UndefinedError for a name that `values` lack.
    """
    environment = Environment(
        loader=FileSystemLoader([template.parent, _SHARED]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template.name).render(**values)
