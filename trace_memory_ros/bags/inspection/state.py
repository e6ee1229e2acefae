"""Which topics tell the robot's state: measured joints, grippers of their own, a base that moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trace_memory_ros.bags import fields
from trace_memory_ros.bags.inspection import words
from trace_memory_ros.bags.inspection.matching import alike, of_two_arms
from trace_memory_ros.bags.inspection.proposal import Plain, Proposal
from trace_memory_ros.bags.numbers import Range
from trace_memory_ros.bags.survey import ARRAYS, TopicSurvey
from trace_memory_ros.files.names import unique
from trace_memory_ros.streams import gripper, pose, twist
from trace_memory_ros.streams.controller_states import CONTROLLER_STATE, DYNAMIC_JOINT_STATE
from trace_memory_ros.streams.joints import UNITS

FLOATS = ("std_msgs/msg/Float64", "std_msgs/msg/Float32")
BASES = (fields.ODOMETRY, twist.TWIST_STAMPED.name, twist.TWIST.name)
INSTEAD = (CONTROLLER_STATE.name, DYNAMIC_JOINT_STATE.name)
"""What tells joints where nothing publishes joint states."""
RAREST_MS = 1000.0
"""A stream that comes less often is no state: every tick would wait for it, or find it stale."""
MOST_FINGERS = 4
FINGER_M = 0.15
LIFT_M = 1.5
SLIDERS = frozenset(("prismatic", "slider", "rail", "linear", "lift"))
GRIPPER_USE, BASE_USE = "gripper", "base velocity"
"""What streams are used for."""
REVOLUTE = frozenset(("shoulder", "elbow", "wrist", "knuckle", "pan", "tilt", "roll", "yaw"))


@dataclass
class StateStream:
    """A stream of the proposal. topic: absolute. units: of selected numbers whose unit is not their type's.

    joints: what it gives the positions of, by name, and what they do.
    """

    name: str
    topic: str
    found: TopicSurvey
    select: Plain | list[str]
    use: str
    joints: dict[str, Range] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)

    @property
    def is_arm(self) -> bool:
        """Whether it is neither a gripper's nor a base's."""
        return self.use != GRIPPER_USE and not self.use.startswith(BASE_USE)


def state_streams(proposal: Proposal, why: dict[str, str]) -> list[StateStream]:
    """Joints, topics of most joints first, then grippers, then the base; `why` gets reasons for what is left out."""
    streams = _joint_streams(proposal, (fields.JOINTS,), why)
    if not streams:
        streams = _joint_streams(proposal, INSTEAD, why)
    else:
        _note_repeats(proposal, streams, why)
    if not streams:
        streams = _poses(proposal)
    streams += _grippers(proposal, streams, why)
    base = _base(proposal, why)
    streams += [] if base is None else [base]
    taken: list[str] = []
    for one in streams:
        one.name = unique(one.name, taken)
        taken.append(one.name)
        proposal.uses[one.topic] = one.use
    return streams


def _measured(proposal: Proposal, types: tuple[str, ...], why: dict[str, str]) -> dict[str, TopicSurvey]:
    """Topics of these types that tell what is, often enough."""
    chosen = {}
    for topic, found in proposal.topics.items():
        if found.info.type_name not in types or not found.readable:
            continue
        if words.is_shown_only(topic):
            why[topic] = "is shown, not measured"
        elif words.is_commanded(topic) and found.info.type_name != gripper.FEEDBACK.name:
            why.setdefault(topic, "says where something shall be, not where it is")
        elif found.period_ms is None or found.period_ms > RAREST_MS:
            why[topic] = "comes too seldom for a state"
        else:
            chosen[topic] = found
    return chosen


def _joint_streams(proposal: Proposal, types: tuple[str, ...], why: dict[str, str]) -> list[StateStream]:
    streams: list[StateStream] = []
    topics = _measured(proposal, types, why)
    for topic, found in sorted(topics.items(), key=lambda item: (-len(item[1].main_names), item[0])):
        joints = _joints_of(topic, found, proposal)
        new = {joint: found for joint, found in joints.items() if not _is_given(topic, joint, joints, streams)}
        if not new:
            why[topic] = f"repeats the joints of {streams[0].topic}" if joints else "names no joints with positions"
            continue
        units = {f"position.{joint}": "m" for joint, one in new.items() if is_prismatic(joint, one)}
        name = words.stream_name(proposal.named(topic), "joints")
        streams.append(StateStream(name, topic, found, {"position": [*new]}, f"{len(new)} joints", new, units))
    return streams


def _note_repeats(proposal: Proposal, streams: list[StateStream], why: dict[str, str]) -> None:
    """Controllers that tell the joints of a stream once more."""
    for topic, found in _measured(proposal, INSTEAD, why).items():
        same = [s for s in streams if set(found.main_names) & s.joints.keys()]
        if same:
            why[topic] = f"repeats the joints of {same[0].topic}"


def _joints_of(topic: str, found: TopicSurvey, proposal: Proposal) -> dict[str, Range]:
    """The joints that most messages give a position of, in their order, and what those do."""
    given = _in_most_messages(topic, found, proposal)
    ranges = {joint: found.ranges.get(f"position.{joint}") for joint in given}
    known = {joint: one for joint, one in ranges.items() if one is not None and not one.absent and joint not in UNITS}
    lost = [joint for joint in given if joint not in known]
    if lost and known:
        proposal.notes.append(f"{topic}: the position of {words.listed(lost)} is not always a number: left out")
    return known


def usual_joints(found: TopicSurvey) -> tuple[str, ...]:
    """The joints of the usual messages, those left out that some whole messages lack while they share others."""
    sets = _sets_of_joints(found)
    shared = frozenset.intersection(*sets) if sets else frozenset()
    return tuple(name for name in found.main_names if name in shared) or found.main_names


def _sets_of_joints(found: TopicSurvey) -> set[frozenset[str]]:
    return {frozenset(names) for names in found.names if names}


def _in_most_messages(topic: str, found: TopicSurvey, proposal: Proposal) -> tuple[str, ...]:
    """`usual_joints`, with notes of what they lack; those named twice are left out."""
    main, chosen, sets = found.main_names, usual_joints(found), _sets_of_joints(found)
    if len(sets) > 1:
        shared = frozenset.intersection(*sets)
        said = f"; only those that all have are taken: {words.listed(chosen)}" if shared else ""
        remedy = "" if shared else ": a message without the configured joints makes its tick unusable; republish as one"
        proposal.notes.append(
            f"{topic} carries {len(sets)} different sets of joints, as from several publishers{said}{remedy}"
        )
    twice = {name for name in chosen if main.count(name) > 1}
    if twice:
        proposal.notes.append(f"{topic} names {words.listed(sorted(twice))} more than once in a message: left out")
    return tuple(name for name in chosen if name not in twice)


def _is_given(topic: str, joint: str, joints: Mapping[str, Range], streams: list[StateStream]) -> bool:
    """Whether a stream gives this very joint, and not the one of that name of another arm."""
    for other in streams:
        if joint not in other.joints or (of_two_arms(topic, other.topic) and joints.keys() == other.joints.keys()):
            continue
        if alike(joints[joint], other.joints[joint]):
            return True
    return False


def is_prismatic(joint: str, found: Range) -> bool:
    """Whether a joint surely slides: it is called so, and stays within what slides reach."""
    moved = found.spread > 1e-4
    if not moved or words.has(joint, REVOLUTE):
        return False
    if words.has(joint, SLIDERS):
        return found.low > -LIFT_M and found.high < LIFT_M
    return words.has(joint, words.GRIPPERS) and -0.01 <= found.low and found.high <= FINGER_M


def _grippers(proposal: Proposal, streams: list[StateStream], why: dict[str, str]) -> list[StateStream]:
    """Numbers on topics that are called after a gripper, and what a gripper's action feeds back."""
    found_ones = []
    topics = _measured(proposal, (*FLOATS, *ARRAYS, gripper.FEEDBACK.name), {})
    for topic, found in topics.items():
        if not words.has(topic, words.GRIPPERS) or found.main_size > MOST_FINGERS:
            continue
        name, select = gripper_numbers(proposal.named(topic), found)
        joints = dict(zip(select, found.ranges.values(), strict=False))
        if not joints or any(one.absent for one in joints.values()):
            why[topic] = "holds no numbers, or some that are not finite"
            continue
        copy = next(
            (s for one in joints.values() for s in streams if any(alike(one, r) for r in s.joints.values())), None
        )
        if copy is not None and all(words.has(joint, words.GRIPPERS) for joint in copy.joints):
            why[topic] = f"repeats {copy.topic}"
            continue
        slides = {field: "m" for field, one in joints.items() if _is_width(topic, one)}
        found_ones.append(StateStream(name, topic, found, select, GRIPPER_USE, joints, slides))
    return found_ones


def gripper_numbers(topic: str, found: TopicSurvey) -> tuple[str, Plain]:
    """A gripper's name, and its numbers by the names that its topic gives them."""
    said = [word for word in words.words(topic) if word in words.WIDTHS]
    field_name = said[-1] if said else "position"
    parts = [part for part in topic.split("/") if part and not set(words.words(part)) <= words.WIDTHS]
    name = words.part_name("/".join(parts), "gripper")
    name = words.stream_name(name, "gripper")
    if found.info.type_name in FLOATS:
        return name, {field_name: "data"}
    if found.info.type_name not in ARRAYS:
        return name, {field_name: "position"}
    count = found.main_size
    return name, {field_name if count == 1 else f"{field_name}_{i}": i for i in range(count)}


def _is_width(topic: str, found: Range) -> bool:
    return words.has(topic, words.WIDTHS) and found.spread > 1e-4 and -0.01 <= found.low and found.high <= 2 * FINGER_M


def _poses(proposal: Proposal) -> list[StateStream]:
    """The poses of a robot that tells no joints."""
    found = _measured(proposal, (pose.POSE_STAMPED.name,), {})
    moving = {topic: one for topic, one in found.items() if any(one.moves(name) for name in one.ranges)}
    return [
        StateStream(words.stream_name(proposal.named(topic), "pose"), topic, one, ["position", "rotation"], "pose")
        for topic, one in sorted(moving.items())
    ]


def _base(proposal: Proposal, why: dict[str, str]) -> StateStream | None:
    """A base that moves; None for a fixed one."""
    topics = _measured(proposal, BASES, why)
    order = sorted(topics, key=lambda topic: (BASES.index(topics[topic].info.type_name), -topics[topic].info.messages))
    chosen = None
    for topic in order:
        found = topics[topic]
        moving = [name for name in twist.BASE_MOTION if found.moves(name)]
        if words.has(topic, words.OF_A_HAND):
            why[topic] = "is of the hand, not of the base"
        elif not moving:
            proposal.notes.append(f"{topic} never moves: the base is taken for fixed")
            why[topic] = "never moves"
        elif chosen is not None:
            why[topic] = f"repeats the base of {chosen.topic}"
        else:
            select = [] if len(moving) == len(twist.BASE_MOTION) else moving
            use = f"{BASE_USE} ({found.info.type_name})"
            chosen = StateStream(words.stream_name(proposal.named(topic), "base"), topic, found, select, use)
    return chosen
