"""The family `diffusion`."""

from collections.abc import Mapping
from typing import Any

from trace_memory_ros.policies.families import PolicyFamily, UnknownFamily
from trace_memory_ros.policies.runner import RecedingRunner

try:
    from trace_memory_ros.policies.diffusion.policy import DiffusionConfig, DiffusionPolicy, at_period
except ModuleNotFoundError as error:
    raise UnknownFamily(
        f"policy family 'diffusion' needs {error.name}, which an extra brings: "
        'pip install "trace_memory_ros[diffusion]"'
    ) from error


class DiffusionRunner(RecedingRunner):
    """Runs a `DiffusionPolicy`, every chunk from the same noise: what it does is a function of what it is given."""

    @classmethod
    def build(cls, options: Mapping[str, Any]) -> DiffusionPolicy:
        return DiffusionPolicy(DiffusionConfig(**options))


DIFFUSION = PolicyFamily(
    "diffusion", DiffusionRunner.from_tensors, DiffusionConfig, DiffusionPolicy, at_period, "pooled"
)
