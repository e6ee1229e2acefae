"""Proposes a recording configuration from what a bag, or a folder of them, holds, and names what is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from trace_memory_ros.bags.differences import differences
from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.bags.inspection import words
from trace_memory_ros.bags.inspection.cameras import DEPTH_RANGE_M, Camera, cameras
from trace_memory_ros.bags.inspection.commands import (
    BASE,
    GRIPPER,
    HAND,
    CommandPart,
    command_parts,
    is_switch,
)
from trace_memory_ros.bags.inspection.episodes import branch_rule, branch_topic, clock_of, episode_rule, episode_topic
from trace_memory_ros.bags.inspection.passed_over import passed_over
from trace_memory_ros.bags.inspection.proposal import GUIDED, Plain, Proposal, Surveys
from trace_memory_ros.bags.inspection.stamps import stamps
from trace_memory_ros.bags.inspection.state import StateStream, state_streams
from trace_memory_ros.bags.rates import deadline_ms, stale_after_ms, tick_period_ms
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.bags.survey import TopicSurvey, merged, survey
from trace_memory_ros.files.names import unique
from trace_memory_ros.files.strict import ConfigError

LATE_NS = 2_000_000_000

Named = Callable[[str], str]
Used = Camera | StateStream | CommandPart


def inspect(bag: str | Path) -> Proposal:
    """Propose a configuration for bags like this one. Raises BagFault for a bag that cannot be read."""
    with BagReader(bag) as reader:
        topics = survey(reader)
        proposal = Proposal(str(bag), topics, faults=reader.faults)
    _fill(proposal, {Path(bag): topics})
    return proposal


def inspect_bags(folder: str | Path, bags: Sequence[Path]) -> Proposal:
    """Propose one configuration for all `bags` of `folder`, and say what is otherwise in which of them.

    A topic counts where at least half of the bags hold it. A bag that cannot be read is left out and in `faults`.
    Raises BagFault where none can.
    """
    surveys: dict[str, Surveys] = {}
    faults: list[BagFault] = []
    for bag in bags:
        try:
            with BagReader(bag) as reader:
                surveys[str(bag.relative_to(folder))] = survey(reader)
                faults += reader.faults
        except BagFault as fault:
            faults += [*fault.also, fault]
    if not surveys:
        nothing = BagFault(folder, f"holds {len(bags)} bags of which none can be read", "folder", faults[0].remedy)
        nothing.also = tuple(faults)
        raise nothing
    proposal = Proposal(f"{folder} ({len(surveys)} bags)", merged(list(surveys.values())), faults=faults)
    rare = _drop_rare(proposal, surveys)
    _fill(proposal, {Path(folder, name): topics for name, topics in surveys.items()})
    proposal.differences = {
        name: found
        for name, topics in surveys.items()
        if (found := differences(topics, proposal.topics, proposal.uses, rare))
    }
    return proposal


def _drop_rare(proposal: Proposal, surveys: Mapping[str, Surveys]) -> set[str]:
    """Leave out topics that less than half of the bags hold; returns those that could have been used."""
    holders = {name: sum(name in topics for topics in surveys.values()) for name in proposal.topics}
    rare = {name for name, count in holders.items() if 2 * count < len(surveys)}
    used = {name for name in rare if proposal.topics[name].readable}
    for name in sorted(used):
        proposal.notes.append(f"{name} is in {holders[name]} of {len(surveys)} bags and left out")
    proposal.topics = {name: found for name, found in proposal.topics.items() if name not in rare}
    return used


def _fill(proposal: Proposal, bags: Mapping[Path, Surveys]) -> None:
    """Propose from the topics of these bags, and say what is missing and what a person should decide."""
    chosen = _choose_in_namespace(proposal)
    seen, streams, parts = chosen.seen, chosen.streams, chosen.parts
    _name_missing(proposal, seen, streams, parts)
    named = proposal.named
    tick_ms = _tick_ms(seen, streams, parts)
    used: list[Used] = [*seen, *streams, *parts]
    stamped = stamps(proposal, [one.topic for one in used])
    if not parts:
        proposal.measured = [{**_part(one, named, stamped), "ahead_ms": tick_ms} for one in _guided(streams)]
        proposal.missing.append(_no_commands(proposal.measured))

    def stale_ms(found: TopicSurvey) -> int:
        return stale_after_ms(found.period_ms or 0.0, tick_ms, found.longest_ms)

    taken = [one.name for one in used if one.name]
    proposal.passed_over = passed_over(proposal, chosen.why, stale_ms, taken)
    _note_switches(proposal)
    if not seen or not streams:
        return
    _note_late(proposal, [*seen, *streams], bags)
    observation = {
        "cameras": [_camera(one, named, stamped, stale_ms) for one in seen],
        "streams": [_stream(one, named, stamped, stale_ms) for one in streams],
        "units": {f"{one.name}.{field}": unit for one in streams for field, unit in one.units.items()},
        "tick_period_ms": tick_ms,
        "deadline_ms": deadline_ms(one.found.period_ms or 0.0 for one in used[: len(seen) + len(streams)]),
    }
    plain: Plain = {"namespace": proposal.namespace, "observation": observation}
    if parts:
        plain["actions"] = [_part(one, named, stamped) for one in parts]
    plain["episodes"] = _episodes(proposal, chosen, bags)
    if (annotated := branch_rule(named(chosen.branches) if chosen.branches else "")) is not None:
        plain["branches"] = {"topic": annotated.topic}
    try:
        proposal.recording = RecordingConfig.from_dict(plain, "proposal")
    except ConfigError as error:
        proposal.missing.append(f"a configuration that holds together: {error}")


def _episodes(proposal: Proposal, chosen: _Chosen, bags: Mapping[Path, Surveys]) -> Plain:
    clock = chosen.seen[0]
    if chosen.episodes:
        rule = episode_rule(proposal, proposal.named(chosen.episodes), clock.found)
    else:
        rule = episode_rule(proposal, "", clock_of(clock.topic, clock.found, bags))
    return {"kind": rule.kind, "topic": rule.topic, "gap_s": rule.gap_s}


class _Chosen(NamedTuple):
    """What the topics are taken for. why: reasons for those that are not used."""

    seen: list[Camera]
    streams: list[StateStream]
    parts: list[CommandPart]
    episodes: str
    branches: str
    why: dict[str, str]


def _choose_in_namespace(proposal: Proposal) -> _Chosen:
    noted = len(proposal.notes)
    chosen = _choose(proposal)
    proposal.namespace = _namespace(list(proposal.uses)) if chosen.seen and chosen.streams else ""
    if not proposal.namespace:
        return chosen
    # Once more, with names that leave it out.
    proposal.uses, proposal.notes = {}, proposal.notes[:noted]
    return _choose(proposal)


def _choose(proposal: Proposal) -> _Chosen:
    why: dict[str, str] = {}
    seen = cameras(proposal, why)
    streams = state_streams(proposal, why)
    _tell_apart(proposal, seen, streams)
    parts = command_parts(proposal, streams, why)
    return _Chosen(seen, streams, parts, episode_topic(proposal), branch_topic(proposal), why)


def _tell_apart(proposal: Proposal, seen: list[Camera], streams: list[StateStream]) -> None:
    """Rename cameras that are called like streams, as an arm's camera in the arm's namespace is."""
    names = [stream.name for stream in streams]
    taken = [*names, *(camera.name for camera in seen)]
    for one in seen:
        if one.name in names:
            one.name = unique(f"{one.name}_camera", taken)
            taken.append(one.name)
            proposal.uses[one.topic] = f"camera {one.name}"


def _name_missing(proposal: Proposal, seen: list[Camera], streams: list[StateStream], parts: list[CommandPart]) -> None:
    if not seen:
        proposal.missing.append("a camera: no sensor_msgs/Image or CompressedImage topic that can be decoded")
    unmeasured = any(not owner for part in parts for owner, thing in part.covers if thing not in (BASE, HAND, GRIPPER))
    if not streams or (unmeasured and not any(one.joints for one in streams)):
        proposal.missing.append(
            "joint positions: no sensor_msgs/JointState topic with a position per name, nor another that tells them"
        )


def _guided(streams: list[StateStream]) -> list[CommandPart]:
    """What is measured as commands, as of an arm that was guided by hand; outputs of one arm need no name."""
    arms = [one.topic for one in streams if one.is_arm]
    return [
        CommandPart(
            one.topic,
            one.found,
            one.select,
            frozenset(),
            "" if arms == [one.topic] else one.name,
            units={name.removeprefix("position."): unit for name, unit in one.units.items()},
        )
        for one in streams
    ]


def _no_commands(measured: list[Plain]) -> str:
    """What is missing without commands, and how what was measured, as parts of actions, teaches without them."""
    text = (
        "commands: no trajectory_msgs/JointTrajectory topic of positions, nor one of joint states, numbers, velocities "
        "or poses that is named like a command; without them a bag can be replayed and evaluated, not learned from"
    )
    if not measured:
        return text
    return f"{text}. If the robot was {GUIDED}: add the lines of actions at the end of the proposal"


def _namespace(topics: list[str]) -> str:
    """What all topics that are used begin with; empty for nothing."""
    split = [topic.strip("/").split("/")[:-1] for topic in topics]
    shared = []
    for parts in zip(*split, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return "/".join(shared)


def _tick_ms(seen: list[Camera], streams: list[StateStream], parts: list[CommandPart]) -> int:
    def periods(found: Sequence[Used]) -> list[float]:
        return [one.found.period_ms or 0.0 for one in found]

    joints = [one for one in streams if one.joints and one.is_arm]
    return tick_period_ms(periods(seen), periods(joints or streams), periods(parts))


def _camera(one: Camera, named: Named, stamped: Mapping[str, str], stale_ms: Callable[[TopicSurvey], int]) -> Plain:
    plain: Plain = {"name": one.name, "topic": named(one.topic), "transport": one.transport}
    # Only a range tells mono16 of distances from grey.
    plain |= {"range_m": DEPTH_RANGE_M} if one.depth else {}
    return {**plain, "stale_after_ms": stale_ms(one.found), **_stamp(one.topic, stamped)}


def _stream(
    one: StateStream, named: Named, stamped: Mapping[str, str], stale_ms: Callable[[TopicSurvey], int]
) -> Plain:
    plain: Plain = {"name": one.name, "topic": named(one.topic), "type": one.found.info.type_name}
    plain |= {"select": one.select} if one.select else {}
    return {**plain, "stale_after_ms": stale_ms(one.found), **_stamp(one.topic, stamped)}


def _part(one: CommandPart, named: Named, stamped: Mapping[str, str]) -> Plain:
    plain: Plain = {"name": one.name} if one.name else {}
    plain |= {"topic": named(one.topic), "type": one.found.info.type_name, "select": one.select}
    return {**plain, **_stamp(one.topic, stamped), **({"units": one.units} if one.units else {})}


def _stamp(topic: str, stamped: Mapping[str, str]) -> dict[str, Any]:
    return {"stamp": "received"} if stamped[topic] == "received" else {}


def _note_switches(proposal: Proposal) -> None:
    """Commands that nobody learns unless a person says so, such as a suction's."""
    left = [one.topic for one in proposal.passed_over if one.entry and is_switch(one.topic, proposal.topics[one.topic])]
    if left:
        proposal.notes.append(
            f"{words.listed(left)}: called like commands, and left out: add what the policy is to give to actions"
        )


def _note_late(proposal: Proposal, used: Sequence[Used], bags: Mapping[Path, Surveys]) -> None:
    """Streams that begin long after the others, in any bag."""
    topics = [one.topic for one in used]
    found = [late for held in bags.values() if (late := _late([held[name] for name in topics if name in held]))]
    if found:
        worst = max(found, key=lambda late: late.after_s)
        where = f" in {len(found)} of {len(bags)} bags" if len(bags) > 1 else ""
        proposal.notes.append(
            f"{words.listed(worst.topics)} begin up to {worst.after_s:.1f} s after {worst.first}{where}: ticks before "
            "them cannot be used"
        )


class _Late(NamedTuple):
    """Topics of a bag that begin more than `LATE_NS` after the first, the last of them `after_s` after it."""

    topics: list[str]
    after_s: float
    first: str


def _late(found: Sequence[TopicSurvey]) -> _Late | None:
    begins = {one.info.name: one.logs_ns[0][0] for one in found if one.logs_ns[0]}
    first = min(begins, key=lambda topic: begins[topic], default="")
    late = [topic for topic, begin in begins.items() if begin - begins[first] > LATE_NS]
    return _Late(late, (max(begins.values()) - begins[first]) / 1e9, first) if late else None
