"""How many decisions were right, and how sure that makes their share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trace_memory_ros.measure.statistics import Interval, wilson_interval

LEAST = 20
"""Decisions under which nothing is claimed."""
ANNOTATED, FOUND, TWINS = "annotated", "found", "twins"
"""Where right answers come from: a person, the episodes themselves, the same scene with the other cue."""
SOURCES = (ANNOTATED, FOUND, TWINS)

Group = tuple[int, ...]


@dataclass(frozen=True)
class Accuracy:
    """Share of right decisions, with its count and 95 % Wilson interval.

    groups: right ones and all of each kind of decision, such as a branch and its answer; every kind counts alike, so
    that chance does not depend on how often each is. labels: one of `SOURCES`. repeats: how often each decision was
    asked, as after several delays, which makes nothing surer. Raises ValueError for no decision.
    """

    groups: Mapping[Group, tuple[int, int]] = field(default_factory=dict)
    labels: str = ANNOTATED
    repeats: int = 1

    def __post_init__(self) -> None:
        if self.labels not in SOURCES:
            raise ValueError(f"labels = {self.labels!r}: must be one of {', '.join(SOURCES)}")
        wrong = [(right, count) for right, count in self.groups.values() if not 0 <= right <= count or not count]
        if wrong or not self.groups:
            raise ValueError(f"an accuracy of {dict(self.groups)}: each group needs 0 <= right <= count and a decision")

    @classmethod
    def of(cls, right: int, count: int, labels: str = ANNOTATED) -> Accuracy:
        """Decisions of one kind. Raises ValueError for counts that are no proportion."""
        return cls({(): (right, count)}, labels)

    @classmethod
    def pooled(cls, parts: Iterable[Accuracy]) -> Accuracy:
        """The decisions of all `parts` together, different ones.

        Raises ValueError for none, or where labels come from two sources or decisions were asked unequally often.
        """
        found = list(parts)
        sources = {part.labels for part in found}
        if len(sources) != 1:
            raise ValueError(f"labels from {sorted(sources)}: pool decisions of one source only")
        repeats = {part.repeats for part in found}
        if len(repeats) != 1:
            raise ValueError(f"decisions asked {sorted(repeats)} times: pool those asked equally often only")
        groups: dict[Group, tuple[int, int]] = {}
        for part in found:
            for key, (right, count) in part.groups.items():
                before = groups.get(key, (0, 0))
                groups[key] = (before[0] + right, before[1] + count)
        return cls(groups, sources.pop(), repeats.pop())

    @classmethod
    def asked_again(cls, parts: Iterable[Accuracy]) -> Accuracy:
        """The same decisions in all `parts`, as after one delay and another. Raises ValueError as `pooled` does."""
        found = list(parts)
        once = cls.pooled(replace(part, repeats=1) for part in found)
        return replace(once, repeats=sum(part.repeats for part in found))

    def all_right(self) -> Accuracy:
        """Were all of these decisions right."""
        return replace(self, groups={group: (count, count) for group, (_, count) in self.groups.items()})

    @property
    def right(self) -> int:
        """Right decisions."""
        return sum(right for right, _ in self.groups.values())

    @property
    def count(self) -> int:
        """All decisions, those asked again too."""
        return sum(count for _, count in self.groups.values())

    @property
    def value(self) -> float:
        """The share, 0 to 1, each group counting alike."""
        return sum(right / count for right, count in self.groups.values()) / len(self.groups)

    @property
    def interval(self) -> Interval:
        """Wilson's, at as many equal draws as the mean over groups is as sure as."""
        equal = len(self.groups) ** 2 / sum(1 / count for _, count in self.groups.values()) / self.repeats
        return wilson_interval(self.value * equal, equal)

    @property
    def low(self) -> float:
        """Lower bound."""
        return self.interval.low

    @property
    def high(self) -> float:
        """Upper bound."""
        return self.interval.high

    @property
    def tells(self) -> bool:
        """Whether there are enough decisions to claim anything."""
        return self.count // self.repeats >= LEAST

    def __str__(self) -> str:
        found = f"{self.right}/{self.count} {FOUND}" if self.labels == FOUND else f"{self.right}/{self.count}"
        found += f", each asked {self.repeats} times" if self.repeats > 1 else ""
        if not self.tells:
            return f"{found} right, too few to tell"
        return f"{self.value:.2f} ({found}, {self.low:.2f} to {self.high:.2f})"

    def to_plain(self) -> dict[str, Any]:
        """Plain mapping that `from_plain` inverts."""
        groups = [[list(key), *counts] for key, counts in self.groups.items()]
        return {"groups": groups, "labels": self.labels, "repeats": self.repeats}

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Accuracy:
        """What `to_plain` gave. Raises ValueError for counts that are none."""
        groups = {tuple(key): (right, count) for key, right, count in data["groups"]}
        return cls(groups, data["labels"], int(data.get("repeats", 1)))

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for summaries."""
        figures = {"value": self.value, "right": self.right, "count": self.count, "ci95": list(self.interval)}
        return {**figures, "claimed": self.tells, "labels": self.labels, "repeats": self.repeats}
