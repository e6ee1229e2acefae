"""What was seen of a robot against what a checkpoint needs: a table, with a remedy for whatever is wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from trace_memory_ros.nodes.doctor.heard import MOST_STAMPS, Seen, TopicSeen
from trace_memory_ros.nodes.memory.findings import Level
from trace_memory_ros.nodes.transport import BUILTIN, PROFILES, RANGE, large_data, room
from trace_memory_ros.observation.config import ObservationConfig, StreamConfig
from trace_memory_ros.runtime.actions import ActionConfig
from trace_memory_ros.runtime.message_fields import MS_NS

AHEAD_MS = 50.0
"""Stamps may lie ahead of this machine's clock by this much."""
LOST_SHARE = 0.05
"""A busy machine loses a message now and then; a driver without room loses most."""
SHOWN_FAULTS = 2
POLICY_NODE = "/policy_node"


@dataclass(frozen=True)
class Row:
    """One check: what was found, how grave it is, and what to do about it."""

    part: str
    level: Level
    found: str
    remedy: str = ""


def judged(seen: Seen, observation: ObservationConfig, actions: ActionConfig | None, reliability: str) -> list[Row]:
    """All rows: the transport, every stream, all stamps together, every command topic, the memory.

    reliability: as memory_node's parameter. actions: None for a checkpoint without a policy.
    """
    rows, spaces = list(_transport(seen, observation)), _namespaces(seen, observation)
    for stream in observation.inputs:
        topic = seen.streams[stream.name]
        rows += _stream(seen, stream, topic, reliability, spaces)
    rows += _one_clock(seen, observation)
    for part in actions.parts if actions else ():
        topic = seen.commands[part.topic]
        if part.ahead_ms:
            found = "says where the robot is: the policy learned from measured places"
            remedy = "give the topic or the action that it is commanded by in --actions"
            rows.append(Row(f"command {topic.name}", Level.ERROR, found, remedy))
            continue
        rows += _served(topic, part.type) if part.is_served else _command(topic, part.type)
    rows.append(_memory(seen.conditions))
    return rows


def table(rows: Sequence[Row]) -> str:
    """The rows for a terminal; a remedy stands under its row."""
    width = max(len(row.part) for row in rows)
    words = {Level.OK: "ok", Level.WARN: "warning", Level.ERROR: "WRONG"}
    lines = []
    for row in rows:
        lines.append(f"{words[row.level]:7}  {row.part:{width}}  {row.found}")
        if row.remedy:
            lines.append(f"{'':7}  {'':{width}}  -> {row.remedy}")
    return "\n".join(lines)


def _transport(seen: Seen, observation: ObservationConfig) -> Iterator[Row]:
    said = ", ".join(f"{name}={value}" for name, value in seen.transport.items())
    yield Row("transport", Level.OK, said)
    others = [name for name in seen.topics if name not in ("/rosout", "/parameter_events")]
    if not others:
        yield Row(
            "graph",
            Level.ERROR,
            "no topic of any other node is seen",
            "start the robot's drivers; use their ROS_DOMAIN_ID and RMW_IMPLEMENTATION; for another machine set "
            f"{RANGE}=SUBNET, and open UDP 7400-7500 and multicast",
        )
    if "fastrtps" in seen.transport.get("RMW_IMPLEMENTATION", ""):
        yield from _pictures(seen.transport, observation)


def _pictures(variables: Mapping[str, str], observation: ObservationConfig) -> Iterator[Row]:
    """Whether Fast DDS has room for what cameras send: what does not fit is lost."""
    wanted = f"set {BUILTIN}='{large_data(variables)}'"
    raw = any(camera.transport == "raw" for camera in observation.cameras)
    if raw and variables.get(RANGE) == "LOCALHOST":
        found = f"{RANGE}=LOCALHOST leaves Fast DDS 512 kB to send by, and a larger raw picture is lost"
        wanted = f"unset it and {wanted}, or see config/network/loopback.xml"
    elif observation.cameras and not any(map(variables.get, (BUILTIN, *PROFILES))):
        found = "Fast DDS with its own transports loses large images"
    elif raw and variables.get(BUILTIN) == "LARGE_DATA" != large_data(variables):
        found = "Jazzy's Fast DDS gives LARGE_DATA 512 kB to send by, and a larger raw picture is lost"
    else:
        return
    yield Row("images", Level.WARN, found, f"{wanted}, for every process, drivers too")


def _namespaces(seen: Seen, observation: ObservationConfig) -> list[str]:
    """Where relative topics are published, when none is where it was looked for: as of a robot in a namespace."""
    found = []
    for stream in observation.inputs:
        topic, end = seen.streams[stream.name], f"/{stream.topic}"
        if not topic.name.endswith(end):
            continue  # absolute, or remapped to what no namespace moves
        if topic.publishers:
            return []
        fit = (name for name, types in seen.topics.items() if name.endswith(end) and stream.message_type in types)
        found.append({name.removesuffix(end).strip("/") for name in fit})
    known = [spaces for spaces in found if spaces]
    return sorted(set.intersection(*known)) if known else []


def _stream(
    seen: Seen, stream: StreamConfig, topic: TopicSeen, reliability: str, spaces: Sequence[str]
) -> Iterator[Row]:
    part = f"stream {stream.name}"
    trouble = _absent(seen, stream, topic, spaces)
    if trouble is not None:
        yield trouble
        return
    yield from _endpoints(part, topic, reliability)
    came = len(topic.arrivals_ns)
    if topic.lost > LOST_SHARE * (topic.lost + came):
        found = f"{topic.name}: {topic.lost} of {topic.lost + came} messages were lost on the way"
        yield Row(part, Level.WARN if came else Level.ERROR, found, room(seen.transport))
    elif not came:
        yield Row(
            part,
            Level.ERROR,
            f"{topic.name}: nothing came in {seen.seconds:g} s, though it has a publisher",
            "see whether the driver publishes (ros2 topic hz), and whether data pass between containers or machines: "
            f"{BUILTIN}='{large_data(seen.transport)}', or UDPv4 where shared memory is not shared",
        )
    if not came:
        return
    yield _rate(part, seen, stream, topic)
    yield from _stamps(part, seen, stream, topic)
    for text, count in topic.faults.most_common(SHOWN_FAULTS):
        what, _, remedy = text.partition(": ")
        yield Row(part, Level.ERROR, f"{what} ({count} of those looked into)", remedy or "see the driver's settings")


def _absent(seen: Seen, stream: StreamConfig, topic: TopicSeen, spaces: Sequence[str]) -> Row | None:
    """The row of a stream that has no publisher of its type. spaces: as of `_namespaces`."""
    part, needed = f"stream {stream.name}", stream.message_type
    if not topic.publishers:
        taken = {other.name for other in seen.streams.values()}
        alike = [name for name, types in seen.topics.items() if needed in types and name not in taken]
        close = difflib.get_close_matches(topic.name, alike, n=1, cutoff=0.0)
        others = [name for name in alike if name not in close][:3]
        remedy = f"start the driver that publishes {needed}"
        if spaces:
            named = " or ".join(f"--namespace {space}" if space else "no --namespace" for space in spaces)
            remedy = f"if the robot is in another namespace: {named}, and so for the nodes"
        elif close:
            remedy = (
                f"if it is {' or '.join([*close, *others])}: --remap {stream.topic}:={close[0]}, and so for the nodes"
            )
        return Row(part, Level.ERROR, f"{topic.name}: nobody publishes it", remedy)
    wrong = sorted({end.type_name for end in topic.publishers} - {needed})
    if wrong:
        return Row(
            part,
            Level.ERROR,
            f"{topic.name} is {', '.join(wrong)}; the checkpoint was trained on {needed}",
            "remap to the topic of that type, or train again with this type",
        )
    return None


def _endpoints(part: str, topic: TopicSeen, reliability: str) -> Iterator[Row]:
    nodes = sorted(end.node for end in topic.publishers)
    if len(nodes) > 1:
        yield Row(part, Level.WARN, f"{len(nodes)} publishers: {', '.join(nodes)}",
                  "let one node publish it: samples of two are refused where they cross")  # fmt: skip
    if reliability == "reliable" and not all(end.reliable for end in topic.publishers):
        yield Row(part, Level.ERROR, "its publisher is best effort, reliability is reliable: nothing would come",
                  "set reliability: best_effort")  # fmt: skip


def _rate(part: str, seen: Seen, stream: StreamConfig, topic: TopicSeen) -> Row:
    arrivals = topic.arrivals_ns
    gaps_ms = [(b - a) / MS_NS for a, b in zip(arrivals, arrivals[1:], strict=False)]
    rate_hz = (len(arrivals) - 1) / max(1e-9, (arrivals[-1] - arrivals[0]) / 1e9) if gaps_ms else 0.0
    shape = f"{topic.shape}, " if topic.shape else ""
    found = f"{topic.name}: {shape}{rate_hz:.1f} Hz, {len(arrivals)} messages"
    widest_ms = max(gaps_ms, default=1e3 * seen.seconds)
    if widest_ms > stream.stale_after_ms:
        remedy = f"a tick is stale after {stream.stale_after_ms:g} ms: speed the driver up, or look for what it loses"
        return Row(part, Level.ERROR, f"{found}, up to {widest_ms:.0f} ms between two", remedy)
    silent_ms = _silent_ms(seen, topic)
    if silent_ms > stream.stale_after_ms:
        remedy = f"a tick is stale after {stream.stale_after_ms:g} ms: see whether the driver hangs, or its node ended"
        return Row(part, Level.ERROR, f"{found}, and none in the last {silent_ms:.0f} ms", remedy)
    return Row(part, Level.OK, found)


def _silent_ms(seen: Seen, topic: TopicSeen) -> float:
    """From the newest message to the end of listening; 0 where later messages were not noted."""
    arrivals = topic.arrivals_ns
    noted_all = seen.ended_ns and len(arrivals) < MOST_STAMPS
    return (seen.ended_ns - arrivals[-1]) / MS_NS if noted_all else 0.0


def _stamps(part: str, seen: Seen, stream: StreamConfig, topic: TopicSeen) -> Iterator[Row]:
    stamps = topic.stamps_ns
    zeros = stamps.count(0)
    if zeros:
        yield Row(part, Level.ERROR, f"{zeros} of {len(stamps)} messages are stamped 0, and are refused",
                  "let the driver fill header.stamp, or train with stamp: received")  # fmt: skip
    rising = [stamp for stamp in stamps if stamp]
    back = sum(b <= a for a, b in zip(rising, rising[1:], strict=False))
    if back:
        yield Row(part, Level.ERROR, f"{back} of {len(rising)} stamps do not rise, and are refused",
                  "stamp every message when it is taken, by one clock; one publisher per topic")  # fmt: skip
    if not rising or seen.sim_time or stream.stamp == "received":
        return
    age_ms = _age_ms(topic)
    if age_ms < -AHEAD_MS:
        yield Row(part, Level.ERROR, f"stamps lie {-age_ms:.0f} ms ahead of this machine's clock",
                  "set the clocks of all machines by one source (chrony, PTP)")  # fmt: skip
    elif age_ms > stream.stale_after_ms:
        yield Row(part, Level.ERROR, f"messages are {age_ms:.0f} ms old when they come",
                  "set the clocks of all machines by one source, or look for what delays them; policy_node refuses to "
                  "act on what is too old")  # fmt: skip


def _one_clock(seen: Seen, observation: ObservationConfig) -> Iterator[Row]:
    """Streams are put together by stamps, so these must be of one clock."""
    ages = {s.name: _age_ms(seen.streams[s.name]) for s in observation.inputs if any(seen.streams[s.name].stamps_ns)}
    if len(ages) < 2:
        return
    youngest, oldest = min(ages, key=ages.__getitem__), max(ages, key=ages.__getitem__)
    apart_ms = ages[oldest] - ages[youngest]
    limit_ms = min(stream.stale_after_ms for stream in observation.inputs)
    found = f"stamps of {oldest} lie {apart_ms:.0f} ms behind those of {youngest}"
    if apart_ms > limit_ms:
        yield Row("clocks", Level.ERROR, found, "stamp all streams by one clock, when the sample is taken")
    else:
        yield Row("clocks", Level.OK, found)


def _age_ms(topic: TopicSeen) -> float:
    pairs = zip(topic.arrivals_ns, topic.stamps_ns, strict=True)
    ages = [(arrival - stamp) / MS_NS for arrival, stamp in pairs if stamp]
    return median(ages) if ages else 0.0


def _command(topic: TopicSeen, needed: str) -> Iterator[Row]:
    part = f"command {topic.name}"
    takers = [end for end in topic.subscribers if end.type_name == needed]
    if not takers:
        others = sorted({end.type_name for end in topic.subscribers})
        found = f"its subscriber takes {', '.join(others)}, the policy sends {needed}" if others else "nobody takes it"
        remedy = "start the controller (ros2 control list_controllers), or remap to the topic that it takes"
        yield Row(part, Level.ERROR, found, remedy)
    else:
        yield Row(part, Level.OK, f"taken by {', '.join(sorted({end.node for end in takers}))}")
    nodes = sorted(end.node for end in topic.publishers)
    if len(nodes) > 1:
        yield Row(part, Level.ERROR, f"{len(nodes)} nodes command it: {', '.join(nodes)}",
                  "end all but one: an arm obeys whoever spoke last")  # fmt: skip
    elif nodes and not nodes[0].endswith(POLICY_NODE):
        yield Row(part, Level.WARN, f"{nodes[0]} commands it",
                  "end it before policy_node is to command, which sends nothing beside another node unless that was "
                  "there when ~/enable was called")  # fmt: skip


def _served(topic: TopicSeen, needed: str) -> Iterator[Row]:
    part = f"command {topic.name}"
    servers = sorted(end.node for end in topic.servers if end.type_name == needed)
    others = sorted({end.type_name for end in topic.servers})
    if servers:
        yield Row(part, Level.OK, f"served by {', '.join(servers)}")
    else:
        found = f"its server takes {', '.join(others)}, the policy sends {needed}" if others else "nobody serves it"
        remedy = "start the controller (ros2 control list_controllers), or name another server in --actions"
        yield Row(part, Level.ERROR, found, remedy)


def _memory(topic: TopicSeen) -> Row:
    nodes = sorted(end.node for end in topic.publishers)
    if len(nodes) > 1:
        return Row("memory", Level.ERROR, f"{len(nodes)} nodes publish {topic.name}: {', '.join(nodes)}",
                   "run one memory_node per namespace")  # fmt: skip
    return Row("memory", Level.OK, f"{topic.name}: {nodes[0] if nodes else 'no memory_node runs yet'}")
