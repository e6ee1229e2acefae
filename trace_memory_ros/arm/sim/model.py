"""The MuJoCo model: two 7-DoF arms of capsules at a table, built as MJCF text."""

from __future__ import annotations

import mujoco

from trace_memory_ros.arm.sim import layout
from trace_memory_ros.arm.sim.fixtures import PART_RGBA
from trace_memory_ros.arm.sim.names import ARMS
from trace_memory_ros.arm.sim.tasks.table import task_of

PHYSICS_STEP_S = 0.005

# axis in the link frame, range (rad), kp (N m / rad), kv (N m s / rad)
_JOINTS = (
    ("0 0 1", "-2.6 2.6", 1800, 90),
    ("0 1 0", "-1.9 1.6", 1800, 90),
    ("1 0 0", "-2.6 2.6", 900, 36),
    ("0 1 0", "-0.2 2.7", 1200, 50),
    ("1 0 0", "-2.8 2.8", 400, 12),
    ("0 1 0", "-1.9 2.2", 400, 14),
    ("1 0 0", "-2.9 2.9", 200, 6),
)
# A held part sits below the cup with its up axis against the hand's +x, whatever the approach was.
_HELD_POSE = f"{layout.HAND + layout.PART_HALF} 0 0 0.70710678 0 -0.70710678 0"

_HEADER = f"""\
  <compiler angle="radian"/>
  <option timestep="{PHYSICS_STEP_S}" integrator="implicitfast" cone="pyramidal"/>
  <statistic center="0.5 0 0.2" extent="1"/>
  <visual>
    <global offwidth="1280" offheight="960"/>
    <quality offsamples="0" shadowsize="0" numslices="18" numstacks="8"/>
    <headlight ambient="0.40 0.40 0.40" diffuse="0.15 0.15 0.15" specular="0 0 0"/>
    <map znear="0.01" zfar="30"/>
  </visual>
  <default>
    <geom contype="0" conaffinity="0" mass="0"/>
    <joint armature="0.08" damping="1"/>
  </default>
  <asset>
    <texture name="floor" type="2d" builtin="checker" rgb1="0.24 0.26 0.29" rgb2="0.28 0.30 0.33"
      width="64" height="64"/>
    <texture name="sky" type="skybox" builtin="gradient" rgb1="0.75 0.80 0.86" rgb2="0.95 0.96 0.97"
      width="32" height="192"/>
    <material name="floor" texture="floor" texrepeat="12 12"/>
    <material name="shell" rgba="0.93 0.93 0.95 1" specular="0.2"/>
    <material name="joint" rgba="0.20 0.23 0.28 1" specular="0.2"/>
    <material name="glow" emission="0.6" specular="0"/>
    <material name="part" rgba="{PART_RGBA}" emission="0.35" specular="0"/>
  </asset>
"""
_ROOM = f"""\
    <light name="lamp_room" pos="0.4 0.5 2.5" dir="0 -0.2 -1" directional="true" castshadow="false"
      diffuse="0.4 0.4 0.4"/>
    <camera name="overhead" pos="0.52 0 1.62" xyaxes="0 -1 0 1 0 0" fovy="43"/>
    <camera name="scene" pos="1.85 -0.9 1.3" xyaxes="0.59 0.807 0 -1.049 0.767 1.61" fovy="46"/>
    <geom name="floor" type="plane" pos="0 0 -0.75" size="4 4 0.1" material="floor"/>
    <geom name="table" type="box" pos="0.62 0 -0.02" size="0.55 0.66 0.02" rgba="0.78 0.73 0.66 1" contype="1"
      conaffinity="1" friction="1 0.01 0.001"/>
    <geom type="box" pos="-0.09 0 -0.2" size="0.08 0.13 0.55" material="joint"/>
    <geom type="capsule" size="0.06" material="shell"
      fromto="-0.02 -{layout.SHOULDER_Y} {layout.SHOULDER_Z} -0.02 {layout.SHOULDER_Y} {layout.SHOULDER_Z}"/>
"""
_PART = f"""\
    <body name="part" pos="0.7 0 {layout.PART_HALF}">
      <freejoint name="part"/>
      <geom name="part" type="box" size="{layout.PART_HALF} {layout.PART_HALF} {layout.PART_HALF}" material="part"
        mass="0.05" contype="1" conaffinity="1" friction="1 0.02 0.001"/>
    </body>
"""


def build_model(task: str) -> mujoco.MjModel:
    """Compile the scene of `task`; raises ValueError for an unknown task."""
    return mujoco.MjModel.from_xml_string(mjcf(task))


def mjcf(task: str) -> str:
    """MJCF text of the scene; raises as `build_model`."""
    what = task_of(task)
    arms = "".join(_arm(arm, 1 if arm == "left" else -1) for arm in ARMS)
    actuators = "".join(
        f'<position name="{arm}_joint_{i}" joint="{arm}_joint_{i}" kp="{kp}" kv="{kv}" ctrlrange="{limits}"/>'
        for arm in ARMS
        for i, (_, limits, kp, kv) in enumerate(_JOINTS, start=1)
    )
    welds = "".join(
        f'<weld name="{arm}_suction" body1="{arm}_hand" body2="part" relpose="{_HELD_POSE}" active="false"'
        ' solref="0.015 1" solimp="0.95 0.99 0.001"/>'
        for arm in ARMS
    )
    return f"""\
<mujoco model="trace_memory_arm">
{_HEADER}{what.assets()}  <worldbody>
{_ROOM}    {what.fixtures()}
    {arms}
{_PART}  </worldbody>
  <equality>{welds}</equality>
  <actuator>{actuators}</actuator>
</mujoco>"""


def _arm(arm: str, side: int) -> str:
    """One arm: at zero it points along +x; joints turn yaw, pitch, roll, pitch, roll, pitch, roll."""

    def joint(index: int) -> str:
        axis, limits, _, _ = _JOINTS[index - 1]
        return f'<joint name="{arm}_joint_{index}" axis="{axis}" range="{limits}"/>'

    def inertia(mass: float, length: float) -> str:
        across = mass * (length * length / 12 + 0.001)
        return f'<inertial pos="{length / 2} 0 0" mass="{mass}" diaginertia="{mass * 0.002} {across} {across}"/>'

    upper, fore, hand = layout.UPPER_ARM, layout.FOREARM, layout.HAND
    return f"""
    <body name="{arm}_shoulder" pos="0 {side * layout.SHOULDER_Y} {layout.SHOULDER_Z}" gravcomp="1">
      {joint(1)}{inertia(0.8, 0.08)}
      <geom type="sphere" size="0.066" material="joint"/>
      <body name="{arm}_pitch" gravcomp="1">{joint(2)}{inertia(0.6, 0.1)}
       <body name="{arm}_upper" gravcomp="1">{joint(3)}{inertia(1.4, upper)}
        <geom type="capsule" fromto="0.03 0 0 {upper} 0 0" size="0.046" material="shell"/>
        <geom type="sphere" pos="{upper} 0 0" size="0.054" material="joint"/>
        <body name="{arm}_elbow" pos="{upper} 0 0" gravcomp="1">{joint(4)}{inertia(0.4, 0.1)}
         <body name="{arm}_fore" gravcomp="1">{joint(5)}{inertia(1.0, fore)}
          <geom type="capsule" fromto="0.02 0 0 {fore} 0 0" size="0.038" material="shell"/>
          <geom type="sphere" pos="{fore} 0 0" size="0.045" material="joint"/>
          <body name="{arm}_wrist" pos="{fore} 0 0" gravcomp="1">{joint(6)}{inertia(0.25, 0.05)}
           <body name="{arm}_hand" gravcomp="1">{joint(7)}{inertia(0.3, hand)}
            <geom type="cylinder" fromto="0.02 0 0 {hand - 0.03} 0 0" size="0.026" material="shell"/>
            <geom type="cylinder" fromto="{hand - 0.03} 0 0 {hand} 0 0" size="0.022" rgba="0.1 0.1 0.1 1"/>
            <geom type="box" pos="0.03 0 0.045" size="0.018 0.022 0.014" material="joint"/>
            <camera name="{arm}_wrist" pos="0.045 0 0.07" xyaxes="0 -1 0 0.5 0 0.866" fovy="80"/>
            <site name="{arm}_cup" pos="{hand} 0 0" size="0.005" rgba="0 0 0 0"/>
           </body>
          </body>
         </body>
        </body>
       </body>
      </body>
    </body>"""
