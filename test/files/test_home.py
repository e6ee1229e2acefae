"""A path of a user who is not there is an error of the configuration, wherever it is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from trace_memory_ros.files.home import opened
from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.runtime.shipped import find_checkpoint
from trace_memory_ros.runtime.urdf import joints_of

NOBODY = "~nobody-of-this-name/x"


def test_a_path_below_home_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somewhere")
    assert (opened("~/x"), opened("x")) == (Path("/somewhere/x"), Path("x"))


@pytest.mark.parametrize("read", [opened, find_checkpoint, joints_of])
def test_the_home_of_nobody_is_named(read: Callable[[str], object]) -> None:
    with pytest.raises(ConfigError, match=f"{NOBODY}: .* Give the whole path"):
        read(NOBODY)


def test_an_absolute_folder_that_is_not_there_is_named_once() -> None:
    with pytest.raises(ValueError, match="checkpoint '/nope' is none of /nope; shipped are"):
        find_checkpoint("/nope")
