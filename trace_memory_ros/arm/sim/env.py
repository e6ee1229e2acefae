"""The simulated robot: reset, look, command, let time pass."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.arm.sim import layout
from trace_memory_ros.arm.sim.events import Decoy
from trace_memory_ros.arm.sim.fixtures import LAMP_GREEN_RGBA, LAMP_RED_RGBA
from trace_memory_ros.arm.sim.model import PHYSICS_STEP_S, build_model
from trace_memory_ros.arm.sim.names import ACTION_NAMES, ARMS, CAMERA_NAMES, JOINT_NAMES, PERIOD_S
from trace_memory_ros.arm.sim.route import Route, plan
from trace_memory_ros.arm.sim.sample import Outcome, RawSample
from trace_memory_ros.arm.sim.scenario import Draws, Scenario
from trace_memory_ros.arm.sim.tasks.table import task_of

FloatArray = NDArray[np.float64]

CAMERA_PX = 96
"""Side of a picture unless finer ones are asked for."""
MAX_JOINT_SPEED = 2.0
ENCODER_NOISE_RAD = 5e-4
VENT_S = 0.3
_REFEREE_STEPS = 4


class ArmEnv:
    """Two arms at a table in MuJoCo, for one task; deterministic per scenario.

    camera_px: side of the pictures of `observe`, which shows what these `cameras` see. frame_s: simulated seconds
    between two pictures, as of slow cameras; 0 for a picture whenever asked.
    Rendering binds a GL context to the thread that renders first. Raises ValueError for an unknown task.
    """

    def __init__(
        self, task: str, camera_px: int = CAMERA_PX, cameras: tuple[str, ...] = CAMERA_NAMES, frame_s: float = 0.0
    ) -> None:
        self.task = task
        self.frame_s = frame_s
        self.camera_px = camera_px
        self.cameras = cameras
        self.model = build_model(task)
        self.data = mujoco.MjData(self.model)
        joints = [self.model.joint(name).id for name in JOINT_NAMES]
        self._qpos_at = self.model.jnt_qposadr[joints]
        self._limits = self.model.jnt_range[joints].T
        self._part_at = int(self.model.joint("part").qposadr[0])
        self._cups = [self.model.site(f"{arm}_cup").id for arm in ARMS]
        self._scene = task_of(task).scene(self.model)
        self._renderers: dict[int, mujoco.Renderer] = {}
        self._scenario: Scenario | None = None
        self._pictures: tuple[bytes, dict[str, NDArray[np.uint8]]] | None = None

    def reset(self, scenario: Scenario) -> None:
        """Begin an episode; raises ValueError when the scenario is of another task."""
        if scenario.task != self.task:
            raise ValueError(
                f"scenario is of task {scenario.task!r} but this ArmEnv simulates {self.task!r}: make another ArmEnv"
            )
        self._scenario = scenario
        self._draws = scenario.draws()
        self._referee = task_of(self.task).referee(scenario)
        self._route = plan(self.model, scenario)
        mujoco.mj_resetData(self.model, self.data)
        start = np.clip(self._route.points[0] + self._draws.start_offset, *self._limits)
        self.data.qpos[self._qpos_at] = start
        self.data.ctrl[:] = start
        self._place_part(scenario)
        self._dress_scene(self._draws)
        self._scene.place(self.data, scenario)
        self._goal = start.copy()
        self._rate = np.zeros_like(start)
        self._suction = np.zeros(len(ARMS), dtype=bool)
        self._vented_s = np.zeros(len(ARMS))
        self._steps = 0
        self._due_s = 0.0
        self._pictures = None
        self._drawn_s = 0.0
        mujoco.mj_forward(self.model, self.data)
        self._show_signals()

    @property
    def scenario(self) -> Scenario:
        """Scenario of the running episode; raises RuntimeError before the first reset."""
        if self._scenario is None:
            raise RuntimeError("no episode is running: call ArmEnv.reset(scenario) first")
        return self._scenario

    @property
    def route(self) -> Route:
        """The scripted expert's way through joint space in this episode."""
        _ = self.scenario
        return self._route

    @property
    def lamp_red(self) -> bool:
        """Whether the signal lamp says wait."""
        return self._referee.lamp_red

    @property
    def decoy(self) -> Decoy | None:
        """The decoy that shows now."""
        return self._referee.decoy

    @property
    def showing(self) -> bool:
        """Whether the cue, or what only its context tells from it, is shown now."""
        return self._referee.showing

    @property
    def holding(self) -> bool:
        """Whether a cup holds the part."""
        return bool(self.data.eq_active.any())

    @property
    def time_s(self) -> float:
        """Simulated seconds since reset."""
        return self._steps * float(self.model.opt.timestep)

    def observe(self, render: bool = True) -> RawSample:
        """Sensor readings now; without `render` the images are left out. Images must not be written to."""
        scenario = self.scenario
        rng = np.random.default_rng([scenario.seed, self._steps])
        angles = self.data.qpos[self._qpos_at] + ENCODER_NOISE_RAD * rng.standard_normal(len(JOINT_NAMES))
        images = self._look() if render else {}
        positions = {name: float(angle) for name, angle in zip(JOINT_NAMES, angles, strict=True)}
        return RawSample(images, positions, np.zeros(3), self.time_s)

    def _look(self) -> dict[str, NDArray[np.uint8]]:
        """Pictures of the robot cameras; drawn again only if something has moved or changed colour."""
        if self._pictures is not None and self.time_s < self._drawn_s + self.frame_s - PHYSICS_STEP_S / 2:
            return dict(self._pictures[1])
        self._drawn_s = self.time_s
        data = self.data
        poses = (data.geom_xpos, data.geom_xmat, data.cam_xpos, data.cam_xmat, self.model.geom_rgba)
        # Scenes are drawn from single precision: what is equal in it gives the same picture.
        drawn_from = b"".join(pose.astype(np.float32).tobytes() for pose in poses)
        if self._pictures is None or self._pictures[0] != drawn_from:
            self._pictures = drawn_from, {name: self.render(name) for name in self.cameras}
        return dict(self._pictures[1])

    def render(self, camera: str, px: int | None = None) -> NDArray[np.uint8]:
        """One `(px, px, 3)` uint8 RGB picture from a robot camera, or from `scene` for people."""
        size = px or self.camera_px
        if size not in self._renderers:
            renderer = mujoco.Renderer(self.model, size, size)
            renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
            renderer.scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
            self._renderers[size] = renderer
        renderer = self._renderers[size]
        renderer.update_scene(self.data, camera)
        return np.array(renderer.render(), dtype=np.uint8)

    def apply(self, action: NDArray[np.floating]) -> None:
        """Set absolute targets `(16,)` in ACTION_NAMES order: joints (rad, clipped to limits), suction (on above 0.5).

        Joints move there in one control period, or at MAX_JOINT_SPEED if that is slower; a cup lets go after VENT_S
        without suction. Arms that leave a station while its lamp is red are held by the cell's safeguard stop until it
        is green, whatever is commanded. Raises ValueError for a wrong shape or a value that is not finite, naming it.
        """
        _ = self.scenario
        action = np.asarray(action, dtype=np.float64)
        if action.shape != (len(ACTION_NAMES),):
            raise ValueError(
                f"action has shape {action.shape}: give ({len(ACTION_NAMES)},) in the order of ACTION_NAMES"
            )
        if not np.isfinite(action).all():
            bad = ", ".join(f"{n}={v}" for n, v in zip(ACTION_NAMES, action, strict=True) if not np.isfinite(v))
            raise ValueError(
                f"action at {self.time_s:.2f} s is not finite: {bad}; check the policy's output and its normaliser"
            )
        self._goal = np.clip(action[: len(JOINT_NAMES)], *self._limits)
        speed = np.minimum(np.abs(self._goal - self.data.ctrl) / PERIOD_S, MAX_JOINT_SPEED)
        self._rate = speed * float(self.model.opt.timestep)
        self._suction = action[len(JOINT_NAMES) :] > 0.5

    def advance(self, seconds: float) -> None:
        """Let simulated time pass; raises ValueError for a negative or infinite time."""
        _ = self.scenario
        if not (np.isfinite(seconds) and seconds >= 0):
            raise ValueError(f"ArmEnv.advance got {seconds} s: use a finite time >= 0")
        self._due_s += seconds
        step_s = float(self.model.opt.timestep)
        while (self._steps + 0.5) * step_s < self._due_s:
            if not self._referee.safeguard_stop:
                self.data.ctrl[:] += np.clip(self._goal - self.data.ctrl, -self._rate, self._rate)
            mujoco.mj_step(self.model, self.data)
            self._steps += 1
            if self._steps % _REFEREE_STEPS == 0:
                self._supervise()

    def outcome(self) -> Outcome:
        """How the episode stands."""
        _ = self.scenario
        return self._referee.outcome()

    def close(self) -> None:
        """Free the renderers."""
        for renderer in self._renderers.values():
            renderer.close()
        self._renderers.clear()

    def _supervise(self) -> None:
        part = self.data.qpos[self._part_at : self._part_at + 3]
        look_s = _REFEREE_STEPS * float(self.model.opt.timestep)
        for arm, site in enumerate(self._cups):
            self._vented_s[arm] = 0.0 if self._suction[arm] else self._vented_s[arm] + look_s
            if self._vented_s[arm] >= VENT_S:
                self.data.eq_active[arm] = 0
            elif self._suction[arm] and not self.holding:
                top = part + np.array([0, 0, layout.PART_HALF])
                self.data.eq_active[arm] = np.linalg.norm(self.data.site_xpos[site] - top) < layout.SUCTION_RANGE
        self._referee.update(self.time_s, self.data.site_xpos[self._cups[1]], part, self.holding)
        self._show_signals()

    def _show_signals(self) -> None:
        self._scene.paint("lamp", LAMP_RED_RGBA if self._referee.lamp_red else LAMP_GREEN_RGBA)
        self._scene.show(self.data, self._referee)

    def _place_part(self, scenario: Scenario) -> None:
        x, y = task_of(self.task).part_xy(scenario)
        dx, dy = self._draws.part_offset
        half_yaw = self._draws.part_yaw / 2
        pose = [x + dx, y + dy, layout.PART_HALF, np.cos(half_yaw), 0, 0, np.sin(half_yaw)]
        self.data.qpos[self._part_at : self._part_at + 7] = pose

    def _dress_scene(self, draws: Draws) -> None:
        for i, item in enumerate(draws.distractors):
            geom = self.model.geom(f"distractor_{i}").id
            self.model.geom_pos[geom] = (*item.xy, item.size[2])
            self.model.geom_size[geom] = item.size
            self.model.geom_rgba[geom] = item.rgba
        light = self.model.light("lamp_room").id
        self.model.light_dir[light] = draws.light_direction / np.linalg.norm(draws.light_direction)
        self.model.light_diffuse[light] = draws.light_diffuse
        self.model.vis.headlight.ambient[:] = draws.light_ambient
