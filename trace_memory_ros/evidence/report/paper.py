"""Figures of the TRACE paper, on its own robots and tasks, to stand beside a page's own."""

TRANSFORMS = {
    "time_resampling": (92.40, 96.00),
    "speed_jitter": (89.80, 94.70),
    "state_offset": (91.20, 95.10),
    "sparse_sampling": (86.50, 92.30),
    "order_reversal": (37.80, 41.60),
}
"""Route similarity and branch consistency of table 3."""
STABILITY = {
    "reported": (0.010, 0.356, 0.646, 1.000, 1.000),
    "extended_1.25": (0.017, 0.374, 0.690, 0.982, 0.968),
    "extended_1.5": (0.025, 0.397, 0.710, 0.962, 0.936),
    "extended_2": (0.041, 0.431, 0.744, 0.928, 0.904),
    "distractor_1.5": (0.052, 0.462, 0.758, 0.907, 0.872),
    "shared_route_2": (0.035, 0.412, 0.737, 0.943, 0.916),
}
"""Slot churn, write entropy, slot occupancy, readout and decision consistency of table 12."""
