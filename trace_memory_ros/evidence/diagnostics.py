"""Does the memory follow the ordered history? Measures of TRACE (003) appendix A.6 and A.7, on plain arrays.

The paper writes at every tick; here a clock decides, and between two writes the newest write's route stands. So the
route of a tick is that of the newest write at or before it. A gate may refuse the first writes: before the first one
that is made memory is empty and a tick has no route, which is a row of zeros. `churn`, `write_entropy` and `occupancy`
are over writes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.runtime.write_statistics import WriteStatistics, route_entropies

Array = NDArray[np.float64]
Ticks = NDArray[np.int64]


def cosine(one: Array, other: Array) -> float | None:
    """Cosine of the angle between two vectors `(d,)`, -1..1; None where one of them is zero."""
    a, b = one.astype(np.float64), other.astype(np.float64)
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return None if size == 0 else float(np.clip(a @ b / size, -1.0, 1.0))


def routes_at(ticks: Ticks, writes: Ticks, routes: Array) -> Array:
    """The route `(len(ticks), N)` of each tick: of the newest of the ascending `writes` `(W,)` at or before it.

    Zeros where no write has been made yet.
    """
    newest = np.searchsorted(writes, ticks, side="right") - 1
    found = np.zeros((len(ticks), routes.shape[1]))
    found[newest >= 0] = routes[newest[newest >= 0]]
    return found


def route_similarity(one: Array, other: Array) -> float | None:
    """Eq. 14 and 16 of one episode: 100 x the mean cosine of routes `(n, N)`, row by row.

    Where one memory has a route and the other is still empty, the cosine is 0; where both are empty there is nothing to
    compare, and the row is left out. None where that leaves no row.
    """
    sizes = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    either = one.any(axis=1) | other.any(axis=1)
    if not either.any():
        return None
    products = (one * other).sum(axis=1)[either]
    cosines = np.divide(products, sizes[either], out=np.zeros_like(products), where=sizes[either] > 0)
    return 100.0 * float(np.clip(cosines, 0.0, 1.0).mean())


def chance_similarity(routes: Array) -> float | None:
    """Eq. 14 between all pairs of the routes `(n, N)`: what routes score that share nothing but how often each slot is
    written. Rows of zeros are left out; None where that leaves none."""
    sizes = np.linalg.norm(routes, axis=1, keepdims=True)
    written = sizes[:, 0] > 0
    if not written.any():
        return None
    mean = (routes[written] / sizes[written]).mean(axis=0)
    return 100.0 * float(mean @ mean)


def branch_consistency(readout_cosine: float, same_branch: bool) -> float:
    """Eq. 17-20 of one episode, 0..100: half the readout's cosine mapped to 0..1, half the agreement of decisions.

    Readouts at right angles and a decision by chance so give 50.
    """
    return 50.0 * ((1.0 + readout_cosine) / 2.0 + float(same_branch))


def churn(routes: Array) -> float | None:
    """Eq. 21: share of the routes `(W, N)` after the first whose main slot is another than the one before."""
    if len(routes) < 2 or routes.shape[1] == 0:
        return None
    return WriteStatistics.of(routes).churn


def churn_per_tick(routes: Array, ticks: int) -> float | None:
    """Eq. 21 where every tick counts and keeps its newest write's route."""
    if ticks < 2 or not len(routes) or routes.shape[1] == 0:
        return None
    return WriteStatistics.of(routes).changes / (ticks - 1)


def write_entropy(routes: Array) -> float | None:
    """Eq. 22: mean entropy of the routes `(W, N)` over log N, 0..1; None for fewer than two slots or no write."""
    if not len(routes) or routes.shape[1] < 2:
        return None
    return float(route_entropies(routes).mean() / np.log(routes.shape[1]))


def occupancy(routes: Array) -> float | None:
    """Eq. 23: share of the slots that are ever the main slot of routes `(W, N)`; None for no slot or no write."""
    if not len(routes) or routes.shape[1] == 0:
        return None
    return WriteStatistics.of(routes).occupancy


def moved(one: Ticks, other: Ticks) -> float:
    """Share of the ticks `one` that are not among `other`, 0..1; 0 for none."""
    return float(1.0 - np.isin(one, other).mean()) if one.size else 0.0
