"""TRACE: slots addressed by path signatures (TRACE, eq. 3-6 and 25-35, algorithm 1).

Symbols: e content, xi and delta signature and its increment, g = phi_g(xi), dg = phi_delta(delta), q = [g, dg(, a0)],
rho = phi_rho(q), m slots `(B, K, d)`, eta slot identity, omega write route, beta write strength, z read vector.

`naive.py` holds the same equations slot by slot. Here everything that does not depend on the slots is
computed for all steps at once, and `slot_scan.py` runs what remains.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from trace_memory_ros.memory.base import Memory, MemoryDims, MemoryInput, Readout, State, WriteRecord
from trace_memory_ros.memory.trace.config import TraceConfig
from trace_memory_ros.memory.trace.losses import balance_loss, consistency_loss, entropy_loss
from trace_memory_ros.memory.trace.prototypes import PrototypeRoute
from trace_memory_ros.memory.trace.scan import SlotHistory, SlotPlan, SlotWeights, slot_scan


def mlp(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """The shape of every phi: two linear layers with SiLU between them."""
    return nn.Sequential(nn.Linear(inputs, hidden), nn.SiLU(), nn.Linear(hidden, outputs))


def slot_identities(slots: int, width: int) -> Tensor:
    """Sinusoidal identities eta `(K, d)`, fixed."""
    position = torch.arange(slots, dtype=torch.float64)[:, None]
    channel = torch.arange(width)
    angle = position * torch.exp(-math.log(10_000.0) * (channel // 2 * 2) / width)
    return torch.where(channel % 2 == 0, torch.sin(angle), torch.cos(angle)).float()


class TraceMemory(Memory):
    """Signature-routed slots. Tokens are the slots, the vector is z, the address is [g, dg]."""

    name = "trace"
    uses_signature = True
    identity: Tensor

    def __init__(self, dims: MemoryDims, config: TraceConfig | None = None) -> None:
        config = config or TraceConfig()
        super().__init__(dims, config)
        if dims.signature < 1:
            raise ValueError("MemoryDims.signature = 0: trace routes by signatures; give their length, or use 'gru'")
        self.settings = config
        width, hidden = dims.width, config.hidden or dims.width
        embedded, keyed = config.address_width or dims.width, config.routing_width or dims.width
        query = embedded * (1 + config.use_delta) + dims.content * config.anchor
        self._address_width = embedded * (1 + config.use_delta)
        self.phi_g = mlp(dims.signature, hidden, embedded)
        self.phi_delta = mlp(dims.signature, hidden, embedded) if config.use_delta else None
        self.phi_rho = mlp(query, hidden, keyed)
        self.phi_w = mlp(dims.content + query, hidden, width)
        self.phi_m = mlp(2 * width + keyed, hidden, width)
        self.phi_beta = mlp(2 * width + keyed, hidden, 1)
        self.phi_r = mlp(dims.content + keyed, hidden, width)
        if config.routing == "prototypes":
            self.route = PrototypeRoute(dims.slots, dims.signature)
        else:
            self.w_q = nn.Linear(keyed, keyed, bias=False)
            self.w_k = nn.Linear(width, keyed, bias=False)
        self.w_k_read = nn.Linear(width, width, bias=False)
        self.w_v_read = nn.Linear(width, width, bias=False)
        self.norm_g = nn.LayerNorm(embedded) if config.address_norm else nn.Identity()
        self.norm_delta = nn.LayerNorm(embedded) if config.address_norm and config.use_delta else nn.Identity()
        self.norm_z = nn.LayerNorm(width) if config.read_norm else nn.Identity()
        self.register_buffer("identity", config.slot_identity * slot_identities(dims.slots, width), persistent=False)

    @property
    def address_width(self) -> int:
        """Width of [g, dg]."""
        return self._address_width

    def initial_state(self, batch: int) -> State:
        """Zero slots `(B, K, d)`."""
        return (self._origin.new_zeros(batch, self.dims.slots, self.dims.width),)

    def embed(self, x: MemoryInput) -> MemoryInput:
        """Fill `x.embedded` with the address [g, dg], half of the parameters' work."""
        if x.embedded is not None:
            return x
        parts = [self.norm_g(self.phi_g(x.xi))]
        if self.phi_delta is not None:
            parts.append(self.norm_delta(self.phi_delta(x.delta)))
        return x._replace(embedded=torch.cat(parts, dim=-1))

    def address(self, x: MemoryInput) -> Tensor:
        """[g, dg] of eq. 25."""
        embedded = self.embed(x).embedded
        assert embedded is not None
        return embedded

    def write(self, x: MemoryInput, state: State) -> tuple[State, WriteRecord]:
        """Eq. 25-30."""
        everywhere = torch.ones(1, x.content.shape[0], dtype=torch.bool, device=x.content.device)
        history = slot_scan(state[0], self._plan(x.map(lambda f: f[None]), everywhere), self._slot_weights())
        return (history.slots[0],), WriteRecord.ungated(history.route[0], history.strength[0])

    def read(self, x: MemoryInput, state: State) -> Readout:
        """Eq. 31-35."""
        (slots,) = state
        x = self.embed(x)
        vector, weights = self._attend(x, slots)
        return Readout(slots, self.norm_z(vector), weights, self.address(x))

    def scan(self, xs: MemoryInput, state: State, mask: Tensor) -> tuple[State, State, WriteRecord]:
        """As `Memory.scan`, with the slot-independent work done for all steps at once."""
        (slots,) = state
        # Time first, so that a step of the recurrence is contiguous.
        plan = self._plan(self.embed(xs).map(lambda f: f.transpose(0, 1)), mask.T)
        history = SlotHistory(*(f.transpose(0, 1) for f in slot_scan(slots, plan, self._slot_weights())))
        record = WriteRecord.ungated(history.route, history.strength)
        return (history.slots,), (history.slots[:, -1],), record.only_where(mask)

    def auxiliary(self, xs: MemoryInput, states: State, records: WriteRecord, mask: Tensor) -> dict[str, Tensor]:
        """Eq. 39-41: `balance`, `entropy`, `consistency`, each a scalar over the steps where `mask` holds."""
        xs = self.embed(xs)
        batch, steps = mask.shape
        flat = xs.map(lambda field: field.flatten(0, 1))
        vector, _ = self._attend(flat, states[0].flatten(0, 1))
        proposal = self._proposal(flat, self._query(flat))
        return {
            "balance": balance_loss(records.route, mask),
            "entropy": entropy_loss(records.route, mask),
            "consistency": consistency_loss(vector.reshape(batch, steps, -1), proposal.reshape(batch, steps, -1), mask),
        }

    @torch.no_grad()
    def calibrate(self, xs: MemoryInput, mask: Tensor) -> None:
        """With prototype routing, place the centres by k-means on the signatures where `mask` `(B, T)` holds."""
        if self.settings.routing == "prototypes":
            self.route.fit(xs.xi[mask])

    def _query(self, x: MemoryInput) -> Tensor:
        """Address feature q_t = [g, dg(, a0)]."""
        address = self.address(x)
        return torch.cat((address, x.anchor), dim=-1) if self.settings.anchor else address

    def _proposal(self, x: MemoryInput, query: Tensor) -> Tensor:
        """Content proposal u_t, eq. 27."""
        u: Tensor = self.phi_w(torch.cat((x.content, query), dim=-1))
        return u

    def _plan(self, x: MemoryInput, write: Tensor) -> SlotPlan:
        """The slot-independent part of the writes at inputs `(T, B, ...)`."""
        x = self.embed(x)
        query = self._query(x)
        rho = self.phi_rho(query)
        u = self._proposal(x, query)
        first, bias = (torch.cat((m, b)) for m, b in zip(_first(self.phi_m), _first(self.phi_beta), strict=True))
        width = self.dims.width
        common = functional.linear(torch.cat((u, rho), dim=-1), first[:, width:], bias)
        hidden = common[..., None, :] + self.identity @ first[:, :width].T
        if self.settings.routing == "prototypes":
            return SlotPlan(torch.zeros_like(u), self.route(x.xi) / self.settings.temperature, hidden, write)
        key = (self.w_q(rho) @ self.w_k.weight) / (self.settings.temperature * math.sqrt(self.w_q.out_features))
        return SlotPlan(key, key @ self.identity.T, hidden, write)

    def _slot_weights(self) -> SlotWeights:
        width = self.dims.width
        first = torch.cat((_first(self.phi_m)[0][:, :width], _first(self.phi_beta)[0][:, :width]))
        return SlotWeights(first, *self.phi_m[2].parameters(), *self.phi_beta[2].parameters())

    def _attend(self, x: MemoryInput, slots: Tensor) -> tuple[Tensor, Tensor]:
        """Read vector z before any norm, and read weights alpha, for fields `(B, ...)`."""
        rho = self.phi_rho(self._query(x))
        query = self.phi_r(torch.cat((x.content, rho), dim=-1)) @ self.w_k_read.weight
        scores = ((slots + self.identity) @ query[..., None])[..., 0] / math.sqrt(self.dims.width)
        weights = torch.softmax(scores, dim=-1)
        pooled = (weights[..., None, :] @ slots)[..., 0, :]
        return self.w_v_read(pooled), weights


def _first(phi: nn.Sequential) -> tuple[Tensor, Tensor]:
    """Weight and bias of the first layer."""
    weight, bias = phi[0].parameters()
    return weight, bias
