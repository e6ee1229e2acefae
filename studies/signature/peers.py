"""Ways to advance a depth-3 signature by one tick: ours, two libraries and a C kernel, over the same closed path.

Every contestant comes with its result after one lap, so that only equal work is compared. The libraries receive ready
segments; ours and C also take the difference to the last state, and ours checks the input.
"""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.signature.kernel import BufferPlan, update_kernel
from trace_memory_ros.signature.layout import reversed_word_order, signature_size
from trace_memory_ros.signature.streaming import StreamingSignature

Array = NDArray[np.float64]
DEPTH = 3
INSTALL = "pip install --no-build-isolation -r requirements/peers.txt"


LABELS = {
    "update": "StreamingSignature.update(state)",
    "update_and_value": "  the same, then .value()",
    "kernel_call": "  its compiled kernel, called from Python",
    "kernel": "  its compiled kernel, no Python",
    "roughpy": "roughpy.compute.ft_fmexp",
    "iisignature": "iisignature.sigjoin (float32)",
    "c_call": "C through ctypes",
    "c": "  the same, no Python",
}
"""What tables call a contestant."""


class Contestant(NamedTuple):
    """lap: one pass over the path, `len(path) - 1` ticks. value: the signature `(S,)` so far. tolerance: relative."""

    key: str
    lap: Callable[[], object]
    value: Callable[[], Array]
    tolerance: float = 1e-12


class MissingPeerError(Exception):
    """A peer that cannot run here; the message says what to install."""


def closed_path(dim: int, ticks: int = 64) -> Array:
    """A smooth closed path `(ticks + 1, dim)` with the scale of a standardised arm state."""
    phase = np.random.default_rng(0).uniform(0, 2 * np.pi, dim)
    turns = 1 + np.arange(dim) % 3
    return np.sin(2 * np.pi * np.outer(np.arange(ticks + 1) / ticks, turns) + phase)


def ours(path: Array) -> Iterator[Contestant]:
    """The update as the runtime calls it, with the value read, as a bare compiled call, and without Python."""
    import numba

    dim, states = path.shape[1], list(path[1:])
    live, read = StreamingSignature(dim, DEPTH), StreamingSignature(dim, DEPTH)
    live.update(path[0])
    read.update(path[0])

    def update_lap(update: Callable[[Array], None] = live.update) -> None:
        for state in states:
            update(state)

    def read_lap(update: Callable[[Array], None] = read.update, value: Callable[[], Array] = read.value) -> None:
        for state in states:
            update(state)
            value()

    plan, kernel = BufferPlan(dim, DEPTH), update_kernel(dim, DEPTH)
    bare, inside = plan.allocate(), plan.allocate()
    for buffer in (bare, inside):
        buffer[plan.last : plan.last + dim] = path[0]

    def bare_lap() -> None:
        for state in states:
            kernel(bare, state)

    def many(buffer: Array, rows: Array) -> int:
        code = 0
        for t in range(rows.shape[0]):
            code += kernel(buffer, rows[t])
        return code

    inside_lap = numba.njit("int64(float64[::1], float64[:, ::1])")(many)
    rows, where = np.ascontiguousarray(path[1:]), plan.positions()
    yield Contestant("update", update_lap, live.value)
    yield Contestant("update_and_value", read_lap, read.value)
    yield Contestant("kernel_call", bare_lap, lambda: bare[where])
    yield Contestant("kernel", lambda: inside_lap(inside, rows), lambda: inside[where])


def roughpy_fmexp(path: Array) -> Contestant:
    """Fused multiply-exponential of RoughPy, float64."""
    try:
        from roughpy import compute
    except ImportError as error:
        raise MissingPeerError(f"roughpy is not installed: {INSTALL}") from error
    basis = compute.TensorBasis(path.shape[1], DEPTH)
    size = signature_size(path.shape[1], DEPTH) + 1
    steps = []
    for step in np.diff(path, axis=0):
        data = np.zeros(size)
        data[1 : 1 + step.size] = step
        steps.append(compute.DenseFreeTensor(data, basis))
    unit = np.zeros(size)
    unit[0] = 1.0
    now, fmexp = compute.DenseFreeTensor(unit, basis), compute.ft_fmexp

    def lap() -> None:
        nonlocal now
        for step in steps:
            now = fmexp(now, step)

    return Contestant("roughpy", lap, lambda: np.asarray(now.data)[1:])


def iisignature_join(path: Array) -> Contestant:
    """`sigjoin` of iisignature, which returns float32 whatever it is given."""
    try:
        import iisignature
    except ImportError as error:
        raise MissingPeerError(f"iisignature is not installed: {INSTALL}") from error
    steps, join = list(np.diff(path, axis=0)), iisignature.sigjoin
    now = np.zeros(signature_size(path.shape[1], DEPTH))

    def lap() -> None:
        nonlocal now
        for step in steps:
            now = join(now, step, DEPTH)

    return Contestant("iisignature", lap, lambda: now, tolerance=1e-4)


def c_kernels(path: Array) -> Iterator[Contestant]:
    """The same arithmetic in C: called tick by tick through ctypes, and for a whole lap in one call."""
    dim = path.shape[1]
    library = _compile(dim)
    words = dim * dim
    run, start = -(-words // 8) * 8, -(-(dim + words) // 8) * 8
    head = np.arange(dim + words)
    top = (start + np.arange(dim)[:, None] * run + np.arange(words)).reshape(-1)
    where = np.concatenate([head, top])[reversed_word_order(dim, DEPTH)]
    rows = _aligned_zeros(path[1:].size)
    rows[:] = path[1:].reshape(-1)
    pointers = [ctypes.c_void_p(rows.ctypes.data + 8 * dim * t) for t in range(len(path) - 1)]
    one, many = library.signature_update, library.signature_updates
    for key in ("c_call", "c"):
        values, last = _aligned_zeros(start + dim * run), _aligned_zeros(dim)
        last[:] = path[0]
        v, z = ctypes.c_void_p(values.ctypes.data), ctypes.c_void_p(last.ctypes.data)

        def each(v: ctypes.c_void_p = v, z: ctypes.c_void_p = z) -> None:
            for pointer in pointers:
                one(v, z, pointer)

        def whole(v: ctypes.c_void_p = v, z: ctypes.c_void_p = z) -> None:
            many(v, z, pointers[0], ctypes.c_int64(len(pointers)))

        def value(v: Array = values, _alive: tuple[Array, Array] = (last, rows)) -> Array:
            return v[where]

        yield Contestant(key, each if key == "c_call" else whole, value)


def _aligned_zeros(count: int) -> Array:
    raw = np.zeros(count + 8)
    skip = -raw.ctypes.data // raw.itemsize % 8
    return raw[skip : skip + count]


def _compile(dim: int) -> ctypes.CDLL:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise MissingPeerError("no C compiler: apt install gcc")
    flags = ["-O3", "-march=native", "-std=c11", "-shared", "-fPIC", f"-DDIM={dim}"]
    if platform.machine() == "x86_64":
        flags.append("-mprefer-vector-width=512")
    with tempfile.TemporaryDirectory(prefix="signature-bench-") as folder:
        target = Path(folder) / "kernel.so"
        source = Path(__file__).with_name("kernel.c")
        done = subprocess.run([compiler, *flags, "-o", target, source], capture_output=True, text=True, check=False)
        if done.returncode:
            raise MissingPeerError(f"{source.name} does not compile here: {done.stderr.strip().splitlines()[:1]}")
        return ctypes.CDLL(str(target))
