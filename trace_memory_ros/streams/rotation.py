"""Orientations as six numbers, the first two columns of the rotation matrix, which have neither jumps nor two signs.

Quaternions are (x, y, z, w), as in geometry_msgs.
"""

from __future__ import annotations

import numpy as np

from trace_memory_ros.streams.base import Field, ReadError, Values

FIELDS = tuple(Field(f"rotation.r{row}{column}", "", True) for column in (1, 2) for row in (1, 2, 3))
LEAST_NORM = 0.1
"""A quaternion shorter than that is none: drivers send zeros before they know one."""


def is_one(quaternion: Values) -> bool:
    """Whether `(4,)` is a rotation, of whatever length."""
    norm = float(np.linalg.norm(quaternion))
    return bool(np.isfinite(norm)) and norm >= LEAST_NORM


def columns_of(quaternion: Values) -> Values:
    """`(6,)` of a quaternion `(4,)`, which need not be of length 1. Raises ReadError for one that is no rotation."""
    if not is_one(quaternion):
        raise ReadError(f"orientation {quaternion.tolist()} is no rotation: check the sensor or its driver")
    x, y, z, w = (quaternion / np.linalg.norm(quaternion)).tolist()
    first = (1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w))
    second = (2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w))
    return np.array([*first, *second])


def quaternion_of(columns: Values) -> Values:
    """The quaternion `(4,)` of the rotation whose first two columns are nearest to `(6,)`, by Gram-Schmidt; w >= 0.

    Raises ReadError where the two are parallel or zero.
    """
    first, second = np.asarray(columns, dtype=np.float64).reshape(2, 3)
    a = first / max(float(np.linalg.norm(first)), 1e-300)
    b = second - a * float(a @ second)
    if not np.isfinite(columns).all() or np.linalg.norm(first) < 1e-6 or np.linalg.norm(b) < 1e-6:
        raise ReadError(f"rotation columns {np.asarray(columns).tolist()} span no plane: they give no orientation")
    b = b / np.linalg.norm(b)
    matrix = np.stack([a, b, np.cross(a, b)], axis=1)
    return _from_matrix(matrix)


def _from_matrix(m: Values) -> Values:
    """Through the largest of the four squared components, so that nothing is divided by almost zero."""
    trace = m[0, 0] + m[1, 1] + m[2, 2]
    squares = np.array([m[0, 0], m[1, 1], m[2, 2]]) * 2 - trace + 1  # 4x^2, 4y^2, 4z^2
    four = np.append(squares, trace + 1)
    k = int(four.argmax())
    products = np.array(
        [
            [four[0], m[0, 1] + m[1, 0], m[0, 2] + m[2, 0], m[2, 1] - m[1, 2]],
            [m[0, 1] + m[1, 0], four[1], m[1, 2] + m[2, 1], m[0, 2] - m[2, 0]],
            [m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], four[2], m[1, 0] - m[0, 1]],
            [m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], four[3]],
        ]
    )
    quaternion = products[k] / np.linalg.norm(products[k])
    return np.asarray(quaternion if quaternion[3] >= 0 else -quaternion)
