"""The rows of a table that choose one of the others, by trials on scenes that the table does not report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from studies.grid import Figures, Plan, Run, Store, do
from trace_memory_ros.learning.decisions.candidates import Candidate, Trial, select
from trace_memory_ros.learning.sizes import AUTO, LADDER

AMONG: dict[str, tuple[str, ...]] = {
    AUTO: LADDER,
    f"{AUTO}+gate": ("none", "first_frame", "gru+gate", "gru", "gru+cache"),
}
"""What they choose among: as `--memory auto` does, and with a memory that writes seldom before one that always does."""


def taken(trial_of: Callable[[str], Trial], among: Sequence[str] = LADDER) -> str:
    """The candidate that `auto` takes, their trials asked for the simplest first, until one decides all rightly."""
    return select([Candidate(name) for name in among], lambda candidate: trial_of(candidate.memory)).chosen.memory


def do_rows(measure: Callable[[Run, Store], str], plan: Plan, workers: int) -> None:
    """Do every run of a plan, those that choose last, which take what their candidates have found."""
    for last in (False, True):
        do(measure, [run for run in plan.runs() if (run.row in AMONG) == last], plan.run_folder, workers)


def take(plan: Plan, run: Run, measure: Callable[[Run], Figures]) -> Figures:
    """The figures of the candidate that a row of `AMONG` takes; of those that have none yet they are measured.

    measure: figures of a run, with its `trial`.
    """
    found: dict[str, Figures] = {}

    def trial_of(row: str) -> Trial:
        one = replace(run, row=row)
        found[row] = Store(plan.run_folder(one)).get("figures", plan.settings(), lambda: measure(one))
        return Trial.from_plain(found[row]["trial"])

    row = taken(trial_of, AMONG[run.row])
    return {**found[row], "taken": row}
