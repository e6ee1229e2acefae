"""Which topics are cameras: one for each, colour or grey before depth, raw before packed, pictures before video."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.bags.inspection.proposal import Proposal
from trace_memory_ros.bags.inspection.words import camera_name, is_picture_word, words
from trace_memory_ros.bags.survey import IMAGES, TopicSurvey
from trace_memory_ros.files.names import unique

DEPTHS = ("16UC1", "32FC1")
PACKINGS = ("compressed", "zstd", "theora", "ffmpeg", "compresseddepth")
"""Last parts of the topics that image_transport makes of a camera's."""
DEPTH_RANGE_M = [0.2, 3.0]
SLOWEST_MS = 1500.0
"""Pictures that come more rarely, of a detector or a map, would be stale at most ticks, or cut episodes."""
DIM = 64
"""Level of 255 that the 14 bits of a sensor reach where nobody scales them to 16."""
VIDEO_NEEDS = 'video needs PyAV: pip install "trace_memory_ros[video]"'
SAME_STAMPS = 0.5
"""Share of equal stamps from which on two topics show the same pictures."""
MUCH_FEWER = 2
"""A topic of which so many times as much came in another form was lost on the way."""


@dataclass
class Camera:
    """A camera of the proposal. topic: absolute."""

    name: str
    topic: str
    found: TopicSurvey
    transport: str
    depth: bool = False


def cameras(proposal: Proposal, why: dict[str, str]) -> list[Camera]:
    """The cameras to use, by topic; `why` gets a reason for every other one that the package can read."""
    all_ = [_camera(topic, found) for topic, found in proposal.topics.items() if _has_pictures(found)]
    fit: list[Camera] = []
    for one in sorted(all_, key=_preference):
        refusal = one.found.refused.get(one.found.main_format, "")
        repeated = next((other for other in fit if _repeats(one, other)), None)
        if refusal:
            why[one.topic] = refusal
        elif repeated is not None and _came_whole(one, repeated):
            fit[fit.index(repeated)] = one
            came = f"{repeated.found.info.messages} of {one.found.info.messages} pictures came"
            why[repeated.topic] = f"{came}, the others as {one.topic}"
            proposal.notes.append(f"of {repeated.topic} {came}: {one.topic} is taken; see docs/how-to/images.md")
        elif repeated is not None:
            why[one.topic] = f"repeats {repeated.topic}"
        else:
            fit.append(one)
    fit = _without_slow(fit, why)
    kinds = [[c for c in fit if test(c)] for test in (_is_picture, _is_video, lambda camera: camera.depth)]
    chosen = next((kind for kind in kinds if kind), [])
    for one in fit:
        if one not in chosen:
            why[one.topic] = "depth" if one.depth else "video"
    if chosen and not _is_picture(chosen[0]):
        proposal.notes.append(f"no colour or grey images: {'depth' if chosen[0].depth else 'video'} is taken")
    if any(_is_video(one) for one in chosen):
        proposal.notes.append(VIDEO_NEEDS)
    for one in chosen:
        if not one.depth and 0 <= one.found.brightest <= DIM:
            proposal.notes.append(
                f"pictures of {one.topic} ({one.found.main_format}) are nowhere brighter than {one.found.brightest} of "
                "255: where its sensor has 10 to 14 bits, let the driver scale them to 16, or to 8"
            )
    return _named(sorted(chosen, key=lambda camera: camera.topic), proposal)


def _without_slow(fit: list[Camera], why: dict[str, str]) -> list[Camera]:
    """Without pictures that come now and then, where others come as a camera's do."""
    slow = [one for one in fit if _is_slow(one.found)]
    if all(one.depth or one in slow for one in fit):
        return fit
    for one in slow:
        why[one.topic] = "too rare for a camera"
    return [one for one in fit if one not in slow]


def _is_slow(found: TopicSurvey) -> bool:
    return found.looked_at <= len(found.stamps_ns) or (found.period_ms or 0.0) > SLOWEST_MS


def _named(chosen: list[Camera], proposal: Proposal) -> list[Camera]:
    taken: list[str] = []
    for one in chosen:
        one.name = unique(camera_name(proposal.named(one.topic)), taken)
        taken.append(one.name)
        proposal.uses[one.topic] = f"camera {one.name}"
    return chosen


def _has_pictures(found: TopicSurvey) -> bool:
    return found.info.type_name in IMAGES and found.readable


def _camera(topic: str, found: TopicSurvey) -> Camera:
    return Camera(camera_name(topic), topic, found, IMAGES[found.info.type_name], is_depth(topic, found))


def is_depth(topic: str, found: TopicSurvey) -> bool:
    """Whether the images are distances."""
    layout = found.main_format
    return layout.startswith(DEPTHS) or "compressedDepth" in layout or (layout[:6] == "mono16" and _says_depth(topic))


def _says_depth(topic: str) -> bool:
    return "depth" in words(topic)


def _is_picture(camera: Camera) -> bool:
    return camera.transport in ("raw", "compressed") and not camera.depth


def _is_video(camera: Camera) -> bool:
    return camera.transport not in ("raw", "compressed")


def _preference(camera: Camera) -> tuple[int, bool, bool, str]:
    """Raw images first; of one camera's, colour before grey and the plain ones before rectified ones."""
    order = list(IMAGES.values()).index(camera.transport)
    return order, camera.found.main_format.startswith("mono"), "rect" in words(camera.topic), camera.topic


def _repeats(one: Camera, other: Camera) -> bool:
    """Whether two topics show one camera's pictures: as image_transport names them, or by name and stamps."""
    parent, _, last = one.topic.rpartition("/")
    if last.lower() in PACKINGS and parent == other.topic:
        return True
    return one.depth == other.depth and _place(one.topic) == _place(other.topic) and _stamped_alike(one, other)


def _came_whole(packed: Camera, raw: Camera) -> bool:
    """Whether a camera's raw pictures were lost on the way to the recorder, and the packed ones were not."""
    copied = packed.topic.rpartition("/")[0] == raw.topic and packed.depth == raw.depth and not _is_video(packed)
    return copied and packed.found.info.messages > MUCH_FEWER * raw.found.info.messages


def _place(topic: str) -> tuple[str, ...]:
    """The camera's part of a topic: without the last parts that only say that there are pictures."""
    parts = [part for part in topic.split("/") if part]
    while parts and (is_picture_word(parts[-1]) or parts[-1].lower() in PACKINGS):
        parts.pop()
    return tuple(parts)


def _stamped_alike(one: Camera, other: Camera) -> bool:
    """Copies of an image have its stamp; cameras that are triggered together have it too, so names count first."""
    first, second = (_stamps(camera.found) for camera in (one, other))
    shared = len(np.intersect1d(first, second, assume_unique=True))
    return shared > SAME_STAMPS * min(len(first), len(second)) and shared > 0


def _stamps(found: TopicSurvey) -> NDArray[np.int64]:
    stamps: NDArray[np.int64] = np.unique(np.concatenate([np.array(bag, dtype=np.int64) for bag in found.stamps_ns]))
    kept: NDArray[np.int64] = stamps[stamps != 0]
    return kept
