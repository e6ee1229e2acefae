"""Expert-driven episodes up to the branch, recorded once and then scanned by every memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.arm.sim.env import ArmEnv
from trace_memory_ros.arm.sim.expert import Expert
from trace_memory_ros.arm.sim.names import PERIOD_S
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.files import atomic
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.observation.images import prepare, shrunk
from trace_memory_ros.observation.lockstep import LockstepObserver
from trace_memory_ros.runtime.clock import ClockRule, UpdateClock
from trace_memory_ros.signature.normalise import Standardiser


@dataclass(frozen=True)
class ExpertEpisode:
    """What a memory was to see before the branch.

    thumbnails: `(W, C, p, p, 3)` uint8 at the ticks `writes` `(W,)`; state: `(T, 17)` SI units, the last row at the
    branch tick; images: `(C, P, P, 3)` uint8 there; actions: `(H, A)` the expert's, from there on.
    """

    thumbnails: NDArray[np.uint8]
    writes: NDArray[np.int64]
    state: NDArray[np.float64]
    images: NDArray[np.uint8]
    actions: NDArray[np.float32]

    @property
    def branch_tick(self) -> int:
        """The first tick at which the twins act differently."""
        return len(self.state) - 1

    def save(self, path: Path) -> None:
        """Write the file in one move."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic.replacing(path) as partial:
            np.savez_compressed(
                partial,
                thumbnails=self.thumbnails,
                writes=self.writes,
                state=self.state,
                images=self.images,
                actions=self.actions,
            )

    @classmethod
    def load(cls, path: Path) -> ExpertEpisode:
        """Read what `save` wrote."""
        with np.load(path, allow_pickle=False) as data:
            return cls(data["thumbnails"], data["writes"], data["state"], data["images"], data["actions"])


class ExpertRecorder:
    """Lets the undisturbed expert drive, and looks only when a memory of this normaliser and clock would be written."""

    def __init__(
        self, task: str, config: ObservationConfig, normaliser: Standardiser, rule: ClockRule, chunk: int
    ) -> None:
        self.env = ArmEnv(task)
        self.config = config
        self.normaliser = normaliser
        self.rule = rule
        self.chunk = chunk
        # The observer reads the joints of every tick; what it is shown while nobody looks does not matter.
        self._unseen = config.black_images()

    def record(self, scenario: Scenario) -> ExpertEpisode:
        """Drive the scenario to its end. Raises RuntimeError when the expert fails or never waits at the branch."""
        env, observer, clock = self.env, LockstepObserver(self.config), UpdateClock(self.rule)
        env.reset(scenario)
        expert = Expert(env, scenario)
        states: list[NDArray[np.float64]] = []
        actions, writes, seen = [], [], []
        images, branch, waited = None, -1, False
        while not env.outcome().finished:
            sample = env.observe(render=False)
            observation = observer.observe(self._unseen, sample.joint_positions, sample.base_velocity)
            assert observation.state is not None
            action = expert.act(sample)
            leaves, waited = waited and expert.phase != "wait", expert.phase == "wait"
            due = clock.due(self.config.path_of(self.normaliser.apply(observation.state)), observation.stamp_ns)
            if due or leaves:
                now = self._look()
            if due:
                writes.append(len(states))
                seen.append(shrunk(now, self.config.thumbnail_px))
            if leaves:
                images, branch = now, len(states)
            states.append(observation.state)
            actions.append(action.astype(np.float32))
            env.apply(action)
            env.advance(PERIOD_S)
        if not env.outcome().success or images is None or len(actions) < branch + self.chunk:
            raise RuntimeError(f"the expert failed {scenario} with {env.outcome()}: mend the expert or the scenario")
        before = int(np.searchsorted(writes, branch, side="right"))
        return ExpertEpisode(
            np.stack(seen[:before]),
            np.array(writes[:before]),
            np.stack(states[: branch + 1]),
            images,
            np.stack(actions[branch : branch + self.chunk]),
        )

    def close(self) -> None:
        """Release the simulator's renderer."""
        self.env.close()

    def _look(self) -> NDArray[np.uint8]:
        return np.stack([prepare(self.env.render(name), self.config.image_px) for name in self.config.camera_names])
