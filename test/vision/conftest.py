"""Weights that tests convert are kept in a folder of their own."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this run of the tests."""
    folder = tmp_path_factory.getbasetemp() / "weights"
    monkeypatch.setenv("TRACE_MEMORY_CACHE", str(folder))
    return folder / "backbones"
