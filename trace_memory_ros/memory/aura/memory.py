"""AURA-Mem: a fast-weight matrix written only on action-relevant surprise (AURA-Mem, sections 3.2-3.4, algorithm 1).

Symbols: z frame summary, q, k, v its query, key and value, W fast weights `(B, d_k, d_v)`, o = q^T W the read,
s surprise, p and g the gate (see `write_gate.py`), eta step size, alpha decay.

A `write` reads W, decides, and then writes; a `read` uses W as it is after the tick's write, where the paper's action
head gets the read from before it. What else differs is in docs/explanation/mechanisms/aura.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from trace_memory_ros.memory.aura import scan as aura_scan
from trace_memory_ros.memory.aura.config import AuraConfig
from trace_memory_ros.memory.aura.write_schedule import COUNTED, scheduled
from trace_memory_ros.memory.base import Memory, MemoryDims, MemoryInput, Readout, State, WriteRecord, stack_steps
from trace_memory_ros.memory.layers import mlp
from trace_memory_ros.memory.write_gate import (
    SURPRISE_LIMIT,
    Decision,
    RunningScale,
    WriteGate,
    gated,
    ramp,
    rate_penalty,
)

TOKEN_SHARE = 0.1
"""Weight of reconstruction, small beside the pull to the target rate: a comparator has to write as often."""

INITIAL_LOG_VARIANCE = -6.0
"""Of the code, a spread of 0.05: noise from the start hides a cue that has not been found yet. Ours; so are limits."""
LOG_VARIANCES = (-10.0, 4.0)


class AuraPlan(NamedTuple):
    """What a step needs that does not depend on W: key, query `(..., d_k)`, value `(..., d_v)`, the gate's share."""

    key: Tensor
    query: Tensor
    value: Tensor
    prepared: Tensor


class AuraMemory(Memory):
    """Fast weights. The vector is the bottleneck's code of o, and so is the one token; no signature, no address.

    With `tokens: rows` the tokens are the rows of W instead, N = `key_width`. `dims.slots` is ignored. The state is W
    and the read o of the last written tick, 4,224 bytes at 32 x 32.
    """

    name = "aura"
    slot_kind = "code"

    def __init__(self, dims: MemoryDims, config: AuraConfig | None = None) -> None:
        config = config or AuraConfig()
        super().__init__(dims, config)
        self.settings = config
        self.pressure = 1.0
        keys, values = config.key_width, config.value_width
        hidden, summary = config.encoder_hidden or dims.width, config.summary_width or dims.width
        self.summarise = mlp(dims.content, hidden, summary)
        self.theta_q = nn.Linear(summary, keys, bias=False)
        self.theta_k = nn.Linear(summary, keys, bias=False)
        self.theta_v = nn.Linear(summary, values, bias=False)
        self.eta_raw = nn.Parameter(torch.tensor(math.log(config.step_size)))
        self.alpha_raw = nn.Parameter(torch.tensor(math.log(config.decay / (1 - config.decay))))
        self.surprise = RunningScale()
        self.gate = None
        if config.learned:
            self.gate = WriteGate(
                summary, values, config.gate_hidden, config.gate, config.temperature, config.gate_bias
            )
        self.norm = nn.LayerNorm(values)
        self.to_mean = nn.Linear(values, dims.width)
        self.to_log_variance = nn.Linear(values, dims.width) if config.action_ib else None
        if self.to_log_variance is not None:
            nn.init.constant_(self.to_log_variance.bias, INITIAL_LOG_VARIANCE)
        if config.tokens == "rows":
            self.slot_kind = "fast-weight row"
            self.to_token = nn.Linear(values, dims.width)
            self.row_identity = nn.Parameter(0.1 * torch.randn(keys, dims.width))

    @property
    def slot_count(self) -> int:
        """1, or d_k where the rows of W are offered."""
        return self.settings.key_width if self.settings.tokens == "rows" else 1

    @property
    def eta(self) -> Tensor:
        """Step size, exp of its parameter; with unit keys at most 1 - alpha / 2: beyond, a key that recurs diverges."""
        eta = self.eta_raw.exp()
        return torch.minimum(eta, 1 - self.alpha / 2) if self.settings.unit_keys else eta

    @property
    def alpha(self) -> Tensor:
        """Share of W that each write forgets."""
        return torch.sigmoid(self.alpha_raw)

    def initial_state(self, batch: int) -> State:
        """W `(B, d_k, d_v)` and o `(B, d_v)`, zero; random and periodic gates also count their chances `(B, 1)`."""
        keys, values = self.settings.key_width, self.settings.value_width
        state = (self._origin.new_zeros(batch, keys, values), self._origin.new_zeros(batch, values))
        return (*state, self._origin.new_zeros(batch, 1)) if self.settings.gate in COUNTED else state

    def write(self, x: MemoryInput, state: State) -> tuple[State, WriteRecord]:
        """Algorithm 1, lines 1-6."""
        new, record, _ = self._advance(self._plan(x), state, self._rates())
        return new, record

    def read(self, x: MemoryInput, state: State) -> Readout:
        """o = q^T W and its code: a sample in training, the mean in evaluation."""
        fast = state[0]
        query = self._unit(self.theta_q(self.summarise(x.content)))
        mean, log_variance = self._code((query[:, None] @ fast)[:, 0])
        if log_variance is not None and self.training:
            mean = mean + (0.5 * log_variance).exp() * torch.randn_like(mean)
        address = query.new_zeros(query.shape[0], 0)
        if self.settings.tokens == "code":
            return Readout(mean[:, None], mean, mean.new_ones(query.shape[0], 1), address)
        return Readout(self.to_token(fast) + self.row_identity, mean, _shares(query), address)

    def scan(self, xs: MemoryInput, state: State, mask: Tensor) -> tuple[State, State, WriteRecord]:
        """As `Memory.scan`, with everything but the recurrence done for all steps at once.

        In training mode the surprise's running scale then takes in the scanned episodes.
        """
        plan = self._plan(xs)
        stacked, final, records, errors = self._run(plan, state, mask)
        if self.training:
            self.surprise.update(errors[mask])
        return stacked, final, records.only_where(mask)

    def anneal(self, progress: float) -> None:
        """Rate penalty and KL rise from 0 to their weights between `ramp_from` and `ramp` of the training."""
        self.pressure = ramp(progress, self.settings.ramp_from, self.settings.ramp)

    def auxiliary(self, xs: MemoryInput, states: State, records: WriteRecord, mask: Tensor) -> dict[str, Tensor]:
        """`write_rate` (rate penalty), `action_ib` (KL of the code) and, with a token gate, `token`; all weighted."""
        losses = {}
        settings = self.settings
        if settings.action_ib:
            losses["action_ib"] = self.pressure * settings.ib_weight * self._information(xs, states[0], mask)
        if settings.gate_signal == "token":
            losses |= self._token_losses(xs, mask)
        elif settings.learned:
            losses["write_rate"] = self._rate_loss(records.gate, mask, settings.rate_of)
        return losses

    def _plan(self, x: MemoryInput) -> AuraPlan:
        z = self.summarise(x.content)
        prepared = z if self.gate is None else self.gate.seen(z)
        return AuraPlan(self._unit(self.theta_k(z)), self._unit(self.theta_q(z)), self.theta_v(z), prepared)

    def _unit(self, vector: Tensor) -> Tensor:
        return functional.normalize(vector, dim=-1) if self.settings.unit_keys else vector

    def _run(
        self, plan: AuraPlan, state: State, mask: Tensor, token: bool = False
    ) -> tuple[State, State, WriteRecord, Tensor]:
        """Every step of `(B, T, ...)`: the states, the last one, the records, and the inner errors `(B, T)`."""
        if aura_scan.can_scan(plan.key, plan.value, *state[:2]):
            return self._run_compiled(plan, state, mask, token)
        rates = self._rates(token)
        states, records, errors = [], [], []
        for t, step in enumerate(zip(*(f.unbind(dim=1) for f in plan), strict=True)):
            state, record, error = self._advance(AuraPlan(*step), state, rates, mask[:, t], token)
            states.append(state)
            records.append(record)
            errors.append(error)
        stacked, joined = stack_steps(states, records)
        return stacked, state, joined, torch.stack(errors, dim=1)

    def _run_compiled(
        self, plan: AuraPlan, state: State, mask: Tensor, token: bool = False
    ) -> tuple[State, State, WriteRecord, Tensor]:
        """As the loop of `_run`, several times as fast."""
        settings, surprise, gate = self.settings, self.surprise, None
        chances = mask.cumsum(dim=1) + (state[2] if len(state) > 2 else 0.0)
        due, noise = mask, torch.zeros_like(chances)
        if self.gate is None:
            count = chances - mask.float()
            due = scheduled(settings.gate, count, settings.rho, settings.schedule_seed, fresh=self.training)
        else:
            gate = aura_scan.GateWeights(self.gate.recalled.weight, self.gate.logit.weight, self.gate.logit.bias)
            noise = self.gate.noise(noise)
        scale = torch.rsqrt(surprise.variance + 1e-12)
        numbers = settings.temperature, surprise.mean.item(), scale.item(), SURPRISE_LIMIT
        fixed = aura_scan.Fixed(due, mask, noise, token or settings.gate_signal == "action", *numbers)
        out = aura_scan.scan(plan, (state[0], state[1]), self._rates(token), gate, fixed)
        states = (out.fast, out.read, chances[..., None])[: len(state)]
        record = self._record(plan.key, Decision(out.probability, out.probability, out.opened), out.surprise)
        return states, tuple(part[:, -1] for part in states), record, out.error

    def _record(self, key: Tensor, decision: Decision, surprise: Tensor) -> WriteRecord:
        """Where a write by `key` `(..., d_k)` goes, and the share of each row of W that it replaces.

        For the one entry of `tokens: code` the share of all rows.
        """
        replaced = (self.alpha + 2 * self.eta * key.square()).clamp(max=1.0).detach()
        route = _shares(key)
        if self.settings.tokens == "code":
            replaced, route = replaced.mean(dim=-1, keepdim=True), torch.ones_like(route[..., :1])
        strength = torch.where(decision.open[..., None], replaced, torch.zeros_like(replaced))
        return WriteRecord(route, strength, decision.probability, surprise, decision.open)

    def _rates(self, detached: bool = False) -> tuple[Tensor, Tensor]:
        rates = self.eta, self.alpha
        return (rates[0].detach(), rates[1].detach()) if detached else rates

    def _advance(
        self,
        plan: AuraPlan,
        state: State,
        rates: tuple[Tensor, Tensor],
        allowed: Tensor | None = None,
        token: bool = False,
    ) -> tuple[State, WriteRecord, Tensor]:
        """One step; also the inner error. Where `allowed` is False nothing of the state changes."""
        (fast, previous), (eta, alpha) = state[:2], rates
        recalled = torch.stack((plan.key, plan.query), dim=1) @ fast
        difference = recalled[:, 0] - plan.value
        error = difference.detach().square().sum(dim=-1)
        surprise = self.surprise(error)
        decision = self._decide(plan.prepared, previous, surprise, state)
        if self.settings.gate_signal == "token" and not token:
            decision = Decision(decision.probability.detach(), decision.relaxed.detach(), decision.open)
        opened = decision if allowed is None else decision.only_where(allowed)
        written = torch.baddbmm((1 - alpha) * fast, plan.key[:, :, None], (-2 * eta * difference)[:, None])
        new = gated(opened, (written, recalled[:, 1]), (fast, previous))
        if len(state) > 2:
            chances = state[2] + 1
            new = (*new, chances if allowed is None else torch.where(allowed[:, None], chances, state[2]))
        return new, self._record(plan.key, decision, surprise), error

    def _decide(self, prepared: Tensor, previous: Tensor, surprise: Tensor, state: State) -> Decision:
        if self.gate is not None:
            decision: Decision = self.gate(prepared, previous, surprise)
            return decision
        settings = self.settings
        count = state[2][:, 0] if len(state) > 2 else torch.zeros_like(surprise)
        due = scheduled(settings.gate, count, settings.rho, settings.schedule_seed, fresh=self.training)
        return Decision(due.to(surprise.dtype), due.to(surprise.dtype), due)

    def _code(self, recalled: Tensor) -> tuple[Tensor, Tensor | None]:
        """Mean and log variance of the bottleneck's code of o."""
        normed = self.norm(recalled)
        if self.to_log_variance is None:
            return self.to_mean(normed), None
        return self.to_mean(normed), self.to_log_variance(normed).clamp(*LOG_VARIANCES)

    def _information(self, xs: MemoryInput, fast: Tensor, mask: Tensor) -> Tensor:
        """Mean KL of the code to a unit Gaussian, in nats, at the reads of the updates."""
        if not bool(mask.any()):
            return fast.new_zeros(())
        # All steps are read, since picking the masked ones would copy every W.
        query = self._unit(self.theta_q(self.summarise(xs.content)))
        mean, log_variance = self._code((query[:, :, None] @ fast)[:, :, 0])
        assert log_variance is not None
        information = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(dim=-1)
        return information[mask].mean()

    def _token_losses(self, xs: MemoryInput, mask: Tensor) -> dict[str, Tensor]:
        """Trains the gate, and nothing else, to keep what later inputs are reconstructed from by their keys."""
        assert self.gate is not None
        prepared = self.gate.seen(self.summarise(xs.content).detach())
        fixed = AuraPlan(*(f.detach() for f in self._plan(xs)))._replace(prepared=prepared)
        (fast, *_), _, records, _ = self._run(fixed, self.initial_state(mask.shape[0]), mask, token=True)
        losses = {"write_rate": self._rate_loss(records.gate, mask, "writes", two_sided=True)}
        both = mask[:, 1:] & mask[:, :-1]
        # A single one has no spread.
        if int(both.sum()) > 1:
            value = fixed.value[:, 1:]
            missed = (fixed.key[:, 1:, None] @ fast[:, :-1])[:, :, 0] - value
            losses["token"] = TOKEN_SHARE * missed[both].square().mean() / (value[both].var(dim=0).mean() + 1e-9)
        return losses

    def _rate_loss(self, probability: Tensor, mask: Tensor, rate_of: str, two_sided: bool = False) -> Tensor:
        excess = rate_penalty(probability, mask, self.settings.rho, rate_of=rate_of, two_sided=two_sided)
        return self.pressure * self.settings.write_weight * excess


def _shares(vector: Tensor) -> Tensor:
    """Absolute values as shares of their sum `(..., n)`."""
    size = vector.abs() + 1e-9
    return size / size.sum(dim=-1, keepdim=True)
