"""Inverse kinematics for one arm: cup at a point, pointing down."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_DOWN = np.array([0.0, 0.0, -1.0])


class UnreachableError(ValueError):
    """A waypoint that the arm cannot reach within its joint limits."""


def solve_down(
    model: mujoco.MjModel,
    arm: str,
    cup_xyz: tuple[float, float, float],
    rest: FloatArray,
    *,
    tolerance_m: float = 1e-3,
    damping: float = 0.02,
    iterations: int = 120,
) -> FloatArray:
    """Joint angles `(7,)` rad that put the cup at `cup_xyz` (m) pointing down, near posture `rest` `(7,)`.

    Damped least squares on position and axis (5 of 6 degrees of freedom), posture in the null space. The last joint
    turns about the cup's axis and keeps `rest[6]`. Raises UnreachableError when the error stays above tolerance.
    """
    data = mujoco.MjData(model)
    ids = [model.joint(f"{arm}_joint_{i}").id for i in range(1, 8)]
    qpos_at, dof_at = model.jnt_qposadr[ids], model.jnt_dofadr[ids]
    low, high = model.jnt_range[ids].T
    site = model.site(f"{arm}_cup").id
    angles = rest.copy()
    jac = np.zeros((6, model.nv))
    for iteration in range(iterations):
        data.qpos[qpos_at] = angles
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_jacSite(model, data, jac[:3], jac[3:], site)
        axis = data.site_xmat[site].reshape(3, 3)[:, 0]
        error = np.concatenate([np.asarray(cup_xyz) - data.site_xpos[site], np.cross(axis, _DOWN)])
        arm_jac = jac[:, dof_at]
        inverse = arm_jac.T @ np.linalg.inv(arm_jac @ arm_jac.T + damping**2 * np.eye(6))
        # The damped null space leaks into the cup's position, so the posture's pull ends before the last steps.
        posture = (rest - angles) * max(0.0, 0.3 * (1 - 2 * iteration / iterations))
        step = inverse @ error + (np.eye(7) - inverse @ arm_jac) @ posture
        step[6] = 0.0
        angles = np.clip(angles + np.clip(step, -0.3, 0.3), low, high)
    if np.linalg.norm(error) < tolerance_m:
        return angles
    raise UnreachableError(
        f"{arm} arm cannot reach {cup_xyz} m pointing down (error {np.linalg.norm(error):.3f}): "
        "move the waypoint in layout.py closer to the shoulder"
    )
