"""What a proposal does not use: for each topic why, and the line that would use it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from trace_memory_ros.bags import fields
from trace_memory_ros.bags.inspection import words
from trace_memory_ros.bags.inspection.cameras import DEPTH_RANGE_M, is_depth
from trace_memory_ros.bags.inspection.commands import TYPES as COMMANDS
from trace_memory_ros.bags.inspection.commands import is_command, is_switch
from trace_memory_ros.bags.inspection.proposal import SECTIONS, PassedOver, Plain, Proposal
from trace_memory_ros.bags.inspection.state import usual_joints
from trace_memory_ros.bags.survey import ARRAYS, IMAGES, READ, TopicSurvey
from trace_memory_ros.files.names import unique
from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.observation.config import CameraConfig, SensorConfig
from trace_memory_ros.streams.joints import UNITS
from trace_memory_ros.streams.registry import stream_type
from trace_memory_ros.streams.select import selected

CAMERAS, STREAMS, ACTIONS = SECTIONS
MOST_INDICES = 32
LEAST_CHANGE = 1e-6
LIKE = {
    "TwistWithCovarianceStamped": "geometry_msgs/msg/TwistStamped",
    "PoseWithCovarianceStamped": "geometry_msgs/msg/PoseStamped",
    "Pose": "geometry_msgs/msg/PoseStamped",
    "TransformStamped": "geometry_msgs/msg/PoseStamped",
    "TFMessage": "geometry_msgs/msg/PoseStamped",
    "Wrench": "geometry_msgs/msg/WrenchStamped",
    "JointGroupCommand": "std_msgs/msg/Float64MultiArray",
    "MultiDOFJointTrajectory": "trajectory_msgs/msg/JointTrajectory",
}
"""What messages can be republished as, for types that no stream is of."""

StaleMs = Callable[[TopicSurvey], int]


def passed_over(
    proposal: Proposal, why: Mapping[str, str], stale_ms: StaleMs, taken: Collection[str]
) -> list[PassedOver]:
    """Everything that is not used. taken: names of streams and parts."""
    found, names = [], set(taken)
    for topic, one in sorted(proposal.topics.items()):
        if topic in proposal.uses:
            found += _rest_of_joints(topic, one, proposal.named, stale_ms, names)
        else:
            found.append(_passed_over(topic, one, why.get(topic, ""), proposal.named, stale_ms, names))
        names |= {str(other.entry["name"]) for other in found[-1:] if other.entry and "name" in other.entry}
    return found


def _passed_over(
    topic: str, found: TopicSurvey, why: str, named: Callable[[str], str], stale_ms: StaleMs, names: set[str]
) -> PassedOver:
    type_name = found.info.type_name
    if not found.info.messages:
        return PassedOver(topic, "no message")
    if type_name not in READ:
        like = LIKE.get(type_name.rpartition("/")[2])
        return PassedOver(topic, f"{type_name}{f' (republish it as {like})' if like else ''}")
    if not found.readable:
        return PassedOver(topic, f"{type_name}: {found.fault or 'no message in what was looked at'}")
    if type_name in IMAGES and found.main_format in found.refused:
        return PassedOver(topic, found.refused[found.main_format])
    try:
        return _with_entry(topic, found, why, named, stale_ms, names)
    except (ConfigError, IndexError) as error:
        return PassedOver(topic, f"{type_name}: {error}")


def _with_entry(
    topic: str, found: TopicSurvey, why: str, named: Callable[[str], str], stale_ms: StaleMs, names: set[str]
) -> PassedOver:
    """The line that uses the topic. Raises ConfigError where none does."""
    type_name = found.info.type_name
    reason = ", ".join(part for part in (why, _rate(found)) if part)
    received = {} if found.stamped else {"stamp": "received"}
    if type_name in IMAGES:
        name = unique(words.camera_name(named(topic)), names)
        entry: Plain = {"name": name, "topic": named(topic), "transport": IMAGES[type_name]}
        entry |= {"range_m": DEPTH_RANGE_M} if is_depth(topic, found) else {}
        entry |= {"stale_after_ms": stale_ms(found), **received}
        CameraConfig(**entry)
        return PassedOver(topic, f"{found.main_format}, {reason}", CAMERAS, entry)
    select = _select(topic, found)
    if is_command(topic, found) or is_switch(topic, found):
        name = unique(words.part_name(named(topic), "command"), names)
        entry = {"name": name, "topic": named(topic), "type": type_name, "select": select, **received}
        selected(stream_type(type_name), select, topic)
        return PassedOver(topic, reason, ACTIONS, entry)
    name = unique(words.stream_name(named(topic), _usual_name(type_name)), names)
    entry = {"name": name, "topic": named(topic), "type": type_name, "select": select, **received}
    entry["stale_after_ms"] = stale_ms(found)
    SensorConfig(**entry)
    still = all(number.spread < LEAST_CHANGE for number in found.ranges.values())
    return PassedOver(topic, f"{reason}, never changes" if still else reason, STREAMS, entry)


def _usual_name(type_name: str) -> str:
    """What a stream of that type is called where its topic says nothing."""
    return "joints" if type_name == fields.JOINTS else type_name.rpartition("/")[2].removesuffix("Stamped").lower()


def _rate(found: TopicSurvey) -> str:
    return f"{found.info.messages} messages" if found.rate_hz is None else f"{found.rate_hz:.3g} Hz"


def _select(topic: str, found: TopicSurvey) -> Plain | list[str]:
    """All that one would select. Raises ConfigError where there is nothing."""
    type_name = found.info.type_name
    if type_name in ARRAYS:
        name = words.stream_name(topic.rpartition("/")[2], "number")
        indices = [index for index in found.ranges if not found.ranges[index].absent][:MOST_INDICES]
        if not indices:
            raise ConfigError("its arrays are empty")
        return {name if len(found.ranges) == 1 else f"{name}_{index}": int(index) for index in indices}
    kind = stream_type(type_name)
    if kind.usual:
        return list(kind.usual)
    for group in UNITS:
        members = _members(found, group)
        if members:
            return {group: members}
    raise ConfigError("none of its messages has a number for each joint that it names")


def _members(found: TopicSurvey, group: str) -> list[str]:
    """The joints that have that group's number in every message of a kind; of several kinds, in the usual one."""
    begin = f"{group}."
    given = [
        name.removeprefix(begin) for name, one in found.ranges.items() if name.startswith(begin) and not one.absent
    ]
    usual = usual_joints(found)
    return [joint for joint in given if joint not in UNITS and (not usual or joint in usual)]


def _rest_of_joints(
    topic: str, found: TopicSurvey, named: Callable[[str], str], stale_ms: StaleMs, names: set[str]
) -> list[PassedOver]:
    """Velocities and efforts of a topic whose positions are used."""
    if found.info.type_name in COMMANDS and is_command(topic, found):
        return []
    rest = []
    for group in ("velocity", "effort"):
        joints = _members(found, group)
        if any(found.moves(f"{group}.{joint}") for joint in joints):
            name = unique(f"{words.stream_name(named(topic), 'joints')}_{group}", names)
            entry: Plain = {"name": name, "topic": named(topic), "type": found.info.type_name}
            entry["select"] = {group: joints}
            entry |= {} if found.stamped else {"stamp": "received"}
            entry["stale_after_ms"] = stale_ms(found)
            rest.append(PassedOver(topic, f"{group} beside the positions", STREAMS, entry))
    return rest
