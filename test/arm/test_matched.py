"""Mechanisms that are compared have the same number of parameters, and come from names and options alone."""

import pytest

from trace_memory_ros.arm.sizes import ARM_DIMS, MATCHED, PARAMETERS
from trace_memory_ros.memory import registry


@pytest.mark.parametrize("name", MATCHED)
def test_parameters_match(name: str) -> None:
    count = sum(p.numel() for p in registry.build(name, ARM_DIMS, MATCHED[name]).parameters())
    assert abs(count / PARAMETERS - 1) <= 0.05, f"{name}: {count} parameters"


def test_every_mechanism_with_parameters_is_matched() -> None:
    # What keeps one frame has a linear map of it and no more.
    assert set(registry.names()) - {"none", "first_frame"} <= set(MATCHED)
