"""AURA's recurrence over whole sequences, compiled: the loop of `memory.py` forward, and its gradient by hand.

Streams are independent, so each is followed from start to end with its fast weights in the processor's cache. Shapes:
key, query `(B, T, k)`, value `(B, T, v)`, prepared `(B, T, h)`, fast `(B, k, v)`, read `(B, v)`; flags `(B, T)`.
`gate_in` `(v + 1, h)` is the transposed first-layer weight on the last read and, in its last row, on the surprise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trace_memory_ros.signature.compiled import forget, kept

# Sums may be reordered and fused; NaN and infinity keep their meaning.
_OPTIONS: dict[str, Any] = {
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},
    "error_model": "numpy",
    "nogil": True,
    "boundscheck": False,
}
_ZERO, _HALF, _ONE, _TWO = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(2.0)


def call(kernel: Any, *arguments: Any) -> None:
    """Call `run_forward` or `run_backward`, compiled anew where what the disk keeps of them cannot be read."""
    try:
        kernel(*arguments)
    except Exception:  # while loading: compiled, neither raises anything
        forget(kernel)
        kernel(*arguments)


def _compiled(function: Any) -> Any:
    return kept(function, _OPTIONS)


@_compiled
def run_forward(
    key: Any, query: Any, value: Any, prepared: Any, start: Any, decided: Any, weights: Any, numbers: Any, saved: Any
) -> None:
    """Fill `saved`: the state after every step, the decisions, and what the gradient needs again."""
    eta, alpha, bias, temperature, mean, scale, limit = numbers
    fasts, reads, hidden, difference, recalled, surprise, error, probability, relaxed, opened, written = saved
    learned, due, allowed, noise = decided
    fast, read = np.empty_like(start[0][0]), np.empty_like(start[1][0])
    for b in range(key.shape[0]):
        fast[:], read[:] = start[0][b], start[1][b]
        for t in range(key.shape[1]):
            by_key, by_query = difference[b, t], recalled[b, t]
            error[b, t] = _recall(key[b, t], query[b, t], value[b, t], fast, by_key, by_query)
            surprise[b, t] = min(max((error[b, t] - mean) * scale, -limit), limit)
            if learned:
                logit = bias + _logit(prepared[b, t], read, surprise[b, t], weights, hidden[b, t])
                probability[b, t] = _sigmoid(logit / temperature)
                relaxed[b, t] = _sigmoid((logit + noise[b, t]) / temperature)
                opened[b, t] = relaxed[b, t] > _HALF
            else:
                opened[b, t] = due[b, t]
                probability[b, t] = np.float32(due[b, t])
            written[b, t] = opened[b, t] and allowed[b, t]
            if written[b, t]:
                for i in range(fast.shape[0]):
                    step = -_TWO * eta * key[b, t, i]
                    for j in range(fast.shape[1]):
                        fast[i, j] = (_ONE - alpha) * fast[i, j] + step * by_key[j]
                read[:] = by_query
            fasts[b, t] = fast
            reads[b, t] = read


@_compiled
def run_backward(
    key: Any,
    query: Any,
    start: Any,
    decided: Any,
    weights: Any,
    numbers: Any,
    saved: Any,
    incoming: Any,
    outgoing: Any,
    totals: Any,
) -> None:
    """Fill `outgoing`, gradients per step and of the start, and add to `totals`, gradients of what all steps share.

    Where the gate is shut its gradient is that of an open one: p stands in for g (straight-through).
    """
    eta, alpha, temperature = numbers[0], numbers[1], numbers[3]
    fasts, reads, hidden, difference, recalled, surprise, _, probability, relaxed, _, written = saved
    gate_trains, _, allowed, _ = decided
    to_key, to_query, to_value, to_prepared, to_fast, to_read = outgoing
    by_row, by_column, x_grad = np.empty_like(key[0, 0]), np.empty_like(reads[0, 0]), np.empty_like(weights[1])
    for b in range(key.shape[0]):
        grad, read_grad = to_fast[b], to_read[b]
        for t in range(key.shape[1] - 1, -1, -1):
            before = fasts[b, t - 1] if t else start[0][b]
            read = reads[b, t - 1] if t else start[1][b]
            read_grad += incoming[1][b, t]
            kept, moved = _gather(grad, incoming[0][b, t], before, difference[b, t], key[b, t], by_row, by_column)
            p, r, logit_grad = probability[b, t], relaxed[b, t], _ZERO
            if gate_trains:
                gate_grad = _ZERO
                if allowed[b, t]:
                    gate_grad = -alpha * kept - _TWO * eta * moved + _dot(read_grad, recalled[b, t], read)
                logit_grad = (incoming[2][b, t] * p * (_ONE - p) + gate_grad * r * (_ONE - r)) / temperature
            if written[b, t]:
                totals[2][0] -= _TWO * moved
                totals[2][1] -= kept
                by_column *= -_TWO * eta
                to_value[b, t] = -by_column
                by_row *= -_TWO * eta
                steps = (key[b, t], query[b, t], by_row, by_column, read_grad, to_key[b, t], to_query[b, t])
                _through_write(before, grad, _ONE - alpha, steps)
                read_grad[:] = _ZERO
            if logit_grad != _ZERO:
                _through_gate(logit_grad, read, surprise[b, t], hidden[b, t], weights, totals, x_grad, read_grad)
                to_prepared[b, t] = x_grad


@_compiled
def _sigmoid(x: Any) -> Any:
    return _ONE / (_ONE + math.exp(-x))


@_compiled
def _recall(key: Any, query: Any, value: Any, fast: Any, by_key: Any, by_query: Any) -> Any:
    """by_key = k W - v, by_query = q W; the squared length of the first."""
    by_key[:] = -value
    by_query[:] = _ZERO
    for i in range(fast.shape[0]):
        k, q = key[i], query[i]
        for j in range(fast.shape[1]):
            by_key[j] += k * fast[i, j]
            by_query[j] += q * fast[i, j]
    total = _ZERO
    for j in range(fast.shape[1]):
        total += by_key[j] * by_key[j]
    return total


@_compiled
def _logit(prepared: Any, read: Any, surprise: Any, weights: Any, x: Any) -> Any:
    """The gate's logit without its bias; fills the hidden layer before its activation."""
    gate_in, gate_out = weights
    last = read.shape[0]
    for h in range(x.shape[0]):
        x[h] = prepared[h] + gate_in[last, h] * surprise
    for j in range(last):
        for h in range(x.shape[0]):
            x[h] += gate_in[j, h] * read[j]
    logit = _ZERO
    for h in range(x.shape[0]):
        logit += gate_out[h] * x[h] * _sigmoid(x[h])
    return logit


@_compiled
def _dot(grad: Any, new: Any, old: Any) -> Any:
    total = _ZERO
    for j in range(grad.shape[0]):
        total += grad[j] * (new[j] - old[j])
    return total


@_compiled
def _gather(grad: Any, more: Any, before: Any, difference: Any, key: Any, by_row: Any, by_column: Any) -> Any:
    """grad += more; by_row = grad d, by_column = k grad; <grad, before> and k grad d."""
    by_column[:] = _ZERO
    kept, moved = _ZERO, _ZERO
    for i in range(grad.shape[0]):
        row, k = _ZERO, key[i]
        for j in range(grad.shape[1]):
            g = grad[i, j] + more[i, j]
            grad[i, j] = g
            row += g * difference[j]
            kept += g * before[i, j]
            by_column[j] += k * g
        by_row[i] = row
        moved += k * row
    return kept, moved


@_compiled
def _through_write(before: Any, grad: Any, keep: Any, steps: Any) -> None:
    """Gradients of key and query, and of the fast weights before the write, in place of those after it."""
    key, query, by_row, by_column, read_grad, to_key, to_query = steps
    for i in range(grad.shape[0]):
        k, q, key_grad, query_grad = key[i], query[i], by_row[i], _ZERO
        for j in range(grad.shape[1]):
            key_grad += before[i, j] * by_column[j]
            query_grad += before[i, j] * read_grad[j]
            grad[i, j] = keep * grad[i, j] + k * by_column[j] + q * read_grad[j]
        to_key[i], to_query[i] = key_grad, query_grad


@_compiled
def _through_gate(
    logit_grad: Any, read: Any, surprise: Any, hidden: Any, weights: Any, totals: Any, x_grad: Any, read_grad: Any
) -> None:
    """Gradients of the gate's weights, of its hidden layer (x_grad), and of the last read."""
    (gate_in, gate_out), (to_gate_in, to_gate_out, to_scalars) = weights, totals
    last = read.shape[0]
    to_scalars[2] += logit_grad
    for h in range(hidden.shape[0]):
        x, s = hidden[h], _sigmoid(hidden[h])
        to_gate_out[h] += logit_grad * x * s
        x_grad[h] = logit_grad * gate_out[h] * s * (_ONE + x * (_ONE - s))
        to_gate_in[last, h] += surprise * x_grad[h]
    for j in range(last):
        through = _ZERO
        for h in range(hidden.shape[0]):
            through += gate_in[j, h] * x_grad[h]
            to_gate_in[j, h] += read[j] * x_grad[h]
        read_grad[j] += through
