"""One mcap file, read from front to back so that no index has to be believed.

A file that was cut off, or whose middle is damaged, gives what can still be read; `faults` name the rest.
"""

from __future__ import annotations

import heapq
from array import array
from collections import Counter, OrderedDict
from collections.abc import Container, Iterator
from pathlib import Path

from trace_memory_ros.bags import mcap_records as mcap
from trace_memory_ros.bags.compression import CompressionError, unpack_chunk
from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.bags.mcap_blocks import SEGMENT_BITS, Block
from trace_memory_ros.bags.mcap_records import Channel, RecordError, Span
from trace_memory_ros.bags.mcap_scan import Scan
from trace_memory_ros.bags.mcap_source import Source
from trace_memory_ros.bags.storage import RawMessage, TopicInfo, absolute, modern, not_cdr

RECOVER = "repair a copy with `mcap recover`, or record again"
ALL_IDS = range(2**SEGMENT_BITS)
_HEAD_BYTES = 256
_KEPT_BYTES = 2**25


class McapFile:
    """Implements `storage.Storage`. Raises BagFault where nothing at all can be read.

    mapped: payloads of chunks without compression are views of the file, which is read where they are looked at: most
    of a fast camera's images never are. A file that another program cuts short meanwhile then ends this process.

    What the indexes tell is used where the file's statistics tell the same; else every chunk is looked into.
    """

    def __init__(self, path: Path, bag: Path, mapped: bool = False) -> None:
        self.path, self.bag = path, bag
        self.faults: list[BagFault] = []
        self._kept: OrderedDict[int, memoryview] = OrderedDict()
        self._source = Source(path, mapped)
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def topics(self) -> list[TopicInfo]:
        return [
            TopicInfo(absolute(c.topic), (modern(c.type_name),), self._counts[channel], c.definition, (c.topic,))
            for channel, c in self._channels().items()
        ]

    def times_ns(self) -> tuple[int, int] | None:
        return self._blocks.times_ns()

    def close(self) -> None:
        self._kept.clear()
        self._source.close()

    def messages(self, topics: frozenset[str] | None, begin_ns: int, end_ns: int) -> Iterator[RawMessage]:
        """In log order; messages of chunks that overlap are merged."""
        named = {
            channel: (absolute(c.topic), modern(c.type_name))
            for channel, c in self._channels().items()
            if topics is None or absolute(c.topic) in topics
        }
        wanted = [{c & ALL_IDS[-1] for c in named if c >> SEGMENT_BITS == k} for k in range(len(self._segments))]
        waiting: list[tuple[int, int, int, int, int, int]] = []
        left: Counter[int] = Counter()
        serial = 0
        for index, next_ns in self._blocks.in_order(named, begin_ns, end_ns):
            block = self._blocks[index]
            for done in [other for other in self._kept if other != index and not left[other]]:
                del self._kept[done]
            for number, log_ns, begin, end in self._records(index, block, wanted[block.segment]):
                if not block.start_ns <= log_ns <= block.end_ns:
                    what = f"a message of log time {log_ns} lies in a chunk of {block.start_ns} to {block.end_ns}"
                    self._fault(what, f"byte {block.offset}")
                if begin_ns <= log_ns < end_ns:
                    channel = block.segment << SEGMENT_BITS | number
                    heapq.heappush(waiting, (log_ns, serial, index, channel, begin, end))
                    serial += 1
                    left[index] += 1
            while waiting and waiting[0][0] <= next_ns:
                log_ns, _, origin, channel, begin, end = heapq.heappop(waiting)
                data = self._payload(origin, begin, end)
                left[origin] -= 1
                if data is not None:
                    yield RawMessage(*named[channel], log_ns, data)

    def _fault(self, what: str, where: str, remedy: str = RECOVER) -> None:
        fault = BagFault(self.bag, what, f"{self.path.name}, {where}", remedy)
        if fault not in self.faults:
            self.faults.append(fault)

    def _open(self) -> None:
        magic = self._source.read(0, min(len(mcap.MAGIC), self._source.size))
        if magic != mcap.MAGIC:
            raise BagFault(
                self.bag,
                f"begins with {magic.hex() or 'nothing'}, an mcap file with {mcap.MAGIC.hex()}",
                f"{self.path.name}, byte 0",
                "the file is no mcap or its first bytes are lost: restore it from a copy, or record again",
            )
        scan = Scan(self._source, self._fault)
        self._segments, self._blocks = scan.segments, scan.blocks
        self._settle()
        self._name_losses()

    def _channels(self) -> dict[int, Channel]:
        return {
            k << SEGMENT_BITS | number: channel
            for k, tables in enumerate(self._segments)
            for number, channel in tables.channels.items()
        }

    def _settle(self) -> None:
        """Look into what nobody tells of, and into everything where what is told cannot be so."""
        blocks = self._blocks
        for index in blocks.unseen():
            if not blocks[index].messages:
                self._look_into(index)
        claimed = Counter(
            {
                k << SEGMENT_BITS | number: count
                for k, tables in enumerate(self._segments)
                for number, count in (tables.counts or {}).items()
            }
        )
        counts = blocks.seen + blocks.told
        if blocks.told and (+claimed != counts or not counts.keys() <= self._channels().keys()):
            blocks.told.clear()
            for index in blocks.unseen():
                self._look_into(index)
            counts = blocks.seen + blocks.told
        # A claim beyond what is there is compared with what a pass gives; one below it would hide messages.
        self._counts = counts | claimed
        for channel, described in self._channels().items():
            if claimed and claimed[channel] < counts[channel]:
                what = f"holds {counts[channel]} messages where the file's statistics claim {claimed[channel]}"
                self._fault(what, f"topic {described.topic}")

    def _name_losses(self) -> None:
        channels = self._channels()
        for topic, encoding in {c.topic: c.encoding for c in channels.values() if c.encoding != "cdr"}.items():
            self.faults.append(not_cdr(self.bag, topic, encoding, self.path.name))
        for channel, count in sorted(self._blocks.seen.items()):
            if channel not in channels:
                what = f"{count} messages are of channel {channel & ALL_IDS[-1]}, which nothing describes: lost"
                self._fault(what, "channels")

    def _look_into(self, index: int) -> None:
        """Enter what a block's content says."""
        block = self._blocks[index]
        numbers, times = array("H"), array("Q")
        for number, log_ns, _, _ in self._records(index, block, ALL_IDS):
            numbers.append(number)
            times.append(log_ns)
        span = Span(min(times), max(times), Counter(numbers)) if times else Span(0, 0, {})
        self._blocks.put(index, span, True)
        self._compare_times(block, span)

    def _compare_times(self, block: Block, span: Span) -> None:
        """Name a chunk whose head gives other times than its messages have."""
        if not block.chunk or not span.counts:
            return
        try:
            body = self._source.read(block.offset, min(block.length, _HEAD_BYTES))[mcap.RECORD.size :]
            head = mcap.chunk_head(body)
        except RecordError:
            return
        if (head.start_ns, head.end_ns) != (span.start_ns, span.end_ns):
            what = (
                f"the chunk claims log times {head.start_ns} to {head.end_ns}, its messages have {span.start_ns} to "
                f"{span.end_ns}: theirs count"
            )
            self._fault(what, f"byte {block.offset}")

    def _records(self, index: int, block: Block, wanted: Container[int]) -> Iterator[tuple[int, int, int, int]]:
        """As `mcap_records.messages_in`, of a block as far as it can be read."""

        def take(op: int, body: memoryview) -> None:
            if op in (mcap.SCHEMA, mcap.CHANNEL):
                self._segments[block.segment].take(op, body)
            elif op < mcap.PRIVATE_OPCODES:
                self._fault(f"a record of kind {op} among messages is passed over", f"byte {block.offset}")

        try:
            yield from mcap.messages_in(self._content(index, block), wanted, take)
        except CompressionError as error:
            self._fault(f"the chunk {error}: its messages are lost", f"byte {block.offset}")
        except RecordError as error:
            self._fault(f"the chunk is damaged ({error}): messages in it are lost", f"byte {block.offset}")

    def _payload(self, index: int, begin: int, end: int) -> memoryview | None:
        content = self._kept.get(index)
        if content is None:
            try:
                content = self._content(index, self._blocks[index])
            except (CompressionError, RecordError) as error:  # it was whole before
                where = f"byte {self._blocks[index].offset}"
                self._fault(f"the file changes while it is read ({error}): messages are lost", where)
                return None
        return content[begin:end]

    def _content(self, index: int, block: Block) -> memoryview:
        """A block's records, unpacked; those of the blocks before are kept for messages that wait their turn."""
        known = self._kept.get(index)
        if known is not None:
            self._kept.move_to_end(index)
            return known
        if block.chunk:
            body = self._source.view(block.offset + mcap.RECORD.size, block.length - mcap.RECORD.size)
            head = mcap.chunk_head(body)
            packed = body[head.data_at :]
            if len(packed) != head.data_size:
                raise RecordError(f"a chunk holds {len(packed)} bytes of {head.data_size}")
            content = memoryview(unpack_chunk(packed, head.compression, head.size, head.crc))
        else:
            content = self._source.view(block.offset, block.length)
        self._kept[index] = content
        while len(self._kept) > 1 and sum(len(kept) for kept in self._kept.values()) > _KEPT_BYTES:
            self._kept.popitem(last=False)
        return content
