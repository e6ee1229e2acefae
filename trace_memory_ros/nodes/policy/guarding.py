"""From parameters to what stands between a policy and the robot."""

from __future__ import annotations

import numpy as np

from trace_memory_ros.nodes.policy.commands import Guards
from trace_memory_ros.nodes.policy.parameters import PolicyNodeParameters
from trace_memory_ros.nodes.policy.permission import Permission
from trace_memory_ros.nodes.policy.ramp import Ramp
from trace_memory_ros.nodes.policy.timeliness import Timeliness
from trace_memory_ros.runtime.actions import ActionConfig
from trace_memory_ros.runtime.limiter import Limiter
from trace_memory_ros.runtime.limits import limits_of, velocity_columns
from trace_memory_ros.runtime.message_fields import MS_NS


def guards_of(settings: PolicyNodeParameters, actions: ActionConfig, period_ns: int, permission: Permission) -> Guards:
    """Raises ConfigError for limits that cannot be read or are of other outputs."""
    limits = limits_of(actions, settings.limits_file, settings.urdf)
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
