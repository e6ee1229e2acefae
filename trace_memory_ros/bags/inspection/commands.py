"""Which topics hold the commands that a policy learns to give: several parts where they move unlike things."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from trace_memory_ros.bags import fields
from trace_memory_ros.bags.inspection import words
from trace_memory_ros.bags.inspection.matching import assigned, distance, nearest_by_words
from trace_memory_ros.bags.inspection.proposal import Plain, Proposal
from trace_memory_ros.bags.inspection.state import (
    FLOATS,
    GRIPPER_USE,
    MOST_FINGERS,
    RAREST_MS,
    StateStream,
    gripper_numbers,
    is_prismatic,
)
from trace_memory_ros.bags.numbers import Range
from trace_memory_ros.bags.survey import ARRAYS, TopicSurvey
from trace_memory_ros.files.names import unique
from trace_memory_ros.streams import gripper, pose, twist
from trace_memory_ros.streams.scalars import SCALARS

TWISTS = (twist.TWIST.name, twist.TWIST_STAMPED.name)
TYPES = (fields.TRAJECTORY, fields.JOINTS, *ARRAYS, *FLOATS, *TWISTS, pose.POSE_STAMPED.name, gripper.COMMAND.name)
ALWAYS = (fields.TRAJECTORY, gripper.COMMAND.name)
"""Types that nothing but commands are of."""
SWITCHES = tuple(one.name for one in SCALARS if one.name not in FLOATS)
"""Types of commands and of much else: that a policy is to give them, a person has to say."""
BASE, HAND, GRIPPER = "<base>", "<hand>", "<gripper>"
"""Things that are moved without naming joints, called as no joint is."""
Named = Callable[[str], str]
LATE_NS = 2_000_000_000


@dataclass
class CommandPart:
    """A command topic. topic: absolute. covers: what it moves: (stream or side, joint), or one of BASE, HAND, GRIPPER
    with the stream or side. units: of outputs whose unit is not their type's.
    """

    topic: str
    found: TopicSurvey
    select: Plain | list[str]
    covers: frozenset[tuple[str, str]]
    name: str = ""
    outputs: tuple[str, ...] = ()
    units: dict[str, str] = field(default_factory=dict)
    note: str = ""


def command_parts(proposal: Proposal, streams: list[StateStream], why: dict[str, str]) -> list[CommandPart]:
    """The parts to learn from, the arm's first; `why` gets reasons for other topics of commands."""
    chosen: list[CommandPart] = []
    for part in sorted(_candidates(proposal, streams, why), key=_preference):
        repeated = next((other for other in chosen if _overlap(part, other)), None)
        if repeated is None:
            chosen.append(part)
        else:
            why[part.topic] = f"commands what {repeated.topic} commands"
            proposal.notes.append(f"{part.topic} carries commands too and is left out: it {why[part.topic]}")
    chosen.sort(key=lambda part: (_kind_of(part), -len(part.outputs), part.topic))
    _name(chosen, proposal.named)
    for part in chosen:
        proposal.uses[part.topic] = "actions" if len(chosen) == 1 else f"actions ({words.listed(part.outputs, 2)})"
        proposal.notes += [part.note] if part.note else []
    _note_late(proposal, chosen)
    return chosen


def _candidates(proposal: Proposal, streams: list[StateStream], why: dict[str, str]) -> Iterable[CommandPart]:
    for topic, found in proposal.topics.items():
        if topic in proposal.uses or not is_command(topic, found) or not found.readable:
            continue
        part = _part(topic, found, streams, proposal.named)
        if part is None:
            why[topic] = _why_none(found)
        elif found.info.type_name in (*TWISTS, pose.POSE_STAMPED.name) and not _moves(found):
            why[topic] = "commands that never change"
        elif found.info.type_name == pose.POSE_STAMPED.name and _is_rare(found):
            why[topic] = "comes too seldom for commands"
        else:
            yield part


def _why_none(found: TopicSurvey) -> str:
    if found.info.type_name in (fields.TRAJECTORY, fields.JOINTS):
        return "gives no positions of the joints that it names, or some that are not finite"
    return "holds no numbers, or some that are not finite"


def is_command(topic: str, found: TopicSurvey) -> bool:
    """Whether a topic is of commands, by its type or its name."""
    return found.info.type_name in ALWAYS or (found.info.type_name in TYPES and _is_called_so(topic))


def is_switch(topic: str, found: TopicSurvey) -> bool:
    """Whether a topic of one of `SWITCHES` is called like commands."""
    return found.info.type_name in SWITCHES and _is_called_so(topic)


def _is_called_so(topic: str) -> bool:
    return words.is_commanded(topic) and not words.is_shown_only(topic)


def _moves(found: TopicSurvey) -> bool:
    return any(found.moves(name) for name in found.ranges)


def _is_rare(found: TopicSurvey) -> bool:
    return found.period_ms is None or found.period_ms > RAREST_MS


def _preference(part: CommandPart) -> tuple[bool, bool, int, int, str]:
    """Commands that keep coming before others, grippers last; trajectories, commands, leaders, then mere setpoints."""
    by_name = 2 if words.has(part.topic, words.LEADERS) else 3 if words.is_setpoint(part.topic) else 1
    rank = 0 if part.found.info.type_name in ALWAYS and by_name != 3 else by_name
    return _is_rare(part.found), _kind_of(part) == 1, rank, -part.found.info.messages, part.topic


def _kind_of(part: CommandPart) -> int:
    """Arms, then grippers, then hands and bases."""
    things = {thing for _, thing in part.covers}
    return 2 if things & {BASE, HAND} else 1 if things == {GRIPPER} else 0


def _overlap(one: CommandPart, other: CommandPart) -> bool:
    """Whether two parts move the same; a hand is moved by the joints of its arm."""
    if one.covers & other.covers:
        return True
    for a, b in ((one, other), (other, one)):
        owners = {owner for owner, thing in a.covers if thing == HAND}
        arms = {owner for owner, thing in b.covers if thing not in (BASE, HAND, GRIPPER)}
        if owners and arms and (owners & arms or "" in owners):
            return True
    return False


def _part(topic: str, found: TopicSurvey, streams: list[StateStream], named: Named) -> CommandPart | None:
    """What a topic of commands moves; None where nothing of it can be selected."""
    type_name = found.info.type_name
    if type_name in (fields.TRAJECTORY, fields.JOINTS):
        return _of_joints(topic, found, streams)
    owner = _owner(topic, streams)
    if type_name in TWISTS:
        thing = HAND if words.has(topic, words.OF_A_HAND) else BASE
        used = twist.BASE_MOTION if thing == BASE else [name for name in found.ranges if "." in name]
        moving = [name for name in used if found.moves(name)]
        return CommandPart(
            topic, found, moving, frozenset({(owner if thing == HAND else "", thing)}), outputs=tuple(moving)
        )
    if type_name == pose.POSE_STAMPED.name:
        return CommandPart(
            topic, found, ["position", "rotation"], frozenset({(owner, HAND)}), outputs=("position", "rotation")
        )
    if type_name == gripper.COMMAND.name:
        return CommandPart(
            topic,
            found,
            {"position": "position"},
            frozenset({(owner, GRIPPER)}),
            words.part_name(named(topic), "gripper"),
            ("position",),
        )
    if words.has(topic, words.GRIPPERS) and found.main_size <= MOST_FINGERS:
        return _of_gripper(topic, found, streams, named)
    return _of_numbers(topic, found, streams, named)


def _of_joints(topic: str, found: TopicSurvey, streams: list[StateStream]) -> CommandPart | None:
    ranges = {joint: found.ranges.get(f"position.{joint}") for joint in found.main_names}
    joints = {joint: one for joint, one in ranges.items() if one is not None and not one.absent}
    if not joints:
        return None
    stream = _moved(topic, joints, streams)
    owner = "" if stream is None else stream.name
    things = [GRIPPER if words.has(joint, words.GRIPPERS) else joint for joint in joints]
    units = {joint: "m" for joint, one in joints.items() if is_prismatic(joint, one)}
    covers = frozenset(zip([owner] * len(things), things, strict=True))
    return CommandPart(topic, found, {"position": [*joints]}, covers, owner, tuple(joints), units)


def _moved(topic: str, joints: dict[str, Range], streams: list[StateStream]) -> StateStream | None:
    """The stream of the joints that a topic commands; of several that have them, by names, then by values."""
    shared = {s.name: len(joints.keys() & s.joints.keys()) for s in streams}
    most = max(shared.values(), default=0)
    able = {s.topic: s for s in streams if most and shared[s.name] == most}
    near = nearest_by_words(topic, list(able)) if able else []
    return min(
        (able[name] for name in near),
        key=lambda s: sum(distance(one, s.joints[joint]) for joint, one in joints.items() if joint in s.joints),
        default=None,
    )


def _of_gripper(topic: str, found: TopicSurvey, streams: list[StateStream], named: Named) -> CommandPart | None:
    """A gripper's own topic, its numbers called as the state calls them."""
    name, select = gripper_numbers(named(topic), found)
    if not select or any(one.absent for one in found.ranges.values()):
        return None
    owner = _owner(topic, streams)
    states = [s for s in streams if s.use == GRIPPER_USE and len(s.joints) == len(select)]
    near = nearest_by_words(topic, [s.topic for s in states]) if states else []
    if near:
        state = next(s for s in states if s.topic == near[0])
        name, select = state.name, dict(zip(state.joints, select.values(), strict=True))
        units = {field_name: unit for field_name, unit in state.units.items() if field_name in select}
        return CommandPart(topic, found, select, frozenset({(owner, GRIPPER)}), name, tuple(select), units)
    return CommandPart(topic, found, select, frozenset({(owner, GRIPPER)}), name, tuple(select))


def _of_numbers(topic: str, found: TopicSurvey, streams: list[StateStream], named: Named) -> CommandPart | None:
    """Numbers by index: those of joints that behave as they do, else by the topic's name."""
    if found.info.type_name in FLOATS:
        name = words.part_name(named(topic), "command").replace(".", "_")
        return CommandPart(topic, found, {name: "data"}, frozenset({("", name)}), outputs=(name,))
    size = found.main_size
    ranges = {str(i): found.ranges[str(i)] for i in range(size) if str(i) in found.ranges}
    if not ranges or any(one.absent for one in ranges.values()):
        return None
    able = sorted((s for s in streams if len(s.joints) >= size), key=lambda s: len(s.joints))
    near = nearest_by_words(topic, [s.topic for s in able]) if able else []
    for stream in (s for s in sorted(able, key=lambda s: s.topic not in near)):
        chosen = assigned(ranges, stream.joints)
        if chosen:
            select = {chosen[index]: int(index) for index in ranges}
            covers = frozenset((stream.name, GRIPPER if words.has(j, words.GRIPPERS) else j) for j in select)
            return CommandPart(topic, found, select, covers, stream.name, tuple(select))
    name = words.part_name(named(topic), "command")
    select = {f"{name}_{index}": int(index) for index in ranges}
    note = (
        f"{topic} holds {size} numbers that behave like no joints' positions: name them as their controller does, and "
        f"give velocities their unit (units: {{{name}_0: rad/s, ...}}), without which an outage repeats them"
    )
    owner = able[0].name if len(able) == 1 else _owner(topic, streams)
    covers = frozenset((owner, joint) for joint in (able[0].joints if len(able) == 1 else select))
    return CommandPart(topic, found, select, covers, "", tuple(select), note=note)


def _owner(topic: str, streams: list[StateStream]) -> str:
    """The stream of joints that a topic's name goes with; empty where no one or all do."""
    able = {s.topic: s.name for s in streams if s.joints and s.is_arm}
    near = nearest_by_words(topic, list(able)) if able else []
    return able[near[0]] if len(near) == 1 else ""


def _name(parts: list[CommandPart], named: Named) -> None:
    """Names for parts whose outputs are called as those of another, and for grippers; the others need none."""
    counts: dict[str, int] = {}
    for part in parts:
        for output in part.outputs:
            counts[output] = counts.get(output, 0) + 1
    taken: list[str] = []
    for part in parts:
        repeated = any(counts[output] > 1 for output in part.outputs)
        plain = all(output in words.WIDTHS or output.startswith("position") for output in part.outputs)
        name = part.name or words.part_name(named(part.topic), "command")
        part.name = unique(name, taken) if repeated or plain else ""
        taken += [part.name] if part.name else []


def _note_late(proposal: Proposal, parts: list[CommandPart]) -> None:
    """A tick before the first command of any part has no label."""
    if any(len(part.found.logs_ns) != 1 or not part.found.logs_ns[0] for part in parts) or not parts:
        return
    begins = {part.topic: part.found.logs_ns[0][0] for part in parts}
    first = min(begins.values())
    for topic, begin in begins.items():
        if begin - first > LATE_NS:
            proposal.notes.append(
                f"{topic} gives its first command {(begin - first) / 1e9:.1f} s after the other commands: ticks before "
                "it have no label"
            )
