"""Ends once lifecycle nodes are active, so that a launch file can begin something then."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from trace_memory_ros.nodes import parent
from trace_memory_ros.nodes.node_client import EpisodeFailed, NodeClient


def main(args: Sequence[str] | None = None) -> int:
    """Wait; returns 1, with the reason, when a node is not active in time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nodes", nargs="+", help="names of lifecycle nodes")
    parser.add_argument("--namespace", default="")
    parser.add_argument("--timeout-s", type=float, default=60.0)
    options = parser.parse_args(args)
    parent.watch(lambda: os._exit(1))
    try:
        with NodeClient(namespace=options.namespace, name="wait_active") as client:
            client.wait_active(options.nodes, options.timeout_s)
    except EpisodeFailed as error:
        print(f"error: {error}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
