"""Causal memory for robot policies, as a ROS 2 package.

The names of `__all__` are the public interface; each is imported when it is first asked for, since most bring torch.
"""

from importlib import import_module
from pkgutil import extend_path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trace_memory_ros.bags.build import decode_bag
    from trace_memory_ros.bags.recording import RecordingConfig
    from trace_memory_ros.memory.base import Memory, MemoryDims, MemoryInput, Readout, WriteRecord
    from trace_memory_ros.memory.registry import Mechanism
    from trace_memory_ros.memory.registry import build as build_memory
    from trace_memory_ros.memory.registry import names as memory_names
    from trace_memory_ros.observation.types import Observation
    from trace_memory_ros.policies.adapters import ConditionShape
    from trace_memory_ros.replay.bag_replay import Replay
    from trace_memory_ros.runtime.checkpoint import load as load_checkpoint
    from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
    from trace_memory_ros.runtime.shipped import find_checkpoint
    from trace_memory_ros.signature.batch import batch_signature
    from trace_memory_ros.signature.streaming import StreamingSignature

# colcon installs the generated `trace_memory_ros.msg` beside an editable checkout;
# extending the path lets one import see both.
__path__ = extend_path(__path__, __name__)

__version__ = "0.5.0"

__all__ = [
    "ConditionShape",
    "Mechanism",
    "Memory",
    "MemoryDims",
    "MemoryInput",
    "MemoryRuntime",
    "Observation",
    "Readout",
    "RecordingConfig",
    "Replay",
    "StreamingSignature",
    "WriteRecord",
    "batch_signature",
    "build_memory",
    "decode_bag",
    "find_checkpoint",
    "load_checkpoint",
    "memory_names",
]

_ORIGINS = {
    "ConditionShape": "policies.adapters:ConditionShape",
    "Mechanism": "memory.registry:Mechanism",
    "Memory": "memory.base:Memory",
    "MemoryDims": "memory.base:MemoryDims",
    "MemoryInput": "memory.base:MemoryInput",
    "MemoryRuntime": "runtime.memory_runtime:MemoryRuntime",
    "Observation": "observation.types:Observation",
    "Readout": "memory.base:Readout",
    "RecordingConfig": "bags.recording:RecordingConfig",
    "Replay": "replay.bag_replay:Replay",
    "StreamingSignature": "signature.streaming:StreamingSignature",
    "WriteRecord": "memory.base:WriteRecord",
    "batch_signature": "signature.batch:batch_signature",
    "build_memory": "memory.registry:build",
    "decode_bag": "bags.build:decode_bag",
    "find_checkpoint": "runtime.shipped:find_checkpoint",
    "load_checkpoint": "runtime.checkpoint:load",
    "memory_names": "memory.registry:names",
}


if not TYPE_CHECKING:  # a type checker would take every name for granted

    def __getattr__(name: str) -> object:
        if name not in _ORIGINS:
            known = ", ".join(__all__)
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}; its public names are {known}")
        module, _, attribute = _ORIGINS[name].partition(":")
        found = getattr(import_module(f"{__name__}.{module}"), attribute)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
