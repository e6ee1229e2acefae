"""Contents and path apart: as recorded it is the runtime's own tick, transformed it keeps what signatures keep."""

from pathlib import Path

import numpy as np
import pytest
from evidence.recorded_examples import BRANCH, recorded
from fixtures import tiny_checkpoint

from trace_memory_ros.bags.episode import BagEpisode
from trace_memory_ros.evidence import diagnostics
from trace_memory_ros.evidence.history.scan import HistoryScanner, ScannedHistory
from trace_memory_ros.evidence.history.transforms import Path as StatePath
from trace_memory_ros.evidence.history.transforms import identity, sampled, transforms
from trace_memory_ros.memory.registry import names
from trace_memory_ros.observation.frames import at
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.clock import ClockRule, EveryTicks, PathLength
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime

CLOCKS = [EveryTicks(3), PathLength(0.8, 0.3)]


def scanner(
    folder: Path, mechanism: str = "trace", clock: ClockRule | None = None, **options: float | str
) -> HistoryScanner:
    tiny_checkpoint(folder, mechanism, clock=clock, options=options)
    runtime = MemoryRuntime(load(folder))
    return HistoryScanner(runtime.config, runtime.model)


def scan_of(scanner: HistoryScanner, episode: BagEpisode, path: StatePath) -> ScannedHistory:
    seen = slice(0, len(path))
    return scanner.scan(scanner.contents(at(episode.images, seen), episode.state[seen]), path)


@pytest.mark.parametrize("clock", CLOCKS, ids=str)
@pytest.mark.parametrize("mechanism", names())
def test_the_recorded_path_gives_what_live_ticks_give(mechanism: str, clock: ClockRule, tmp_path: Path) -> None:
    episode = recorded()
    found = scan_of(scanner(tmp_path, mechanism, clock), episode, identity(episode.state[: BRANCH + 1]))
    runtime = MemoryRuntime.from_checkpoint(tmp_path)
    wrote, routes = [], []
    for tick in range(BRANCH + 1):
        condition, record = runtime.tick(episode.observation(tick))
        if condition.wrote:
            wrote.append(tick)
            routes.append(record.route)
    assert found.writes.tolist() == wrote
    np.testing.assert_allclose(found.routes, np.reshape(routes, found.routes.shape), atol=1e-5)
    for name in ("tokens", "vector", "read_weights", "address"):
        live, scanned = getattr(condition, name), getattr(found.readout, name)[0].numpy()
        np.testing.assert_allclose(np.ravel(scanned), np.ravel(live), atol=1e-5, err_msg=name)


@pytest.mark.parametrize("clock", CLOCKS, ids=str)
def test_offset_and_reparametrisation_keep_every_route_and_reversal_does_not(clock: ClockRule, tmp_path: Path) -> None:
    # Untrained routes are all but even; cold prototypes set them apart.
    episode, made = recorded(), scanner(tmp_path, "trace", clock, routing="prototypes", temperature=1e-3)
    states = episode.state[: BRANCH + 1]
    rng = np.random.default_rng(0)
    as_recorded = scan_of(made, episode, identity(states))
    finer = np.sort(np.concatenate([np.arange(BRANCH + 1.0), rng.uniform(0, BRANCH, 50)]))
    known = transforms(100)
    paths = {
        "offset": known["state_offset"](states, made.spread, rng),
        "reparametrised": sampled(states, finer),
        "reversed": known["order_reversal"](states, made.spread, rng),
    }
    ticks = np.arange(BRANCH)
    similarity = {}
    for name, path in paths.items():
        found = scan_of(made, episode, path)
        both = [diagnostics.routes_at(ticks, h.writes, h.routes) for h in (found, as_recorded)]
        similarity[name] = diagnostics.route_similarity(*both)
        if name != "reversed":
            np.testing.assert_array_equal(found.writes, as_recorded.writes)
            np.testing.assert_allclose(found.readout.vector, as_recorded.readout.vector, atol=1e-5)
    assert similarity["offset"] == pytest.approx(100, abs=1e-3)
    assert similarity["reparametrised"] == pytest.approx(100, abs=1e-3)
    assert similarity["reversed"] < 99.9


def test_a_memory_without_signatures_gets_nothing_of_the_path_but_when_to_write(tmp_path: Path) -> None:
    episode = recorded()
    states = episode.state[: BRANCH + 1]
    ticking = scanner(tmp_path / "ticks", "gru", EveryTicks(3))
    back = transforms(100)["order_reversal"](states, ticking.spread, np.random.default_rng(0))
    one, other = (scan_of(ticking, episode, path) for path in (identity(states), back))
    np.testing.assert_array_equal(one.readout.vector, other.readout.vector)
    travelling = scanner(tmp_path / "path", "gru", PathLength(0.8, 0.3))
    one, other = (scan_of(travelling, episode, path) for path in (identity(states), back))
    assert one.writes.tolist() != other.writes.tolist()


def test_contents_and_path_must_be_of_one_length(tmp_path: Path) -> None:
    episode, made = recorded(), scanner(tmp_path)
    contents = made.contents(at(episode.images, slice(5)), episode.state[:5])
    with pytest.raises(ValueError, match="5 contents along a path of 4 ticks"):
        made.scan(contents, identity(episode.state[:4]))
