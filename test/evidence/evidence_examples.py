"""Made-up evidence for the tests of what reads it."""

from __future__ import annotations

from dataclasses import replace

from trace_memory_ros.evidence.results import (
    AttributionEvidence,
    BranchEvidence,
    EarlierLeftOut,
    EpisodeEvidence,
    Evaluation,
    FailedBag,
    ModelFacts,
    StabilityEvidence,
    Timeline,
    TransformEvidence,
    WriteAttribution,
)


def transform(name: str, similarity: float = 95.0, agrees: bool = True) -> TransformEvidence:
    return TransformEvidence(
        name, similarity, similarity - 1, 0.9, agrees, 97.5 if agrees else 47.5, "left", 0.1, 20, 0.1, 200, (1.0, 0.2)
    )


def write(tick: int, delta: float) -> WriteAttribution:
    return WriteAttribution(tick, tick * 10**8, 0.5, delta, delta, delta > 0.5, 2 * delta, 2 * delta, delta > 0.4)


def episode(name: str = "bag_0", label: str = "left", decision: str = "left") -> EpisodeEvidence:
    ticks, writes = 40, (0, 10, 20)
    stability = StabilityEvidence("reported", 1.0, "recorded history", 30, 3, 0.0, 0.0, 0.4, 0.5, 1.0, True, decision)
    return EpisodeEvidence(
        name=name,
        bag=f"bags/{name}",
        episode=0,
        task="origin",
        ticks=ticks,
        ticks_stale=0,
        ticks_invalid=0,
        period_ms=100.0,
        writes=3,
        slot_churn=0.5,
        write_entropy=0.4,
        slot_occupancy=0.5,
        route_by_chance=50.0,
        branches=(BranchEvidence(30, 30 * 10**8, label, decision, label == decision, 0.3, (0.7, 0.3), (1.0, 0.0)),),
        transforms=(transform("time_resampling"), transform("order_reversal", 60.0, agrees=False)),
        stability=(stability,),
        attributions=(
            AttributionEvidence(30, 30 * 10**8, label, decision, 3, tuple(write(t, 0.6 / (1 + t)) for t in writes), {}),
        ),
        timeline=Timeline(
            time_s=tuple(t / 10 for t in range(ticks)),
            status=(0,) * ticks,
            read_weights=((0.7, 0.3),) * ticks,
            write_ticks=writes,
            route=((0.9, 0.1), (0.2, 0.8), (0.4, 0.6)),
            write_strength=((0.5, 0.1), (0.1, 0.5), (0.2, 0.3)),
            gate=(1.0,) * 3,
            surprise=(0.0,) * 3,
        ),
        latency_ms={"memory": {"p50": 1.0, "p99": 2.0, "max": 3.0}},
        streams={"overhead": {"received": 40, "dropped": 0}},
        reasons={"slot_churn": "made up"},
    )


def evaluation() -> Evaluation:
    clock = {"kind": "path_length", "threshold": 1.0, "deadband": 1.0}
    model = ModelFacts(
        "weights/origin_trace", "ab" * 32, "origin", "trace", True, None, 2, "slot", clock, has_policy=True
    )
    failed = (FailedBag("bags/broken", "truncated", "byte 100", "record it again"),)
    episodes = (episode("bag_0"), episode("bag_1", "right", "left"))
    return Evaluation(model, {"seed": 0}, episodes, failed, {"branch_accuracy": 0.5})


def decided(name: str, label: str, decision: str, without: str) -> EpisodeEvidence:
    """An episode whose decision becomes `without` where earlier evidence is left out; the moment is its first tick."""
    made = episode(name, label, decision)
    earlier = EarlierLeftOut(2.0, 1, 0.8, 0.7, without, without != decision)
    return replace(made, attributions=tuple(replace(a, earlier=earlier) for a in made.attributions))
