"""Benchmarks: each module with a `run` trains or measures, and answers with the figures of a summary."""
