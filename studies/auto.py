"""The row of a table that chooses one of the others, by trials on scenes that the table does not report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from studies.grid import Figures, Plan, Run, Store, do
from trace_memory_ros.learning.decisions.candidates import Candidate, Trial, select
from trace_memory_ros.learning.sizes import AUTO, LADDER


def taken(trial_of: Callable[[str], Trial]) -> str:
    """The candidate that `auto` takes, their trials asked for the simplest first, while another could be ahead."""
    return select([Candidate(name) for name in LADDER], lambda candidate: trial_of(candidate.memory)).chosen.memory


def do_rows(measure: Callable[[Run, Store], str], plan: Plan, workers: int) -> None:
    """Do every run of a plan, those of `auto` last, which take what their candidates have found."""
    for last in (False, True):
        do(measure, [run for run in plan.runs() if (run.row == AUTO) == last], plan.run_folder, workers)


def take(plan: Plan, run: Run, measure: Callable[[Run], Figures]) -> Figures:
    """The figures of the candidate that `auto` takes; of those that have none yet they are measured.

    measure: figures of a run, with its `trial`.
    """
    found: dict[str, Figures] = {}

    def trial_of(row: str) -> Trial:
        one = replace(run, row=row)
        found[row] = Store(plan.run_folder(one)).get("figures", plan.settings(), lambda: measure(one))
        return Trial.from_plain(found[row]["trial"])

    row = taken(trial_of)
    return {**found[row], "taken": row}
