"""What all nodes share: loud configuration, optional autostart, orderly release of what they hold."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import rclpy
from rcl_interfaces.msg import SetParametersResult
from rclpy.callback_groups import CallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.logging import get_logger
from rclpy.parameter import Parameter
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from rclpy.timer import Timer

from trace_memory_ros.nodes import parameters, parent, scheduling
from trace_memory_ros.nodes.hanging import HangWatch

SUCCESS = TransitionCallbackReturn.SUCCESS
FAILURE = TransitionCallbackReturn.FAILURE
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class ManagedNode(LifecycleNode):
    """A lifecycle node whose subclass says what to do in four hooks; a hook that raises fails the transition.

    `table` is the subclass's parameter dataclass; it has a bool field `autostart`. faulted: whether the process ends by
    a fault, so that what a node keeps to go on from after one stays.
    """

    table: type

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.ended: Future[int] = Future()
        self.configured = False
        self.active = False
        self.faulted = False
        self._hangs: HangWatch | None = None
        parameters.declare(self, self.table)
        self.add_on_set_parameters_callback(self._review)
        self._autostart_timer = None
        if self.get_parameter("autostart").value:
            self._autostart_timer = self.create_timer(0.0, self._autostart)

    def create_timer(
        self,
        timer_period_sec: float,
        callback: Callable[..., Any] | None,
        callback_group: CallbackGroup | None = None,
        clock: Clock | None = None,
        autostart: bool = True,
    ) -> Timer:
        """A timer on wall time unless told otherwise: where simulated time stands still, a node must still report."""
        clock = clock or Clock(clock_type=ClockType.STEADY_TIME)
        return super().create_timer(timer_period_sec, callback, callback_group, clock, autostart)

    def configure(self) -> None:
        """Load and build everything; raise with value, origin and remedy when something is wrong."""

    def activate(self) -> None:
        """Begin to work."""

    def deactivate(self) -> None:
        """Stop working, keeping what was loaded."""

    def release(self) -> None:
        """Free what `configure` made; must also work after a half-done `configure`, whose entities go besides."""

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        before = (set(self.publishers), set(self.subscriptions), set(self.timers))
        done = self._try("configure", self.configure)
        if done != SUCCESS:
            self.release()
            self._drop_all_but(*before)
            return done
        self.configured = True
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._hasten()
        # Publishers open first: what `activate` triggers may publish.
        super().on_activate(state)
        done = self._try("activate", self.activate)
        self.active = done == SUCCESS
        # What libraries and checkpoint brought stays: without this, the collector walks it all in the midst of ticks.
        gc.collect()
        gc.freeze()
        if self.active:
            timeout_s = self._own("hang_timeout_s")
            self._hangs = HangWatch(self, timeout_s) if timeout_s else None
        else:
            super().on_deactivate(state)
        return done

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._stand_down()
        self._try("deactivate", self.deactivate)
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        self.configured = False
        self._try("clean up", self.release)
        # Else the next activation would never free what this one leaves.
        gc.unfreeze()
        return super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        self.stop()
        return super().on_shutdown(state)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        self.stop()
        return SUCCESS

    def stop(self) -> None:
        """Deactivate and release, from whatever state the node is in."""
        if self.active:
            self._stand_down()
            self._try("deactivate", self.deactivate)
        if self.configured:
            self.configured = False
            self._try("release", self.release)

    def drop_entities(self, publishers: Iterable[Any] = (), subscriptions: Iterable[Any] = ()) -> None:
        """Destroy publishers and subscriptions that `configure` made."""
        for publisher in publishers:
            self.destroy_lifecycle_publisher(publisher)
        for subscription in subscriptions:
            self.destroy_subscription(subscription)

    def _drop_all_but(self, publishers: set[Any], subscriptions: set[Any], timers: set[Any]) -> None:
        """Destroy what a half-done `configure` made: left over, it would be another node's rival, or this one's own."""
        self.drop_entities(set(self.publishers) - publishers, set(self.subscriptions) - subscriptions)
        for timer in set(self.timers) - timers:
            self.destroy_timer(timer)

    def _stand_down(self) -> None:
        self.active = False
        if self._hangs is not None:
            self._hangs.stop()
        self._hangs = None

    def _hasten(self) -> None:
        """Real-time priority, where the node has such a parameter and the machine allows it."""
        priority = self._own("realtime_priority")
        if not priority:
            return
        try:
            scheduling.first_in_first_out(priority)
        except PermissionError as error:
            self.get_logger().warning(str(error))

    def destroy_node(self) -> None:
        """Release all: rclpy keeps the lifecycle's services, and with them the participant and its shared memory."""
        super().destroy_node()
        self._state_machine.destroy_when_not_in_use()

    def _own(self, name: str) -> Any:
        """A parameter that not every node has; 0 where it is not there."""
        return self.get_parameter(name).value if self.has_parameter(name) else 0

    def _try(self, what: str, action: Callable[[], None]) -> TransitionCallbackReturn:
        try:
            action()
        except Exception as error:
            # Whatever went wrong, the person at the terminal must read it, and the node must survive it.
            self.get_logger().error(f"cannot {what}: {error}")
            return FAILURE
        self.get_logger().info(f"{what} done")
        return SUCCESS

    def _review(self, changed: list[Parameter[Any]]) -> SetParametersResult:
        return parameters.review(self.table, changed, self.configured)

    def _autostart(self) -> None:
        assert self._autostart_timer is not None
        self._autostart_timer.cancel()
        if self.trigger_configure() != SUCCESS or self.trigger_activate() != SUCCESS:
            self.get_logger().fatal("autostart failed, the process ends; the reason is logged above")
            self.ended.set_result(1)


def run(make: Callable[[], ManagedNode], args: Sequence[str] | None = None) -> NoReturn:
    """Spin one node until SIGINT, SIGTERM or a failed autostart, release all it holds, and end the process.

    One thread: the multi-threaded executor of rclpy costs more and loses images.
    """
    # rclpy's own handlers close the context at once, so that a node could not say goodbye on its topics. Blocked before
    # the middleware starts its threads, the signals reach the one thread that waits for them.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    rclpy.init(args=None if args is None else list(args), signal_handler_options=SignalHandlerOptions.NO)
    node = _made(make)
    threading.Thread(target=_end_on_signal, args=(node.ended,), daemon=True).start()
    parent.watch(lambda: _orphaned(node))
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    try:
        executor.spin_until_future_complete(node.ended)
    except ExternalShutdownException:
        raise
    except Exception:
        node.faulted = True
        raise
    finally:
        node.stop()
        executor.shutdown()
        node.destroy_node()
        rclpy.try_shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    # Everything is released. Taking torch and numba apart on top needs seconds on a busy machine, and launchers kill
    # what has not ended a few seconds after SIGINT.
    os._exit(node.ended.result() or 0)


def _made(make: Callable[[], ManagedNode]) -> ManagedNode:
    try:
        return make()
    except parameters.WrongParameter as error:
        get_logger("start").fatal(f"{error}; the process ends")
        rclpy.try_shutdown()
        sys.exit(1)


def _end_on_signal(ended: Future[int]) -> None:
    signal.sigwait(STOP_SIGNALS)
    _end(ended)


def _orphaned(node: ManagedNode) -> None:
    """Whoever started it was killed: it ends as if it had been killed too, but for its goodbye."""
    node.faulted = True
    _end(node.ended)


def _end(ended: Future[int]) -> None:
    if not ended.done():
        ended.set_result(0)
