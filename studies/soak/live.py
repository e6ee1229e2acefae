"""The live graph for an hour: memory, policy and markers as processes, a robot in real time, and what came of it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.event_handler import SubscriptionEventCallbacks
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import MarkerArray

from studies.faults.bench import MEMORY, MEMORY_STATUS, POLICY, READY_S, BenchFailed
from studies.faults.models import Sizes, made_up_checkpoint
from studies.faults.robot import ARM, ENCODERS, EYE, GRIP, HEIGHT, JAW, NAMESPACE, WIDTH, WRIST, DisturbedRobot
from studies.faults.watch import STATUSES
from studies.grid import Figures, say
from studies.soak.endure import gained, resident_bytes
from studies.soak.heard import MS_NS, TENTHS, Heard, Hour, Sayings, latencies, tenths_of, ticks_of, whole
from trace_memory_ros.msg import MemoryCondition, MemoryDiagnostics
from trace_memory_ros.nodes import conversion, qos
from trace_memory_ros.nodes.domains import DomainClaim
from trace_memory_ros.nodes.health import RECENT_S
from trace_memory_ros.nodes.node_client import NodeClient
from trace_memory_ros.nodes.processes import READY, NodeGroup, NodeProcess, NodeSpec, ParameterValue
from trace_memory_ros.nodes.transport import private_environment
from trace_memory_ros.runtime.message_fields import CONDITION_TOPIC, MARKERS_TOPIC, RECORD_TOPIC

MARKERS = "marker_node"
PERIOD_MS = 50
RATES_HZ = {EYE: 30.0, WRIST: 24.0, ENCODERS: 125.0, JAW: 40.0}
SIZES = Sizes(width=64, depth=3, tick_period_ms=PERIOD_MS, eyes={}, policy={})
"""As training builds them."""
WELL = 20
"""Good conditions in a row with which the hour begins."""
WELL_S, PAUSE_S, SETTLE_S, LOOK_S = 60.0, 0.5, 3.0, 1.0
WARM_S = 300.0
"""Not counted as growth: libraries allocate what they keep."""
STARVED_S = 0.1
"""A robot that had no turn for so long lacks some of its messages."""
COUNTED = ("received", "rejected", "lost", "out of order", "late", "stale ticks")


class SteadyRobot(DisturbedRobot):
    """The made-up robot at rates of this study. sent: messages by stream; last_ns: stamps of the newest.

    longest_s: longest time without a turn; starved: how often that was too long.
    """

    def __init__(self, client: NodeClient) -> None:
        self.begin()
        super().__init__(client, "best_effort")
        self.go()

    def begin(self) -> None:
        """Count anew."""
        self.sent, self.last_ns = dict.fromkeys(RATES_HZ, 0), dict.fromkeys(RATES_HZ, 0)
        self.longest_s, self.starved, self._turn = 0.0, 0, time.monotonic()

    def go(self, but: str = "") -> None:
        """All streams at their rates, `but` one."""
        self.disturbance.rates = {name: 0.0 if name == but else rate for name, rate in RATES_HZ.items()}

    def halt(self) -> None:
        """Nothing is sent."""
        self.disturbance.rates = dict.fromkeys(RATES_HZ, 0.0)

    def publish_due(self) -> None:
        now = time.monotonic()
        without, self._turn = now - self._turn, now
        self.longest_s = max(self.longest_s, without)
        self.starved += without > STARVED_S
        super().publish_due()

    def message(self, name: str, ns: int) -> Any:
        self.sent[name] += 1
        self.last_ns[name] = ns
        return super().message(name, ns)


class Ears:
    """Everything that the nodes say. work: stamp and ms of each tick's stages; missed: conditions that the middleware
    lost on the way here; open: whether diagnostics are counted."""

    def __init__(self, client: NodeClient) -> None:
        self.conditions: list[Heard] = []
        self.work: list[tuple[int, float]] = []
        self.counts: dict[str, int] = {}
        self.sayings, self.open, self.missed = Sayings(), True, 0
        create = client.node.create_subscription
        lost = SubscriptionEventCallbacks(message_lost=self._on_lost)
        create(MemoryCondition, CONDITION_TOPIC, self._on_condition, qos.CONDITION, event_callbacks=lost)
        create(MemoryDiagnostics, RECORD_TOPIC, self._on_record, qos.CONDITION)
        create(DiagnosticArray, "/diagnostics", self._on_health, qos.DIAGNOSTICS)
        for topic, kind in ((ARM, JointTrajectory), (GRIP, Float64MultiArray), (MARKERS_TOPIC, MarkerArray)):
            profile = qos.DIAGNOSTICS if topic == MARKERS_TOPIC else qos.COMMAND
            create(kind, topic, self._counter(topic), profile, raw=True)
        self.clear()

    def clear(self) -> None:
        """Forget what was heard."""
        self.conditions.clear()
        self.work.clear()
        self.counts.update(dict.fromkeys((ARM, GRIP, MARKERS_TOPIC), 0))
        self.sayings, self.missed = Sayings(), 0

    def well(self) -> bool:
        """Whether conditions are good, and commands and markers come."""
        newest = [one.status for one in self.conditions[-WELL:]]
        return newest == ["OK"] * WELL and all(self.counts.values())

    def _counter(self, topic: str) -> Callable[[bytes], None]:
        def count(data: bytes) -> None:
            self.counts[topic] += 1

        return count

    def _on_lost(self, event: Any) -> None:
        self.missed += int(event.total_count_change)

    def _on_condition(self, message: MemoryCondition, info: Any) -> None:
        self.conditions.append(
            Heard(
                int(message.instance),
                int(message.episode),
                int(message.tick),
                conversion.stamp_ns(message.header.stamp),
                STATUSES[message.status],
                int(message.gap_ticks),
                int(info["received_timestamp"]),
            )
        )

    def _on_record(self, message: MemoryDiagnostics) -> None:
        self.work.append((conversion.stamp_ns(message.header.stamp), float(sum(message.stage_ms))))

    def _on_health(self, message: DiagnosticArray) -> None:
        for status in message.status:
            self.sayings.values[status.name] = {entry.key: entry.value for entry in status.values}
            if self.open:
                self.sayings.said(status.name, int.from_bytes(status.level, "little"), status.message)


class Looks:
    """What each process takes, looked at on the way: resident bytes, processor seconds; and the machine's load."""

    def __init__(self, group: NodeGroup) -> None:
        self._nodes = group.processes
        self.begun = time.monotonic()
        self._cpu_begun = {name: node.cpu_s() for name, node in self._nodes.items()}
        self._own_begun, self.own_s = time.process_time(), 0.0
        self.cpu_s = dict.fromkeys(self._nodes, 0.0)
        self.resident: dict[str, list[tuple[float, float]]] = {name: [] for name in self._nodes}
        self.load: list[float] = []
        self.at = 0.0

    def look(self) -> bool:
        """Whether all run."""
        self.at = time.monotonic() - self.begun
        if not all(node.running for node in self._nodes.values()):
            return False
        for name, node in self._nodes.items():
            self.resident[name].append((self.at, resident_bytes(node.pid)))
            self.cpu_s[name] = node.cpu_s() - self._cpu_begun[name]
        self.own_s = time.process_time() - self._own_begun
        self.load.append(os.getloadavg()[0])
        return True

    def figures(self) -> Figures:
        """By node, and of all."""
        nodes = {name: self._of(name) for name in self._nodes}
        load = {"mean": sum(self.load) / max(1, len(self.load)), "max": max(self.load, default=0.0)}
        return {"nodes": nodes, "robot_cpu_share": self.own_s / max(self.at, 1e-9), "load_average": load}

    def _of(self, name: str) -> Figures:
        found, looks = gained(self.resident[name], WARM_S), self.resident[name]
        growth = None
        if found is not None:
            growth = {"bytes_per_hour": 3600 * found.bytes_per_unit, "ci95": [3600 * end for end in found.ci95]}
        return {
            "cpu_share": self.cpu_s[name] / max(self.at, 1e-9),
            "resident_bytes_by_tenth": tenths_of(looks),
            "resident_bytes_at_end": looks[-1][1] if looks else None,
            "resident_growth": growth,
        }


def live(hour: Hour, folder: Path) -> Figures:
    """Be the robot for as long as asked, or until Ctrl-C or the end of a node, and tell what came.

    folder: for logs, checkpoint and snapshots, emptied first. Raises BenchFailed where the nodes do not come to work.
    """
    shutil.rmtree(folder, ignore_errors=True)
    checkpoint = made_up_checkpoint(folder / "checkpoint", sizes=replace(SIZES, memory=hour.memory))
    model: dict[str, ParameterValue] = {"checkpoint": str(checkpoint.absolute()), "autostart": True}
    specs = [
        NodeSpec(MEMORY, {**model, "snapshot_dir": str((folder / "kept").absolute())}, namespace=NAMESPACE),
        NodeSpec(POLICY, model, namespace=NAMESPACE),
        NodeSpec(MARKERS, model, namespace=NAMESPACE),
    ]
    with DomainClaim() as domain:
        environment = private_environment(domain)
        os.environ.update(environment)
        with (
            NodeGroup(specs, folder / "logs", environment) as group,
            NodeClient(domain, NAMESPACE, "live_soak") as client,
        ):
            robot, ears = SteadyRobot(client), Ears(client)
            _begin(client, group, robot, ears)
            looks = Looks(group)
            interrupted = _lived(hour, client, robot, ears, looks)
            return _ended(hour, group, robot, ears, looks, interrupted)


def _begin(client: NodeClient, group: NodeGroup, robot: SteadyRobot, ears: Ears) -> None:
    """Wait until all work, then begin a new episode with nothing under way. Raises BenchFailed."""
    nodes = group.processes.values()
    client.spin_until(lambda: all(READY in node.log or not node.running for node in nodes), READY_S)
    if not client.spin_until(ears.well, WELL_S):
        heard = f"{len(ears.conditions)} conditions, {ears.counts}"
        raise BenchFailed(
            f"not well within {WELL_S:g} s: {heard}; the nodes' logs are in {group[_key(MEMORY)].log_path.parent}"
        )
    robot.halt()
    client.spin_until(lambda: False, PAUSE_S)
    ears.clear()
    for service in ("memory_node/reset", "policy_node/reset"):
        client.trigger(service)
    robot.begin()
    # The first camera is the ticks' clock: with the others before it, the first tick lacks nothing.
    robot.go(but=EYE)
    client.spin_until(lambda: False, PAUSE_S)
    robot.go()
    if not client.spin_until(lambda: any(one.tick == 0 for one in ears.conditions), WELL_S):
        raise BenchFailed(f"no tick of a new episode within {WELL_S:g} s")
    # What the pause made nodes say is over then.
    client.spin_until(lambda: False, RECENT_S + LOOK_S)
    ears.sayings = Sayings()


def _lived(hour: Hour, client: NodeClient, robot: SteadyRobot, ears: Ears, looks: Looks) -> bool:
    """Be the robot; whether that was interrupted. Nothing is sent any more when it returns."""
    end_s, interrupted, told = 60.0 * hour.minutes, False, 1
    try:
        while looks.look() and looks.at < end_s:
            client.spin_until(lambda: False, min(LOOK_S, end_s - looks.at))
            if looks.at >= told * end_s / TENTHS:
                heard = f"{len(ears.conditions)} conditions, load {looks.load[-1]:.1f}"
                say(f"{looks.at / 60:.1f} of {hour.minutes} min: {heard}")
                told += 1
    except KeyboardInterrupt:
        interrupted = True
    robot.halt()
    ears.open = False
    client.spin_until(lambda: False, SETTLE_S)
    return interrupted


def _ended(hour: Hour, group: NodeGroup, robot: SteadyRobot, ears: Ears, looks: Looks, interrupted: bool) -> Figures:
    """Stop all, and the figures."""
    crashes = {name: _story(node) for name, node in group.processes.items() if not node.running}
    group.stop()
    tracebacks = [name for name, node in group.processes.items() if "Traceback" in node.log]
    codes = {name: node.returncode for name, node in group.processes.items()}
    last_ns = min(robot.last_ns.values())
    ticks = ticks_of(ears.conditions, last_ns, PERIOD_MS * MS_NS)
    begun_ns = ticks.pop("first_stamp_ns") or last_ns
    ages = [(one.stamp_ns, (one.got_ns - one.stamp_ns) / MS_NS) for one in ears.conditions if one.stamp_ns >= begun_ns]
    policy = ears.sayings.values.get(_key(POLICY), {})
    work = [one for one in ears.work if one[0] >= begun_ns]
    return {
        **hour._asdict(),
        "robot": {"tick_period_ms": PERIOD_MS, "rates_hz": RATES_HZ, "image_px": [HEIGHT, WIDTH]},
        "seconds": looks.at,
        "interrupted": interrupted,
        "ticks": ticks,
        "stamp_to_condition": latencies(ages, begun_ns, last_ns),
        "work_of_a_tick": latencies(work, begun_ns, last_ns),
        "streams": {name: _stream(name, robot, ears) for name in RATES_HZ},
        "conditions_lost_by_middleware": ears.missed,
        "commands_and_markers": dict(ears.counts),
        **looks.figures(),
        "robot_without_a_turn": {"longest_ms": 1e3 * robot.longest_s, "over_100_ms": robot.starved},
        "policy": {key: int(text) for key, text in policy.items() if text.isdigit()},
        "diagnostics": ears.sayings.figures(),
        "crashes": crashes,
        "tracebacks": tracebacks,
        "exit_codes": codes,
    }


def _key(node: str) -> str:
    return f"{NAMESPACE}/{node}"


def _stream(name: str, robot: SteadyRobot, ears: Ears) -> Figures:
    """Messages sent, and what memory_node last said of them."""
    values = ears.sayings.values.get(f"{MEMORY_STATUS}: {name}", {})
    return {"sent": robot.sent[name], **{key: whole(values.get(key, "")) for key in COUNTED}}


def _story(node: NodeProcess) -> str:
    return f"ended with exit code {node.returncode}: {node.log[-500:]}"
