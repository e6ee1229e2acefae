"""One mcap file, read from front to back so that no index has to be believed.

A file that was cut off, or whose middle is damaged, gives what can still be read; `faults` name the rest.
"""

from __future__ import annotations

import heapq
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

from trace_memory_ros.bags import mcap_records as mcap
from trace_memory_ros.bags.compression import CompressionError, unpack_chunk
from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.bags.mcap_records import Block, RecordError
from trace_memory_ros.bags.storage import RawMessage, TopicInfo

RECOVER = "repair a copy with `mcap recover`, or record again"
_SEEN_AT_ONCE = 256


class McapFile:
    """Implements `storage.Storage`. Raises BagFault where nothing at all can be read.

    mapped: payloads of chunks without compression are views of the file, which is read where they are looked at: most
    of a fast camera's images never are. A file that another program cuts short meanwhile then ends this process.
    """

    def __init__(self, path: Path, bag: Path, mapped: bool = False) -> None:
        self.path, self.bag = path, bag
        self._map: mmap.mmap | None = None
        self.faults: list[BagFault] = []
        self._tables = mcap.Tables({}, {})
        self._fd = os.open(path, os.O_RDONLY)
        try:
            self._size = os.fstat(self._fd).st_size
            if mapped:
                self._map = mmap.mmap(self._fd, self._size, access=mmap.ACCESS_READ)
            self._open()
        except BaseException:
            self.close()
            raise

    def topics(self) -> list[TopicInfo]:
        counts = self._tables.counts or {}
        return [
            TopicInfo(channel.topic, (channel.type_name,), counts.get(number, 0), channel.definition)
            for number, channel in self._tables.channels.items()
        ]

    def times_ns(self) -> tuple[int, int] | None:
        """From the chunks' heads."""
        if not self._blocks or not sum((self._tables.counts or {}).values()):
            return None
        return min(b.start_ns for b in self._blocks), max(b.end_ns for b in self._blocks)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        # Views that were handed out keep the mapping for as long as they live.
        self._map = None

    def messages(self, topics: frozenset[str] | None, begin_ns: int, end_ns: int) -> Iterator[RawMessage]:
        """In log order; messages of chunks that overlap are merged."""
        wanted = {
            number for number, channel in self._tables.channels.items() if topics is None or channel.topic in topics
        }
        blocks = [b for b in self._blocks if b.end_ns >= begin_ns and b.start_ns < end_ns]
        waiting: list[tuple[int, int, RawMessage]] = []
        serial = 0
        for block, next_ns in zip(blocks, [*(b.start_ns for b in blocks[1:]), 2**64], strict=True):
            for message in self._block_messages(block, wanted):
                if begin_ns <= message.log_ns < end_ns:
                    heapq.heappush(waiting, (message.log_ns, serial, message))
                    serial += 1
            while waiting and waiting[0][0] <= next_ns:
                yield heapq.heappop(waiting)[2]

    def _fault(self, what: str, where: str, remedy: str = RECOVER) -> None:
        fault = BagFault(self.bag, what, f"{self.path.name}, {where}", remedy)
        if fault not in self.faults:
            self.faults.append(fault)

    def _read(self, at: int, size: int) -> bytes:
        data = os.pread(self._fd, max(min(size, self._size - at), 0), at) if at >= 0 else b""
        if len(data) < size:
            raise RecordError(f"the file ends {size - len(data)} bytes too early")
        return data

    def _view(self, at: int, size: int) -> memoryview:
        if self._map is None:
            return memoryview(self._read(at, size))
        view = memoryview(self._map)[at : at + size]
        if len(view) < size:
            raise RecordError(f"the file ends {size - len(view)} bytes too early")
        return view

    def _open(self) -> None:
        magic = os.pread(self._fd, len(mcap.MAGIC), 0)
        if magic != mcap.MAGIC:
            raise BagFault(
                self.bag,
                f"begins with {magic.hex() or 'nothing'}, an mcap file with {mcap.MAGIC.hex()}",
                f"{self.path.name}, byte 0",
                "the file is no mcap or its first bytes are lost: restore it from a copy, or record again",
            )
        blocks = {block.offset: block for block in self._scan()}
        if self._tables.counts is None or not self._tables.counts.keys() <= self._tables.channels.keys():
            self._blocks = self._ordered(blocks)
            self._count()
        self._blocks = self._ordered(blocks)
        foreign = {c.topic: c.encoding for c in self._tables.channels.values() if c.encoding != "cdr"}
        for topic, encoding in foreign.items():
            self._fault(
                f"is encoded as {encoding!r}, ROS 2 messages as 'cdr'",
                f"topic {topic}",
                "record it with `ros2 bag record`, or leave the topic out of the configuration",
            )

    @staticmethod
    def _ordered(blocks: dict[int, Block]) -> list[Block]:
        return sorted(blocks.values(), key=lambda block: (block.start_ns, block.offset))

    def _scan(self) -> Iterator[Block]:
        """Chunks and loose messages in file order, filling the tables on the way."""
        at = len(mcap.MAGIC)
        while True:
            try:
                op, size = mcap.RECORD.unpack(self._read(at, mcap.RECORD.size))
                body = at + mcap.RECORD.size
                if op == 0 or mcap.LAST_OPCODE < op < mcap.PRIVATE_OPCODES:
                    raise RecordError(f"there is no record of kind {op}")
                if body + size > self._size:
                    raise RecordError(f"a record of {size} bytes goes beyond the end of the file")
                if op == mcap.FOOTER:
                    return
                block = self._take(op, at, body, size)
            except RecordError as error:
                self._fault(f"the file is cut off or damaged ({error}); what lies behind may be lost", f"byte {at}")
                yield from self._indexed(at)
                return
            if block is not None:
                yield block
            at = body + size

    def _take(self, op: int, at: int, body: int, size: int) -> Block | None:
        if op == mcap.CHUNK:
            head = mcap.chunk_head(self._read(body, min(size, _SEEN_AT_ONCE)))
            return Block(at, mcap.RECORD.size + size, head.start_ns, head.end_ns, True)
        if op == mcap.MESSAGE:
            if size < mcap.MESSAGE_HEAD.size:
                raise RecordError(f"a message of {size} bytes")
            log_ns = mcap.MESSAGE_HEAD.unpack(self._read(body, mcap.MESSAGE_HEAD.size))[2]
            return Block(at, mcap.RECORD.size + size, log_ns, log_ns, False)
        if op in (mcap.SCHEMA, mcap.CHANNEL, mcap.STATISTICS):
            self._table_record(op, self._read(body, size))
        return None

    def _table_record(self, op: int, body: bytes | memoryview) -> None:
        if op == mcap.SCHEMA:
            self._tables.add_schema(body)
        elif op == mcap.CHANNEL:
            self._tables.add_channel(body)
        elif op == mcap.STATISTICS:
            self._tables.add_statistics(body)

    def _indexed(self, behind: int) -> Iterator[Block]:
        """Chunks after byte `behind` that the summary at the end of the file knows, if that is whole."""
        try:
            tail = self._read(self._size - mcap.FOOTER_BYTES - len(mcap.MAGIC), mcap.FOOTER_BYTES + len(mcap.MAGIC))
            at = int.from_bytes(tail[mcap.RECORD.size : mcap.RECORD.size + 8], "little")
            if not tail.endswith(mcap.MAGIC) or tail[0] != mcap.FOOTER or at <= behind:
                return
            while True:
                op, size = mcap.RECORD.unpack(self._read(at, mcap.RECORD.size))
                body = self._read(at + mcap.RECORD.size, size)
                if op == mcap.FOOTER:
                    return
                self._table_record(op, body)
                if op == mcap.CHUNK_INDEX and (block := mcap.chunk_index(body)).offset > behind:
                    yield block
                at += mcap.RECORD.size + size
        except RecordError:
            return

    def _count(self) -> None:
        """Count messages, and find channels, by looking into every chunk: the file has no summary."""
        counts: dict[int, int] = {}
        for block in self._blocks:
            for number, _, _ in self._block_records(block):
                counts[number] = counts.get(number, 0) + 1
        self._tables.counts = counts

    def _block_messages(self, block: Block, wanted: set[int]) -> Iterator[RawMessage]:
        for number, log_ns, data in self._block_records(block):
            if number in wanted:
                channel = self._tables.channels[number]
                yield RawMessage(channel.topic, channel.type_name, log_ns, data)

    def _block_records(self, block: Block) -> Iterator[tuple[int, int, memoryview]]:
        """Channel, log time and payload of a block's messages, as far as they can be read."""
        try:
            body = self._view(block.offset + mcap.RECORD.size, block.length - mcap.RECORD.size)
            if not block.chunk:
                number, _, log_ns, _ = mcap.MESSAGE_HEAD.unpack_from(body)
                yield number, log_ns, body[mcap.MESSAGE_HEAD.size :]
                return
            head = mcap.chunk_head(body)
            packed = body[head.data_at :]
            if len(packed) != head.data_size:
                raise RecordError(f"a chunk holds {len(packed)} bytes of {head.data_size}")
            content = memoryview(unpack_chunk(packed, head.compression, head.size, head.crc))
            yield from self._chunk_records(content)
        except CompressionError as error:
            self._fault(f"the chunk {error}: its messages are lost", f"byte {block.offset}")
        except RecordError as error:
            self._fault(f"the chunk is damaged ({error}): messages in it are lost", f"byte {block.offset}")

    def _chunk_records(self, content: memoryview) -> Iterator[tuple[int, int, memoryview]]:
        at, end = 0, len(content)
        while at < end:
            if at + mcap.RECORD.size > end:
                raise RecordError(f"a record is cut off at byte {at} of the chunk")
            op, size = mcap.RECORD.unpack_from(content, at)
            at += mcap.RECORD.size
            if at + size > end:
                raise RecordError(f"a record at byte {at} of the chunk goes beyond its end")
            if op == mcap.MESSAGE:
                if size < mcap.MESSAGE_HEAD.size:
                    raise RecordError(f"a message of {size} bytes at byte {at} of the chunk")
                number, _, log_ns, _ = mcap.MESSAGE_HEAD.unpack_from(content, at)
                yield number, log_ns, content[at + mcap.MESSAGE_HEAD.size : at + size]
            elif op in (mcap.SCHEMA, mcap.CHANNEL):
                self._table_record(op, content[at : at + size])
            else:
                raise RecordError(f"a record of kind {op} at byte {at} of the chunk")
            at += size
