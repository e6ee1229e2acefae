"""Subscriptions to the streams of an observation config, handing message contents to whoever observes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks, UnsupportedEventTypeError
from rclpy.node import Node
from rclpy.qos import QoSProfile

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.nodes import qos
from trace_memory_ros.nodes.conversion import stamp_ns
from trace_memory_ros.nodes.message_classes import message_class
from trace_memory_ros.observation.alignment import Verdict
from trace_memory_ros.observation.config import CameraConfig, ObservationConfig, StreamConfig
from trace_memory_ros.observation.content import (
    CompressedImage,
    Content,
    Live,
    RawImage,
    Sink,
    VideoPacket,
)

Waited = Callable[[str, float], None]
"""Called before that with the stream and how long, in ms, its message had waited in this node's queues."""
Lost = Callable[[str, int], None]
"""Called with the stream and how many of its messages the middleware says it lost."""
After = Callable[[str, Verdict, int], None]
"""Called with the stream, what became of its sample, and the sample's stamp in ns."""

AT_ONCE = 100
"""Messages that a stream hands over before others have their turn."""

_PICTURES: dict[str, Callable[[Any], Content]] = {
    "raw": lambda m: RawImage(m.data, m.encoding, m.height, m.width, m.step, m.is_bigendian),
    "compressed": lambda m: CompressedImage(m.data, m.format),
    "video": lambda m: VideoPacket(m.data, m.format),
    "ffmpeg": lambda m: VideoPacket(m.data, m.encoding),
}


def resolved(node: Node, topic: str) -> str:
    """A topic's whole name, renamed by the node's rules. Raises ConfigError for what cannot be one."""
    try:
        return str(node.resolve_topic_name(topic))
    except RuntimeError as error:
        said = f"topic {topic!r} of the checkpoint: {str(error).partition(', at ')[0]}"
        raise ConfigError(f"{said}; record it by another name, and train again") from error


class InputSubscriptions:
    """One subscription per stream of `config`; a message goes to `sink`, then `after` is called.

    A stream that is stamped when received gets the time that the transport gave the message where it was sent: the same
    one in every node, so that two nodes mean the same sample by it. A header's stamp of zero is refused. Raises
    ConfigError for a message type whose package is not there, and for such a stream on simulated time.
    """

    def __init__(
        self,
        node: Node,
        config: ObservationConfig,
        reliability: str,
        sink: Sink,
        after: After,
        waited: Waited = lambda stream, wait_ms: None,
        lost: Lost | None = None,
    ) -> None:
        _check_clock(node, config)
        self._sink = sink
        self._after = after
        self._waited = waited
        self._lost = lost
        self._reliability = reliability
        self.subscriptions: list[Any] = [self._subscribe(node, stream) for stream in config.inputs]

    def _subscribe(self, node: Node, stream: StreamConfig) -> Any:
        camera = isinstance(stream, CameraConfig)
        content = _PICTURES[stream.transport] if isinstance(stream, CameraConfig) else Live
        profile = (qos.sensor if camera else qos.state)(self._reliability)
        name, sink, after, waited = stream.name, self._sink, self._after, self._waited
        by_transport = stream.stamp == "received"

        def take(message: Any, info: Any) -> None:
            received_ns = info["received_timestamp"]
            waited(name, (time.time_ns() - received_ns) / 1e6 if received_ns else float("nan"))
            stamp = int(info["source_timestamp"]) if by_transport else header_stamp_ns(message)
            verdict = Verdict.UNSTAMPED
            if stamp:
                verdict = sink.push(name, stamp, time.monotonic_ns(), content(message))
            after(name, verdict, stamp)

        def take_all(message: Any, info: Any) -> None:
            take(message, info)
            for waiting in _waiting(subscription):
                take(*waiting)

        kind = message_class(stream.message_type, f"stream {name!r} on {stream.topic}")
        subscription = self._opened(node, kind, stream, take if camera else take_all, profile)
        return subscription

    def _opened(
        self, node: Node, kind: Any, stream: StreamConfig, take: Callable[..., None], profile: QoSProfile
    ) -> Any:
        """A subscription that tells of lost messages where the middleware can."""
        name, lost = stream.name, self._lost
        if lost is not None:
            told = SubscriptionEventCallbacks(message_lost=lambda event: lost(name, int(event.total_count_change)))
            with suppress(UnsupportedEventTypeError):
                return node.create_subscription(kind, stream.topic, take, profile, event_callbacks=told)
        return node.create_subscription(kind, stream.topic, take, profile)


def _waiting(subscription: Any) -> Iterator[tuple[Any, Any]]:
    """The messages that wait in a subscription's queue, each with its info, at most `AT_ONCE`.

    The executor looks at every entity of the node before each message, which costs more than the message of a fast
    stream: 1 kHz of joints taken one by one leave no time for a tick.
    """
    with subscription.handle:
        for _ in range(AT_ONCE):
            taken = subscription.handle.take_message(subscription.msg_type, False)
            if taken is None:
                return
            yield taken


def _check_clock(node: Node, config: ObservationConfig) -> None:
    received = [stream.name for stream in config.inputs if stream.stamp == "received"]
    if received and node.get_parameter("use_sim_time").value:
        raise ConfigError(
            f"use_sim_time is true and {', '.join(received)} is stamped when received, on the wall clock: publish "
            "messages with headers, or run on the wall clock"
        )


def header_stamp_ns(message: Any) -> int:
    """The stamp of a message's header, or of the `timestamp` that some have in its place."""
    header = getattr(message, "header", None)
    return stamp_ns(message.timestamp if header is None else header.stamp)
