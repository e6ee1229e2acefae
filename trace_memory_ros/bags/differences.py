"""What a bag holds otherwise than the other bags that one configuration is proposed for."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from trace_memory_ros.bags.survey import TopicSurvey

OTHER_RATE = 1.5
"""A topic comes at another rate when its period is this many times as long or as short as usual."""


def differences(
    own: Mapping[str, TopicSurvey], usual: Mapping[str, TopicSurvey], uses: Mapping[str, str], rare: Collection[str]
) -> list[str]:
    """In what the topics of a bag differ from the `usual` ones of all bags, topic by topic of those that are used.

    uses: topic -> what the proposal takes it for. rare: topics that few bags hold, which the proposal leaves out.
    """
    found = []
    for topic, use in uses.items():
        if topic not in own or not own[topic].info.messages:
            found.append(f"lacks {topic} ({use})")
        else:
            found += [f"{topic} {text}" for text in _of_topic(own[topic], usual[topic])]
    return found + [f"holds {topic}, which the proposal leaves out" for topic in sorted(own) if topic in rare]


def _of_topic(own: TopicSurvey, usual: TopicSurvey) -> list[str]:
    if own.info.type_name != usual.info.type_name:
        return [f"is {own.info.type_name}, in most bags {usual.info.type_name}"]
    found = []
    if set(own.main_names) != set(usual.main_names):
        names, others = (", ".join(some) or "nothing" for some in (own.main_names, usual.main_names))
        found.append(f"names {names}, most messages of all bags {others}")
    if own.main_size != usual.main_size:
        found.append(f"holds {own.main_size} numbers, most messages of all bags {usual.main_size}")
    if own.readable and own.stamped != usual.stamped:
        found.append("has no stamps, as most messages of all bags do" if usual.stamped else "has stamps, unlike most")
    if own.main_format != usual.main_format:
        found.append(f"is {own.main_format or 'unreadable'}, most messages of all bags {usual.main_format}")
    if own.period_ms and usual.period_ms and not 1 / OTHER_RATE < own.period_ms / usual.period_ms < OTHER_RATE:
        found.append(f"comes at {own.rate_hz:.1f} Hz, over all bags at {usual.rate_hz:.1f} Hz")
    return found
