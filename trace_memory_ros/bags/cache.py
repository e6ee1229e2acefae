"""Bags decoded once: a file per episode and a mapped one per camera, found again by content and configuration."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from trace_memory_ros.bags.branches import Branch, branch_file, others_beside
from trace_memory_ros.bags.build import decode_bag, stem_of
from trace_memory_ros.bags.episode import BagEpisode
from trace_memory_ros.bags.episodes import EpisodeSpan
from trace_memory_ros.bags.faults import BagFault, BagVerdict, Grade, verdict_of
from trace_memory_ros.bags.layout import METADATA, layout_of
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.bags.sqlite_journal import journals
from trace_memory_ros.files import atomic
from trace_memory_ros.files.parent import end_with_parent
from trace_memory_ros.files.source import brought_digest
from trace_memory_ros.files.stored import StoredArray
from trace_memory_ros.observation.frames import Frames
from trace_memory_ros.streams.registry import brought_by

FORMAT = 6
SUMMARY = "bag.json"
INDEX = "index_"
"""Before the number of a camera: which of its images each tick holds."""
ARRAYS = ("stamps_ns", "state", "usable", "input_stamps_ns")
_STEP = 2**20

EpisodeResult = BagEpisode | BagVerdict
Report = Callable[[int, int, BagVerdict], None]
"""Called with the bags done, the bags in all, and the verdict of the one that was done."""


class Source(Protocol):
    """What makes episodes of a path; handed to other processes as it is."""

    def key(self, path: Path, recording: RecordingConfig, cache_dir: Path) -> str:
        """Name of a path's folder in the cache."""

    def stem(self, path: Path) -> str:
        """What the names of a path's episodes begin with."""

    def decode(self, path: Path, recording: RecordingConfig) -> tuple[list[BagEpisode], BagVerdict]:
        """Its episodes, and what is wrong with it. A fault is never an exception."""


class BagSource:
    """rosbag2 recordings."""

    def key(self, path: Path, recording: RecordingConfig, cache_dir: Path) -> str:
        return cache_key(path, recording, cache_dir)

    def stem(self, path: Path) -> str:
        return stem_of(path)

    def decode(self, path: Path, recording: RecordingConfig) -> tuple[list[BagEpisode], BagVerdict]:
        return decode_bag(path, recording)


def load_episodes(
    bags: Sequence[str | Path],
    recording: RecordingConfig,
    cache_dir: str | Path,
    workers: int = 1,
    report: Report | None = None,
    source: Source | None = None,
) -> list[EpisodeResult]:
    """The episodes of `bags` in order, and the verdict in place of a bag that has none that can be used.

    Each bag is decoded once into `cache_dir`, in `workers` processes; an interrupted run goes on where it was. A bag
    that fails is tried again by the next run. An episode of a bag with losses names them in `notes`. source: what makes
    episodes of a path; rosbag2 recordings by default.
    """
    source = source or BagSource()
    paths = [Path(bag) for bag in bags]
    verdicts: dict[Path, BagVerdict] = {}
    for path, verdict in _decode_all(list(dict.fromkeys(paths)), recording, Path(cache_dir), workers, source):
        verdicts[path] = verdict
        if report is not None:
            report(len(verdicts), len(set(paths)), verdict)
    results: list[EpisodeResult] = []
    for path in paths:
        verdict = verdicts[path]
        if verdict.grade is Grade.UNUSABLE:
            results.append(verdict)
        else:
            folder = Path(cache_dir) / source.key(path, recording, Path(cache_dir))
            results += _load(folder, path, source.stem(path))
    return results


def cache_key(bag: Path, recording: RecordingConfig, cache_dir: Path) -> str:
    """Name of a bag's folder in the cache: a hash of its files, the configuration, the format, and others' code."""
    parts = [file for part in layout_of(bag).files for file in (part, *journals(part))]
    annotations = branch_file(recording, bag)
    files = [*parts, bag / METADATA, annotations]
    contents = [file_hash(file, cache_dir) for file in files if file is not None and file.is_file()]
    # Not sorted: the order of what a stream selects is that of the state's columns.
    content = {"format": FORMAT, "recording": recording.to_dict(), "files": contents}
    if annotations is not None and (others := others_beside(bag)):
        content["beside"] = others
    if brought := {brought_by(name) for name in _types(recording)} - {""}:
        content["brought"] = brought_digest(brought)
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:24]


def _types(recording: RecordingConfig) -> set[str]:
    """Message types that a recording's numbers are read from."""
    parts = () if recording.actions is None else recording.actions.parts
    return {stream.type for stream in recording.observation.streams} | {part.type for part in parts}


def file_hash(file: Path, cache_dir: Path) -> str:
    """Hash of a file's content, remembered in the cache for its path, size and time of change."""
    status = file.stat()
    identity = f"{file.resolve()}\n{status.st_size}\n{status.st_mtime_ns}\n{status.st_ino}"
    memo = cache_dir / "hashes" / hashlib.sha256(identity.encode()).hexdigest()[:24]
    try:
        known = memo.read_text(encoding="ascii")
        if len(known) == 64:
            return known
    except (OSError, UnicodeDecodeError):
        pass
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while block := content.read(_STEP):
            digest.update(block)
    memo.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(memo, digest.hexdigest().encode())
    return digest.hexdigest()


def _decode_all(
    bags: list[Path], recording: RecordingConfig, cache_dir: Path, workers: int, source: Source
) -> Iterator[tuple[Path, BagVerdict]]:
    """Every bag's verdict as it comes. A bag whose process dies is tried alone once more."""
    if workers <= 1 or len(bags) < 2:
        for bag in bags:
            yield bag, _decode_into(bag, recording, cache_dir, source)
        return
    left = list(bags)
    for attempt in ([*bags], None):
        for group in [attempt] if attempt is not None else [[bag] for bag in list(left)]:
            for bag, verdict in _in_processes(group, recording, cache_dir, workers, source):
                left.remove(bag)
                yield bag, verdict
    for bag in left:
        what = "the process that decoded it died"
        yield bag, verdict_of(bag, [BagFault(bag, what, "memory?", "decode it with fewer workers")], usable=False)


def _in_processes(
    bags: list[Path], recording: RecordingConfig, cache_dir: Path, workers: int, source: Source
) -> Iterator[tuple[Path, BagVerdict]]:
    """Verdicts of those bags whose processes lived."""
    # Not forked: threads of numerical libraries do not survive that.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(bags)), context, end_with_parent) as pool:
        futures = {pool.submit(_decode_into, bag, recording, cache_dir, source): bag for bag in bags}
        for future in as_completed(futures):
            try:
                yield futures[future], future.result()
            except BrokenProcessPool:
                continue


def _decode_into(bag: Path, recording: RecordingConfig, cache_dir: Path, source: Source) -> BagVerdict:
    """Decode one bag into the cache unless it is there; never raises for what the bag holds."""
    try:
        folder = cache_dir / source.key(bag, recording, cache_dir)
        known = _read_summary(folder, bag)
        if known is not None:
            return known
        episodes, verdict = source.decode(bag, recording)
        if verdict.grade is not Grade.UNUSABLE:
            _save(folder, episodes, verdict, source.stem(bag))
        return verdict
    except BagFault as fault:
        return verdict_of(bag, [fault], usable=False)
    except OSError as error:
        what, where = f"cannot be decoded ({error})", str(error.filename or "file")
        return verdict_of(bag, [BagFault(bag, what, where, "check permissions and space on the disk")], usable=False)
    except Exception as error:  # one strange bag must not end a run over thousands
        what = f"cannot be decoded ({type(error).__name__}: {error})"
        remedy = "report it with the bag; leave the bag out until then"
        return verdict_of(bag, [BagFault(bag, what, "decoder", remedy)], usable=False)


def _save(folder: Path, episodes: list[BagEpisode], verdict: BagVerdict, stem: str) -> None:
    """Write a bag's episodes; the summary comes last and makes them count.

    Of a name only what follows its `stem` is kept, which is the path's and may be another the next time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for i, episode in enumerate(episodes):
        meta = {
            "number": episode.name.removeprefix(stem),
            "span": asdict(episode.span),
            "cameras": episode.cameras,
            "streams": episode.streams,
            "faults": {str(tick): dict(faults) for tick, faults in episode.faults.items()},
            "action_names": episode.action_names,
            "branches": [asdict(branch) for branch in episode.branches],
            "counters": episode.counters,
            "notes": [note.to_dict() for note in episode.notes],
            "unfinished": episode.unfinished,
        }
        arrays = {name: getattr(episode, name) for name in ARRAYS}
        if episode.actions is not None:
            arrays["actions"] = episode.actions
        for c, frames in enumerate(episode.images.values()):
            arrays[f"{INDEX}{c}"] = frames.index
            with atomic.replacing(_pixels(folder / f"{i:04d}.npz", c)) as partial:
                np.save(partial, frames.pixels)
        with atomic.replacing(folder / f"{i:04d}.npz") as partial:
            np.savez_compressed(partial, meta=np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8), **arrays)
    summary = {
        "grade": verdict.grade.value,
        "episodes": len(episodes),
        "cameras": max(len(episode.images) for episode in episodes),
        "faults": [fault.to_dict() for fault in verdict.faults],
    }
    atomic.write(folder / SUMMARY, json.dumps(summary, indent=1).encode())


def _read_summary(folder: Path, bag: Path) -> BagVerdict | None:
    """The verdict of a bag that was decoded before, under its present path; None where any file is missing."""
    try:
        summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
        for episode in (folder / f"{i:04d}.npz" for i in range(summary["episodes"])):
            if not all(path.exists() for path in (episode, *(_pixels(episode, c) for c in range(summary["cameras"])))):
                return None
        faults = tuple(_fault(values, bag) for values in summary["faults"])
        return BagVerdict(str(bag), Grade(summary["grade"]), faults)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _fault(values: dict[str, str], bag: Path) -> BagFault:
    return BagFault(bag, values["what"], values["where"], values["remedy"])


def _load(folder: Path, bag: Path, stem: str) -> list[BagEpisode]:
    count = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))["episodes"]
    return [_load_episode(folder / f"{i:04d}.npz", bag, stem) for i in range(count)]


def _load_episode(path: Path, bag: Path, stem: str) -> BagEpisode:
    with np.load(path, allow_pickle=False) as data:
        meta: dict[str, Any] = json.loads(data["meta"].tobytes())
        arrays = {name: data[name] for name in ARRAYS}
        indices = [data[f"{INDEX}{c}"] for c in range(len(meta["cameras"]))]
        actions = data.get("actions")
    return BagEpisode(
        name=stem + meta["number"],
        bag=str(bag),
        span=replace(EpisodeSpan(**meta["span"]), bag=str(bag)),
        images={name: _mapped(path, c, indices[c]) for c, name in enumerate(meta["cameras"])},
        streams=tuple(meta["streams"]),
        **arrays,
        faults={int(tick): faults for tick, faults in meta["faults"].items()},
        actions=actions,
        action_names=tuple(meta["action_names"]),
        branches=tuple(Branch(**branch) for branch in meta["branches"]),
        counters=meta["counters"],
        notes=tuple(_fault(values, bag) for values in meta["notes"]),
        unfinished=meta["unfinished"],
    )


def _pixels(episode: Path, camera: int) -> Path:
    """The file of a camera's images beside the episode's."""
    return episode.with_suffix(f".{camera}.npy")


def _mapped(episode: Path, camera: int, index: np.ndarray) -> Frames:
    return Frames(StoredArray(_pixels(episode, camera)), index)
