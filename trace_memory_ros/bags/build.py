"""A bag to its episodes and its verdict."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.bags.actions import Commands
from trace_memory_ros.bags.branches import Branch, BranchTrack, branch_file, read_branches
from trace_memory_ros.bags.clocks import Doubt, EpisodeClocks
from trace_memory_ros.bags.episode import NO_STAMP, BagEpisode
from trace_memory_ros.bags.episodes import EpisodeSpan, spans
from trace_memory_ros.bags.faults import BagFault, BagVerdict, verdict_of
from trace_memory_ros.bags.judge import episode_faults
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.bags.storage import RawMessage
from trace_memory_ros.bags.ticks import MessageHandler, SpanTicks
from trace_memory_ros.bags.topics import faults_of, topic_faults
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.observation.frames import Frames
from trace_memory_ros.observation.types import Observation


def decode_bag(bag: str | Path, recording: RecordingConfig) -> tuple[list[BagEpisode], BagVerdict]:
    """All episodes of a bag that have a tick, and what is wrong with it. A fault is never an exception."""
    episodes: list[BagEpisode] = []
    faults: list[BagFault] = []
    try:
        with BagReader(bag) as reader:
            missing = list(topic_faults(reader, recording))
            if missing:
                return [], verdict_of(bag, [*reader.faults, *missing], usable=False)
            for span in spans(reader, recording):
                episodes.append(decode_episode(reader, recording, span))
            faults = faults_of(reader, recording)
    except BagFault as fault:
        return [], verdict_of(bag, [*faults, *fault.also, fault], usable=False)
    except OSError as error:
        what, where = f"cannot be read to its end ({error.strerror or error})", str(error.filename or "storage file")
        return [], verdict_of(bag, [BagFault(bag, what, where, "copy it from its disk again")], usable=False)
    faults = list(dict.fromkeys([*faults, *(note for episode in episodes for note in episode.notes)]))
    usable = any(episode.usable.any() for episode in episodes)
    return [episode for episode in episodes if episode.ticks], verdict_of(bag, faults, usable)


def decode_episode(reader: BagReader, recording: RecordingConfig, span: EpisodeSpan) -> BagEpisode:
    """One episode of an open bag; its `notes` say what is wrong with it. Raises BagFault for a bad sidecar file."""
    config = recording.observation
    definitions = {name: info.definition for name, info in reader.topics.items()}
    commands = None if recording.actions is None else Commands(recording, span.begin_stamp_ns, definitions)
    clocks, marks = EpisodeClocks(recording, span), BranchTrack()
    ticks = SpanTicks(reader, recording, span, _handlers(recording, commands, clocks, marks))
    seen = list(ticks)
    arrays = _arrays(config, seen)
    actions, doubts = _labels(commands, clocks, arrays)
    branches, branch_notes = _branches(recording, span, seen, marks)
    stem = stem_of(Path(span.bag))
    return BagEpisode(
        name=stem if recording.episodes.kind == "bag" else f"{stem}#{span.index}",
        bag=span.bag,
        span=span,
        streams=tuple(stream.name for stream in config.inputs),
        images={name: _frames(seen, name, config.px_of(name)) for name in config.camera_names},
        **arrays,
        faults={k: dict(observation.faults) for k, observation in enumerate(seen) if observation.faults},
        actions=actions,
        action_names=() if recording.actions is None else recording.actions.names,
        branches=branches,
        counters={
            name: {**asdict(counters), **asdict(ticks.feeder.counters[name])}
            for name, counters in ticks.observer.counters.items()
        },
        notes=(*episode_faults(recording, ticks, seen, commands, actions, doubts), *branch_notes),
        unfinished=ticks.unfinished,
    )


def stem_of(bag: Path) -> str:
    """What the names of a bag's episodes begin with."""
    return bag.name or str(bag)


def _labels(
    commands: Commands | None, clocks: EpisodeClocks, arrays: dict[str, np.ndarray]
) -> tuple[NDArray[np.float32] | None, list[Doubt]]:
    """Every tick's actions, NaN for those of a part whose time base is in doubt, and these doubts."""
    if commands is None:
        return None, []
    stamps, state = arrays["stamps_ns"].tolist(), arrays["state"]
    actions, doubts = commands.labels(stamps, state), clocks.doubts(commands, stamps, state)
    for doubt in doubts:
        actions[:, commands.columns(doubt.topic) if doubt.topic else slice(None)] = np.nan
    return actions, doubts


def _handlers(
    recording: RecordingConfig, commands: Commands | None, clocks: EpisodeClocks, marks: BranchTrack
) -> dict[str, MessageHandler]:
    found: dict[str, list[MessageHandler]] = {}
    if commands is not None:
        for topic, track in commands.tracks.items():
            found.setdefault(topic, []).append(track.take)
        for topic in clocks.topics:
            found.setdefault(topic, []).append(clocks.take)
    if recording.branches is not None and recording.branches.topic:
        found.setdefault(recording.topic(recording.branches.topic), []).append(marks.take)
    return {topic: _each(handlers) for topic, handlers in found.items()}


def _each(handlers: list[MessageHandler]) -> MessageHandler:
    def handle(raw: RawMessage) -> None:
        for handler in handlers:
            handler(raw)

    return handle


def _branches(
    recording: RecordingConfig, span: EpisodeSpan, seen: list[Observation], marks: BranchTrack
) -> tuple[tuple[Branch, ...], list[BagFault]]:
    stamps = [observation.stamp_ns for observation in seen]
    path = branch_file(recording, Path(span.bag))
    if path is not None:
        try:
            return read_branches(path, span, stamps), []
        except BagFault as fault:
            return (), [fault]
    if recording.branches is None:
        return (), []
    arrivals = np.maximum.accumulate([observation.newest_arrival_ns for observation in seen] or [0]).tolist()
    found = marks.branches(stamps, arrivals if seen else [], recording.observation.period_ns)
    notes, where = [], f"topic {recording.topic(recording.branches.topic)}, episode {span.index}"
    if marks.malformed:
        what = f"{marks.malformed} annotations cannot be read: they are left out"
        notes.append(BagFault(span.bag, what, where, "restore the bag from a copy, or annotate it in a file"))
    outside = len(marks.marks) - len(found)
    if outside and recording.episodes.kind == "bag":
        # Elsewhere they may be of the episode before or after.
        what = f"{outside} of {len(marks.marks)} annotations came before the first tick or after the last: left out"
        remedy = "publish each at its decision, while the streams are recorded, or annotate it in a file"
        notes.append(BagFault(span.bag, what, where, remedy))
    return found, notes


def _frames(seen: list[Observation], camera: str, px: int) -> Frames:
    """A camera's images; ticks that hold the same sample share one."""
    black = np.zeros((px, px, 3), dtype=np.uint8)
    pixels: list[NDArray[np.uint8]] = []
    index = np.zeros(len(seen), dtype=np.int64)
    for k, observation in enumerate(seen):
        image = observation.images.get(camera, black)
        if not pixels or image is not pixels[-1]:
            pixels.append(image)
        index[k] = len(pixels) - 1
    return Frames(np.stack(pixels or [black]), index)


def _arrays(config: ObservationConfig, seen: list[Observation]) -> dict[str, np.ndarray]:
    count = len(seen)
    state = np.full((count, config.state_dim), np.nan)
    held = np.full((count, len(config.inputs)), NO_STAMP, dtype=np.int64)
    for k, observation in enumerate(seen):
        if observation.state is not None:
            state[k] = observation.state
        for s, stream in enumerate(config.inputs):
            held[k, s] = observation.input_stamps_ns.get(stream.name, NO_STAMP)
    return {
        "stamps_ns": np.array([observation.stamp_ns for observation in seen], dtype=np.int64),
        "state": state,
        "usable": np.array([observation.usable for observation in seen], dtype=bool),
        "input_stamps_ns": held,
    }
