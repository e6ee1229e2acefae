"""One pass over an mcap file's records, from front to back: what is described in it, and where its messages lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from trace_memory_ros.bags import mcap_records as mcap
from trace_memory_ros.bags.mcap_blocks import Blocks
from trace_memory_ros.bags.mcap_records import RecordError, Span, Tables
from trace_memory_ros.bags.mcap_source import Source

_HEAD_BYTES = 256
_RUN_BYTES = 2**19
_BEYOND = "a record of {} bytes goes beyond the end of the file"

Fault = Callable[[str, str], None]
"""Called with what is wrong, and where."""


class Scan:
    """segments: the tables of each mcap file that `source` holds, normally one. blocks: of all of them.

    Chunks are only told of, by the indexes behind them; a chunk whose indexes do not fit it is left unknown.
    """

    def __init__(self, source: Source, fault: Fault) -> None:
        self.segments: list[Tables] = []
        self.blocks = Blocks()
        self._source = source
        self._fault = fault
        self._run = _Run(self.blocks)
        self._chunk: _Chunk | None = None
        self._before = self._at = 0
        begin: int | None = 0
        while begin is not None:
            self.segments.append(Tables({}, {}))
            begin = self._segment(begin)

    def _segment(self, begin: int) -> int | None:
        """Read one mcap file; where the next one begins, None where there is none."""
        self._before = self._at = begin + len(mcap.MAGIC)
        try:
            while True:
                self._messages()
                op, size = mcap.RECORD.unpack(self._source.read(self._at, mcap.RECORD.size))
                body = self._at + mcap.RECORD.size
                if op == 0:
                    raise RecordError("there is no record of kind 0")
                if body + size > self._source.size:
                    raise RecordError(_BEYOND.format(size))
                self._record(op, body, size)
                self._before, self._at = self._at, body + size
                if op == mcap.FOOTER:
                    return self._behind(self._at)
        except RecordError as error:
            self._close()
            what = f"the file is cut off or damaged ({error}); what lies behind may be lost"
            self._fault(what, f"byte {self._at}")
            return self._resume(begin, self._at)

    def _messages(self) -> None:
        """Pass over messages that lie outside of chunks."""
        source, unpack, least = self._source, mcap.MESSAGE_RECORD.unpack_from, mcap.MESSAGE_RECORD.size
        on = True
        while on and self._at + least <= source.size:
            window, i = source.window(self._at, least)
            shift = self._at - i
            numbers: list[int] = []
            times: list[int] = []
            while i + least <= len(window):
                op, size, number, _, log_ns, _ = unpack(window, i)
                after = i + mcap.RECORD.size + size
                if op != mcap.MESSAGE or size < mcap.MESSAGE_HEAD.size or shift + after > source.size:
                    on = False
                    break
                numbers.append(number)
                times.append(log_ns)
                i = after
            if numbers:
                self._run.add(self._at, shift + i, len(self.segments) - 1, numbers, times)
            self._at = shift + i

    def _record(self, op: int, body: int, size: int) -> None:
        source, tables = self._source, self.segments[-1]
        if op == mcap.MESSAGE_INDEX and self._chunk is not None and not self._run.counts:
            self._chunk.add(source.read(body, size))
            return
        self._close()
        if op == mcap.CHUNK:
            head = mcap.chunk_head(source.read(body, min(size, _HEAD_BYTES)))
            index = self.blocks.add(self._at, mcap.RECORD.size + size, True, len(self.segments) - 1)
            self._chunk = _Chunk(index, head.start_ns, head.end_ns)
        elif op == mcap.MESSAGE:
            raise RecordError(f"a message of {size} bytes")
        elif op in mcap.TABLES:
            tables.take(op, source.read(body, size))
        elif mcap.LAST_OPCODE < op < mcap.PRIVATE_OPCODES:
            self._fault(f"a record of kind {op}, which is not known, is passed over", f"byte {self._at}")

    def _close(self) -> None:
        self._run.close()
        if self._chunk is not None:
            self._chunk.close(self.blocks)
            self._chunk = None

    def _behind(self, at: int) -> int | None:
        """What follows a footer: the closing magic, and normally nothing."""
        at += len(mcap.MAGIC)
        left = self._source.size - at
        if left <= 0 or self._source.only_zeros(at):
            return None
        if left > len(mcap.MAGIC) and self._source.read(at, len(mcap.MAGIC)) == mcap.MAGIC:
            self._fault("another mcap file follows in the same file: both are read", f"byte {at}")
            return at
        self._fault(f"{left} bytes that are no mcap file follow its end: they are not read", f"byte {at}")
        return None

    def _resume(self, begin: int, at: int) -> int | None:
        """Behind damage: where another mcap file begins; else the chunks that the summary at the end knows."""
        # A record that was cut off takes what begins behind it for its own.
        another = self._source.find(mcap.MAGIC + bytes([mcap.HEADER]), self._before)
        if another >= 0:
            self._fault("another mcap file follows in the same file: it is read", f"byte {another}")
            return another
        try:
            self._indexed(begin, at)
        except RecordError:
            pass
        return None

    def _indexed(self, begin: int, behind: int) -> None:
        """Enter the chunks after byte `behind` that the summary of the file that began at `begin` knows."""
        source = self._source
        tail = source.read(source.size - mcap.FOOTER_BYTES - len(mcap.MAGIC), mcap.FOOTER_BYTES + len(mcap.MAGIC))
        at = begin + int.from_bytes(tail[mcap.RECORD.size : mcap.RECORD.size + 8], "little")
        if not tail.endswith(mcap.MAGIC) or tail[0] != mcap.FOOTER or at <= behind:
            return
        while True:
            op, size = mcap.RECORD.unpack(source.read(at, mcap.RECORD.size))
            body = source.read(at + mcap.RECORD.size, size)
            if op == mcap.FOOTER:
                return
            self.segments[-1].take(op, body)
            if op == mcap.CHUNK_INDEX:
                offset, length = mcap.chunk_index(body)
                if begin + offset > behind and begin + offset + length <= source.size:
                    self.blocks.add(begin + offset, length, True, len(self.segments) - 1)
            at += mcap.RECORD.size + size


class _Run:
    """Messages outside of chunks, joined to blocks of a bounded size. counts: of the present one."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self.counts: Counter[int] = Counter()
        self._begin = self._end = self._segment = self._start_ns = self._end_ns = 0

    def add(self, begin: int, end: int, segment: int, numbers: list[int], times: list[int]) -> None:
        if not self.counts:
            self._begin, self._segment, self._start_ns, self._end_ns = begin, segment, times[0], times[0]
        self._start_ns, self._end_ns = min(self._start_ns, *times), max(self._end_ns, *times)
        self.counts.update(numbers)
        self._end = end
        if end - self._begin > _RUN_BYTES:
            self.close()

    def close(self) -> None:
        if self.counts:
            index = self._blocks.add(self._begin, self._end - self._begin, False, self._segment)
            self._blocks.put(index, Span(self._start_ns, self._end_ns, dict(self.counts)), True)
            self.counts.clear()


class _Chunk:
    """A chunk's head, and what the message indexes behind it say."""

    def __init__(self, index: int, start_ns: int, end_ns: int) -> None:
        self._index = index
        self._head = (start_ns, end_ns)
        self._counts: Counter[int] = Counter()
        self._times: list[int] = []

    def add(self, body: bytes) -> None:
        try:
            number, times = mcap.message_index(body)
        except RecordError:
            self._times.append(-1)
            return
        if len(times):
            self._times += (int(times.min()), int(times.max()))
            self._counts[number] += len(times)

    def close(self, blocks: Blocks) -> None:
        """Enter what is told where head and indexes agree."""
        if self._times and (min(self._times), max(self._times)) == self._head:
            blocks.put(self._index, Span(*self._head, dict(self._counts)), False)
