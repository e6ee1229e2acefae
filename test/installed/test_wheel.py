"""A wheel in an environment without ROS, simulator and extras: every command that needs none of them works."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from installed.conftest import Run
from learning.tiny_bags import config_file, recording, write_bags

import trace_memory_ros
from trace_memory_ros.cli.main import remedy

ROOT = Path(__file__).parents[2]
# Each command is a process that imports all of torch; on a busy machine a few of them take minutes.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bags")
    write_bags(folder / "bags", 3, recording())
    config_file(folder, recording())
    return folder


@pytest.fixture(scope="module")
def command(site: Path) -> Path:
    """The console script that pip made."""
    return site / "bin" / "trace-memory"


@pytest.fixture(scope="module")
def trained(bags: Path, command: Path, run: Run) -> Path:
    """A checkpoint from `train BAGS`, which is thereby seen to need neither ROS nor simulator."""
    places = ["--config", bags / "observation.yaml", "--cache", bags / "cache", "--out", bags / "model"]
    short = ["--memory", "gru", "--steps", "2", "--chunk", "4", "--held-out", "0.34"]
    done = run([command, "train", bags / "bags", *places, *short])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "checkpoint, summary and page in" in done.stdout
    return bags / "model"


def test_the_wheel_holds_what_a_checkout_holds(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    shared = {path.relative_to(ROOT) for folder in ("config", "msg", "weights") for path in (ROOT / folder).rglob("*")}
    expected = {f"trace_memory_ros/share/{path}" for path in shared if (ROOT / path).is_file()}
    package = {path for path in (ROOT / "trace_memory_ros").rglob("*") if path.is_file()}
    expected |= {str(path.relative_to(ROOT)) for path in package if "__pycache__" not in path.parts}
    assert expected - names == set()
    assert {name for name in names if name.startswith(("studies", "test", "docs"))} == set()
    assert wheel.name.startswith(f"trace_memory_ros-{trace_memory_ros.__version__}-py3-none-any")


def test_help_names_every_command(command: Path, run: Run) -> None:
    done = run([command, "--help"])
    assert done.returncode == 0, done.stderr
    for name in ("train", "evaluate", "replay", "bags", "demo"):
        assert f"\n    {name} " in done.stdout


def test_a_bag_is_inspected(bags: Path, command: Path, run: Run) -> None:
    done = run([command, "bags", "inspect", bags / "bags" / "00_0", "--out", bags / "proposed.yaml"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "with it: 1 episodes" in done.stdout
    assert (bags / "proposed.yaml").is_file()


def test_a_bag_is_replayed_into_another(bags: Path, trained: Path, command: Path, run: Run) -> None:
    out = bags / "replayed"
    config = ["--config", bags / "observation.yaml"]
    done = run([command, "replay", bags / "bags" / "00_0", "--checkpoint", trained, *config, "--out", out])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "24 ticks in 1 episode(s): 24 OK" in done.stdout
    assert sum(file.stat().st_size for file in out.glob("*.mcap")) > 1000


def test_bags_are_evaluated(bags: Path, trained: Path, command: Path, run: Run) -> None:
    out = bags / "evaluated"
    options = ["--config", bags / "observation.yaml", "--cache", bags / "cache", "--out", out]
    done = run([command, "evaluate", bags / "bags" / "02_0", "--checkpoint", trained, *options])
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((out / "summary.json").read_text())["figures"]["verdict"]
    assert (out / "index.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("demonstrate", "origin", "--seeds", "1"), 'pip install "trace_memory_ros[sim]"'),
        (("demo",), 'pip install "trace_memory_ros[sim]"'),
        (("bench", "signature"), "checkout"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else None,
)
def test_what_is_not_installed_is_named_with_what_brings_it(
    arguments: tuple[str, ...], said: str, command: Path, run: Run
) -> None:
    done = run([command, *arguments])
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_diffusion_policy_names_its_extra(bags: Path, command: Path, run: Run) -> None:
    places = ["--config", bags / "observation.yaml", "--cache", bags / "cache", "--out", bags / "diffused"]
    done = run([command, "train", bags / "bags", *places, "--policy", "diffusion", "--steps", "2", "--chunk", "8"])
    assert done.returncode == 1
    assert 'pip install "trace_memory_ros[diffusion]"' in done.stderr


def test_shipped_checkpoints_and_messages_are_found(run: Run) -> None:
    code = (
        "from trace_memory_ros.runtime.checkpoint import load\n"
        "from trace_memory_ros.runtime.shipped import find_checkpoint, message_files\n"
        "print(load(find_checkpoint('origin_trace')).config.mechanism, len(message_files()))\n"
    )
    done = run(["-c", code])
    assert done.stdout.split() == ["trace", "3"], done.stderr


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("diffusers.schedulers.scheduling_ddim", "[diffusion]"),
        ("rclpy", "comes with ROS 2"),
        ("trace_memory_ros.msg", "colcon build"),
        ("sensor_msgs.msg", "comes with ROS 2"),
        ("yaml", "install this package again"),
    ],
)
def test_a_missing_module_has_a_remedy(module: str, said: str) -> None:
    assert said in remedy(module)


def test_a_missing_module_of_our_own_is_a_bug_and_keeps_its_traceback() -> None:
    assert remedy("trace_memory_ros.nowhere") == ""
