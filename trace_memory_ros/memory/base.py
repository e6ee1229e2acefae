"""The memory contract: what a mechanism receives, keeps, offers and reports.

A mechanism implements `initial_state`, `write` and `read`; `step`, `scan` and `forward` follow from them
and may be overridden by a faster path that is tested against these naive ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

State = tuple[Tensor, ...]
"""Fixed-shape tensors, batch first. Their sizes never depend on how much was remembered."""


class MemoryInput(NamedTuple):
    """Evidence and address of one control tick; leading dimensions are `(B,)` or `(B, T)`.

    content: `(..., d_e)` visual-state feature e_t. xi: `(..., S)` standardised signature. delta: `(..., S)`
    standardised signature increment since the last write. anchor: `(..., d_e)` content of the episode's first tick.
    embedded: `(..., any)` what `Memory.embed` computed from the others, for the mechanism alone; None before.
    """

    content: Tensor
    xi: Tensor
    delta: Tensor
    anchor: Tensor
    embedded: Tensor | None = None

    def map(self, change: Callable[[Tensor], Tensor]) -> MemoryInput:
        """Apply `change` (indexing, reshaping, moving) to every field that is present."""
        return MemoryInput(
            change(self.content),
            change(self.xi),
            change(self.delta),
            change(self.anchor),
            None if self.embedded is None else change(self.embedded),
        )

    def at(self, t: int) -> MemoryInput:
        """The inputs of time index `t` of a `(B, T, ...)` sequence."""
        return self.map(lambda field: field[:, t])


class Readout(NamedTuple):
    """What a policy may condition on. tokens `(B, N, d)`, vector `(B, d)`, read_weights `(B, N)`, address `(B, a)`."""

    tokens: Tensor
    vector: Tensor
    read_weights: Tensor
    address: Tensor


class WriteRecord(NamedTuple):
    """What a write did. route, write_strength `(B, N)`; gate, surprise `(B,)`; wrote `(B,)` bool."""

    route: Tensor
    write_strength: Tensor
    gate: Tensor
    surprise: Tensor
    wrote: Tensor

    @classmethod
    def ungated(cls, route: Tensor, write_strength: Tensor) -> WriteRecord:
        """The record of a mechanism that writes whenever it is told to: gate 1, surprise 0."""
        ones = torch.ones_like(route[..., 0])
        return cls(route, write_strength, ones, torch.zeros_like(ones), torch.ones_like(ones, dtype=torch.bool))

    def only_where(self, write: Tensor) -> WriteRecord:
        """The record with nothing written where the flag, shaped as `wrote`, is False."""
        strength = self.write_strength
        return self._replace(
            write_strength=torch.where(write[..., None], strength, torch.zeros_like(strength)),
            wrote=self.wrote & write,
        )


@dataclass(frozen=True)
class MemoryDims:
    """Sizes a mechanism is built for. content d_e, signature S (may be 0), width d, slots N."""

    content: int
    signature: int
    width: int
    slots: int

    def __post_init__(self) -> None:
        for name in ("content", "width", "slots"):
            if getattr(self, name) < 1:
                raise ValueError(f"MemoryDims.{name} = {getattr(self, name)}: must be at least 1")
        if self.signature < 0:
            raise ValueError(f"MemoryDims.signature = {self.signature}: must not be negative")


def where_state(keep_new: Tensor, new: State, old: State) -> State:
    """Select `new` where the `(B,)` flag holds and `old`, bit for bit, elsewhere."""
    return tuple(torch.where(keep_new.reshape(-1, *([1] * (n.ndim - 1))), n, o) for n, o in zip(new, old, strict=True))


def stack_steps(states: Sequence[State], records: Sequence[WriteRecord]) -> tuple[State, WriteRecord]:
    """States and records of single steps, each `(B, ...)`, as those of a sequence `(B, T, ...)`."""
    stacked = tuple(torch.stack(parts, dim=1) for parts in zip(*states, strict=True))
    return stacked, WriteRecord(*(torch.stack(fields, dim=1) for fields in zip(*records, strict=True)))


def states_after(states: State, at: Tensor) -> State:
    """Of a sequence's states `(B, T, ...)` those after steps `at` `(B, R)`."""
    rows = torch.arange(len(at), device=at.device)[:, None]
    return tuple(part[rows, at] for part in states)


def written_first(values: Tensor, mask: Tensor) -> Tensor:
    """Values `(B, T, c)` with those at which `mask` `(B, T)` holds before the others, in order: without gaps."""
    order = torch.argsort(~mask, dim=1, stable=True)
    return values.gather(1, order[..., None].expand_as(values))


def write_steps(
    write: Callable[[int, State], tuple[State, WriteRecord]], state: State, mask: Tensor
) -> tuple[State, State, WriteRecord]:
    """What `Memory.scan` returns, by one `write` of time index and state per step of `mask` `(B, T)`."""
    states: list[State] = []
    records: list[WriteRecord] = []
    for t in range(mask.shape[1]):
        written, record = write(t, state)
        state = where_state(mask[:, t], written, state)
        states.append(state)
        records.append(record)
    stacked, joined = stack_steps(states, records)
    return stacked, state, joined.only_where(mask)


class Memory(nn.Module):
    """Base of all mechanisms."""

    name: str = "abstract"
    uses_signature: bool = False
    """Whether `xi` and `delta` are read; where not, no signature needs to be computed."""
    delay_matters: bool = True
    """Whether writes after the first one may change what is read; where not, no delay has to be learned."""
    slot_kind: str = "slot"
    """What one of the N entries of tokens, route and write_strength is, in a word or two, for people."""
    _origin: Tensor

    def __init__(self, dims: MemoryDims, config: DataclassInstance) -> None:
        super().__init__()
        self.dims = dims
        self.config = config
        # Carries dtype and device for mechanisms that have no parameters.
        self.register_buffer("_origin", torch.zeros(()), persistent=False)

    @property
    def slot_count(self) -> int:
        """N: tokens in the readout; may be 0."""
        return self.dims.slots

    @property
    def address_width(self) -> int:
        """a: width of the readout's address; 0 where the mechanism has none."""
        return 0

    @property
    def reach(self) -> int | None:
        """How many of the newest writes what is read may depend on; None where it may depend on all."""
        return None

    def initial_state(self, batch: int) -> State:
        """State before the first tick, for `batch` episodes."""
        raise NotImplementedError

    def embed(self, x: MemoryInput) -> MemoryInput:
        """Fill `x.embedded`, so that several calls on the same input compute it once; never required."""
        return x

    def address(self, x: MemoryInput) -> Tensor:
        """The readout's address `(..., a)` of inputs `(..., )`: what they are filed under, whatever was remembered.

        A write gate sees it too. Here it is read off an empty memory.
        """
        leading = x.content.shape[:-1]
        if not self.address_width:
            return x.content.new_zeros(*leading, 0)
        flat = x.map(lambda field: field.reshape(-1, *field.shape[len(leading) :]))
        read = self.read(flat, self.initial_state(flat.content.shape[0]))
        return read.address.reshape(*leading, self.address_width)

    def write(self, x: MemoryInput, state: State) -> tuple[State, WriteRecord]:
        """Put one tick's evidence, fields `(B, ...)`, into the state."""
        raise NotImplementedError

    def read(self, x: MemoryInput, state: State) -> Readout:
        """Query the state with one tick's input, without changing it."""
        raise NotImplementedError

    def calibrate(self, xs: MemoryInput, mask: Tensor) -> None:
        """Set what is initialised from training data, before training; most mechanisms need nothing."""

    def anneal(self, progress: float) -> None:
        """Told before every training step how far the run is, 0..1, for penalties that ramp; most need nothing."""

    def demonstrated(self, updates: Tensor, seconds: Tensor) -> None:
        """Told before `auxiliary` how many updates the episodes had as they were demonstrated, and how long they were.

        Both of all together. For targets that count updates, where training goes beyond the demonstrated delay; most
        need nothing.
        """

    def auxiliary(self, xs: MemoryInput, states: State, records: WriteRecord, mask: Tensor) -> dict[str, Tensor]:
        """Training losses of the mechanism, by name, on what `scan` was given and returned.

        A name that the recipe has a weight for is unweighted; any other is added as it is.
        """
        return {}

    def step(self, x: MemoryInput, state: State, write: Tensor) -> tuple[Readout, State, WriteRecord]:
        """One control tick: write where the `(B,)` flag says so, then read.

        Where `write` is False the state stays bit-identical and the record reports no write.
        """
        x = self.embed(x)
        written, record = self.write(x, state)
        new = where_state(write, written, state)
        return self.read(x, new), new, record.only_where(write)

    def scan(self, xs: MemoryInput, state: State, mask: Tensor) -> tuple[State, State, WriteRecord]:
        """Write a `(B, T, ...)` sequence; `mask` `(B, T)` is False on padding and wherever nothing is to be written.

        What stands there changes nothing, but has to be finite too: faster forms multiply it by zero.
        Returns the state after every step (each tensor `(B, T, ...)`), the final state, and the records `(B, T, ...)`.
        """
        return write_steps(lambda t, held: self.write(xs.at(t), held), state, mask)

    def read_sequence(self, xs: MemoryInput, states: State) -> Readout:
        """Read at every step of a `(B, T, ...)` sequence, each from the state of its step."""
        batch, steps = xs.content.shape[:2]
        readout = self.read(
            xs.map(lambda f: f.reshape(batch * steps, *f.shape[2:])),
            tuple(s.reshape(batch * steps, *s.shape[2:]) for s in states),
        )
        return Readout(*(f.reshape(batch, steps, *f.shape[1:]) for f in readout))

    def unroll(
        self, xs: MemoryInput, mask: Tensor, queries: MemoryInput | None = None, at: Tensor | None = None
    ) -> tuple[Readout, State, WriteRecord]:
        """Write whole episodes `(B, T, ...)` where `mask` holds, and read: for trainers, who need no state to go on.

        Reads are at every step, or `queries` `(B, R, ...)` from the states after steps `at` `(B, R)`. Returns the
        readout, and states and records for `auxiliary`; a mechanism may leave out what its `auxiliary` does not use.
        """
        xs = self.embed(xs)
        states, _, records = self.scan(xs, self.initial_state(len(mask)), mask)
        if queries is None or at is None:
            return self.read_sequence(xs, states), states, records
        return self.read_sequence(queries, states_after(states, at)), states, records

    def forward(self, xs: MemoryInput, state: State, mask: Tensor) -> tuple[Readout, State, WriteRecord]:
        """Write where `mask` holds and read at every step of a `(B, T, ...)` sequence: repeated `step`, faster."""
        xs = self.embed(xs)
        stacked, final, records = self.scan(xs, state, mask)
        return self.read_sequence(xs, stacked), final, records

    def __call__(self, xs: MemoryInput, state: State, mask: Tensor) -> tuple[Readout, State, WriteRecord]:
        """`forward`, with the hooks of `nn.Module`."""
        return cast("tuple[Readout, State, WriteRecord]", super().__call__(xs, state, mask))

    @property
    def state_bytes(self) -> int:
        """Bytes of the state of one episode; constant in time."""
        return sum(t.element_size() * t.nelement() for t in self.initial_state(1))
