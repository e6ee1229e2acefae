"""The parameters of marker_node, which `config/marker_node.yaml` and `docs/nodes.md` repeat; a test compares them."""

from __future__ import annotations

from dataclasses import dataclass

from trace_memory_ros.nodes.parameters import AUTOSTART, parameter, validate
from trace_memory_ros.nodes.qos import RELIABILITIES

FAR_M = 1000.0
COMPACT = "compact"
LAYOUTS = ("full", COMPACT)


@dataclass(frozen=True)
class MarkerNodeParameters:
    """Where the panel stands in RViz and how often it is redrawn."""

    rate_hz: float = parameter(10.0, "Marker arrays published per second.", unit="Hz", limits=(0.1, 60.0))
    frame_id: str = parameter("memory", "tf frame that the panel stands in.")
    position_x: float = parameter(0.0, "Middle of the panel's lower edge, x.", unit="m", limits=(-FAR_M, FAR_M))
    position_y: float = parameter(0.0, "Middle of the panel's lower edge, y.", unit="m", limits=(-FAR_M, FAR_M))
    position_z: float = parameter(0.0, "Middle of the panel's lower edge, z.", unit="m", limits=(-FAR_M, FAR_M))
    yaw_deg: float = parameter(0.0, "Turn about z; at 0 the panel faces -y.", unit="deg", limits=(-360.0, 360.0))
    scale: float = parameter(1.0, "Size of the panel; at 1 it is 4.5 m wide and 2.5 m high.", limits=(0.01, 100.0))
    lifetime_s: float = parameter(
        1.0, "Time after which RViz drops a panel that nobody refreshes.", unit="s", limits=(0.1, 60.0)
    )
    silent_after_s: float = parameter(
        1.0, "Time without memory/diagnostics after which the panel says so.", unit="s", limits=(0.1, 60.0)
    )
    path_points: int = parameter(200, "Most points drawn of the executed path; longer ones thin out.", limits=(2, 5000))
    layout: str = parameter(
        "full", "The whole panel, or what fits beside a robot: status, entries, routes, reads.", choices=LAYOUTS,
    )  # fmt: skip
    checkpoint: str = parameter("", "Checkpoint whose topics of joint states are drawn; empty draws joint_states.")
    joint_groups: str = parameter(
        "", "Curves of joints, as YAML text {CURVE: PATTERN of names}; empty finds limbs by their names.",
    )  # fmt: skip
    reliability: str = parameter(
        "best_effort", "Quality of service of the joint subscriptions; best_effort suits any publisher.",
        choices=RELIABILITIES,
    )  # fmt: skip
    autostart: bool = parameter(False, AUTOSTART, changes="start")

    def __post_init__(self) -> None:
        validate(self)
        if self.lifetime_s < 2.0 / self.rate_hz:
            raise ValueError(
                f"parameter lifetime_s = {self.lifetime_s} s would let the panel flicker at rate_hz = {self.rate_hz}: "
                f"give at least {2.0 / self.rate_hz:g} s"
            )
