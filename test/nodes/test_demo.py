"""The demo's plan, what it makes of an episode, and what happens when a process dies or somebody presses Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from rosbags.highlevel import AnyReader

from trace_memory_ros.arm.demo.cell import CellResult, DemoFailed, Surroundings, run_cell
from trace_memory_ros.arm.demo.observer import TOPICS, EpisodeObserver, branch_moments, moments
from trace_memory_ros.arm.demo.plan import (
    CellPlan,
    DemoOptions,
    PlannedEpisode,
    lockstep_cells,
    realtime_cells,
    usual_memories,
)
from trace_memory_ros.arm.demo.results import EpisodeResult, Mode
from trace_memory_ros.arm.nodes.episode_client import EpisodeClient
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.msg import EpisodeStatus, MemoryDiagnostics
from trace_memory_ros.nodes import conversion
from trace_memory_ros.nodes.domains import DomainClaim

EVALUATION_SEEDS = 200_000
DEADLINE_S = 150.0


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    for name in ("origin_trace", "origin_none", "colour_trace", "colour_none"):
        (tmp_path / "weights" / name).mkdir(parents=True)
    return tmp_path / "weights"


def options(shelf: Path, **changed: object) -> DemoOptions:
    return DemoOptions(**{"memories": ("trace", "none"), "weights": shelf, **changed})  # type: ignore[arg-type]


def test_every_cell_sees_the_same_unseen_balanced_episodes(shelf: Path) -> None:
    cells = lockstep_cells(options(shelf, episodes=6))
    assert {(cell.task, cell.memory) for cell in cells} == {
        (t, m) for t in ("origin", "colour") for m in ("trace", "none")
    }
    for cell in cells:
        plain = [e.scenario for e in cell.episodes if not e.scenario.extra_pause_s]
        assert [s.cue for s in plain] == [0, 1] * 3
        assert [s.seed - EVALUATION_SEEDS for s in plain] == [0, 0, 1, 1, 2, 2]
        assert all(e.mode is Mode.LOCKSTEP for e in cell.episodes)
    assert sum(e.bag for cell in cells for e in cell.episodes) == 1


def test_another_policy_has_checkpoints_of_its_own(shelf: Path) -> None:
    (shelf / "colour_trace_diffusion").mkdir()
    wanted = {"tasks": ("colour",), "policy": "diffusion"}
    cells = lockstep_cells(options(shelf, memories=("trace",), **wanted))
    assert [cell.checkpoint.name for cell in cells] == ["colour_trace_diffusion"]
    with pytest.raises(ValueError, match=r"colour_none_diffusion.*train colour --memory none --policy diffusion --out"):
        lockstep_cells(options(shelf, memories=("none",), **wanted))


def test_memories_with_weights_for_all_tasks_are_compared(shelf: Path) -> None:
    assert usual_memories(("origin", "colour"), "act", shelf) == ("trace", "none")
    (shelf / "cups_gru").mkdir()
    assert usual_memories(("cups",), "act", shelf) == ("gru",)
    assert usual_memories(("cups", "origin"), "act", shelf) == ("trace", "gru", "first_frame", "none")
    (shelf / "colour_trace_diffusion").mkdir()
    assert usual_memories(("colour",), "diffusion", shelf) == ("trace",)


@pytest.mark.parametrize(
    ("changed", "trace", "none"),
    [
        ({"episodes": 4}, 2, 0),
        ({"episodes": 20}, 20, 4),
        ({"episodes": 4, "pause_episodes": 6}, 6, 6),
        ({"episodes": 4, "pause_episodes": 0}, 0, 0),
    ],
)
def test_pauses_prove_the_first_memory_and_show_the_others(shelf: Path, changed: dict, trace: int, none: int) -> None:
    for cell in lockstep_cells(options(shelf, **changed)):
        paused = [e for e in cell.episodes if e.scenario.extra_pause_s == 60.0]
        assert len(paused) == {"trace": trace, "none": none}[cell.memory]
        assert sum(e.scenario.cue for e in paused) * 2 == len(paused)


def test_without_a_pause_no_episode_is_counted_twice(shelf: Path) -> None:
    for cell in lockstep_cells(options(shelf, episodes=20, pause_s=0.0)):
        assert len({episode.scenario for episode in cell.episodes}) == len(cell.episodes) == 20


def test_real_time_is_run_with_the_first_memory_on_seeds_of_its_own(shelf: Path) -> None:
    cells = realtime_cells(options(shelf, realtime_s=80.0))
    assert [(cell.task, cell.memory, len(cell.episodes)) for cell in cells] == [
        ("origin", "trace", 2),
        ("colour", "trace", 2),
    ]
    lockstep = {e.scenario.seed for cell in lockstep_cells(options(shelf, episodes=200)) for e in cell.episodes}
    assert lockstep.isdisjoint(e.scenario.seed for cell in cells for e in cell.episodes)
    assert realtime_cells(options(shelf, realtime_s=0.0)) == []


def test_a_missing_checkpoint_names_the_command_that_trains_it(shelf: Path) -> None:
    (shelf / "colour_none").rmdir()
    with pytest.raises(
        ValueError, match=r"colour_none does not exist; train it: trace-memory train colour --memory none --out"
    ):
        lockstep_cells(options(shelf))


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"episodes": 3}, "episodes = 3: give an even number"),
        ({"pause_episodes": -2}, "pause episodes = -2"),
        ({"tasks": ("laundry",)}, "task 'laundry' is unknown"),
        ({"memories": ("gru", "gru")}, "memories = gru, gru"),
        ({"episodes": 0, "pause_episodes": 0, "realtime_s": 0.0}, "nothing to run"),
        ({"pause_episodes": 2, "pause_s": 0.0}, "2 pause episodes with a pause of 0 s"),
    ],
)
def test_bad_options_are_named(shelf: Path, changed: dict, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        options(shelf, **changed)


def statuses(*rows: tuple[float, float, int]) -> list[EpisodeStatus]:
    """(elapsed_s, stages completed of 7, branch); the cue is visible for 2 s."""
    return [
        EpisodeStatus(task="origin", elapsed_s=s, progress=stages / 7, branch=branch, cue_visible=s < 2.0)
        for s, stages, branch in rows
    ]


FULL = (
    (0.0, 0, -1),
    (2.0, 1, -1),
    (6.0, 2, -1),
    (9.0, 3, -1),
    (12.0, 4, -1),
    (16.0, 5, -1),
    (17.0, 5, -1),
    (20.0, 6, 1),
)


def test_moments_of_a_whole_episode() -> None:
    seen = statuses(*FULL, (22.0, 7, 1))
    assert branch_moments(seen) == (16.0, 20.0)
    assert moments(seen) == pytest.approx({"cue": 0.0, "gone": 2.3, "way": 9.0, "branch": 16.8, "end": 22.0})


def test_the_branch_is_found_without_a_decision_or_without_every_station() -> None:
    assert branch_moments(statuses(*FULL[:-1])) == (16.0, None)
    missed_one = [(s, stages - (s > 8), branch) for s, stages, branch in FULL]
    assert branch_moments(statuses(*missed_one)) == (16.0, 20.0)


def test_an_episode_that_got_nowhere_has_no_branch() -> None:
    assert branch_moments(statuses(*FULL[:4])) == (None, None)
    assert set(moments(statuses(*FULL[:4]))) == {"cue", "gone", "way", "end"}
    assert set(moments(statuses((0.0, 0, -1)))) == {"cue", "end"}


def test_what_is_left_of_an_earlier_episode_is_not_told_of_this_one() -> None:
    with EpisodeClient(name="watcher") as client:
        observer = EpisodeObserver(client)
        kept = EpisodeStatus(episode=4, phase=EpisodeStatus.FINISHED, elapsed_s=25.0, branch=1, progress=1.0)
        own = statuses(*FULL)
        for status in own:
            status.episode = 5
            status.header = conversion.header(round(status.elapsed_s * 1e9))
        observer.statuses = [kept, *own]
        observer.records = [
            MemoryDiagnostics(episode=8, header=conversion.header(25_000_000_000)),
            *(MemoryDiagnostics(episode=9, header=conversion.header(s * 10**9)) for s in (0, 1, 5)),
        ]
        timeline = observer.timeline()
    assert (timeline.branch_s, timeline.decided_s) == (16.0, 20.0)
    assert timeline.time_s.tolist() == [0.0, 1.0, 5.0]
    assert timeline.cue_visible.tolist() == [True, True, False]


def processes_of(folder: Path) -> dict[str, int]:
    """Node name -> pid of the running processes whose parameters lie in `folder`."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        files = [word for word in words if word.endswith(".yaml") and word.startswith(str(folder))]
        if files:
            found[Path(files[0]).stem] = int(entry.name)
    return found


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {DEADLINE_S} s"
        time.sleep(0.05)


def planned(checkpoint: Path, **options: bool) -> CellPlan:
    return CellPlan("colour", "trace", checkpoint, (PlannedEpisode(Scenario("colour", 200_000, 1), **options),))


# An undecided episode is 450 ticks long: seconds on an idle machine, minutes on one that is busy with something else.
@pytest.fixture(scope="module")
def ran(
    checkpoints: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, CellResult, list[EpisodeResult]]:
    folder = tmp_path_factory.mktemp("cell")
    told: list[EpisodeResult] = []
    with DomainClaim() as domain:
        where = Surroundings(domain, folder / "logs", folder / "bag", Event())
        result = run_cell(planned(checkpoints["trace"], record=True, bag=True), where, told.append)
    assert processes_of(folder) == {}
    return folder, result, told


@pytest.mark.timeout(400)
def test_a_cell_reports_every_tick_of_its_episode(ran: tuple[Path, CellResult, list[EpisodeResult]]) -> None:
    _, result, told = ran
    (episode,) = result.episodes
    assert told == [episode]
    assert episode.ticks_published == episode.ticks_expected > 100
    assert (episode.task, episode.memory, episode.seed, episode.cue) == ("colour", "trace", 200_000, 1)
    assert episode.write_count >= 1
    assert len(result.model_id) == 64
    assert result.latency_ms == ()


def test_a_recording_shows_the_episode(ran: tuple[Path, CellResult, list[EpisodeResult]]) -> None:
    _, result, _ = ran
    (recording,) = result.recordings
    timeline = recording.timeline
    assert len(timeline.time_s) == result.episodes[0].ticks_expected
    assert np.allclose(np.diff(timeline.time_s), 0.1)
    assert timeline.route.shape == timeline.read_weights.shape == (len(timeline.time_s), timeline.route.shape[1])
    assert np.allclose(timeline.read_weights.sum(axis=1), 1.0, atol=1e-5)
    assert timeline.wrote.sum() == result.episodes[0].write_count
    assert timeline.cue_visible[0]
    assert not timeline.cue_visible[-1]
    cue, gone = recording.frame("cue"), recording.frame("gone")
    assert cue is not None
    assert gone is not None
    # The panel lit up in yellow, far from any grey; then it is grey.
    saturation = [int(np.ptp(frame.image[4:18, 34:62].reshape(-1, 3).mean(axis=0))) for frame in (cue, gone)]
    assert saturation[0] > 100 > 60 > saturation[1]


def test_the_bag_of_a_cell_holds_every_topic(ran: tuple[Path, CellResult, list[EpisodeResult]]) -> None:
    folder, result, _ = ran
    expected = result.episodes[0].ticks_expected
    with AnyReader([folder / "bag"]) as reader:
        counts = {connection.topic: connection.msgcount for connection in reader.connections}
        assert reader.duration / 1e9 == pytest.approx(0.1 * expected, abs=0.5)
    assert set(counts) == {f"/{topic.name.lstrip('/')}" for topic in TOPICS}
    assert counts["/memory/condition"] == counts["/camera/overhead/image_raw"] == counts["/joint_states"] == expected
    assert counts["/memory/markers"] > 0


def test_a_dead_process_is_named_with_its_log_and_the_others_stop(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    class Deadly(Event):
        """Asked often whether to stop; kills memory_node instead, once all processes run."""

        killed = False

        def is_set(self) -> bool:
            log = tmp_path / "logs" / "policy_node.log"
            if not self.killed and log.exists() and "activate done" in log.read_text():
                os.kill(processes_of(tmp_path)["memory_node"], signal.SIGKILL)
                self.killed = True
            return False

    with DomainClaim() as domain:
        where = Surroundings(domain, tmp_path / "logs", tmp_path / "bag", Deadly())
        with pytest.raises(
            DemoFailed, match=r"colour_trace: /memory_node ended with exit code -9; the end of .*memory_node\.log"
        ):
            run_cell(planned(checkpoints["trace"]), where, lambda _: None)
    assert processes_of(tmp_path) == {}


@pytest.mark.timeout(400)
def test_ctrl_c_leaves_no_process_behind(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "origin_trace").symlink_to(checkpoints["trace"])
    command = [sys.executable, "-m", "trace_memory_ros.cli.main", "demo", "--task", "origin", "--memory", "trace"]
    command += ["--weights", str(tmp_path / "weights"), "--out", str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as demo:
        try:
            wait_for(lambda: len(processes_of(tmp_path)) == 5 or demo.poll() is not None, "five processes")
            demo.send_signal(signal.SIGINT)
            output, _ = demo.communicate(timeout=DEADLINE_S)
        finally:
            demo.kill()
    assert demo.returncode == 130, output
    assert "interrupted" in output
    assert "Traceback" not in output
    assert processes_of(tmp_path) == {}
