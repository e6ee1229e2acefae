"""From parameters to what stands between a policy and the robot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trace_memory_ros.nodes.policy.commands import Guards
from trace_memory_ros.nodes.policy.parameters import PolicyNodeParameters
from trace_memory_ros.nodes.policy.permission import Permission
from trace_memory_ros.nodes.policy.publishing import place_rows
from trace_memory_ros.nodes.policy.ramp import Ramp
from trace_memory_ros.nodes.policy.timeliness import Timeliness
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.runtime.actions import ActionConfig
from trace_memory_ros.runtime.limiter import Limiter
from trace_memory_ros.runtime.limits import RAW, limits_of, velocity_columns
from trace_memory_ros.runtime.message_fields import MS_NS


def guards_of(
    settings: PolicyNodeParameters, actions: ActionConfig, observation: ObservationConfig, permission: Permission
) -> Guards:
    """Raises ConfigError for limits that cannot be read or are of other outputs."""
    period_ns = observation.period_ns
    limits = limits_of(in_measured_units(actions, observation), settings.limits_file, settings.urdf)
    velocity = velocity_columns(actions)
    return Guards(
        Timeliness(settings.command_age_limit_ms, period_ns),
        permission,
        Limiter(actions.names, limits, velocity, period_ns),
        Ramp(settings.ramp_ms * MS_NS),
        settings.hold_ms,
        period_ns,
        settings.on_limit == "refuse",
        np.array(velocity, dtype=bool),
        settings.enable_after_outage_s,
    )


def in_measured_units(actions: ActionConfig, observation: ObservationConfig) -> ActionConfig:
    """The actions, raw where the state's channel that tells an output's place is, whatever their type says."""
    rows, given = place_rows(actions, observation), observation.state_units
    raw = {name for name, row in zip(actions.names, rows, strict=True) if row >= 0 and given[row] == RAW}
    parts = []
    for part in actions.parts:
        pairs = zip(part.selected, part.names, strict=True)
        parts.append(replace(part, units={**{one.output: RAW for one, name in pairs if name in raw}, **part.units}))
    return ActionConfig(tuple(parts))
