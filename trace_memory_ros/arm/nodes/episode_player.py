"""Plays episodes on running nodes, one after another, and prints how each went: what demo.launch.py starts."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from itertools import islice

from trace_memory_ros.arm.demo.results import cue_name, went
from trace_memory_ros.arm.nodes.episode_client import EpisodeClient
from trace_memory_ros.arm.nodes.episode_log import PlayedEpisode
from trace_memory_ros.arm.sim.names import LIVE_TASKS, ONE_CUE_TASKS
from trace_memory_ros.arm.sim.scenario import scenarios
from trace_memory_ros.nodes import parent
from trace_memory_ros.nodes.node_client import EpisodeFailed

FIRST_SEED = 300_000


def line(result: PlayedEpisode) -> str:
    """One line for people about one episode."""
    verdict = "right branch" if result.success else "WRONG branch"
    cue, way = cue_name(result.task, result.cue), went(result.task, result.branch)
    return (
        f"{result.task} seed {result.seed}, {result.mechanism} memory: cue {cue}, took {way}: {verdict} after "
        f"{result.elapsed_s:.1f} s, {result.ticks_published} of {result.ticks_expected} ticks, {result.writes} writes"
    )


def main(args: Sequence[str] | None = None) -> int:
    """Play balanced cues on scenarios that no checkpoint was trained on; returns 1 when an episode could not be run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=LIVE_TASKS, default=ONE_CUE_TASKS[0])
    parser.add_argument("--episodes", type=int, default=4, help="0 plays on for ever")
    parser.add_argument("--mode", choices=("realtime", "lockstep"), default="realtime")
    parser.add_argument(
        "--extra-pause-s", type=float, default=0.0, help="pause between cue and branch, simulated seconds"
    )
    parser.add_argument("--namespace", default="")
    options = parser.parse_args(args)
    parent.watch(lambda: os._exit(1))
    try:
        with EpisodeClient(namespace=options.namespace, name="episode_player") as client:
            client.wait_active(("arm_sim_node", "controller_node", "memory_node", "policy_node"), timeout_s=60.0)
            all_of_them = scenarios(options.task, FIRST_SEED, extra_pause_s=options.extra_pause_s)
            for scenario in islice(all_of_them, options.episodes or None):
                print(line(client.run(scenario, options.mode, timeout_s=300.0 + options.extra_pause_s)), flush=True)
    except KeyboardInterrupt:
        return 0
    except EpisodeFailed as error:
        print(f"error: {error}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
