"""One live run in a bag, for all that replays it."""

from pathlib import Path

import pytest
from fixtures import tiny_checkpoint
from replay.simulated_live import BURSTS, SECONDS, SimulatedLive

from trace_memory_ros.observation.config import default_arm
from trace_memory_ros.runtime.condition import Condition


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained TRACE that also needs odometry."""
    folder = tmp_path_factory.mktemp("checkpoint")
    tiny_checkpoint(folder, observation=default_arm(base_masked=False), policy=False)
    return folder


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, checkpoint: Path) -> tuple[Path, list[Condition]]:
    """A bag of one episode in which everything reached both sides and no deadline passed."""
    bag = tmp_path_factory.mktemp("recorded") / "bag"
    live = SimulatedLive(bag, checkpoint)
    live.episode(SECONDS, **BURSTS)
    live.writer.close()
    return bag, live.conditions
