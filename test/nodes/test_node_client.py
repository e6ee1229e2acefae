"""Calling services: one that loses a request is asked again, and one that never answers is named."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import rclpy
from rclpy.context import Context
from std_srvs.srv import Trigger

from trace_memory_ros.nodes.node_client import EpisodeFailed, NodeClient


class Forgetful:
    """A Trigger service `forgetful` that drops its first `drops` requests and numbers its answers."""

    def __init__(self, domain_id: int, drops: int) -> None:
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain_id)
        self._node = rclpy.create_node("forgetful_node", context=self._context)
        self._service = self._node.create_service(Trigger, "forgetful", lambda request, response: response)
        self._drops = drops
        self.requests = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while not self._ended.wait(0.01):
            request, header = self._service.handle.service_take_request(Trigger.Request)
            if request is not None:
                self.requests += 1
                if self.requests > self._drops:
                    answer = Trigger.Response(success=True, message=f"request {self.requests}")
                    self._service.handle.service_send_response(answer, header.request_id)

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self._node.destroy_node()
        rclpy.try_shutdown(context=self._context)


@pytest.fixture
def forgetful(domain_id: int, request: pytest.FixtureRequest) -> Iterator[Forgetful]:
    service = Forgetful(domain_id, request.param)
    yield service
    service.close()


@pytest.fixture
def client(domain_id: int) -> Iterator[NodeClient]:
    with NodeClient(domain_id) as client:
        yield client


@pytest.mark.parametrize("forgetful", [2], indirect=True)
def test_a_request_that_got_lost_is_sent_again(client: NodeClient, forgetful: Forgetful) -> None:
    answer = client.call(Trigger, "forgetful", Trigger.Request(), 60.0, repeat_s=0.2)
    assert int(answer.message.removeprefix("request ")) > 2


@pytest.mark.parametrize("forgetful", [1000], indirect=True)
@pytest.mark.parametrize("repeat_s", [0.2, None])
def test_a_service_that_never_answers_is_named(
    client: NodeClient, forgetful: Forgetful, repeat_s: float | None
) -> None:
    with pytest.raises(EpisodeFailed, match="forgetful did not answer within 2 s"):
        client.call(Trigger, "forgetful", Trigger.Request(), 2.0, repeat_s=repeat_s)
    assert forgetful.requests > 1 if repeat_s else forgetful.requests == 1
