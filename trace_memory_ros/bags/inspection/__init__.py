"""Proposes a configuration for bags, from what their topics hold."""

from trace_memory_ros.bags.inspection.proposal import PassedOver, Proposal
from trace_memory_ros.bags.inspection.propose import inspect, inspect_bags

__all__ = ["PassedOver", "Proposal", "inspect", "inspect_bags"]
