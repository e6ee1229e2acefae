"""Weights that tests convert are kept in a folder of their own."""

from pathlib import Path

import pytest

from trace_memory_ros.vision import weights


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this run of the tests."""
    folder = tmp_path_factory.getbasetemp() / "weights"
    monkeypatch.setenv("TRACE_MEMORY_CACHE", str(folder))
    # Folders of checkpoints that other tests opened hold the same random weights.
    monkeypatch.setattr(weights, "_KNOWN", [])
    return folder / "backbones"
