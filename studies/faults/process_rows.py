"""Rows: nodes that are killed, frozen, ended and started again."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

from studies.faults.bench import MEMORY, POLICY, POLICY_STATUS
from studies.faults.judge import GREEN, MOTION, PROMISE
from studies.faults.robot import EYE
from studies.faults.setting import Setting
from studies.faults.trial import Row, Trial
from studies.faults.watch import ERROR, WARN
from trace_memory_ros.nodes.processes import ParameterValue

MARKER = "marker_node"
THEME = "processes"
FROZEN_S, LONG_S = 2.0, 8.0
"""Shorter and longer than the five seconds that ticks may lie behind."""
QUEUED, QUEUED_S = 10, (0.0, 0.002, 0.005)
"""Images at once before a freeze, and how long until it: some may be in the node's queue by then, and not yet taken."""
OFTEN, SHORT_S, BETWEEN_S = 8, 0.8, 0.6
RESETS = 10


def rows() -> Iterator[Row]:
    """By what happens to whom."""
    restored = "commands cease; the memory goes on from its snapshot, says its gap; the policy is ERROR until ~/enable"
    yield Row("memory_killed", THEME, "kill -9 of memory_node, started again", restored, _memory_killed)
    calm = "commands cease; the memory goes on; none before ~/enable"
    yield Row("policy_killed", THEME, "kill -9 of policy_node, started again", calm, _policy_killed)
    beside = "conditions and commands go on, all green"
    yield Row("marker_killed", THEME, "kill -9 of marker_node", beside, _marker_killed)
    yield Row("marker_frozen", THEME, "SIGSTOP of marker_node for 2 s", beside, _marker_frozen)
    named = "the policy names the silence, commands cease, nothing old after; the memory is kept"
    yield Row("memory_frozen", THEME, "SIGSTOP of memory_node for 2 s", named, _memory_frozen)
    gap = "the policy names the silence, commands cease; the memory is kept, says which ticks it lacks, and they go on"
    text = "three times SIGSTOP of memory_node for 8 s, images in its queue"
    yield Row("memory_frozen_long", THEME, text, gap, _memory_frozen_long)
    nothing_old = "no command that is older than its limit; it acts again; the memory is kept"
    yield Row("policy_frozen", THEME, "SIGSTOP of policy_node for 2 s", nothing_old, _policy_frozen)
    slow, text = Setting(reliability="reliable"), "SIGSTOP of policy_node for 2 s, its streams reliable"
    yield Row("policy_frozen_reliable", THEME, text, nothing_old, _policy_frozen, slow)
    yield Row("policy_frozen_long", THEME, "SIGSTOP of policy_node for 8 s", nothing_old, _policy_frozen_long)
    yield Row(
        "policy_frozen_often", THEME, "SIGSTOP of policy_node, eight times 0.8 s", nothing_old, _policy_frozen_often
    )
    anew = "exit code 0; the episode has ended, a new memory begins empty; the policy is ERROR until ~/enable"
    yield Row("memory_sigterm", THEME, "SIGTERM of memory_node, started again", anew, _memory_sigterm)
    yield Row("policy_sigterm", THEME, "SIGTERM of policy_node, started again", f"exit code 0; {calm}", _policy_sigterm)
    told = "commands cease; a new episode begins"
    yield Row("memory_cycled", THEME, "memory_node taken through its lifecycle", told, _memory_cycled)
    text = "ten resets of memory and policy within two seconds, in midst of ticks"
    yield Row("resets", THEME, text, "a new episode each; then all is well", _resets)


def _memory_killed(trial: Trial) -> None:
    bench, watch = trial.bench, trial.watch
    bench.kill(MEMORY)
    trial.named("policy", WARN, "no condition for")
    trial.commands_cease()
    bench.start(MEMORY)
    bench.ready(MEMORY)
    trial.expect(PROMISE, "the memory goes on, restored", lambda: watch.newest is not None and watch.newest.restored)
    before, after = trial.before, watch.newest
    if before is not None and after is not None:
        trial.check(PROMISE, "the episode is the one of before", before.episode == after.episode)
        trial.check(PROMISE, "its gap is said", after.gap_ticks > 0)
    trial.named("memory", WARN, "restored from a snapshot")
    trial.named("policy", ERROR, "changed in mid-episode")
    trial.stands_still("no command before ~/enable")
    bench.client.trigger("policy_node/enable")
    trial.commands_go_on()
    trial.begins_anew()


def _policy_killed(trial: Trial) -> None:
    trial.bench.kill(POLICY)
    _policy_starts_again(trial)


def _policy_starts_again(trial: Trial) -> None:
    trial.commands_cease()
    trial.bench.start(POLICY)
    trial.bench.ready(POLICY)
    trial.stands_still("no command before ~/enable")
    trial.named("policy", WARN, "~/enable")
    trial.bench.client.trigger("policy_node/enable")
    trial.recovers()


def _with_marker(trial: Trial) -> None:
    checkpoint = str(trial.bench.checkpoint)
    marker: dict[str, ParameterValue] = {"checkpoint": checkpoint, "autostart": True}
    trial.bench.start(MARKER, parameters=marker)
    trial.bench.ready(MARKER)


def _marker_killed(trial: Trial) -> None:
    _with_marker(trial)
    trial.bench.kill(MARKER)
    trial.commands_go_on(20)
    trial.expect(GREEN, "all stays green", trial.well)
    trial.recovers()


def _marker_frozen(trial: Trial) -> None:
    _with_marker(trial)
    trial.bench.send(MARKER, signal.SIGSTOP)
    trial.commands_go_on(20)
    trial.bench.send(MARKER, signal.SIGCONT)
    trial.recovers()
    trial.bench.send(MARKER, signal.SIGTERM)
    trial.ends(MARKER, 0)


def _frozen(trial: Trial, key: str, seconds: float) -> None:
    trial.bench.send(key, signal.SIGSTOP)
    trial.bench.play(seconds)
    trial.bench.send(key, signal.SIGCONT)


def _memory_frozen(trial: Trial) -> None:
    trial.bench.send(MEMORY, signal.SIGSTOP)
    trial.named("policy", WARN, "no condition for")
    trial.stands_still("commands have ceased")
    trial.bench.send(MEMORY, signal.SIGCONT)
    trial.recovers()


def _memory_frozen_long(trial: Trial) -> None:
    for seconds in QUEUED_S:
        _freeze_with_a_full_queue(trial, seconds)
        trial.begins_anew()


def _freeze_with_a_full_queue(trial: Trial, seconds: float) -> None:
    bench, watch = trial.bench, trial.watch
    before = watch.newest
    trial.robot.burst(EYE, QUEUED)
    time.sleep(seconds)
    bench.send(MEMORY, signal.SIGSTOP)
    begun = time.monotonic()
    trial.named("policy", WARN, "no condition for")
    trial.stands_still("commands have ceased")
    bench.play(LONG_S - (time.monotonic() - begun))
    bench.send(MEMORY, signal.SIGCONT)
    trial.named("memory", WARN, "control ticks")
    trial.commands_go_on()
    after = watch.newest
    if before is not None and after is not None:
        same = (before.instance, before.episode) == (after.instance, after.episode)
        trial.check(PROMISE, "the memory is the one of before", same and after.tick > before.tick)
        trial.check(PROMISE, "its gap is said", after.gap_ticks > before.gap_ticks)
        trial.seen.append(f"{after.gap_ticks} ticks are missing")


def _policy_frozen(trial: Trial) -> None:
    _frozen(trial, POLICY, FROZEN_S)
    _acts_again(trial)


def _policy_frozen_long(trial: Trial) -> None:
    _frozen(trial, POLICY, LONG_S)
    _acts_again(trial)


def _policy_frozen_often(trial: Trial) -> None:
    for _ in range(OFTEN):
        _frozen(trial, POLICY, SHORT_S)
        trial.bench.play(BETWEEN_S)
    _acts_again(trial)


def _acts_again(trial: Trial) -> None:
    begun, given = time.monotonic(), len(trial.watch.arm)
    trial.bench.play_until(lambda: len(trial.watch.arm) > given, 60.0)
    trial.seen.append(f"first command {time.monotonic() - begun:.1f} s after it woke")
    counts = {key: trial.watch.value(POLICY_STATUS, key) for key in ("late_commands", "superseded", "no_command")}
    trial.seen.append(", ".join(f"{key} {count}" for key, count in counts.items()))
    late = max(((one.got_ns - one.stamp_ns) / 1e6 for one in trial.watch.arm), default=0.0)
    trial.seen.append(f"oldest command was {late:.0f} ms old when it came")
    trial.recovers()


def _memory_sigterm(trial: Trial) -> None:
    bench = trial.bench
    bench.send(MEMORY, signal.SIGTERM)
    trial.ends(MEMORY, 0)
    trial.check(PROMISE, "its snapshot went with the episode", not list(bench.kept.glob("*.safetensors")))
    trial.named("policy", WARN, "no condition for")
    trial.commands_cease()
    bench.start(MEMORY)
    bench.ready(MEMORY)
    trial.named("policy", ERROR, "changed in mid-episode")
    trial.stands_still("no command before ~/enable")
    trial.begins_anew()


def _policy_sigterm(trial: Trial) -> None:
    trial.bench.send(POLICY, signal.SIGTERM)
    trial.ends(POLICY, 0)
    _policy_starts_again(trial)


def _memory_cycled(trial: Trial) -> None:
    client = trial.bench.client
    for transition in ("deactivate", "cleanup", "configure"):
        client.change_state(MEMORY, transition)
    trial.commands_cease()
    client.change_state(MEMORY, "activate")
    trial.begins_anew()
    after = trial.watch.newest
    trial.check(
        PROMISE, "the episode is another", bool(trial.before and after and after.instance != trial.before.instance)
    )


def _resets(trial: Trial) -> None:
    for k in range(RESETS):
        trial.bench.client.trigger(f"{(MEMORY, POLICY)[k % 2]}/reset")
        trial.bench.play(0.13)
    trial.recovers(same_memory=False)
    episodes = {one.episode for one in trial.watch.conditions}
    trial.check(MOTION, "each reset of the memory began an episode", len(episodes) > RESETS // 2 - 2)
