"""An outline has the shapes of the network, and takes no compiler to work them out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from torch import nn

from trace_memory_ros.arm.sizes import ARM_DIMS, MATCHED
from trace_memory_ros.memory import registry
from trace_memory_ros.vision.bounded import TooLarge, outline

WEIGHTS = Path(__file__).parents[2] / "weights"
LOADING = """
import sys
from trace_memory_ros.policies.families import family
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
found = load(sys.argv[1])
MemoryRuntime(found)
family(found.config.policy.family).load(found.config.policy.options, found.tensors_of("policy."))
print([name for name in ("sympy", "torch._dynamo") if name in sys.modules])
"""


def shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in (*module.named_parameters(), *module.named_buffers())}


@pytest.mark.parametrize("name", MATCHED)
def test_a_mechanism_is_outlined(name: str) -> None:
    real = registry.build(name, ARM_DIMS, MATCHED[name])
    made = outline(lambda: registry.build(name, ARM_DIMS, MATCHED[name]), [*real.parameters()], name)
    assert made is not None
    assert shapes(made) == shapes(real)
    assert {value.device.type for value in (*made.parameters(), *made.buffers())} == {"meta"}


@pytest.mark.parametrize("name", ["trace", "vla", "gru"])
def test_a_mechanism_larger_than_its_weights_is_refused(name: str) -> None:
    wide = {"name": name, "dims": vars(ARM_DIMS) | {"width": 2**16}, "options": MATCHED[name]}
    with pytest.raises(TooLarge, match=f"memory {name} has more than"):
        outline(lambda: registry.from_config(wide), [], f"memory {name}")


def test_loading_imports_no_compiler() -> None:
    checkpoint = str(WEIGHTS / "origin_trace")
    done = subprocess.run([sys.executable, "-c", LOADING, checkpoint], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
