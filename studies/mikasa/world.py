"""MIKASA-Robo-VLA's environments, under the Python of their environment: one episode at a time.

Served by `studies.worlds.server`; requests: `describe` a task, `record` a demonstration into a file, `check` the
expert without pictures, `begin` an episode and `act` in it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import mikasa_robo_suite.vla.memory_envs  # noqa: F401  registers the environments
import numpy as np
import torch
import trimesh
from mani_skill.envs.sapien_env import BaseEnv
from mikasa_robo_suite.vla.utils import shapes
from mikasa_robo_suite.vla.utils.apply_wrappers import VLA_WRAPPER_CONFIGS, apply_mikasa_vla_wrappers
from mikasa_robo_suite.vla.utils.wrappers import StateOnlyTensorToDictWrapper
from numpy.typing import NDArray

from studies.mikasa.expert import disturbed
from studies.mikasa.goals import Goal, choices, goal_of
from studies.mikasa.names import CAMERAS, COUNTED, PROPRIO, RATE_HZ, RECORDED, environment_id

# The renderer's code waits for a GPU even where there is none.
torch.cuda.synchronize = lambda *_: None
torch.set_num_threads(1)

BULB = Path(shapes.__file__).parent / "objects" / "low_poly_light_bulb.glb"
"""The bulb of the benchmark's lamps, which its wheel does not hold."""
BULB_RADIUS_M, BULB_MIDDLE_M = 0.035, 0.104
"""Of the sphere that takes its place, along the file's vertical axis: shown at 0.85 of this it stands on its lamp."""
STILL = 1e-6
"""m, rad: pictures are shown again until something has moved further since they were rendered; a pixel is 9 mm.

While the expert waited in a long task this spared four renderings in five, and of 1,200 ticks 26 differed from those
that were all rendered, by a single pixel or by 4 of 255 at most.
"""


class Step(NamedTuple):
    """What is seen at a tick and done there, and what the action led to.

    shown: the benchmark's observation. decision, answer: how many things were done, and which of the choices is next.
    """

    shown: Any
    decision: int
    answer: int
    action: NDArray[np.float32]
    success: bool


def make(task: str, pictures: bool = True) -> gym.Env:
    """The canonical environment of a task, with its wrappers; without `pictures` nothing is rendered."""
    name = environment_id(task)
    if task in COUNTED and not BULB.exists():
        write_bulb(BULB)
    kind = {"obs_mode": "rgb", "render_mode": "all"} if pictures else {"obs_mode": "state", "render_mode": None}
    env = gym.make(
        name,
        num_envs=1,
        control_mode="pd_ee_delta_pose",
        reward_mode="normalized_dense",
        sim_backend="cpu",
        # Without pictures too: a process that began with no renderer gets none later.
        render_backend="cpu",
        **kind,
    )
    if pictures:
        render_what_moves(env.unwrapped)
        return apply_mikasa_vla_wrappers(env, include_overlays=False)
    curriculum = VLA_WRAPPER_CONFIGS[name].curriculum_wrapper
    env = StateOnlyTensorToDictWrapper(env)
    return env if curriculum is None else curriculum(env)


def write_bulb(file: Path) -> None:
    """A sphere for the benchmark's bulb."""
    ball = trimesh.creation.icosphere(subdivisions=2, radius=BULB_RADIUS_M)
    ball.apply_translation([0.0, BULB_MIDDLE_M, 0.0])
    file.parent.mkdir(parents=True, exist_ok=True)
    ball.export(file)


def render_what_moves(base: BaseEnv) -> None:
    """Let an environment render anew when something has moved: while an expert waits in a long task nothing does."""
    render, kept = base._get_obs_sensor_data, None

    def sensor_data(*options: Any, **more: Any) -> dict[str, dict[str, torch.Tensor]]:
        nonlocal kept
        poses = torch.cat([base.agent.robot.get_qpos().flatten(), *_poses(base)])
        if kept is None or int(base.elapsed_steps[0]) == 0 or (poses - kept[0]).abs().max() > STILL:
            kept = poses, render(*options, **more)
        return {name: dict(shown) for name, shown in kept[1].items()}

    base._get_obs_sensor_data = sensor_data


def _poses(base: BaseEnv) -> list[torch.Tensor]:
    return [actor.pose.raw_pose.flatten() for actor in base.scene.actors.values()]


def phases(env: gym.Env) -> tuple[int, int]:
    """The tick at which the cue is gone, and that at which the answer is asked: the first that shows the choices."""
    cue, empty = (int(getattr(env.unwrapped, f"{name}_steps_per_env")[0]) for name in ("cue", "empty"))
    return cue, cue + empty


def succeeded(env: gym.Env, info: dict[str, Any]) -> bool:
    """Whether the right one of the choices is touched.

    The benchmark counts the cue as well, while it is shown. In its short tasks the arm is held until the choices come;
    in the long ones whoever goes to what is shown would succeed without a memory.
    """
    return bool(info["success"]) and int(env.unwrapped.elapsed_steps[0]) >= phases(env)[1]


def demonstrate(env: gym.Env, goal: Goal, seed: int, noise: np.random.Generator | None) -> Iterator[Step]:
    """The expert's episode, from a reset to its last step; it waits until the answer is asked."""
    shown, info = env.reset(seed=seed)
    base, (_, asked) = env.unwrapped, phases(env)
    tick, done = 0, False
    while not done:
        offset = goal.offset_m(base, info)
        action = goal.action(base, offset) if tick >= asked else np.zeros(7, np.float32)
        executed = action if noise is None or tick < asked else disturbed(action, offset, noise)
        seen, decision, answer = shown, goal.done(base), goal.answer(base, offset)
        shown, _, terminated, truncated, info = env.step(torch.from_numpy(executed)[None])
        success = succeeded(env, info)
        done = bool(terminated) or bool(truncated) or goal.over(base, success)
        yield Step(seen, decision, answer, action, success)
        tick += 1


def decisions(steps: list[Step], asked: int) -> tuple[list[int], list[int]]:
    """The ticks at which what is next becomes another, the first that shows the choices first of all, and answers."""
    later = [t for t in range(asked + 1, len(steps)) if steps[t].decision != steps[t - 1].decision]
    return [asked, *later], [steps[t].answer for t in (asked, *later)]


def choice_at(base: BaseEnv, hand: NDArray[np.float32], offset_m: NDArray[np.float64]) -> tuple[bool, float]:
    """Whether of all choices the right one is nearest to the hand, and how far beside the hand the right one is, m."""
    beside_m, there = offset_m[:2], choices(base)
    to_hand, to_target = (np.linalg.norm(there - at, axis=1) for at in (hand[:2], hand[:2] + beside_m))
    return bool(to_hand.argmin() == to_target.argmin()), float(np.linalg.norm(beside_m))


class Server:
    """One task's environment, and the episode that is being played in it."""

    def __init__(self, world: Any) -> None:
        self._made: dict[tuple[str, bool], gym.Env] = {}
        self._env: gym.Env | None = None
        self._goal: Goal | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what a request asks for."""
        found: dict[str, Any] = getattr(self, f"do_{request.pop('do')}")(**request)
        return found

    def do_describe(self, task: str) -> dict[str, Any]:
        env = self._of(task)
        return {
            "steps": int(env.max_episode_steps),
            "rate_hz": int(env.unwrapped.control_freq),
            "expected_rate_hz": RATE_HZ,
            "actions": int(np.prod(env.action_space.shape)),
            "instruction": str(env.unwrapped.LANGUAGE_INSTRUCTION),
        }

    def do_record(self, task: str, seed: int, file: str) -> dict[str, Any]:
        env, noise = self._of(task), np.random.default_rng([seed, 1])
        steps = list(demonstrate(env, goal_of(task), seed, noise))
        cue, asked = phases(env)
        success = any(step.success for step in steps)
        found: dict[str, Any] = {
            "schema": RECORDED,
            "seed": seed,
            "success": success,
            "success_at_end": steps[-1].success,
        }
        if success:
            seen = [_parts(step.shown) for step in steps]
            ticks, answers = decisions(steps, asked)
            found |= {name: np.stack([pictures[c] for pictures, _ in seen]) for c, name in enumerate(CAMERAS)}
            found |= {"proprio": np.stack([proprio for _, proprio in seen])}
            found |= {"actions": np.stack([step.action for step in steps])}
            found |= {"cue_gone": cue, "asked": ticks, "answer": answers, "choices": len(choices(env.unwrapped))}
        # In one move: an interrupted recording leaves no file that looks whole.
        np.savez_compressed(f"{file}.partial.npz", **found)
        Path(f"{file}.partial.npz").replace(file)
        return {"success": success, "steps": len(steps)}

    def do_check(self, task: str, seed: int) -> dict[str, Any]:
        env = self._of(task, pictures=False)
        steps = list(demonstrate(env, goal_of(task), seed, None))
        return {"success": any(s.success for s in steps), "at_end": steps[-1].success, "steps": len(steps)}

    def do_begin(self, task: str, seed: int) -> dict[str, Any]:
        self._env, self._goal = self._of(task), goal_of(task)
        shown, _ = self._env.reset(seed=seed)
        cue, asked = phases(self._env)
        return {**_sent(shown), "cue_gone": cue, "asked": asked}

    def do_act(self, action: list[float]) -> dict[str, Any]:
        assert self._env is not None and self._goal is not None
        given, base = torch.tensor([action], dtype=torch.float32).clamp(-1.0, 1.0), self._env.unwrapped
        shown, _, terminated, truncated, info = self._env.step(given)
        sent, success = _sent(shown), succeeded(self._env, info)
        right, beside_m = choice_at(base, np.asarray(sent["proprio"]), self._goal.offset_m(base, info))
        over = bool(terminated) or bool(truncated) or self._goal.over(base, success)
        told = {"success": success, "at_right": right, "beside_m": beside_m, "touched": self._goal.done(base)}
        return {**sent, **told, "done": over}

    def _of(self, task: str, pictures: bool = True) -> gym.Env:
        key = task, pictures
        if key not in self._made:
            for env in self._made.values():
                env.close()
            self._made = {key: make(task, pictures)}
        return self._made[key]


def _parts(shown: Any) -> tuple[list[NDArray[np.uint8]], NDArray[np.float32]]:
    """Pictures `(128, 128, 3)` by camera, and what is shown of the robot; nothing else of an observation is taken."""
    rgb = shown["rgb"][0].numpy()
    proprio = shown["proprio"][0].numpy().astype(np.float32)
    assert len(proprio) == len(PROPRIO) and rgb.shape[-1] == 3 * len(CAMERAS)
    return [np.ascontiguousarray(rgb[..., 3 * c : 3 * c + 3]) for c in range(len(CAMERAS))], proprio


def _sent(shown: Any) -> dict[str, Any]:
    pictures, proprio = _parts(shown)
    return {"pictures": [base64.b64encode(p.tobytes()).decode() for p in pictures], "proprio": proprio.tolist()}
