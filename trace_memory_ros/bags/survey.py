"""What each topic of a bag carries: how often, and with which joints, image formats and values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from trace_memory_ros.bags import fields
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.bags.storage import RawMessage, TopicInfo, merge_topics
from trace_memory_ros.streams.base import ReadError, RecordedReader
from trace_memory_ros.streams.cdr import Cdr, CdrError
from trace_memory_ros.streams.registry import stream_type

SURVEY_NS = 60_000_000_000
"""Only the first minute is looked at closely."""
READ = (fields.IMAGE, fields.COMPRESSED, fields.JOINTS, fields.ODOMETRY, fields.TWIST, fields.TRAJECTORY)


@dataclass
class TopicSurvey:
    """One topic, of a bag or of several. stamps_ns: header stamps in log order, a list a bag. formats: of images.

    names: how often each set of joints came. moves: whether a base velocity was ever other than zero. malformed:
    messages that cannot be read.
    """

    info: TopicInfo
    stamps_ns: list[list[int]] = field(default_factory=lambda: [[]])
    names: Counter[tuple[str, ...]] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)
    moves: bool = False
    malformed: int = 0

    @property
    def readable(self) -> bool:
        """Whether any message could be read."""
        return any(self.stamps_ns)

    @property
    def gaps_ms(self) -> np.ndarray:
        """Times between messages of one bag by header stamps, ms; repeated and falling stamps left out."""
        return np.concatenate([np.diff(np.unique(np.array(bag, dtype=np.int64))) for bag in self.stamps_ns]) / 1e6

    @property
    def main_names(self) -> tuple[str, ...]:
        """The set of joints that came most often; empty where there is none."""
        whole = [(count, names) for names, count in self.names.items() if names]
        return max(whole)[1] if whole else ()

    @property
    def main_format(self) -> str:
        """The image format that came most often; empty where there is none."""
        return self.formats.most_common(1)[0][0] if self.formats else ""

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
            self.stamps_ns[-1].append(cdr.header().stamp_ns)
            self._take_content(raw.type_name, cdr)
        except (CdrError, ReadError):
            self.malformed += 1

    def _take_content(self, type_name: str, cdr: Cdr) -> None:
        if type_name == fields.IMAGE:
            image = fields.image(cdr)
            self.formats[f"{image.encoding} {image.width}x{image.height}"] += 1
        elif type_name == fields.COMPRESSED:
            self.formats[fields.compressed(cdr).format] += 1
        elif type_name == fields.JOINTS:
            names, positions = cdr.texts(), cdr.doubles()
            self.names[names if len(names) == len(positions) else ()] += 1
        elif type_name == fields.TRAJECTORY:
            self.names[cdr.texts()] += 1
        else:
            kind = stream_type(type_name)
            reader = kind.reader(kind.usual)
            assert isinstance(reader, RecordedReader)
            self.moves |= bool(reader.recorded(cdr).any())


def survey(reader: BagReader) -> dict[str, TopicSurvey]:
    """Every topic by name; those whose messages the package can read are looked into."""
    found = {name: TopicSurvey(info) for name, info in reader.topics.items()}
    readable = [name for name, info in reader.topics.items() if info.type_name in READ and info.messages]
    for raw in reader.messages(readable, reader.begin_ns, reader.begin_ns + SURVEY_NS):
        found[raw.topic].take(raw)
    return found


def merged(surveys: Sequence[Mapping[str, TopicSurvey]]) -> dict[str, TopicSurvey]:
    """The topics of several bags as if they were of one; of a topic that bags give in several types the usual one."""
    return {name: _merged([bag[name] for bag in surveys if name in bag]) for bag in surveys for name in bag}


def _merged(found: list[TopicSurvey]) -> TopicSurvey:
    usual = Counter(one.info.type_name for one in found).most_common(1)[0][0]
    found = [one for one in found if one.info.type_name == usual]
    (info,) = merge_topics([one.info for one in found]).values()
    return TopicSurvey(
        info,
        [stamps for one in found for stamps in one.stamps_ns],
        sum((one.names for one in found), Counter()),
        sum((one.formats for one in found), Counter()),
        any(one.moves for one in found),
        sum(one.malformed for one in found),
    )
