"""Calls services of running nodes, sets their parameters and drives their lifecycle, from a node of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from std_srvs.srv import Trigger

REPEAT_S = 10.0
"""Silence after which a service is asked again. Seen once: a node just discovered never answered its first request."""


class EpisodeFailed(RuntimeError):
    """An episode could not be run; the message names the node or service and the reason."""


class NodeClient:
    """A ROS node of its own in this process (context manager). Use from one thread.

    domain_id: ROS domain of the nodes; None takes ROS_DOMAIN_ID. namespace: that of the nodes.
    """

    def __init__(self, domain_id: int | None = None, namespace: str = "", name: str = "node_client") -> None:
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain_id)
        self.node: Node = rclpy.create_node(name, namespace=namespace, context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._clients: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.try_shutdown(context=self._context)

    def trigger(self, service: str, timeout_s: float = 20.0) -> str:
        """Call a std_srvs/Trigger, for example `memory_node/reset`; returns its message. Raises `EpisodeFailed`."""
        response = self.call(Trigger, service, Trigger.Request(), timeout_s)
        if not response.success:
            raise EpisodeFailed(f"{service}: {response.message}")
        return str(response.message)

    def set_parameters(self, node: str, values: Mapping[str, Any], timeout_s: float = 20.0) -> None:
        """Set parameters of a running node together. Raises `EpisodeFailed` with the node's reason."""
        request = SetParameters.Request(
            parameters=[Parameter(k, value=v).to_parameter_msg() for k, v in values.items()]
        )
        response = self.call(SetParameters, f"{node}/set_parameters", request, timeout_s)
        for name, result in zip(values, response.results, strict=True):
            if not result.successful:
                raise EpisodeFailed(f"{node} refused {name} = {values[name]!r}: {result.reason}")

    def call(
        self, kind: Any, service: str, request: Any, timeout_s: float = 20.0, repeat_s: float | None = REPEAT_S
    ) -> Any:
        """Call any service; its first answer. Raises `EpisodeFailed` when it isn't there or doesn't answer in time.

        repeat_s: silence after which the request is sent again; None: never, where twice would do something else.
        """
        if service not in self._clients:
            self._clients[service] = self.node.create_client(kind, service)
        client = self._clients[service]
        deadline = time.monotonic() + timeout_s
        if not client.wait_for_service(timeout_s):
            raise EpisodeFailed(f"service {client.srv_name} is not there after {timeout_s:g} s: is its node running?")
        asked: list[Any] = []
        while not any(future.done() for future in asked) and (not asked or time.monotonic() < deadline):
            asked.append(client.call_async(request))
            left_s = max(0.1, deadline - time.monotonic())
            self.spin_until(lambda: any(future.done() for future in asked), min(left_s, repeat_s or left_s))
        answers = [future.result() for future in asked if future.done()]
        for future in asked:
            client.remove_pending_request(future)
        if not answers:
            raise EpisodeFailed(f"service {client.srv_name} did not answer within {timeout_s:g} s")
        return answers[0]

    def spin_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Handle messages until `condition()` holds; False if it didn't within `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                return False
            self._executor.spin_once(timeout_sec=0.05)
        return True

    def get_parameter(self, node: str, name: str, timeout_s: float = 20.0) -> Any:
        """The value of a running node's parameter."""
        response = self.call(GetParameters, f"{node}/get_parameters", GetParameters.Request(names=[name]), timeout_s)
        return parameter_value_to_python(response.values[0])

    def state(self, node: str, timeout_s: float = 20.0) -> str:
        """Lifecycle state of a node: `unconfigured`, `inactive`, `active` or `finalized`."""
        return str(self.call(GetState, f"{node}/get_state", GetState.Request(), timeout_s).current_state.label)

    def change_state(self, node: str, transition: str, timeout_s: float = 60.0) -> None:
        """`configure`, `activate`, `deactivate`, `cleanup` or `shutdown` a node. Raises `EpisodeFailed` if it fails."""
        request = ChangeState.Request(transition=Transition(label=transition))
        if not self.call(ChangeState, f"{node}/change_state", request, timeout_s, repeat_s=None).success:
            raise EpisodeFailed(f"{node} failed to {transition}: its log says why")

    def wait_active(self, nodes: Sequence[str], timeout_s: float = 60.0) -> None:
        """Wait until these lifecycle nodes are active. Raises `EpisodeFailed` naming the first that isn't."""
        deadline = time.monotonic() + timeout_s
        for node in nodes:
            label = ""
            while label != "active":
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    raise EpisodeFailed(
                        f"{node} is {label or 'silent'}, not active, after {timeout_s:g} s: its log says why"
                    )
                if label:
                    self.spin_until(lambda: False, 0.1)
                label = self.state(node, left_s)
