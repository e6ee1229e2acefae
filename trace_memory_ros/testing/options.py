"""The plugin that knows `--memory`; pytest takes options from a plugin, not from a conftest.py found by `--pyargs`."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--memory NAME`, which may be given more than once."""
    parser.getgroup("trace_memory_ros").addoption(
        "--memory",
        action="append",
        metavar="NAME",
        help="test this memory, bare, before a cache and behind the write gate, instead of all that are registered",
    )
