"""What `trace-memory evaluate BAGS... --checkpoint CHECKPOINT` does, and what it leaves behind."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.bags.layout import bags_under
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.evidence.evaluation_file import write_evaluation
from trace_memory_ros.evidence.evaluator import EvidenceSettings
from trace_memory_ros.evidence.fleet import FleetPlan, evaluate_bags, frames_of
from trace_memory_ros.evidence.report.page import write_report
from trace_memory_ros.evidence.results import Evaluation
from trace_memory_ros.evidence.verdict import verdict
from trace_memory_ros.files import outputs
from trace_memory_ros.measure.fleet import Step, executor
from trace_memory_ros.measure.summary import write_summary
from trace_memory_ros.replay.bag_replay import recording_for
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
from trace_memory_ros.runtime.shipped import find_checkpoint

BESIDE = "observation.yaml"
STABILITY = ("slot_churn_per_tick", "write_entropy", "slot_occupancy", "readout_cosine", "decision_agreement")
TRANSFORMS = ("route_similarity", "branch_consistency", "readout_cosine", "action_agreement")

console = Console()


def evaluate_from(args: argparse.Namespace) -> int:
    """Evaluate, print, write report, summary and evidence; returns 1 where no episode could be evaluated."""
    checkpoint = Path(find_checkpoint(args.checkpoint))
    bags = bags_under([Path(source) for source in args.source])
    runtime = MemoryRuntime.from_checkpoint(checkpoint)
    recording = recording_for(runtime, recording_of(args.config, args.source, checkpoint))
    settings = EvidenceSettings(args.seed, args.window, args.present_seconds)
    out = outputs.claim(args.out or Path("out") / f"evaluate-{checkpoint.resolve().name}", "trace-memory evaluate")
    plan = FleetPlan(checkpoint, recording, args.cache, settings)
    with Bars() as bars:
        evaluation = evaluate_bags(bags, plan, executor(args.workers, args.ray), bars)
    command = f"trace-memory evaluate {' '.join(Path(s).name for s in args.source)} --checkpoint {checkpoint.name}"
    px = runtime.config.observation.thumbnail_px
    page = write_report(out, command, evaluation, lambda episode: frames_of(plan, episode), px)
    evidence = write_evaluation(out, evaluation)
    found = verdict(evaluation)
    figures = {
        "verdict": found.figures(),
        "model_id": evaluation.model.model_id,
        "path_feeds": evaluation.model.path_feeds,
        "settings": dict(evaluation.settings),
        "failed": [vars(fault) for fault in evaluation.failed],
        **evaluation.figures,
    }
    path = write_summary(out, command, figures)
    show(evaluation)
    if recording.clock_note:
        console.print(recording.clock_note, highlight=False, markup=False, soft_wrap=True)
    for sentence in found.sentences:
        console.print(sentence, style="bold", highlight=False, markup=False, soft_wrap=True)
    console.print(f"report {page}, figures {path}, evidence {evidence}", highlight=False, soft_wrap=True)
    return 0 if evaluation.episodes else 1


def recording_of(config: Path | None, sources: Sequence[str], checkpoint: Path) -> RecordingConfig | None:
    """What is what in the bags: as given, as a file beside them says, or as when the checkpoint learned; else None.

    Raises ValueError where the files beside several sources say unlike things.
    """
    if config is not None:
        return RecordingConfig.load(config)
    beside = [Path(source) / BESIDE for source in sources if (Path(source) / BESIDE).is_file()]
    if not beside:
        return RecordingConfig.beside(checkpoint)
    console.print(f"what is what in the bags: {beside[0]}", highlight=False)
    first, *others = (RecordingConfig.load(path) for path in beside)
    for path, other in zip(beside[1:], others, strict=True):
        if other != first:
            raise ValueError(
                f"{beside[0]} and {path} differ in what is what in the bags: evaluate these folders one by one, or "
                "give --config for all of them"
            )
    return first


class Bars:
    """Progress of decoding and evaluating; what failed is told at once. A context manager."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self._progress = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console)

    def begin(self, phase: str, total: int) -> None:
        """A bar for the next phase."""
        self._row = self._progress.add_task(phase, total=total)

    def step(self, step: Step[Path]) -> None:
        """One bag further."""
        self._progress.advance(self._row)
        if step.reason:
            text = f"{step.job.name}: {step.reason}"
            console.print(text, style="yellow", highlight=False, markup=False, soft_wrap=True)

    def __enter__(self) -> Bars:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()


def show(evaluation: Evaluation) -> None:
    """Tables 3 and 12, and what could not be evaluated."""
    figures = evaluation.figures
    chance = figures["chance"]
    for title, rows, names in (
        ("history transforms", figures["transforms"], TRANSFORMS),
        ("longer histories", figures["stability"], STABILITY),
    ):
        if rows:
            table = Table("", *(name.replace("_", " ") for name in names), title=title, box=None)
            for name, row in rows.items():
                table.add_row(name.replace("_", " "), *(_cell(row[figure]) for figure in names))
            if title == "history transforms":
                other = (chance[f"{name}_of_other_label"] for name in ("branch_consistency", "readout_cosine"))
                table.add_row("by chance", _cell(chance["route_similarity"]), *map(_number, other), "")
            console.print(table)
    console.print(f"a transform of the path reaches {evaluation.model.path_feeds}", highlight=False)
    for fault in evaluation.failed:
        text = str(BagFault(fault.bag, fault.what, fault.where, fault.remedy))
        console.print(text, style="yellow", highlight=False, markup=False, soft_wrap=True)


def _cell(figure: dict[str, Any] | None) -> str:
    return "-" if figure is None else f"{_number(figure['mean'])} ± {_number(figure['se'])}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
