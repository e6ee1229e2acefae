"""Kernels that other processes compiled, loaded side by side and called from compiled code."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from trace_memory_ros.memory.aura.kernel import call
from trace_memory_ros.signature.compiled import kept

COMPILE = (
    "import sys; from trace_memory_ros.signature.kernel import update_kernel; update_kernel(*map(int, sys.argv[1:]))"
)
CALL = """
import numba, numpy as np
from trace_memory_ros.signature.kernel import BufferPlan, update_kernel
kernels = {shape: update_kernel(*shape) for shape in ((2, 1), (3, 2))}
for (dim, depth), kernel in kernels.items():
    assert sum(kernel.stats.cache_hits.values()) == 1, "was to be loaded"
    call = numba.njit("int64(float64[::1], float64[::1])")(lambda buffer, state: kernel(buffer, state))
    inside, outside = (BufferPlan(dim, depth).allocate() for _ in range(2))
    state = np.linspace(1.0, 2.0, dim)
    assert (call(inside, state), kernel(outside, state)) == (0, 0), f"{dim} {depth}: another kernel was called"
    assert np.array_equal(inside, outside) and inside.any()
"""


def python(cache: Path, code: str, *arguments: str, **more: str) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), **more}
    subprocess.run([sys.executable, "-c", code, *arguments], env=environment, check=True, timeout=120)


def test_kernels_of_several_processes_are_not_taken_for_one_another(tmp_path: Path) -> None:
    for shape in ("2 1", "3 2"):
        python(tmp_path, COMPILE, *shape.split())
    python(tmp_path, CALL)


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_what_a_power_cut_left_of_the_cache_is_compiled_anew(tmp_path: Path, kind: str) -> None:
    python(tmp_path, COMPILE, "2", "1")
    broken = list(tmp_path.rglob(f"*.{kind}"))
    assert broken
    for file in broken:
        file.write_bytes(b"")
    python(tmp_path, COMPILE, "2", "1")
    assert all(file.stat().st_size for file in tmp_path.rglob(f"*.{kind}"))


def fill(numbers: Any) -> None:
    numbers[:] = 2.0


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_kernels_that_compile_when_they_are_called_are_compiled_anew_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """As AURA's are, of which each takes seconds."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    call(kept(fill, {}), np.zeros(3))
    for file in tmp_path.rglob(f"*.{kind}"):
        file.write_bytes(b"")
    again, numbers = kept(fill, {}), np.zeros(3)
    with pytest.raises(EOFError):
        again(numbers)
    call(again, numbers)
    assert (numbers == 2.0).all()
    assert all(file.stat().st_size for file in tmp_path.rglob(f"*.{kind}"))


def test_kernels_are_compiled_where_nothing_can_be_kept(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    python(tmp_path / "file", COMPILE, "2", "1", NUMBA_CACHE_LOCATOR_CLASSES="UserProvidedCacheLocator")
