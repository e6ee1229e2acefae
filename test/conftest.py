"""Every run talks to itself alone: a ROS domain of its own on the loopback, whatever the shell around it says."""

import os

from trace_memory_ros.nodes.domains import DomainClaim

# Held until this process ends, so that no other run of the tests or of the demo takes it meanwhile.
DOMAIN = DomainClaim()
os.environ["ROS_DOMAIN_ID"] = str(DOMAIN.id)
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
os.environ["FASTDDS_BUILTIN_TRANSPORTS"] = "LARGE_DATA"
os.environ.setdefault("MUJOCO_GL", "egl")
os.environ.setdefault("OMP_NUM_THREADS", "1")
