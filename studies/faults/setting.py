"""How the nodes of a row are set up, where they are not the usual ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trace_memory_ros.nodes.processes import ParameterValue


@dataclass(frozen=True)
class Setting:
    """Nodes that a row wants of its own.

    memory, policy: parameters beside the usual ones. misbehaved: options of the policy. headers_only: the robot has no
    stream that is stamped when received. mount: snapshots lie on a small disk of their own. reliability: of streams.
    transports: of Fast DDS, between networks.
    """

    memory: Mapping[str, ParameterValue] = field(default_factory=dict)
    policy: Mapping[str, ParameterValue] = field(default_factory=dict)
    misbehaved: Mapping[str, Any] | None = None
    headers_only: bool = False
    mount: bool = False
    reliability: str = "best_effort"
    transports: str = "UDPv4"
