"""Jobs on a Ray cluster. The only file that imports Ray, which is an extra: `pip install trace_memory_ros[ray]`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from trace_memory_ros.measure.workers import DIED, Lost, reason_of, start_worker

Job = TypeVar("Job")
Result = TypeVar("Result")


class RayExecutor:
    """An `Executor` on the cluster at `address`: `local` starts one here, `auto` finds this machine's, or host:port.

    Every machine of the cluster needs this package, and the bags and the checkpoint under the same paths.
    A task takes one processor and `gpus`, and is tried once more where its process died.
    Raises ImportError where Ray is missing; calling it raises ConnectionError where no cluster answers.
    """

    def __init__(self, address: str, gpus: float = 0.0) -> None:
        try:
            import ray
        except ImportError as error:
            raise ImportError(
                f"jobs were to run on Ray at {address!r}, which is not installed: pip install 'trace_memory_ros[ray]', "
                "or let processes of this machine do them with --workers"
            ) from error
        self._ray: Any = ray
        self.address = address
        self.gpus = gpus

    def __call__(
        self, work: Callable[[Job], Result], jobs: Sequence[Job], report: Callable[[Result], None], /
    ) -> Lost[Job]:
        self._connect()
        try:
            return self._do(work, jobs, report)
        finally:
            self._ray.shutdown()

    def _connect(self) -> None:
        try:
            self._ray.init(address=self.address, log_to_driver=False, configure_logging=False)
        except Exception as error:  # Ray raises bare ones, as where a busy machine starts it too slowly
            self._ray.shutdown()
            reason = str(error).partition("\n")[0]
            raise ConnectionError(
                f"no Ray cluster answers at {self.address!r} ({reason}): start one with `ray start --head`, "
                "or give `local` to start one on this machine"
            ) from error

    def _do(self, work: Callable[[Job], Result], jobs: Sequence[Job], report: Callable[[Result], None]) -> Lost[Job]:
        ray = self._ray
        task = ray.remote(num_cpus=1, num_gpus=self.gpus, max_retries=1)(_task)
        shared = ray.put(work)
        places = {task.remote(shared, job): place for place, job in enumerate(jobs)}
        lost: dict[int, str] = {}
        waiting = list(places)
        while waiting:
            (done,), waiting = ray.wait(waiting, num_returns=1)
            place = places.pop(done)
            try:
                report(ray.get(done))
            except ray.exceptions.RayTaskError as error:
                lost[place] = reason_of(error.cause if isinstance(error.cause, Exception) else error)
            except ray.exceptions.RayError as error:
                lost[place] = f"{DIED} ({type(error).__name__})"
        return [(jobs[place], lost[place]) for place in sorted(lost)]


def _task(work: Callable[[Job], Result], job: Job) -> Result:
    start_worker()
    return work(job)
