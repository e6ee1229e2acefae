"""The gate's contract suite, run before every registered mechanism and before variants of `conftest.py`."""

import pytest

pytest.register_assert_rewrite("trace_memory_ros.testing.test_gate_contract")

from trace_memory_ros.testing.test_gate_contract import *  # noqa: E402, F403
