"""The family `act`."""

from trace_memory_ros.policies.act.policy import ActConfig, ActPolicy, at_period
from trace_memory_ros.policies.families import PolicyFamily
from trace_memory_ros.policies.runner import ActRunner

ACT = PolicyFamily("act", ActRunner.from_tensors, ActConfig, ActPolicy, at_period, looks_at="tokens")
