"""What every memory has to keep, as tests that other packages can run on theirs.

`pytest --pyargs trace_memory_ros.testing` runs them on every mechanism that `registry.names()` lists, bare and behind
the write gate. `-p trace_memory_ros.testing.options --memory NAME` runs them on one. Needs pytest.
"""
