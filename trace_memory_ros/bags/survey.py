"""What each topic of a bag carries: how often, and with which joints, image formats and values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from trace_memory_ros.bags import fields
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.bags.storage import RawMessage, TopicInfo, merge_topics
from trace_memory_ros.streams.base import ReadError, RecordedReader
from trace_memory_ros.streams.cdr import Cdr, CdrError
from trace_memory_ros.streams.registry import stream_type

SURVEY_NS = 60_000_000_000
"""Only the first minute of each topic is looked at closely."""
SURVEY_MESSAGES = 30_000
_LONGEST_NS = 10_000_000_000
_PASSED_OVER, _PASSED_OVER_BYTES = 2000, 2**25
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
    """Every topic by name; those whose messages the package can read are looked into, each from its own begin."""
    found = {name: TopicSurvey(info) for name, info in reader.topics.items()}
    windows = {name: _Window() for name, info in reader.topics.items() if info.type_name in READ and info.messages}
    begin_ns: int | None = None
    while open_ := {name for name, window in windows.items() if not window.full}:
        begin_ns = _look(reader.messages(open_, begin_ns), found, windows)
        if begin_ns is None:
            break
    return found


def _look(messages: Iterator[RawMessage], found: dict[str, TopicSurvey], windows: Mapping[str, _Window]) -> int | None:
    """Take messages until too many are of topics that were looked at enough; from when on to go on without these."""
    last_ns = passed = size = 0
    for raw in messages:
        # All that was logged at one time belongs to one look.
        if raw.log_ns > last_ns and (passed > _PASSED_OVER or size > _PASSED_OVER_BYTES):
            return raw.log_ns
        last_ns = raw.log_ns
        window = windows[raw.topic]
        if window.full:
            passed, size = passed + 1, size + len(raw.data)
        else:
            window.take(raw.log_ns)
            found[raw.topic].take(raw)
    return None


@dataclass
class _Window:
    """How long a topic has been looked at, in log time; a long pause or one time of another clock counts little."""

    messages: int = 0
    looked_ns: int = 0
    last_ns: int = 0

    @property
    def full(self) -> bool:
        return self.looked_ns >= SURVEY_NS or self.messages >= SURVEY_MESSAGES

    def take(self, log_ns: int) -> None:
        if self.messages:
            self.looked_ns += min(max(log_ns - self.last_ns, 0), _LONGEST_NS)
        self.messages += 1
        self.last_ns = log_ns


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
