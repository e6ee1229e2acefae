"""By which clock each stream is stamped: its header's, or the recorder's where headers say nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from trace_memory_ros.bags.inspection.proposal import Proposal
from trace_memory_ros.bags.inspection.words import listed
from trace_memory_ros.bags.survey import TopicSurvey

MOST_LAG_MS = 100.0
"""Some messages are recorded this soon after they were stamped, where robot and recorder share a clock."""
MOST_DRIFT_MS = 500.0
APART_MS = 1000.0
"""Stamps of two topics that are this far apart at one time of recording are by two clocks."""


def stamps(proposal: Proposal, used: Iterable[str]) -> dict[str, str]:
    """`header` or `received` for each used topic, with notes where a person should know it.

    All are stamped when received where some must be and the recorder's clock is not that of the stamps, or where the
    stamps themselves are by several clocks: ticks need one axis.
    """
    found = {topic: proposal.topics[topic] for topic in used}
    silent = [topic for topic, one in found.items() if not one.stamped]
    lags = {topic: _lag_ms(one) for topic, one in found.items() if one.stamped}
    reason = _two_clocks({topic: found[topic] for topic in lags}) or (_unlike_recorder(lags, found) if silent else "")
    for topic, one in found.items():
        if one.stamped and one.unstamped:
            proposal.notes.append(
                f"{one.unstamped} of {one.looked_at} messages of {topic} are stamped 0 and cannot be used: mend its "
                "driver, or set stamp: received for it"
            )
    if reason and len(found) > 1:
        proposal.notes.append(f"{reason}; all streams are stamped when received: correct the clocks to use headers")
        return dict.fromkeys(found, "received")
    if silent:
        proposal.notes.append(
            f"{listed(silent)}: no header, or stamps of 0, so stamp: received; they count from when they were recorded"
        )
    return {topic: "received" if topic in silent else "header" for topic in found}


def _lag_ms(found: TopicSurvey) -> float:
    """How much later than stamped messages are recorded, ms."""
    return float(np.median(np.concatenate([lags for _, lags in found.lags_ms])))


def _unlike_recorder(lags: Mapping[str, float], found: Mapping[str, TopicSurvey]) -> str:
    """Why log times cannot stand beside header stamps; empty where they can."""
    if not lags:
        return ""
    first = min(lags, key=lambda topic: lags[topic])
    if abs(lags[first]) > MOST_LAG_MS:
        side = "ahead of" if lags[first] > 0 else "behind"
        return f"the recorder's clock is {abs(lags[first]) / 1e3:.1f} s {side} the stamps of {first}"
    for _, bag in found[first].lags_ms:
        if len(bag) > 1 and np.ptp(np.percentile(bag, (5, 95))) > MOST_DRIFT_MS:
            return f"the recorder's clock runs at another speed than the stamps of {first}"
    return ""


def _two_clocks(found: Mapping[str, TopicSurvey]) -> str:
    """Which topics' stamps are by other clocks than most; empty where all are by one."""
    if len(found) < 2:
        return ""
    first = max(found, key=lambda topic: (found[topic].looked_at, topic))
    apart = {}
    for topic, one in found.items():
        own = _apart_ms(one, found[first])
        if abs(own) > APART_MS:
            apart[topic] = own
    if not apart:
        return ""
    topic, own = max(apart.items(), key=lambda item: abs(item[1]))
    return f"the stamps of {topic} are {abs(own) / 1e3:.1f} s {'before' if own > 0 else 'after'} those of {first}"


def _apart_ms(one: TopicSurvey, other: TopicSurvey) -> float:
    """How much more `one` lags than `other` at the same times of recording, ms; 0 where that cannot be told."""
    if len(one.lags_ms) != len(other.lags_ms):
        return 0.0
    apart = []
    for (times, lags), (other_times, other_lags) in zip(one.lags_ms, other.lags_ms, strict=True):
        if len(other_times) and len(times):
            order = np.argsort(other_times, kind="stable")
            apart.append(lags - np.interp(times, other_times[order], other_lags[order]))
    return float(np.median(np.concatenate(apart))) if apart else 0.0
