"""Kernels that other processes compiled, loaded side by side and called from compiled code."""

import os
import subprocess
import sys
from pathlib import Path

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


def python(cache: Path, code: str, *arguments: str) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    subprocess.run([sys.executable, "-c", code, *arguments], env=environment, check=True, timeout=120)


def test_kernels_of_several_processes_are_not_taken_for_one_another(tmp_path: Path) -> None:
    for shape in ("2 1", "3 2"):
        python(tmp_path, COMPILE, *shape.split())
    python(tmp_path, CALL)
