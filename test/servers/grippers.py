"""Grippers' action servers, as a process: `grippers.py NAMESPACE NAME:TYPE ...`; prints each goal as a line of JSON.

By its effort a goal is rejected, or answered only after some seconds.
"""

import json
import sys
import time

import rclpy
from control_msgs import action
from rclpy.action import ActionServer, GoalResponse

REJECTED, LATE, LATE_S = 66.0, 77.0, 2.5


def numbers_of(command):
    """What a goal commands: position and effort, of joints by their names."""
    if not hasattr(command, "name"):
        return {"position": command.position, "effort": command.max_effort}
    return {"name": list(command.name), "position": list(command.position), "effort": list(command.effort)}


def serve(node, name, kind):
    cls = getattr(action, kind)

    def on_goal(goal):
        numbers = numbers_of(goal.command)
        print(json.dumps([name, numbers]), flush=True)
        if numbers["effort"] == LATE:
            time.sleep(LATE_S)
        return GoalResponse.REJECT if numbers["effort"] == REJECTED else GoalResponse.ACCEPT

    def execute(handle):
        handle.succeed()
        return cls.Result()

    return ActionServer(node, cls, name, execute, goal_callback=on_goal)


def main():
    namespace, *asked = sys.argv[1:]
    rclpy.init(args=[])
    node = rclpy.create_node("grippers", namespace=namespace)
    servers = [serve(node, *one.split(":")) for one in asked]
    print(f"ready {len(servers)}", flush=True)
    rclpy.spin(node)


main()
