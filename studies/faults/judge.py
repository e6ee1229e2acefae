"""What may never be, whatever is wrong with the robot: asked of all that a row heard."""

from __future__ import annotations

import numpy as np

from studies.faults.robot import SECOND_NS, pose
from studies.faults.watch import Command, Condition, Watch

CRASH, MOTION, ZEROS, GREEN, PROMISE = COLUMNS = (
    "crash",
    "wrong or stale motion",
    "silent zeros",
    "green fault",
    "promise lost",
)
AGE_LIMIT_MS, HOLD_MS = 500, 500
SENDING_NS = 50_000_000
"""A command's age is looked at before it is written; on a busy machine a process may wait for its core in between."""
NEAR = 0.35
"""How far a command may be from where the joints were, rad: a random policy adds a few hundredths, a swap of joints
or a zero a whole radian."""
MOVED_NS = 150_000_000
"""By how much the samples of a tick may be older than it, as far as the arm's motion is concerned."""


def motion_faults(arm: list[Command], conditions: list[Condition]) -> list[str]:
    """Commands that are too old, out of order, of no tick, or not where the arm was at their tick."""
    faults = []
    good = {one.stamp_ns for one in conditions if one.status == "OK"}
    known = {one.stamp_ns for one in conditions}
    last_stamp, last_good = -1, -SECOND_NS * 1_000
    last_values = np.zeros(0)
    for one in sorted(arm, key=lambda command: command.sent_ns):
        age_ms = (one.sent_ns - one.stamp_ns) / 1e6
        if abs(age_ms) > AGE_LIMIT_MS + SENDING_NS / 1e6:
            faults.append(f"a command was sent {age_ms:.0f} ms after its tick")
        if one.stamp_ns <= last_stamp:
            faults.append("two commands of one tick, or one of an earlier tick after a later")
        if not np.isfinite(one.values).all():
            faults.append("a command without all joints, or not finite")
        elif known and one.stamp_ns not in known and one.stamp_ns > min(known):
            after_ms = (one.stamp_ns - max(known)) / 1e6
            faults.append(f"a command of a tick that no condition was of, {after_ms:.0f} ms after the newest")
        elif one.stamp_ns in good or not known or one.stamp_ns < min(known):
            off = _off(one)
            held = np.array_equal(one.values, last_values)
            if off > NEAR and not (held and one.stamp_ns - last_good <= HOLD_MS * 1_000_000):
                faults.append(f"a command {off:.2f} rad from where the joints were")
            last_good = one.stamp_ns
        elif one.stamp_ns - last_good > HOLD_MS * 1_000_000 or not np.array_equal(one.values, last_values):
            faults.append(f"a command {(one.stamp_ns - last_good) / 1e6:.0f} ms after the last good condition")
        last_stamp, last_values = one.stamp_ns, one.values
    return faults


def _off(one: Command) -> float:
    moments = np.linspace(one.stamp_ns - MOVED_NS, one.stamp_ns, 4)
    return float(min(np.abs(one.values - pose(int(ns))).max() for ns in moments))


def zero_faults(conditions: list[Condition], arm: list[Command]) -> list[str]:
    """OK conditions of nothing, and commands that a state of zeros would give."""
    faults = [f"tick {one.tick}: an OK condition of zeros" for one in conditions if one.empty]
    faults += [f"tick {c.tick}: OK without a sample of {', '.join(c.missing)}" for c in conditions if c.missing]
    near = [one for one in arm if np.isfinite(one.values).all() and np.abs(one.values).min() < NEAR]
    return faults + ["a joint was commanded near 0, where it never was"] * bool(near)


def tick_faults(conditions: list[Condition]) -> list[str]:
    """Ticks that a memory left out, or gave twice, without saying so."""
    faults = []
    for before, after in zip(conditions, conditions[1:], strict=False):
        if (before.instance, before.episode) != (after.instance, after.episode):
            continue
        missing = after.tick - before.tick - 1 - (after.gap_ticks - before.gap_ticks)
        if missing:
            faults.append(f"tick {after.tick} came after {before.tick}, a gap of {after.gap_ticks} ticks was said")
    return faults


def judged(watch: Watch) -> dict[str, list[str]]:
    """By column, each distinct fault once."""
    return {
        MOTION: _distinct(motion_faults(watch.arm, watch.conditions)),
        ZEROS: _distinct(zero_faults(watch.conditions, watch.arm)),
        PROMISE: _distinct(tick_faults(watch.conditions)),
    }


def _distinct(faults: list[str]) -> list[str]:
    return list(dict.fromkeys(faults))[:5]
