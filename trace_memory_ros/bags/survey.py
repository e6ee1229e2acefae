"""What each topic of a bag carries: how often, and with which joints, image formats and values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from trace_memory_ros.bags import fields
from trace_memory_ros.bags.cdr import Cdr, CdrError
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.bags.storage import RawMessage, TopicInfo

SURVEY_NS = 60_000_000_000
"""Only the first minute is looked at closely."""
READ = (fields.IMAGE, fields.COMPRESSED, fields.JOINTS, fields.ODOMETRY, fields.TWIST, fields.TRAJECTORY)


@dataclass
class TopicSurvey:
    """One topic. stamps_ns: header stamps in log order. names: how often each set of joints came. formats: of images.

    moves: whether a base velocity was ever other than zero. malformed: messages that cannot be read.
    """

    info: TopicInfo
    stamps_ns: list[int] = field(default_factory=list)
    names: Counter[tuple[str, ...]] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)
    moves: bool = False
    malformed: int = 0

    @property
    def gaps_ms(self) -> np.ndarray:
        """Times between messages by header stamps, ms; repeated and falling stamps left out."""
        stamps = np.unique(np.array(self.stamps_ns, dtype=np.int64))
        return np.diff(stamps) / 1e6

    @property
    def period_ms(self) -> float | None:
        """Median time between messages; None for fewer than two."""
        gaps = self.gaps_ms
        return float(np.median(gaps)) if len(gaps) else None

    @property
    def rate_hz(self) -> float | None:
        """Messages per second of header stamps."""
        return None if not self.period_ms else 1e3 / self.period_ms

    @property
    def longest_ms(self) -> float:
        """A gap that one in a hundred exceeds, ms."""
        gaps = self.gaps_ms
        return float(np.percentile(gaps, 99)) if len(gaps) else 0.0

    def take(self, raw: RawMessage) -> None:
        """Look at one message."""
        try:
            cdr = Cdr(raw.data)
            self.stamps_ns.append(cdr.header().stamp_ns)
            self._take_content(raw.type_name, cdr)
        except CdrError:
            self.malformed += 1

    def _take_content(self, type_name: str, cdr: Cdr) -> None:
        if type_name == fields.IMAGE:
            image = fields.image(cdr)
            self.formats[f"{image.encoding} {image.width}x{image.height}"] += 1
        elif type_name == fields.COMPRESSED:
            self.formats[fields.compressed(cdr)[0]] += 1
        elif type_name == fields.JOINTS:
            names, positions = fields.joints(cdr)
            self.names[names if len(names) == len(positions) else ()] += 1
        elif type_name == fields.TRAJECTORY:
            self.names[fields.trajectory(cdr)[0]] += 1
        else:
            velocity = fields.odometry(cdr) if type_name == fields.ODOMETRY else fields.twist(cdr)
            self.moves |= any(velocity)


def survey(reader: BagReader) -> dict[str, TopicSurvey]:
    """Every topic by name; those whose messages the package can read are looked into."""
    found = {name: TopicSurvey(info) for name, info in reader.topics.items()}
    readable = [name for name, info in reader.topics.items() if info.type_name in READ and info.messages]
    for raw in reader.messages(readable, reader.begin_ns, reader.begin_ns + SURVEY_NS):
        found[raw.topic].take(raw)
    return found
