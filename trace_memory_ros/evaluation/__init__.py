"""Closed-loop evaluation, statistics, summaries and reports."""
