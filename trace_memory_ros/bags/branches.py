"""Branch annotations: at which tick of an episode a branch is taken, and which is the right one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from trace_memory_ros.bags import fields
from trace_memory_ros.bags.episodes import EpisodeSpan
from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.bags.layout import is_storage, stem
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.bags.storage import RawMessage
from trace_memory_ros.files.strict import ConfigError, check_keys, require_int
from trace_memory_ros.streams.cdr import Cdr, CdrError

KEYS = ("episode", "tick", "stamp_ns", "label")


@dataclass(frozen=True)
class Branch:
    """An annotated branch frame. tick: of the episode. label: name of the branch that is right there."""

    tick: int
    label: str


@dataclass
class BranchTrack:
    """Annotations of one episode, and of its neighbours in time, that came on a topic."""

    marks: list[tuple[int, bool, str]] = field(default_factory=list)
    malformed: int = 0
    _taken: tuple[int, int] | None = None

    def take(self, raw: RawMessage) -> None:
        """Add a String or integer, which counts from its log time, or an EpisodeStatus once it holds a branch."""
        try:
            cdr = Cdr(raw.data)
            if raw.type_name == fields.STATUS:
                stamp_ns = cdr.header().stamp_ns
                status = fields.status(cdr)
                self._report(stamp_ns, status.episode, status.branch)
            else:
                value = fields.plain(cdr, raw.type_name)
                if value != "":
                    self.marks.append((raw.log_ns, False, str(value)))
        except (CdrError, KeyError):
            self.malformed += 1

    def _report(self, stamp_ns: int, episode: int, branch: int) -> None:
        """A status tells its branch from when it is taken on; later, none again is of the next episode."""
        if branch < 0:
            self._taken = None if self.marks and stamp_ns > self.marks[-1][0] else self._taken
        elif self._taken != (episode, branch):
            self._taken = episode, branch
            self.marks.append((stamp_ns, True, str(branch)))

    def branches(self, stamps_ns: Sequence[int], arrivals_ns: Sequence[int], period_ns: int) -> tuple[Branch, ...]:
        """Branches on the ticks: the last one stamped, or for log times the last one whose inputs had come.

        What lies before the first tick, or a period or more after the last one, is of another episode.
        """
        found = []
        for time_ns, stamped, label in self.marks:
            times_ns = stamps_ns if stamped else arrivals_ns
            tick = bisect_right(times_ns, time_ns) - 1
            if tick >= 0 and time_ns < times_ns[-1] + period_ns:
                found.append(Branch(tick, label))
        return tuple(found)


def branch_file(recording: RecordingConfig, bag: Path) -> Path | None:
    """The sidecar file of a bag, where the configuration names one."""
    if recording.branches is None or not recording.branches.file:
        return None
    return (bag if bag.is_dir() else bag.parent) / recording.branches.file


def read_branches(path: Path, span: EpisodeSpan, stamps_ns: Sequence[int]) -> tuple[Branch, ...]:
    """Branches of an episode from a sidecar file: `branches:` with `label`, `tick` or `stamp_ns`, and `episode`.

    Raises BagFault naming the entry, and for a file that lies beside several bags.
    """
    remedy = "correct the file; docs/how-to/bags.md shows one"
    if path.is_file() and (others := others_beside(Path(span.bag))):
        what = f"lies beside {', '.join(others[:3])} too, and does not tell which bag it annotates: it is not used"
        alone = "give each bag a folder of its own, or the folder of all parts where they are of one"
        raise BagFault(span.bag, what, path.name, alone)
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        entries = check_keys(data, ("branches",), ("branches",), path.name)["branches"]
        if not isinstance(entries, list):
            raise ConfigError(f"branches = {entries!r}: must be a list")
        found = [_entry(item, f"branches[{i}]", span, stamps_ns) for i, item in enumerate(entries)]
    except OSError as error:
        raise BagFault(
            span.bag, f"cannot be read ({error.strerror})", path.name, "write it, or set no branches.file"
        ) from error
    except (ConfigError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise BagFault(span.bag, " ".join(str(error).split()), path.name, remedy) from error
    return tuple(sorted((branch for branch in found if branch is not None), key=lambda branch: branch.tick))


def others_beside(bag: Path) -> list[str]:
    """Storage files of other runs in the folder of a bag that is a single file."""
    if bag.is_dir():
        return []
    return sorted(file.name for file in bag.parent.iterdir() if is_storage(file) and stem(file) != stem(bag))


def _entry(item: object, where: str, span: EpisodeSpan, stamps_ns: Sequence[int]) -> Branch | None:
    """None for an entry of another episode."""
    values: Mapping[str, Any] = check_keys(item, KEYS, ("label",), where)
    if ("tick" in values) == ("stamp_ns" in values):
        raise ConfigError(f"{where}: give tick or stamp_ns")
    episode = values.get("episode", 0)
    require_int(episode, f"{where}.episode", 0)
    if episode != span.index:
        return None
    if "stamp_ns" in values:
        require_int(values["stamp_ns"], f"{where}.stamp_ns", 0)
        tick = bisect_right(stamps_ns, values["stamp_ns"]) - 1
    else:
        tick = values["tick"]
        require_int(tick, f"{where}.tick", 0)
    if not 0 <= tick < len(stamps_ns):
        raise ConfigError(f"{where}: lies at tick {tick}, the episode has {len(stamps_ns)} ticks")
    return Branch(tick, str(values["label"]))
