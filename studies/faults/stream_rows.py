"""Rows: what drivers send, or fail to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from math import inf, nan
from typing import Any

import numpy as np

from studies.faults.judge import GREEN, PROMISE
from studies.faults.robot import ENCODERS, EYE, JAW, JOINTS, RATES, WRIST, Disturbance
from studies.faults.setting import Setting
from studies.faults.trial import Row, Trial
from studies.faults.watch import ERROR, WARN

Change = Callable[[Any], Any]


@dataclass(frozen=True)
class StreamFault:
    """What a stream does, and what has to be said of it.

    part: status that names it, with `words`, at `level`; empty where nothing is wrong. stale: conditions turn STALE and
    commands cease; else they go on.
    """

    name: str
    theme: str
    fault: str
    disturbance: Callable[[], Disturbance]
    part: str = ""
    words: tuple[str, ...] = ()
    level: int = ERROR
    stale: bool = True

    def row(self) -> Row:
        """As a row of the matrix."""
        said = f"{self.part} is {('OK', 'WARN', 'ERROR')[self.level]}" if self.part else "nothing is called wrong"
        then = "conditions STALE, commands cease" if self.stale else "conditions OK, commands go on"
        return Row(self.name, self.theme, self.fault, f"{said}; {then}; the memory is kept", self.run)

    def run(self, trial: Trial) -> None:
        """Disturb, look, calm, look."""
        trial.robot.disturbance = self.disturbance()
        if self.stale:
            trial.conditions_become("STALE")
            trial.named(self.part, self.level, *self.words)
            trial.named("condition", ERROR, "STALE")
            trial.commands_cease()
        else:
            trial.commands_go_on(20)
            if self.part:
                trial.named(self.part, self.level, *self.words)
            else:
                trial.expect(GREEN, "all stays green", trial.well)
        trial.recovers()


def edited(stream: str, change: Change, share: float = 1.0) -> Callable[[], Disturbance]:
    """A disturbance that changes a share of a stream's messages, drawn once and for all."""

    def make() -> Disturbance:
        rng = np.random.default_rng(1)

        def edit(message: Any) -> list[Any]:
            if rng.random() >= share:
                return [message]
            changed = change(deepcopy(message))
            return changed if isinstance(changed, list) else [changed]

        return Disturbance(edits={stream: edit})

    return make


def repeated(*cameras: str) -> Callable[[], Disturbance]:
    """A disturbance whose cameras send what they sent first."""

    def make() -> Disturbance:
        kept: dict[str, Any] = {}

        def edit(camera: str, message: Any) -> list[Any]:
            message.data = kept.setdefault(camera, message.data)
            return [message]

        return Disturbance(edits={camera: partial(edit, camera) for camera in cameras})

    return make


def rated(**rates: float) -> Callable[[], Disturbance]:
    """A disturbance of rates."""
    return lambda: Disturbance(rates=rates)


def _set(**values: Any) -> Change:
    def change(message: Any) -> Any:
        for name, value in values.items():
            setattr(message, name, value)
        return message

    return change


def _half_size(message: Any) -> Any:
    message.height //= 2
    message.data = message.data[: message.height * message.step]
    return message


def _cut_file(message: Any) -> Any:
    message.data = message.data[: len(message.data) // 3]
    return message


def _noise(message: Any) -> Any:
    message.data = np.random.default_rng(0).integers(0, 256, 900, dtype=np.uint8).tobytes()
    return message


def _joint(value: float) -> Change:
    def change(message: Any) -> Any:
        message.position[2] = value
        return message

    return change


def _in_degrees(message: Any) -> Any:
    message.position[2] = np.degrees(message.position[2])
    return message


def _without_joint(message: Any) -> Any:
    message.name, message.position = message.name[1:], message.position[1:]
    return message


def _reordered(message: Any) -> Any:
    order = [4, 2, 0, 5, 1, 3]
    message.name = [message.name[i] for i in order]
    message.position = [message.position[i] for i in order]
    return message


def _twice_named(message: Any) -> Any:
    message.name = [*message.name, JOINTS[1]]
    message.position = [*message.position, 0.0]
    return message


def _shifted(ms: int) -> Change:
    def change(message: Any) -> Any:
        ns = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec + ms * 1_000_000
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(ns, 1_000_000_000)
        return message

    return change


def _unstamped(message: Any) -> Any:
    message.header.stamp.sec = message.header.stamp.nanosec = 0
    return message


def _again_with_a_zero(message: Any) -> Any:
    later = deepcopy(message)
    later.position[0] = 0.0
    return [message, later]


def _faults() -> Iterator[StreamFault]:
    """Name, theme, what is wrong, how it is done; then what is said of it."""
    silent = ("no message on",)
    yield StreamFault(
        "camera_freeze", "camera", "the first camera, the ticks' clock, sends nothing", rated(eye=0), EYE, silent
    )
    yield StreamFault("camera_2_freeze", "camera", "the second camera sends nothing", rated(wrist=0), WRIST, silent)
    yield StreamFault("camera_5hz", "camera", "the first camera at 5 of 20 Hz", rated(eye=5), stale=False)
    fifth = {stream: edited(stream, lambda message: [], 0.2)().edits[stream] for stream in RATES}
    text = "a fifth of all messages of all streams is lost"
    yield StreamFault("messages_lost", "network", text, partial(Disturbance, edits=fifth), stale=False)
    lost = edited(EYE, lambda message: [], 0.5)
    yield StreamFault("camera_loss", "camera", "half of the first camera's images are lost", lost, stale=False)
    yield StreamFault(
        "camera_encoding", "camera", "images of encoding 8SC3", edited(EYE, _set(encoding="8SC3")), EYE, ("8SC3",)
    )
    yield StreamFault("camera_size", "camera", "images of half the height", edited(EYE, _half_size), EYE, ("48",))
    yield StreamFault("camera_short", "camera", "images whose data end early", edited(EYE, _cut_file), EYE)
    yield StreamFault("jpeg_cut", "camera", "JPEG files cut to a third", edited(WRIST, _cut_file), WRIST)
    yield StreamFault("jpeg_noise", "camera", "JPEG files of random bytes", edited(WRIST, _noise), WRIST)
    said = ("one and the same picture",)
    text = "the first camera repeats one picture, under fresh stamps"
    yield StreamFault("camera_repeats", "camera", text, repeated(EYE), EYE, said, WARN, stale=False)
    text = "both cameras repeat one picture each, under fresh stamps"
    yield StreamFault("cameras_repeat", "camera", text, repeated(EYE, WRIST), WRIST, said, WARN, stale=False)
    lagging = edited(EYE, _shifted(-1_000))
    yield StreamFault(
        "camera_lags", "stamps", "the first camera's stamps are a second behind", lagging, EYE, ("after its tick",)
    )

    yield StreamFault("joints_lost", "joints", "no joint states", rated(encoders=0), ENCODERS, silent)
    one, two = (JOINTS[0],), (JOINTS[2],)
    without = edited(ENCODERS, _without_joint)
    yield StreamFault("joint_missing", "joints", "one joint is left out", without, ENCODERS, one)
    yield StreamFault("joint_nan", "joints", "one joint is NaN", edited(ENCODERS, _joint(nan)), ENCODERS, two)
    yield StreamFault("joint_inf", "joints", "one joint is infinite", edited(ENCODERS, _joint(-inf)), ENCODERS, two)
    renamed = edited(ENCODERS, _set(name=[f"j{i}" for i in range(6)]))
    yield StreamFault("joint_renamed", "joints", "joints under other names", renamed, ENCODERS, one)
    twice = edited(ENCODERS, _twice_named)
    yield StreamFault("joint_twice", "joints", "a joint named twice, the second time 0", twice, ENCODERS, (JOINTS[1],))
    mixed = edited(ENCODERS, _reordered)
    yield StreamFault("joints_reordered", "joints", "joints in another order", mixed, stale=False)
    yield StreamFault("joints_1khz", "joints", "joint states at 1 kHz", rated(encoders=1000), stale=False)
    yield StreamFault("jaw_nan", "joints", "a number without a header is NaN", edited(JAW, _set(data=nan)), JAW)
    in_mm = edited(JAW, _set(data=40.0))
    far = (f"{JAW}.opening", "compare units")
    yield StreamFault("jaw_in_mm", "joints", "the jaw's opening in mm, not m", in_mm, "range", far, WARN, stale=False)

    doubled, words = edited(ENCODERS, _again_with_a_zero), ("stamp of the one before",)
    text = "every joint state twice, the second with a joint at 0"
    yield StreamFault("duplicated", "stamps", text, doubled, ENCODERS, words, WARN, stale=False)
    mixed, words = edited(ENCODERS, _shifted(-60), 0.2), ("before an earlier one",)
    text = "every fifth joint state is stamped 60 ms earlier"
    yield StreamFault("out_of_order", "stamps", text, mixed, ENCODERS, words, WARN, stale=False)
    zero = edited(ENCODERS, _unstamped)
    yield StreamFault("stamps_zero", "stamps", "joint states stamped 0", zero, ENCODERS, ("of zero",))
    hour = 3_600_000
    ahead, behind = edited(ENCODERS, _shifted(hour)), edited(ENCODERS, _shifted(-hour))
    yield StreamFault("stamps_future", "stamps", "joint states stamped an hour ahead", ahead, ENCODERS, ("ahead",))
    yield StreamFault("stamps_past", "stamps", "joint states stamped an hour ago", behind, ENCODERS, words)
    shifted = partial(Disturbance, shift_ns=hour * 1_000_000)
    text = "all headers jump ahead by an hour, what is stamped when received does not"
    yield StreamFault("headers_jump", "stamps", text, shifted, EYE, ("ahead",))


def rows() -> Iterator[Row]:
    """All of them, and those that go their own ways."""
    yield from (fault.row() for fault in _faults())
    yield Row(
        "camera_1hz",
        "camera",
        "the first camera at 1 of 20 Hz",
        "eye is ERROR, naming its age; conditions are OK only where the image is fresh; the memory is kept",
        _slow_camera,
    )
    yield Row(
        "camera_never",
        "camera",
        "a new episode whose first camera never starts",
        "eye is ERROR, naming that nobody publishes; no condition, no command; then the episode begins",
        _camera_never,
    )
    yield Row(
        "joint_in_degrees",
        "joints",
        "a joint that commands are relative to in degrees, not rad",
        "range is WARN, the policy names the joint, commands cease; the memory is kept",
        _joint_in_degrees,
    )
    for name, hours, words in (("forth", 1, "ahead"), ("back", -1, "back")):
        yield Row(
            f"clock_jump_{name}",
            "stamps",
            f"all stamps jump {words} by an hour",
            "condition is ERROR, naming the jump; no condition, no command until ~/reset, then a new episode",
            _jump(hours, words),
            bench=Setting(headers_only=True),
        )


def _slow_camera(trial: Trial) -> None:
    trial.robot.disturbance = rated(eye=1.0)()
    trial.expect(GREEN, "a STALE condition", lambda: "STALE" in trial.watch.statuses(20))
    trial.named(EYE, ERROR)
    trial.bench.play(2.0)
    trial.recovers()


def _camera_never(trial: Trial) -> None:
    trial.robot.disturbance = rated(eye=0.0)()
    trial.bench.client.trigger("memory_node/reset")
    trial.watch.clear()
    trial.named(EYE, ERROR, "no message on")
    trial.named("condition", ERROR, "no control tick")
    trial.conditions_cease()
    trial.commands_cease()
    trial.recovers(same_memory=False)


def _joint_in_degrees(trial: Trial) -> None:
    trial.robot.disturbance = edited(ENCODERS, _in_degrees)()
    trial.named("range", WARN, JOINTS[2], "compare units")
    trial.named("policy", WARN, f"relative to {ENCODERS}.position.{JOINTS[2]}")
    trial.commands_cease()
    trial.recovers()


def _jump(hours: int, words: str) -> Callable[[Trial], None]:
    def run(trial: Trial) -> None:
        trial.robot.disturbance = Disturbance(shift_ns=hours * 3_600 * 1_000_000_000)
        trial.named("condition", ERROR, "jumped", words)
        trial.conditions_cease()
        trial.commands_cease()
        trial.robot.calm()
        trial.named("condition", ERROR, "~/reset")
        trial.bench.client.trigger("memory_node/reset")
        trial.recovers(same_memory=False)
        before, after = trial.before, trial.watch.newest
        trial.check(PROMISE, "a new episode began", bool(before and after and after.episode > before.episode))

    return run
