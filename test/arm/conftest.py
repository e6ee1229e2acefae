"""Made-up demo results for the tests of figures and pages."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from trace_memory_ros.arm.demo.results import DemoResult, EpisodeResult, Frame, IllustratedEpisode, Mode, Timeline

MOMENTS = ("cue", "gone", "way", "branch", "end")


def episode(
    task: str = "origin",
    memory: str = "trace",
    seed: int = 200_000,
    cue: int = 0,
    branch: int = 0,
    pause_s: float = 0.0,
    mode: Mode = Mode.LOCKSTEP,
    ticks_published: int = 260,
) -> EpisodeResult:
    return EpisodeResult(
        task=task,
        memory=memory,
        seed=seed,
        cue=cue,
        branch=branch,
        success=branch == cue,
        progress=1.0 if branch == cue else 5 / 7,
        duration_s=26.0 + pause_s,
        pause_s=pause_s,
        mode=mode,
        ticks_expected=260,
        ticks_published=ticks_published,
        ticks_stale=0,
        write_count=26,
        write_rate_hz=1.0,
        wall_s=9.0,
    )


def timeline(ticks: int = 260, slots: int = 6) -> Timeline:
    time_s = np.arange(ticks) / 10
    shares = np.random.default_rng(0).dirichlet(np.ones(slots), ticks) if slots else np.zeros((ticks, 0))
    return Timeline(
        time_s=time_s,
        route=shares.astype(np.float32),
        write_strength=shares.astype(np.float32),
        read_weights=shares.astype(np.float32),
        wrote=np.arange(ticks) % 10 == 0,
        cue_visible=time_s < 2.5,
        branch_s=20.0,
        decided_s=24.0,
    )


def recording(of: EpisodeResult, slots: int = 6) -> IllustratedEpisode:
    image = np.random.default_rng(of.cue).integers(0, 255, (96, 96, 3)).astype(np.uint8)
    return IllustratedEpisode(of, timeline(slots=slots), tuple(Frame(m, 5.0 * i, image) for i, m in enumerate(MOMENTS)))


def demo(trials: int = 20, none_successes: int = 10, latency_ms: float = 9.0, ticks_published: int = 260) -> DemoResult:
    """Both tasks, three memories; trace and gru always right, none right in `none_successes` of `trials`."""
    episodes = []
    for task in ("origin", "colour"):
        for memory in ("trace", "gru", "none"):
            right = none_successes if memory == "none" else trials
            for i in range(trials):
                cue = i % 2
                branch = cue if i < right else 1 - cue
                episodes.append(episode(task, memory, 200_000 + i // 2, cue, branch))
        episodes += [episode(task, "trace", 200_500, cue, cue, pause_s=60.0) for cue in (0, 1)]
    real = episode("origin", "trace", 200_900, 1, 1, mode=Mode.REALTIME, ticks_published=ticks_published)
    shown = [e for e in episodes if e.seed == 200_000 or e.pause_s]
    return DemoResult(
        tasks=("origin", "colour"),
        memories=("trace", "gru", "none"),
        episodes=(*episodes, real),
        latency_ms=np.linspace(latency_ms - 1, latency_ms + 1, 201).tolist(),
        recordings=tuple(recording(e, 6 if e.memory == "trace" else 0) for e in shown),
        model_ids={"origin_trace": "ab" * 32},
        wall_s=330.0,
        bag="out/demo/bag",
    )


@pytest.fixture(scope="session")
def made() -> SimpleNamespace:
    return SimpleNamespace(demo=demo, episode=episode, recording=recording, timeline=timeline)
