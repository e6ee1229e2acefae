"""The simulated two-arm robot on ROS topics, in lock-step with its commands or with the wall clock."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NoReturn

from diagnostic_msgs.msg import DiagnosticArray
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from trace_memory_ros.arm.nodes.arm_sim_pace import SECOND_NS, LockStepPace, Pace, RealTimePace, Setpoint
from trace_memory_ros.arm.nodes.arm_sim_servo import ServoedArm
from trace_memory_ros.arm.nodes.arm_sim_streams import ArmStreams
from trace_memory_ros.arm.nodes.parameters import ArmSimNodeParameters
from trace_memory_ros.arm.sim.names import ACTION_NAMES, CAMERA_NAMES, PERIOD_S
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.msg import EpisodeStatus
from trace_memory_ros.nodes import conversion, parameters, qos
from trace_memory_ros.nodes.health import Health, diagnostic_array
from trace_memory_ros.nodes.lifecycle import ManagedNode, run

PERIOD_NS = round(PERIOD_S * SECOND_NS)


class Episode:
    """One scenario being simulated and published; implements `arm_sim_pace.World`."""

    def __init__(self, node: ArmSimNode, env: ServoedArm, scenario: Scenario, number: int, base_ns: int) -> None:
        self._node = node
        self._env = env
        self.scenario = scenario
        self.number = number
        self.base_ns = base_ns
        self.time_ns = 0
        self.ticks_expected = 0

    @property
    def finished(self) -> bool:
        return self._env.outcome().finished

    def advance_to(self, time_ns: int) -> None:
        if time_ns > self.time_ns:
            self._env.advance((time_ns - self.time_ns) / SECOND_NS)
            self.time_ns = time_ns

    def apply(self, setpoint: Setpoint) -> None:
        self._env.apply_within(*setpoint)

    def publish_images(self, time_ns: int) -> None:
        # Who listens converts one picture while the next is rendered.
        for camera in CAMERA_NAMES:
            self._node.streams.image(camera, self._env.render(camera), self.base_ns + time_ns)

    def publish_joints(self, time_ns: int) -> None:
        sample = self._env.observe(render=False)
        self._node.streams.joints(sample.joint_positions, self.base_ns + time_ns)
        self._node.streams.odometry(sample.base_velocity, self.base_ns + time_ns)

    def publish_status(self, time_ns: int) -> None:
        self.ticks_expected += 1
        self._node.report(EpisodeStatus.RUNNING)

    def message(self, phase: int) -> EpisodeStatus:
        """The status of this episode now."""
        outcome = self._env.outcome()
        return EpisodeStatus(
            header=conversion.header(self.base_ns + self.time_ns),
            task=self.scenario.task,
            episode=self.number,
            seed=self.scenario.seed,
            cue=self.scenario.cue,
            phase=phase,
            elapsed_s=self.time_ns / SECOND_NS,
            cue_visible=outcome.cue_visible,
            branch=outcome.branch,
            success=outcome.success and phase == EpisodeStatus.FINISHED,
            progress=float(outcome.progress),
            ticks_expected=self.ticks_expected,
        )


class ArmSimNode(ManagedNode):
    """Publishes the robot's streams during an episode; `~/start` begins the one that the parameters describe."""

    table = ArmSimNodeParameters

    def __init__(self) -> None:
        super().__init__("arm_sim_node")
        self._env: ServoedArm | None = None
        self._env_task = ""
        self._episode: Episode | None = None
        self._pace: Pace | None = None
        self._episodes = 0
        self._last_stamp_ns = 0
        self._entities: list[object] = []
        for name, handler in (("start", self._on_start), ("stop", self._on_stop), ("look", self._on_look)):
            self.create_service(Trigger, f"~/{name}", handler)

    def configure(self) -> None:
        settings = parameters.read(self, ArmSimNodeParameters)
        self._episodes = 0
        self._health = Health()
        self._load(settings.task)
        self.streams = ArmStreams(self, CAMERA_NAMES)
        self._status = self.create_lifecycle_publisher(EpisodeStatus, "episode", qos.STATUS)
        self._diagnostics = self.create_lifecycle_publisher(DiagnosticArray, "/diagnostics", qos.DIAGNOSTICS)
        self._commands = self.create_subscription(JointTrajectory, "command", self._on_command, qos.COMMAND)
        self._wake = self.create_timer(1.0, self._on_wake)
        self._wake.cancel()
        self._report_timer = self.create_timer(1.0 / settings.diagnostics_rate_hz, self._publish_diagnostics)
        self._built = True

    def deactivate(self) -> None:
        self._end(EpisodeStatus.IDLE)

    def release(self) -> None:
        if getattr(self, "_built", False):
            self._built = False
            self.drop_entities((*self.streams.publishers, self._status, self._diagnostics), (self._commands,))
            self.destroy_timer(self._wake)
            self.destroy_timer(self._report_timer)
        if self._env is not None:
            self._env.close()
            self._env = None

    def report(self, phase: int) -> None:
        """Publish the episode's status."""
        if self._episode is not None:
            self._last_stamp_ns = self._episode.base_ns + self._episode.time_ns
            self._status.publish(self._episode.message(phase))

    def _load(self, task: str) -> ServoedArm:
        if self._env is None or self._env_task != task:
            if self._env is not None:
                self._env.close()
            self._env = ServoedArm(task)
            self._env_task = task
            # The first picture of a renderer takes 200 ms: not in an episode.
            self._env.reset(Scenario(task, seed=0, cue=0))
            self._env.render(CAMERA_NAMES[0])
        return self._env

    def _on_start(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        try:
            response.message = self._start()
            response.success = True
        except (ValueError, RuntimeError) as error:
            response.message = str(error)
            self.get_logger().error(f"episode not started: {error}")
        return response

    def _start(self) -> str:
        if not self.active:
            raise RuntimeError("arm_sim_node is not active: configure and activate it first")
        settings = parameters.read(self, ArmSimNodeParameters)
        scenario = Scenario(settings.task, settings.seed, settings.cue, extra_pause_s=settings.extra_pause_s)
        unheard = self.streams.without_subscriber()
        if settings.mode == "lockstep" and unheard:
            raise RuntimeError(f"nobody subscribes to {', '.join(unheard)}: a lock-step episode would stand still")
        self._end(EpisodeStatus.IDLE)
        self._health = Health()
        env = self._load(settings.task)
        env.reset(scenario)
        # Only now, as the above takes time: stamps are of the present, and later than any before.
        base_ns = max(time.time_ns(), self._last_stamp_ns + PERIOD_NS)
        self._episode = Episode(self, env, scenario, self._episodes, base_ns)
        self._episodes += 1
        if settings.mode == "lockstep":
            self._pace = LockStepPace(self._episode, PERIOD_NS, round(settings.command_timeout_s * SECOND_NS))
            # A lock-step episode before this one may have run ahead of the wall clock: don't wait for it to catch up.
            self._arm(time.time_ns())
        else:
            rates = (settings.camera_rate_hz, settings.joint_rate_hz)
            self._pace = RealTimePace(self._episode, PERIOD_NS, *rates, start_ns=base_ns)
            self._arm(base_ns)
        text = (
            f"episode {self._episode.number}: {scenario.task} seed {scenario.seed} cue {scenario.cue}, {settings.mode}"
        )
        ahead_s = (base_ns - time.time_ns()) / SECOND_NS
        if settings.mode == "realtime" and ahead_s > PERIOD_S:
            text += f"; begins in {ahead_s:.0f} s, when the wall clock comes to the end of the episode before"
        self.get_logger().info(text)
        return text

    def _on_look(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if not self.active or self._episode is not None or self._env is None:
            response.message = "arm_sim_node is not active, or an episode is running"
            return response
        self._last_stamp_ns = max(time.time_ns(), self._last_stamp_ns + PERIOD_NS)
        resting = Episode(self, self._env, self._env.scenario, self._episodes, self._last_stamp_ns)
        resting.publish_joints(0)
        resting.publish_images(0)
        response.success, response.message = True, "one sample of every stream published"
        return response

    def _on_stop(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = True
        response.message = "no episode was running" if self._episode is None else "episode stopped"
        self._end(EpisodeStatus.IDLE)
        return response

    def _end(self, phase: int) -> None:
        if self._episode is None:
            return
        self._wake.cancel()
        self.report(phase)
        self._publish_diagnostics()
        self._episode = None

    def _on_wake(self) -> None:
        self._wake.cancel()
        if self._pace is not None and self._episode is not None:
            missed = self._pace.counts.commands_missed
            self._arm(self._pace.poll(time.time_ns()))
            if self._pace.counts.commands_missed > missed:
                self._fault(
                    "commands", "no command within command_timeout_s: is policy_node active and its condition OK?"
                )

    def _on_command(self, message: JointTrajectory) -> None:
        if not self.active or self._episode is None or self._pace is None:
            return
        try:
            setpoint = setpoint_of(message)
        except conversion.CommandError as error:
            self._fault("command", str(error))
            return
        tick_ns = conversion.stamp_ns(message.header.stamp) - self._episode.base_ns
        self._arm(self._pace.command(tick_ns, setpoint, time.time_ns()))

    def _arm(self, next_ns: int | None) -> None:
        """Set the wake timer, or finish the episode when there is no next time."""
        if next_ns is None:
            self._end(EpisodeStatus.FINISHED)
            return
        self._wake.timer_period_ns = max(0, next_ns - time.time_ns())
        self._wake.reset()

    def _fault(self, name: str, text: str) -> None:
        if self._health.note(name, text):
            self.get_logger().warning(text)

    def _publish_diagnostics(self) -> None:
        if not self.active or self._pace is None:
            return
        values = {name: f"{value:g}" for name, value in vars(self._pace.counts).items()}
        self._diagnostics.publish(diagnostic_array(self, self._health, values))


def setpoint_of(message: JointTrajectory) -> Setpoint:
    """What a command asks for; within a control period where it gives no time. Raises CommandError."""
    targets = conversion.command_targets(message, ACTION_NAMES)
    after = message.points[0].time_from_start
    within_ns = after.sec * SECOND_NS + after.nanosec or PERIOD_NS
    if within_ns < 0:
        raise conversion.CommandError(
            f"command with time_from_start = {within_ns / SECOND_NS:g} s: give a time to come, or 0 for a tick's"
        )
    return Setpoint(targets, within_ns / SECOND_NS)


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Entry point of the `arm_sim_node` executable."""
    run(ArmSimNode, args)


if __name__ == "__main__":
    main()
