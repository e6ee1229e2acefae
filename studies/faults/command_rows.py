"""Rows: who commands, who is commanded, policies that misbehave, a machine that is too busy."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import yaml
from std_msgs.msg import Empty

from studies.busy import busy
from studies.faults.bench import MEMORY, POLICY
from studies.faults.judge import GREEN, MOTION, PROMISE
from studies.faults.robot import ARM, JOINTS, NAMESPACE, TOPICS
from studies.faults.setting import Setting
from studies.faults.trial import Row, Trial
from studies.faults.watch import ERROR, OK, WARN
from trace_memory_ros.nodes import qos
from trace_memory_ros.nodes.processes import ParameterValue

THEME = "commands"
GOOD_ANSWERS = 120
"""What a misbehaved policy answers well before it begins, so that the row begins in health: its warm-up included."""
CONTROLLER = "controller_node"
BUSY_S = 5.0


def rows() -> Iterator[Row]:
    """By who commands, and how."""
    both = "condition is WARN, the policy ERROR, naming both; commands cease until ~/enable"
    yield Row("two_memories", THEME, "a second memory_node on the topic", both, _two_memories)
    one = "both policies name one another, no tick is commanded twice; when one is gone the other goes on"
    yield Row("two_policies", THEME, "a second policy_node on the topics", one, _two_policies)
    late = "the policy is ERROR, naming the age; commands cease, none is old"
    yield _misbehaved("policy_overrun", "a policy that takes three ticks for an action", late, 0.3, 0.0, "older than")
    none = "the policy names it; the last command is held for half a second, then none"
    yield _misbehaved("policy_raises", "a policy that raises", none, 0.0, "raise", "made-up failure")
    yield _misbehaved("policy_nan", "a policy whose actions are NaN", none, 0.0, "nan", "not finite")
    wrong = "the controller is ERROR and refuses every trajectory by name, the joints are told nothing"
    setting = Setting(policy={"time_from_start_ms": 1_000}, reliability="reliable")
    yield Row("wrong_controller", THEME, "a controller of other joints", wrong, _wrong_controller, setting)
    nobody = "the policy is WARN, naming the topic that nobody takes"
    yield Row("no_controller", THEME, "nobody takes the commands", nobody, _no_controller)
    stop = "commands cease at once, and stay away until ~/enable"
    yield Row("stop_button", THEME, "~/stop while it moves", stop, _stop_button)
    busy = "whatever comes late is not sent; no tick is lost; all is well afterwards"
    yield Row("cpu_overload", THEME, "three busy processes per core for 5 s", busy, _overload)


def _two_memories(trial: Trial) -> None:
    bench = trial.bench
    bench.start(MEMORY, "second", {"snapshot_dir": ""})
    bench.ready("second")
    trial.named("policy", ERROR, "two of them publish")
    trial.named("condition", WARN, "2 publishers of memory/condition")
    trial.commands_cease()
    bench.send("second", signal.SIGTERM)
    trial.ends("second", 0)
    trial.stands_still("no command before ~/enable")
    trial.begins_anew()


def _two_policies(trial: Trial) -> None:
    bench = trial.bench
    bench.start(POLICY, "second", {"start_enabled": True})
    bench.ready("second")
    trial.named("policy", WARN, "also commanded by")
    trial.commands_cease()
    bench.send("second", signal.SIGTERM)
    trial.ends("second", 0)
    trial.recovers()


def _misbehaved(name: str, fault: str, expected: str, seconds: float, value: object, words: str) -> Row:
    options = {"seconds": seconds, "value": value, "after": GOOD_ANSWERS}

    def run(trial: Trial) -> None:
        trial.named("policy", ERROR if seconds else WARN, words)
        trial.commands_cease()
        trial.expect(PROMISE, "the memory goes on", lambda: trial.watch.statuses(5) == ["OK"] * 5)

    return Row(name, THEME, fault, expected, run, Setting(misbehaved=options))


def _controllers(trial: Trial, joints: list[str]) -> None:
    """Start a stand-in for ros2_control's controllers, with these joints."""
    bench = trial.bench
    file = bench.folder / f"{joints[0]}.yaml"
    arm = {"name": ARM.partition("/")[0], "type": "joint_trajectory_controller", "joints": joints}
    jaw = {"name": "jaw_controller", "type": "forward_command_controller", "joints": ["opening"]}
    file.write_text(yaml.safe_dump({"controllers": [arm, jaw]}), encoding="utf-8")
    values: dict[str, ParameterValue] = {"controllers_file": str(file), "diagnostics_rate_hz": 10.0, "autostart": True}
    package, remaps = "trace_memory_ros.arm.nodes", {"joint_states": TOPICS["encoders"]}
    bench.start(CONTROLLER, parameters=values, package=package, remappings=remaps)
    bench.ready(CONTROLLER)


def _wrong_controller(trial: Trial) -> None:
    status = f"{NAMESPACE}/{CONTROLLER}: {ARM.partition('/')[0]}"
    told: list[object] = []
    kind = trial.watch.arm_type
    subscription = trial.bench.client.node.create_subscription(kind, "command", told.append, qos.COMMAND)
    _controllers(trial, [f"j{i}" for i in range(len(JOINTS))])
    what = "the controller refuses unknown joints by name"
    trial.expect(GREEN, what, lambda: trial.watch.says(status, ERROR, ("unknown_joint",)))
    trial.check(MOTION, "the joints are told nothing", not told)
    trial.bench.processes.pop(CONTROLLER).stop()
    trial.watch.health.pop(status, None)
    _controllers(trial, list(JOINTS))
    trial.expect(PROMISE, "the right controller executes", lambda: trial.watch.says(status, OK, ("executing",)))
    trial.expect(PROMISE, "the joints are told", lambda: len(told) > 20)
    trial.bench.processes.pop(CONTROLLER).stop()
    trial.bench.client.node.destroy_subscription(subscription)
    trial.recovers()


def _no_controller(trial: Trial) -> None:
    trial.watch.ignore_commands()
    trial.named("policy", WARN, "nobody takes", ARM)
    trial.watch.take_commands()
    trial.recovers()


def _stop_button(trial: Trial) -> None:
    button = trial.bench.client.node.create_publisher(Empty, "policy_node/stop", qos.STOP)
    trial.bench.play_until(lambda: button.get_subscription_count() > 0, 10.0)
    button.publish(Empty())
    trial.named("policy", WARN, "disabled (~/stop)")
    trial.stands_still("commands have ceased")
    trial.bench.client.trigger("policy_node/reset")
    trial.stands_still("a reset does not enable")
    trial.bench.client.node.destroy_publisher(button)
    trial.bench.client.trigger("policy_node/enable")
    trial.recovers()


def _overload(trial: Trial) -> None:
    count = 3 * (os.cpu_count() or 1)
    with busy(count):
        trial.bench.play(BUSY_S)
        trial.seen.append(f"{len(trial.watch.conditions)} conditions, {len(trial.watch.arm)} commands meanwhile")
    trial.recovers()
