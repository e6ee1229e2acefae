"""Recordings to learn from, bags and LeRobotDatasets alike: which there are, and the episodes they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trace_memory_ros.bags.cache import BagSource, EpisodeResult, Report, Source, load_episodes
from trace_memory_ros.bags.episode import BagEpisode, unique_names
from trace_memory_ros.bags.faults import BagVerdict
from trace_memory_ros.bags.layout import each_once, find_bags
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.learning.lerobot.source import DatasetSource, episodes_of, folder_of, is_dataset


def recordings_under(sources: Sequence[str | Path]) -> list[Path]:
    """All bags at or below `sources`, and the episodes of LeRobotDatasets among them, each once however it is named.

    Raises BagFault for a folder that holds none, ValueError for a `lerobot:` that is no dataset.
    """
    found = (episodes_of(source) if is_dataset(source) else find_bags(Path(source)) for source in sources)
    return each_once((one for recordings in found for one in recordings), lambda one: folder_of(one).resolve())


def load_recordings(
    recordings: Sequence[Path],
    recording: RecordingConfig,
    cache: Path,
    workers: int = 1,
    report: Report | None = None,
) -> list[EpisodeResult]:
    """What `load_episodes` makes of the bags among them, then of the datasets' episodes, no two of one name."""
    groups: list[tuple[list[Path], Source]] = [
        ([one for one in recordings if not is_dataset(one)], BagSource()),
        ([one for one in recordings if is_dataset(one)], DatasetSource()),
    ]
    done = 0

    def counted(group_done: int, _: int, verdict: BagVerdict) -> None:
        if report is not None:
            report(done + group_done, len(recordings), verdict)

    results: list[EpisodeResult] = []
    for group, source in groups:
        results += load_episodes(group, recording, cache, workers, counted, source)
        done += len(group)
    return _told_apart(results)


def _told_apart(results: list[EpisodeResult]) -> list[EpisodeResult]:
    """Scenes, answers and annotations go by an episode's name, and bags in folders of their own may share one."""
    names = iter(unique_names([(Path(one.bag), one.name) for one in results if isinstance(one, BagEpisode)]))
    return [replace(one, name=next(names)) if isinstance(one, BagEpisode) else one for one in results]
