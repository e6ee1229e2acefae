"""What studies tabulate: shares with their intervals, and tables of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from rich.table import Table

from studies.grid import Figures
from trace_memory_ros.measure.statistics import Interval, bootstrap_interval, percentiles, t_interval, wilson_interval

RESAMPLES = 4_000


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """A table whose first column names the row; everything else is a figure."""
    found = Table(title=title)
    for number, column in enumerate(columns):
        found.add_column(column, justify="right" if number else "left")
    for row in rows:
        found.add_row(*map(str, row))
    return found


def proportion(verdicts: Sequence[bool | int], trainings: float = 1) -> Figures:
    """How many were right, of how many, and Wilson's interval of their share. verdicts: at least one.

    trainings: by which the same was decided, which makes nothing surer.
    """
    right, count = sum(verdicts), len(verdicts)
    interval = wilson_interval(right / trainings, count / trainings)
    return {"right": right, "count": count, "share": right / count, "ci95": list(interval)}


def share_of(figures: Figures) -> float:
    """Share of successes among the episodes of a part; 0 without any."""
    episodes = figures.get("episodes", [])
    return sum(episode["success"] for episode in episodes) / max(1, len(episodes))


def success_of(seeds: Sequence[Figures], alike: bool = False) -> dict[str, Any] | None:
    """Success over the episodes of several training seeds, None without any.

    ci95: the wider of Wilson's over episodes and a bootstrap over seeds and the episodes of each. alike: whether these
    are the same for all seeds, which several trainings make no more of.
    """
    shares = [[bool(e["success"]) for e in figures["episodes"]] for figures in seeds]
    won, count = sum(map(sum, shares)), sum(map(len, shares))
    if not count:
        return None
    episodes = [episode for figures in seeds for episode in figures["episodes"]]
    times = len(seeds) if alike else 1
    wilson, bootstrap = wilson_interval(won / times, count / times), two_level(shares, alike)
    found = {
        "success": won / count,
        "ci95": [min(wilson.low, bootstrap.low), max(wilson.high, bootstrap.high)],
        "episodes": count,
        "by_seed": [sum(share) / len(share) for share in shares],
        "writes_per_s": sum(e["writes"] for e in episodes) / sum(e["elapsed_s"] for e in episodes),
        "writes_per_episode": sum(e["writes"] for e in episodes) / count,
    }
    if "progress" in episodes[0]:
        found["progress"] = sum(e["progress"] for e in episodes) / count
    return found


def two_level(shares: Sequence[Sequence[float]], alike: bool = False) -> Interval:
    """Percentile bootstrap of the mean over seeds and, in each, over its episodes.

    alike: whether all seeds have the same episodes, of which the same are drawn for all of them then.
    """
    random = np.random.default_rng(0)
    drawn = []
    if alike:
        scores = np.array(shares)
        for _ in range(RESAMPLES):
            chosen, episodes = (random.integers(0, count, size=(count,)) for count in scores.shape)
            drawn.append(float(scores[chosen][:, episodes].mean()))
        return Interval(*percentiles(drawn, (2.5, 97.5)))
    for _ in range(RESAMPLES):
        chosen = random.integers(0, len(shares), len(shares))
        drawn.append(np.mean([np.mean(random.choice(shares[i], len(shares[i]))) for i in chosen]))
    return Interval(*percentiles(drawn, (2.5, 97.5)))


def with_interval(figures: Figures | float | None, name: str = "success") -> str:
    """`0.93 (0.81-0.98)`; empty where nothing was measured, a share alone where a summary holds no count."""
    if isinstance(figures, float):
        return f"{figures:.2f}"
    return f"{figures[name]:.2f} ({figures['ci95'][0]:.2f}-{figures['ci95'][1]:.2f})" if figures else ""


def student(values: Sequence[float]) -> dict[str, Any]:
    """Mean over seeds, its 95 % Student interval (None for one seed), and every seed."""
    return {"mean": mean(values), "ci95": list(t_interval(values)) if len(values) > 1 else None, "seeds": values}


def bootstrapped(values: Sequence[float], each: str = "seeds") -> dict[str, Any]:
    """Mean over seeds, its 95 % bootstrap interval, and every seed, the last under the name `each`."""
    return {"mean": float(np.mean(values)), "ci95": list(bootstrap_interval(values)), each: list(values)}


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean."""
    return sum(values) / len(values)
