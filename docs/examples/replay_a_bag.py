"""A recorded bag through a checkpoint's memory, tick by tick, without ROS.

python docs/examples/replay_a_bag.py BAG CHECKPOINT [observation.yaml]
"""

import sys

from trace_memory_ros import MemoryRuntime, RecordingConfig, Replay, find_checkpoint

bag, checkpoint, *config = sys.argv[1:]
recording = RecordingConfig.load(config[0]) if config else None
replay = Replay(bag, MemoryRuntime.from_checkpoint(find_checkpoint(checkpoint)), recording)
for tick in replay:
    condition = tick.condition
    print(condition.stamp_ns, condition.status.name, "wrote" if condition.wrote else "read", condition.vector[:3])
print(f"{replay.report.ticks} ticks, {replay.report.times_real:.0f} x real time")
