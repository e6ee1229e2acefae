"""What `trace-memory train BAGS/` does, step by step."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.table import Table

from trace_memory_ros.bags.faults import BagVerdict
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.learning import sweep
from trace_memory_ros.learning.bags.data import BagData, Split, variation_notes
from trace_memory_ros.learning.bags.design import bag_defaults, of_memory, small_memory
from trace_memory_ros.learning.bags.folds import cross_validate_run, held_out_decisions, should_fold
from trace_memory_ros.learning.bags.plans import Plans
from trace_memory_ros.learning.bags.recordings import recordings_under
from trace_memory_ros.learning.bags.training import Prepared, read_bags
from trace_memory_ros.learning.data.exchange import obstacle, way_tells
from trace_memory_ros.learning.data.unexplained import LEAST_MS
from trace_memory_ros.learning.decisions.by_heart import probe_address, warnings
from trace_memory_ros.learning.decisions.candidates import Candidate, Selection, Trial
from trace_memory_ros.learning.decisions.cross_validation import KEPT, CrossValidation
from trace_memory_ros.learning.fit import Fitted, check_start, claim_folder, fit_shown
from trace_memory_ros.learning.lerobot.layout import described
from trace_memory_ros.learning.lerobot.source import folder_of, is_dataset
from trace_memory_ros.learning.report.console import bar, command, console, say
from trace_memory_ros.learning.report.page import write_page
from trace_memory_ros.learning.run_config import RunConfig, resolve
from trace_memory_ros.learning.selection import FOLDER as SELECTION
from trace_memory_ros.learning.selection import Planned, memory_file, select_memory
from trace_memory_ros.measure.accuracy import LEAST
from trace_memory_ros.measure.summary import known, write_summary
from trace_memory_ros.moments.words import figures as moment_figures
from trace_memory_ros.moments.words import verdict
from trace_memory_ros.policies import families


def train_from(args: argparse.Namespace, given: Mapping[str, Any]) -> dict[str, Any]:
    """Decode, split, choose a memory where one is to be chosen, train, save; returns the summary's figures."""
    recording = _recording(args)
    asked = resolve(bag_defaults(args.source[0], given), given)
    _check_names(asked)
    folder: Path = args.out or Path("out/train") / f"{asked.task}_{asked.memory.name}_{asked.seed}"
    with args.group.first_before_others():
        if args.group.writes:
            claim_folder(folder, args.resume)
        data, failed = _decode(args, recording)
        plans = Plans(data, recording, asked, given, args.features)
        # Processes after the first take the trials that it kept.
        folded = _fold(args, plans, folder)
        selected = None if folded or not asked.memory.chosen else _select(args, plans, folder)
    taken = folded.chosen if folded else selected.chosen if selected else Candidate(asked.memory.name)
    chosen = Split(plans.used, [], []) if folded else plans.split
    plan = plans.of(taken.memory, chosen, taken.noise if folded else plans.strengths[0])
    config = prepared_config(of_memory(asked, taken.memory), plan)
    _describe(data, plan, recording)
    learned = memory_file(folder / SELECTION, config.memory.name) if selected and selected.learned else None
    how = dict(hardware=args.hardware, group=args.group, memory_file=learned)
    fitted = fit_shown(config, plan.design, plan.recipe, plan.data, folder, args.resume, **how)
    if not args.group.writes:
        return {}
    figures = _figures(fitted, plan, folded, selected)
    figures |= {
        "stamped_when_received": list(recording.received),
        "failed_bags": [fault.to_dict() for verdict in failed for fault in verdict.faults],
        "left_out": [list(entry) for entry in data.left_out],
        sweep.LEARNED_FROM: plans.digest,
    }
    figures["model_id"] = fitted.save(folder, str(config.task), figures, command=command())
    if any(is_dataset(source) for source in args.source):
        recording.forget_beside(folder)
    else:
        recording.keep_beside(folder)
    write_summary(folder, command(), figures)
    write_page(folder, f"{config.task}: {config.memory.name}, seed {config.seed}", figures)
    console.print(f"checkpoint, summary and page in {folder}, model {figures['model_id'][:12]}", highlight=False)
    return figures


def _check_names(asked: RunConfig) -> None:
    """Refuse a policy or memory that nobody brings, or of other options, before anything is decoded or trained.

    So is a checkpoint refused from which the policy cannot start.
    """
    families.family(asked.policy.family).check_options(asked.policy.options)
    for name in asked.memory.candidates:
        small_memory(name, of_memory(asked, name).memory.options)
    check_start(asked)


def _fold(args: argparse.Namespace, plans: Plans, folder: Path) -> CrossValidation | None:
    """Cross-validate where too few decisions would be held out; says what came of it, or that nothing can be known."""
    data, count = plans.data, held_out_decisions(plans)
    if not should_fold(plans):
        if len(data.labels) > 1 and count < LEAST:
            few = f"{count} decisions are held out, fewer than {LEAST}"
            say(f"{few}: how well this decides on other episodes stays unknown")
        return None
    say(
        f"{count} decisions would be held out, fewer than {LEAST}: folds of the scenes are held out in turn, the memory"
    )
    say("alone is trained without each; then all episodes are trained on (--no-cross-validation leaves this out)")

    def report(fold: int, candidate: Candidate, found: Trial) -> None:
        say(f"fold {fold + 1}, {candidate}: {found}")

    reuse = args.resume or not args.group.writes
    folded = cross_validate_run(plans, report, folder / KEPT, reuse, args.hardware)
    if folded is None:
        why = f"{len(data.episodes)} episodes are too few to fold, or none has a decision to judge"
        say(f"{why}: how well this decides on other episodes stays unknown")
        return None
    tried = "; ".join(f"{candidate} {found}" for candidate, found in folded.tried.items())
    say(f"cross-validated branch accuracy, {folded.folds} folds: {folded.accuracy}; {folded.chosen}, tried: {tried}")
    return folded


def _select(args: argparse.Namespace, plans: Plans, folder: Path) -> Selection:
    """Choose the memory by validation episodes; says what each candidate decided."""

    def planned(name: str) -> Planned:
        return plans.of(name, plans.split, plans.strengths[0]).planned

    reuse, learned_from = args.resume or not args.group.writes, plans.learned_from(range(len(plans.data.episodes)))
    return select_memory(plans.config, learned_from, planned, say, folder / SELECTION, reuse, args.hardware)


def _figures(
    fitted: Fitted, plan: Prepared, folded: CrossValidation | None, selected: Selection | None
) -> dict[str, Any]:
    """What a summary says of the training and of what was learned from."""
    return {
        **fitted.figures(),
        **_doubts(fitted, folded),
        "cross_validation": None if folded is None else folded.to_dict(),
        "selection": None if selected is None else selected.to_dict(),
        "held_out_chunk_error": known(fitted.held_out.chunk_error),
        "labels": list(plan.labels),
        "moments": None if plan.moments is None else moment_figures(plan.moments, plan.design.action_names),
        "clock": plan.design.clock.to_dict(),
        "writes_per_episode": plan.writes,
    }


def _doubts(fitted: Fitted, folded: CrossValidation | None) -> dict[str, Any]:
    """What should make one doubt the training, said and for the summary."""
    held, what = fitted.held_out.accuracy, "held-out"
    train = fitted.last.train_branch_accuracy
    if folded is not None:
        held, train, what = folded.accuracy, folded.train, "cross-validated"
    probe = probe_address(fitted.agent, fitted.agent.memory, fitted.data.training, fitted.recipe)
    found = warnings(train, held, probe, what)
    for warning in found:
        console.print(f"warning: {warning}", style="yellow", highlight=False, markup=False, soft_wrap=True)
    return {"address_probe": None if probe is None else probe.to_dict(), "warnings": found}


def prepared_config(asked: RunConfig, plan: Prepared) -> RunConfig:
    """The configuration with what was chosen from the data and from the robot's tick period."""
    design = plan.design
    options = {name: value for name, value in design.policy_options.items() if name != "backbone"}
    policy = replace(asked.policy, chunk=design.chunk, options=options)
    return replace(asked, clock=design.clock.to_dict(), policy=policy, recipe=plan.recipe)


def _recording(args: argparse.Namespace) -> RecordingConfig:
    """What is what in the sources: as --config says, or as a LeRobotDataset says of itself."""
    if args.config is not None:
        return RecordingConfig.load(args.config)
    if not all(is_dataset(source) for source in args.source):
        raise ValueError("bags need --config FILE; `trace-memory bags inspect BAGS` proposes one")
    recording = described(folder_of(args.source[0]))
    topics = ", ".join(stream.topic for stream in recording.observation.inputs)
    console.print(
        f"without --config, the checkpoint expects a live robot on {topics}; `trace-memory bags inspect "
        f"{args.source[0]} --out FILE` writes this down to be edited",
        highlight=False, markup=False, soft_wrap=True,
    )  # fmt: skip
    return recording


def _decode(args: argparse.Namespace, recording: RecordingConfig) -> tuple[BagData, list[BagVerdict]]:
    """The bags' episodes; says what is wrong with bags and parts of them."""
    bags = recordings_under(args.source)
    with bar() as shown:
        row = shown.add_task("recordings", total=len(bags))

        def report(_done: int, _total: int, verdict: BagVerdict) -> None:
            shown.advance(row)
            if not verdict.ok:
                console.print(str(verdict), style="yellow", highlight=False, markup=False, soft_wrap=True)

        data, failed = read_bags(bags, recording, args.cache, args.workers, report)
    if failed:
        console.print(f"{len(failed)} of {len(bags)} recordings cannot be used; training on the rest", style="yellow")
    for name, reason in data.left_out:
        console.print(f"{name}: {reason}", style="yellow", highlight=False, markup=False, soft_wrap=True)
    return data, failed


def _in_ticks(plan: Prepared) -> Iterator[str]:
    """What is counted in ticks, and how long that is at the robot's rate."""
    design, period_s = plan.design, plan.design.observation.tick_period_ms / 1e3
    reach = plan.recipe.branch_reach
    yield (
        f"ticks of {1e3 * period_s:g} ms: an action chunk is {design.chunk} of them ({design.chunk * period_s:.3g} s), "
        f"near a branch are the {reach} after it ({reach * period_s:.3g} s)"
    )
    yield f"the memory sees {design.observation.thumbnail_px} px through {design.backbone}, by {design.pooling}"
    if design.policy_options:
        options = ", ".join(f"{name} {value}" for name, value in design.policy_options.items())
        yield f"policy {design.policy}: {options}"


def _describe(data: BagData, plan: Prepared, recording: RecordingConfig) -> None:
    """Say what is learned from, and what cannot be done for want of annotations."""
    table = Table("", "episodes", "ticks", "branches", box=None)
    for name, builder in plan.data._asdict().items():
        if builder is None:
            continue
        demos = [episode.demo for episode in builder.data.episodes]
        counts = Counter(plan.labels[answer] for demo in demos for answer in demo.answers)
        told = ", ".join(f"{label} {count}" for label, count in sorted(counts.items())) or "none"
        table.add_row(name.replace("_", " "), str(len(demos)), str(sum(demo.ticks for demo in demos)), told)
    console.print(table)
    rule = ", ".join(str(value) for value in plan.design.clock.to_dict().values())
    lines = [f"update clock: {rule}; {plan.writes:.0f} writes in the median episode", *_in_ticks(plan)]
    lines += _about_shows(plan)
    names, state = plan.design.observation.state, plan.state
    still = [
        name
        for name, std, on, least in zip(names, state.std, state.active, plan.design.least_state, strict=True)
        if on and std <= least
    ]
    if recording.clock_note:
        lines.append(recording.clock_note)
    if still:
        lines.append(f"hardly move, and are divided by the least spread of their unit: {', '.join(still)}")
    lines += _about_decisions(plan)
    lines += _about_exchanges(plan)
    lines += variation_notes(data)
    for line in lines:
        say(line)


def _about_shows(plan: Prepared) -> Iterator[str]:
    """How much of what the cameras show besides the robot's own motion is written."""
    builder = plan.training
    episodes = builder.data.episodes
    if builder.shows is None:
        return
    masks = (episode.write_mask(builder.clock) for episode in episodes)
    share = builder.shows.written([episode.demo for episode in episodes], masks)
    if share is not None:
        yield (
            f"{share:.0%} of what the cameras show for {LEAST_MS} ms or longer, other than the robot's own motion, is "
            "written while it shows; a finer --clock writes more"
        )


def _about_exchanges(plan: Prepared) -> Iterator[str]:
    """Whether ways are also learned with the sights of others, where there are decisions and addresses to learn."""
    partners = plan.recipe.memory_first.partners
    if not partners or not plan.labels or not plan.design.depth:
        return
    why = obstacle(plan.training)
    if why is not None:
        yield f"sights of episodes are not exchanged in the memory's phase: {why}"
        return
    yield f"the memory's phase goes each episode's way also with the sights of up to {partners} others"
    if way_tells(plan.training):
        yield (
            "the way travelled tells the answers by itself: where sights do not, a second attempt is made without "
            "exchanging them; --set recipe.memory_first.partners=0 begins so"
        )


def _about_decisions(plan: Prepared) -> Iterator[str]:
    """Where decisions come from that nobody annotated, and what cannot be done without any."""
    if plan.moments is not None:
        yield f"moments at which only the past tells, searched in the training episodes: {verdict(plan.moments)}"
    if plan.labels and plan.moments is not None:
        yield (
            "decisions and answers are *found*: accuracies say how often the memory decides as such episodes went on, "
            "not as somebody said was right; `trace-memory bags moments` shows them"
        )
    elif not plan.labels:
        yield (
            f"no branch is annotated{' and none was found' if plan.moments is not None else ''}: reads are taken "
            "anywhere, batches are not balanced, the stages of the curriculum have a fixed length, and branch accuracy "
            "is not measured. Annotated branches give all these"
        )
