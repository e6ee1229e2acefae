"""Expert demonstrations of the arm tasks as rosbag2 bags, the way a real robot would be recorded, without ROS."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from trace_memory_ros.arm.sim.curriculum import default_scenario
from trace_memory_ros.arm.sim.env import ArmEnv
from trace_memory_ros.arm.sim.names import ACTION_NAMES, CAMERA_NAMES
from trace_memory_ros.arm.sim.rollout import DemoStep, demonstrate
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.arm.sim.tasks.table import task_of
from trace_memory_ros.bags import fields, messages
from trace_memory_ros.bags.layout import METADATA
from trace_memory_ros.bags.recording import BranchConfig, EpisodeRule, RecordingConfig
from trace_memory_ros.bags.writer import BagFileWriter
from trace_memory_ros.measure.workers import start_worker
from trace_memory_ros.observation.config import default_arm
from trace_memory_ros.runtime.actions import ActionConfig

START_NS = 1_000_000_000
"""Stamp of an episode's first tick: a stamp of zero would mean that there is none."""
RUNNING, FINISHED = 1, 2
# Within a tick inputs come first, then what somebody says about them, then the answer.
_SENSED_NS, _TOLD_NS, _ANSWERED_NS = 1_000_000, 3_000_000, 5_000_000


def arm_recording() -> RecordingConfig:
    """What is what in these bags."""
    return RecordingConfig(
        observation=default_arm(),
        actions=ActionConfig.of_trajectory("command", ACTION_NAMES),
        episodes=EpisodeRule("topic", "episode"),
        branches=BranchConfig(topic="branch"),
    )


def bag_folder(folder: Path, scenario: Scenario) -> Path:
    """Where a scenario's bag lies."""
    kind = f"{scenario.task}_shown" if scenario.cue_stays else scenario.task
    return folder / f"{kind}_{scenario.seed:06d}_{scenario.cue}"


def record_bags(
    scenarios: Sequence[Scenario], folder: Path, compression: str = "chunk", workers: int = 1
) -> Iterator[Path]:
    """Record each scenario's demonstration, as it is done; finished bags are kept, so that this can be interrupted."""
    job = partial(_record_into, folder=folder, compression=compression)
    if workers <= 1:
        yield from map(job, scenarios)
        return
    with ProcessPoolExecutor(workers, initializer=start_worker) as pool:
        for future in as_completed([pool.submit(job, scenario) for scenario in scenarios]):
            yield future.result()


def record_bag(bag: Path, scenario: Scenario, env: ArmEnv, compression: str = "chunk") -> None:
    """Let the expert solve `scenario` under its disturbance and record what sensors saw and the expert wanted.

    Raises RuntimeError when the expert fails.
    """
    period_ns = arm_recording().observation.period_ns
    with BagFileWriter(bag, _topics(), compression=compression, whole=True) as writer:
        stamp_ns = START_NS
        for step in demonstrate(env, scenario):
            _write_tick(writer, scenario, step, stamp_ns, period_ns)
            stamp_ns += period_ns
        outcome = env.outcome()
        _write_status(writer, scenario, stamp_ns, FINISHED, outcome.branch, outcome.success)
        if not outcome.success:
            raise RuntimeError(f"the expert failed {scenario} with {outcome}: mend the expert or the scenario")


def _record_into(scenario: Scenario, folder: Path, compression: str) -> Path:
    bag = bag_folder(folder, scenario)
    if (bag / METADATA).exists():
        return bag
    if bag.exists():
        shutil.rmtree(bag)
    env = ArmEnv(scenario.task)
    try:
        record_bag(bag, scenario, env, compression)
    finally:
        env.close()
    return bag


def _topics() -> dict[str, str]:
    cameras = {f"camera/{name}/image_raw": fields.IMAGE for name in CAMERA_NAMES}
    return {
        **cameras,
        "joint_states": fields.JOINTS,
        "odom": fields.ODOMETRY,
        "command": fields.TRAJECTORY,
        "episode": fields.STATUS,
        "branch": fields.TEXT,
    }


def _write_tick(writer: BagFileWriter, scenario: Scenario, step: DemoStep, stamp_ns: int, period_ns: int) -> None:
    sample, sensed_ns = step.sample, stamp_ns + _SENSED_NS
    for name in CAMERA_NAMES:
        picture = messages.image(sample.images[name], stamp_ns, f"{name}_camera")
        writer.write(f"camera/{name}/image_raw", picture, sensed_ns)
    positions = sample.joint_positions
    writer.write("joint_states", messages.joint_state(list(positions), list(positions.values()), stamp_ns), sensed_ns)
    writer.write("odom", messages.odometry(sample.base_velocity, stamp_ns), sensed_ns)
    _write_status(writer, scenario, stamp_ns, RUNNING, step.outcome.branch, False, step.outcome.cue_visible)
    if step.decides:
        answer = scenario.answers[writer.counts["branch"]]
        writer.write("branch", messages.text(task_of(scenario.task).words[answer]), stamp_ns + _TOLD_NS)
    command = messages.trajectory(ACTION_NAMES, step.action, stamp_ns, period_ns)
    writer.write("command", command, stamp_ns + _ANSWERED_NS)


def _write_status(
    writer: BagFileWriter,
    scenario: Scenario,
    stamp_ns: int,
    phase: int,
    branch: int,
    success: bool,
    cue_visible: bool = False,
) -> None:
    status = messages.episode_status(
        stamp_ns,
        task=scenario.task,
        seed=scenario.seed,
        cue=scenario.cue,
        phase=phase,
        elapsed_s=(stamp_ns - START_NS) / 1e9,
        cue_visible=cue_visible,
        branch=branch,
        success=success,
    )
    writer.write("episode", status, stamp_ns + _TOLD_NS)


def scenarios_of(task: str, seeds: Sequence[int]) -> list[Scenario]:
    """All cues of every seed."""
    return [default_scenario(task, seed, cue) for seed in seeds for cue in range(task_of(task).choices)]
