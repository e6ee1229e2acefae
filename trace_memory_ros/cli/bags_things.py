"""`trace-memory bags things BAGS --config FILE`: what of the bags' pictures eyes for things see."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trace_memory_ros.bags.episode import BagEpisode
    from trace_memory_ros.bags.recording import RecordingConfig
    from trace_memory_ros.measure.things import Counts
    from trace_memory_ros.observation.images import Image
    from trace_memory_ros.vision.things import ThingsBackbone

COMMAND = "trace-memory bags things"
PICTURE = "things.png"


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register it among the actions of `bags`."""
    parser = actions.add_parser("things", help="draw what of the pictures `--eyes things` would see")
    parser.add_argument("bags", type=Path, nargs="+", help="bags, folders of bags, or lerobot:FOLDER")
    parser.add_argument("--config", type=Path, required=True, help="recording configuration, such as observation.yaml")
    parser.add_argument("--px", type=int, help="side of what is looked at, eyes.px (default: what every camera keeps)")
    for name, kind in (("most-things", int), ("least-px", int), ("most-px", int), ("colourful", float)):
        parser.add_argument(f"--{name}", type=kind, help=f"eyes.options.{name.replace('-', '_')}")
    parser.add_argument("--episodes", type=int, default=4, help="episodes to look at, of the first bags (default: 4)")
    parser.add_argument("--ticks", type=int, default=4, help="pictures of each camera and episode (default: 4)")
    parser.add_argument("--out", type=Path, help="folder of the picture (default: out/things/NAME)")
    parser.add_argument("--cache", type=Path, default=Path("out/bag-cache"), help="decoded episodes (out/bag-cache)")
    parser.set_defaults(run=things)


def things(args: argparse.Namespace) -> int:
    """Draw, count and say what to change; returns 1 where no episode can be used."""
    import cv2

    from trace_memory_ros.bags.recording import RecordingConfig
    from trace_memory_ros.files import atomic, outputs
    from trace_memory_ros.measure.things import Counts, sheet

    recording = RecordingConfig.load(args.config)
    eyes = _eyes(args, recording)
    out: Path = args.out or Path("out/things") / args.bags[0].resolve().name
    outputs.claim(out, COMMAND)
    episodes = _some(args, recording)
    if not episodes:
        print("no episode can be used: what is wrong with each is said above")
        return 1
    counts = {camera: Counts() for camera in recording.observation.camera_names}
    rows = [_row(episode, eyes, args.ticks, counts) for episode in episodes]
    done, png = cv2.imencode(".png", sheet(rows)[..., ::-1])
    assert done
    atomic.write(out / PICTURE, png.tobytes())
    _show(counts, eyes)
    print(f"picture {out / PICTURE}")
    return 0


def _eyes(args: argparse.Namespace, recording: RecordingConfig) -> ThingsBackbone:
    """Raises ConfigError for a size that the cameras don't keep, and for options out of their range."""
    from trace_memory_ros.files.strict import ConfigError, require_int
    from trace_memory_ros.vision.config import BackboneConfig
    from trace_memory_ros.vision.things import ThingsBackbone

    seen = recording.observation
    kept = min(seen.px_of(name) for name in seen.camera_names)
    px = kept if args.px is None else args.px
    for name, value in (("--px", px), ("--episodes", args.episodes), ("--ticks", args.ticks)):
        require_int(value, name, 1)
    if px > kept:
        raise ConfigError(f"--px = {px} is more than every camera keeps, {kept}: raise image_px in {args.config}")
    names = ("most_things", "least_px", "most_px", "colourful")
    options = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    return ThingsBackbone(BackboneConfig("things", options=options), px)


def _some(args: argparse.Namespace, recording: RecordingConfig) -> list[BagEpisode]:
    """Usable episodes of the first recordings, as many as are asked for; says what is wrong with recordings."""
    from trace_memory_ros.bags.episode import BagEpisode
    from trace_memory_ros.learning.bags.recordings import load_recordings, recordings_under

    found: list[BagEpisode] = []
    for one in recordings_under(args.bags):
        for result in load_recordings([one], recording, args.cache):
            if not isinstance(result, BagEpisode):
                print(result)
            elif result.usable.any():
                found.append(result)
        if len(found) >= args.episodes:
            break
    return found[: args.episodes]


def _row(episode: BagEpisode, eyes: ThingsBackbone, count: int, counts: Mapping[str, Counts]) -> list[Image]:
    """Pictures of an episode, camera by camera, evenly over its usable ticks."""
    import numpy as np

    from trace_memory_ros.measure.things import captioned, look
    from trace_memory_ros.observation.images import shrunk

    usable = np.flatnonzero(episode.usable)
    ticks = usable[np.linspace(0, len(usable) - 1, min(count, len(usable))).round().astype(int)]
    row = []
    for camera, frames in episode.images.items():
        for tick in ticks.tolist():
            picture = look(eyes, shrunk(frames[tick], eyes.px), counts[camera])
            seconds = (episode.stamps_ns[tick] - episode.stamps_ns[0]) / 1e9
            row.append(captioned(picture, f"{camera}, {seconds:.1f} s: {counts[camera].things[-1]}"))
    return row


def _show(counts: Mapping[str, Counts], eyes: ThingsBackbone) -> None:
    """The table, and what to change where pictures show nothing or too much."""
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    table = Table("camera", "pictures", "things, median", "least", "most")
    for camera, found in counts.items():
        of = found.things
        table.add_row(camera, str(len(of)), f"{float(np.median(of)):g}", str(min(of)), str(max(of)))
    Console().print(table)
    for camera, found in counts.items():
        if found.empty:
            print(
                f"{camera}: nothing in {found.empty} of {len(found.things)} pictures; what should be seen there is "
                f"larger than most_px = {eyes.most_px}, smaller than least_px = {eyes.least_px}, or too grey"
            )
        if found.full:
            print(
                f"{camera}: more than {eyes.most_things} things in {found.full} pictures, of which the largest count; "
                "raise most_things, least_px or colourful"
            )
