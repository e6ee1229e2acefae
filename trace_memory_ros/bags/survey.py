"""What each topic of a bag carries: how often, by which clock, and with which joints, numbers and image formats."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.bags import fields
from trace_memory_ros.bags.numbers import NumbersReader, Range, Spans, numbers_reader
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.bags.storage import RawMessage, TopicInfo, merge_topics
from trace_memory_ros.observation.config import TRANSPORTS, CameraConfig, ObservationConfig, SensorConfig
from trace_memory_ros.observation.content import CompressedImage, RawImage, VideoPacket
from trace_memory_ros.observation.images import ImageError, decode
from trace_memory_ros.observation.images.video import codec_of
from trace_memory_ros.observation.samples import SampleReader
from trace_memory_ros.streams.arrays import FLOAT32_ARRAY, FLOAT64_ARRAY
from trace_memory_ros.streams.base import ReadError
from trace_memory_ros.streams.cdr import Cdr, CdrError, header_stamp_ns
from trace_memory_ros.streams.registry import names, stream_type

SURVEY_NS = 60_000_000_000
"""Only the first minute of each topic is looked at closely."""
SURVEY_MESSAGES = 30_000
_LONGEST_NS = 10_000_000_000
_PASSED_OVER, _PASSED_OVER_BYTES = 2000, 2**25
IMAGES = {type_name: transport for transport, type_name in TRANSPORTS.items()}
"""How the pictures of a message type come."""
READ = frozenset({*IMAGES, *names()})
LOOKED_INTO, THEN_EVERY = 500, 8
"""Numbers of so many messages of a topic are looked at, then those of every eighth."""
BRIGHT_EVERY = 30
"""Of so many images of 16 bits one is looked at for how bright it is."""
ARRAYS = (FLOAT64_ARRAY.name, FLOAT32_ARRAY.name)
MOST_SETS = 1000
LAST_NS = 2**63 - 1
END_NS = 2_000_000_000
"""What counts as the end of a bag."""


class End(NamedTuple):
    """When a bag ends, in log time, and the stamp and log time of a topic's last message."""

    bag_ns: int
    stamp_ns: int
    log_ns: int


@dataclass
class TopicSurvey:
    """One topic, of a bag or of several. stamps_ns, logs_ns: header stamps (0 without one) and log times in log order,
    a list a bag.

    names: how often each set of joints that have positions came. spans: of its numbers. sizes: of arrays. formats: of
    images; refused: why those are of which no image can be decoded. brightest: level of 255 of raw ones of 16 bits, -1
    where there are none. malformed: messages that cannot be read, fault: why the first of them. end: of images that
    were not all looked at; None where the last 2 s of the bag have none.
    """

    info: TopicInfo
    stamps_ns: list[array[int]] = field(default_factory=lambda: [array("q")])
    logs_ns: list[array[int]] = field(default_factory=lambda: [array("q")])
    names: Counter[tuple[str, ...]] = field(default_factory=Counter)
    spans: Spans = field(default_factory=Spans)
    sizes: Counter[int] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)
    refused: dict[str, str] = field(default_factory=dict)
    brightest: int = -1
    contents: int = 0
    malformed: int = 0
    fault: str = ""
    end: End | None = None

    @property
    def readable(self) -> bool:
        """Whether any message could be read."""
        return self.contents > 0

    @property
    def has_header(self) -> bool:
        """Whether the message type begins with a header."""
        return self.info.type_name in IMAGES or (self.info.type_name in READ and self._kind_is_stamped)

    @property
    def _kind_is_stamped(self) -> bool:
        return stream_type(self.info.type_name).stamped

    @property
    def looked_at(self) -> int:
        """Messages whose stamp was read."""
        return sum(len(bag) for bag in self.stamps_ns)

    @property
    def unstamped(self) -> int:
        """How many messages have no stamp, or one of zero."""
        return sum(bag.count(0) for bag in self.stamps_ns)

    @property
    def stamped(self) -> bool:
        """Whether most messages say when they were true."""
        return 2 * self.unstamped < self.looked_at

    @property
    def gaps_ms(self) -> NDArray[np.float64]:
        """Times between messages of one bag, ms, by stamps, or by log times where they have none; falling and repeated
        ones left out.
        """
        bags = self.stamps_ns if self.stamped else self.logs_ns
        gaps = [np.diff(np.unique(np.array(bag, dtype=np.int64)[np.array(bag, dtype=np.int64) != 0])) for bag in bags]
        return np.concatenate(gaps) / 1e6

    def falls(self, least_ms: float) -> int:
        """How often stamps fall by more than that from one message of a bag to the next: its clock was put back."""
        steps = [np.diff(np.array([ns for ns in bag if ns], dtype=np.int64)) for bag in self.stamps_ns]
        return int((np.concatenate(steps) < -round(least_ms * 1e6)).sum()) if self.stamped else 0

    @property
    def lags_ms(self) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Per bag, log times (ns) of the stamped messages and how much later than stamped they were logged, ms."""
        found = []
        for stamps, logs in zip(self.stamps_ns, self.logs_ns, strict=True):
            stamp_ns, log_ns = np.array(stamps, dtype=np.int64), np.array(logs, dtype=np.int64)
            kept = stamp_ns != 0
            found.append((log_ns[kept], (log_ns - stamp_ns)[kept] / 1e6))
        return found

    @property
    def main_names(self) -> tuple[str, ...]:
        """The joints of the set that came most often, whatever their order; empty where there is none."""
        sets: Counter[frozenset[str]] = Counter()
        for given, count in self.names.items():
            sets[frozenset(given)] += count if given else 0
        main = max(sets, key=lambda one: (sets[one], sorted(one)), default=frozenset())
        orders = {given: count for given, count in self.names.items() if given and frozenset(given) == main}
        return max(orders, key=lambda one: orders[one], default=())

    @property
    def main_format(self) -> str:
        """The image format that came most often; empty where there is none."""
        return self.formats.most_common(1)[0][0] if self.formats else ""

    @property
    def main_size(self) -> int:
        """How many numbers a message of an array most often holds; 0 of other types."""
        arrays = {size: count for size, count in self.sizes.items() if self.info.type_name in ARRAYS}
        return max(arrays, key=lambda size: arrays[size], default=0)

    @cached_property
    def ranges(self) -> dict[str, Range]:
        """What each number does, by its name. To be asked for when all messages were taken."""
        return self.spans.ranges()

    def moves(self, name: str, least: float = 1e-3) -> bool:
        """Whether that number changes, or is anything but zero."""
        found = self.ranges.get(name)
        return found is not None and (found.spread > least or abs(found.mean) > least)

    @property
    def period_ms(self) -> float | None:
        """Median time between messages; None for fewer than two."""
        gaps = self.gaps_ms
        return float(np.median(gaps)) if len(gaps) else None

    @property
    def rate_hz(self) -> float | None:
        """Messages per second, of stamps, or of log times where there are none."""
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
            stamp_ns = cdr.header().stamp_ns if self.has_header else 0
            self.stamps_ns[-1].append(stamp_ns)
            self.logs_ns[-1].append(min(raw.log_ns, LAST_NS))
            if raw.type_name in IMAGES:
                self._take_image(IMAGES[raw.type_name], cdr)
            elif self.looked_at <= LOOKED_INTO or self.looked_at % THEN_EVERY == 0:
                self._take_numbers(cdr, raw)
            self.contents += 1
        except (CdrError, ReadError) as error:
            self.malformed += 1
            self.fault = self.fault or str(error)

    def _take_image(self, transport: str, cdr: Cdr) -> None:
        content = PICTURES[transport](cdr)
        known = content.format if not isinstance(content, RawImage) else _layout(content)
        # The first images of a camera that has just been switched on are often broken.
        if known in self.refused or (known not in self.formats and len(self.refused) < MOST_SETS):
            refusal = _refusal(transport, content)
            if not refusal:
                self.refused.pop(known, None)
            else:
                self.refused.setdefault(known, refusal)
        if isinstance(content, RawImage) and self.formats[known] % BRIGHT_EVERY == 0:
            self._take_brightness(content)
        self.formats[known] += 1

    def _take_brightness(self, image: RawImage) -> None:
        if image.encoding.endswith("16"):
            with suppress(ImageError):
                self.brightest = max(self.brightest, int(decode(*image).max()))

    @cached_property
    def _numbers(self) -> NumbersReader:
        return numbers_reader(self.info.type_name, self.info.definition)

    def _take_numbers(self, cdr: Cdr, raw: RawMessage) -> None:
        numbers = self._numbers(cdr, raw)
        self.spans.take(numbers.names, numbers.values)
        self.sizes[len(numbers.values)] += 1
        positions = any(name.startswith("position.") for name in numbers.names)
        given = numbers.joints if positions else ()
        if given in self.names or len(self.names) < MOST_SETS:
            self.names[given] += 1


def _layout(image: RawImage) -> str:
    return f"{image.encoding} {image.width}x{image.height}"


Picture = RawImage | CompressedImage | VideoPacket
PICTURES: dict[str, Callable[[Cdr], Picture]] = {
    "raw": fields.image,
    "compressed": fields.compressed,
    "video": fields.video,
    "ffmpeg": fields.ffmpeg,
}
"""What reads the pictures of each transport, behind a header."""


def _refusal(transport: str, content: Picture) -> str:
    """Why an image cannot be decoded, as a tick would say it; empty where it can.

    Of video it asks only for the codec: a frame needs those before it.
    """
    if isinstance(content, VideoPacket):
        try:
            codec_of(content.format)
        except ImageError as error:
            return str(error)
        return ""
    camera = CameraConfig("camera", "camera", 1, transport=transport)
    other = SensorConfig("other", "other", 1, type="std_msgs/msg/Bool", stamp="received")
    try:
        image = SampleReader(ObservationConfig((camera,), (other,))).read("camera", content)
        _ = getattr(image, "image", None)  # what is made on demand is refused only then
    except ValueError as error:
        return str(error)
    return ""


def survey(reader: BagReader) -> dict[str, TopicSurvey]:
    """Every topic by name; those whose messages the package can read are looked into, each from its own begin.

    Of images the end is looked at, too.
    """
    found = {name: TopicSurvey(info) for name, info in reader.topics.items()}
    windows = {name: _Window() for name, info in reader.topics.items() if info.type_name in READ and info.messages}
    begin_ns: int | None = None
    while open_ := {name for name, window in windows.items() if not window.full}:
        begin_ns = _look(reader.messages(open_, begin_ns), found, windows)
        if begin_ns is None:
            break
    rest = {name for name, one in found.items() if one.info.type_name in IMAGES and one.looked_at < one.info.messages}
    for name, stamp_ns, log_ns in times(reader.messages(rest, reader.end_ns - END_NS)) if rest else ():
        found[name].end = End(reader.end_ns, stamp_ns, log_ns)
    return found


def times(messages: Iterable[RawMessage]) -> Iterator[tuple[str, int, int]]:
    """Topic, header stamp and log time of messages with a header; those that are cut off are passed over."""
    for raw in messages:
        with suppress(CdrError):
            yield raw.topic, header_stamp_ns(raw.data), min(raw.log_ns, LAST_NS)


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


def _always_refused(found: Sequence[TopicSurvey]) -> dict[str, str]:
    """Why image formats are refused that no bag has a whole image of."""
    refused = {known: why for one in found for known, why in one.refused.items()}
    shown = {known for one in found for known in one.formats if known not in one.refused}
    return {known: why for known, why in refused.items() if known not in shown}


def _merged(found: list[TopicSurvey]) -> TopicSurvey:
    usual = Counter(one.info.type_name for one in found).most_common(1)[0][0]
    found = [one for one in found if one.info.type_name == usual]
    (info,) = merge_topics([one.info for one in found]).values()
    spans = Spans()
    for one in found:
        spans.merge(one.spans)
    return TopicSurvey(
        info,
        [stamps for one in found for stamps in one.stamps_ns],
        [logs for one in found for logs in one.logs_ns],
        sum((one.names for one in found), Counter()),
        spans,
        sum((one.sizes for one in found), Counter()),
        sum((one.formats for one in found), Counter()),
        _always_refused(found),
        max(one.brightest for one in found),
        sum(one.contents for one in found),
        sum(one.malformed for one in found),
        next((one.fault for one in found if one.fault), ""),
    )
