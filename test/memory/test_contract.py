"""The contract suite, run on every registered mechanism and on the variants of `conftest.py`."""

import pytest

pytest.register_assert_rewrite("trace_memory_ros.testing.test_memory_contract")

from trace_memory_ros.testing.test_memory_contract import *  # noqa: E402, F403
