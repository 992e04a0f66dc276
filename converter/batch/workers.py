# SPDX-License-Identifier: Apache-2.0
"""Runs jobs elsewhere: in worker processes of this machine that may hang or die, or in anybody's executor."""

from __future__ import annotations

import os
import signal
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

from onnx_convert.batch import processes
from onnx_convert.batch.job import CRASHED, TIMED_OUT, Outcome, perform
from onnx_convert.errors import InvalidModelError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from concurrent.futures import Executor, Future

    from onnx_convert.batch.job import Job

    Submit = Callable[[Job], "Future[Outcome]"]


_PATIENCE: Final = 10.0  # seconds until a scheduler has to answer
_RETRIES: Final = 2
_POOLS: Final = 3  # that may break one after the other


class Workers(Protocol):
    """Whoever does jobs."""

    def outcomes(self, jobs: Iterable[Job]) -> Generator[Outcome]:
        """Yields an outcome for each job, in the order in which they end. Whoever stops asking cancels what has not
        begun."""

    def at_work(self) -> str:
        """Returns the name of a model that is being converted, "" if that is not known."""


class Elsewhere:
    """Any `concurrent.futures.Executor`; it stays open, and time limits are its own affair."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._waiting: dict[Future[Outcome], Job] = {}

    def outcomes(self, jobs: Iterable[Job]) -> Generator[Outcome]:
        """Yields an outcome for each job."""
        for job, future in self._followed(lambda job: self._executor.submit(perform, job), jobs):
            yield _outcome(future, job, "in time")

    def at_work(self) -> str:
        """Returns the name of a model that is being converted."""
        return next((job.name for future, job in self._waiting.items() if future.running()), "")

    def _followed(self, submit: Submit, jobs: Iterable[Job]) -> Generator[tuple[Job, Future[Outcome]]]:
        """Hands out jobs and yields each with its future as it ends."""
        self._waiting = {submit(job): job for job in jobs}
        try:
            for future in futures.as_completed([*self._waiting]):
                yield self._waiting.pop(future), future  # kept no longer: reports are large
        finally:
            for future in self._waiting:
                future.cancel()


class Processes(Elsewhere):
    """Worker processes of this machine. Each imports once and does many jobs; one that dies, or is at a model for
    more than `timeout` seconds, is replaced, and its model is named.
    """

    def __init__(self, count: int | None = None, timeout: float | None = None) -> None:
        self._count = count or usable_cores()
        self._timeout = timeout
        self._waiting = {}

    def outcomes(self, jobs: Iterable[Job]) -> Generator[Outcome]:
        """Yields an outcome for each job."""
        limit = f"after {self._timeout:g} s" if self._timeout is not None else "in time"
        waiting = [*jobs]
        for pools_left in reversed(range(_POOLS)):
            lost = []
            for job, future in self._pooled(waiting):
                if pools_left and isinstance(future.exception(), BrokenProcessPool):
                    lost.append(job)  # a process died between two models, and took the pool along
                else:
                    yield _outcome(future, job, limit)
            waiting = lost
            if not waiting:
                return

    def _pooled(self, jobs: list[Job]) -> Generator[tuple[Job, Future[Outcome]]]:
        from pebble import ProcessPool

        count = min(self._count, len(jobs))
        pool: Any = ProcessPool(max_workers=count, context=processes.context(), initializer=_prepare)
        try:
            yield from self._followed(lambda job: pool.schedule(perform, args=(job,), timeout=self._timeout), jobs)
        finally:
            pool.stop()
            pool.join()


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """Yields an executor over the workers of a Dask scheduler, which see the same files under the same paths.

    A worker that dies is forgiven twice for the same model. UsageError without the extra `dask`, and if no scheduler
    answers at the address.
    """
    try:
        from distributed import Client as UntypedClient
    except ImportError as error:
        raise UsageError("--dask needs dask's distributed: pip install 'onnx-convert[dask]'") from error
    client_of: Any = UntypedClient
    try:
        client = client_of(address, timeout=_PATIENCE)
    except (OSError, ValueError) as error:  # a timeout is an OSError as well
        raise UsageError(f"no Dask scheduler answers at {address}") from error
    with client:
        yield client.get_executor(pure=False, retries=_RETRIES)


def usable_cores() -> int:
    """Returns how many processes this one may keep busy."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _prepare() -> None:
    """Makes a worker that is told to stop leave no half-written file behind, and imports what is heavy: a time limit
    is for the model alone."""

    def stop(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, stop)
    with suppress(ImportError):  # each job says so
        import onnx_convert.api  # noqa: F401


def _outcome(future: Future[Outcome], job: Job, limit: str) -> Outcome:
    """Returns what a job came to, also if nobody was left to say it."""
    try:
        return future.result()
    except futures.TimeoutError:
        status, message = TIMED_OUT, f"not done {limit}"
    except futures.CancelledError:
        status, message = CRASHED, "was cancelled by its executor"
    except Exception as error:  # noqa: BLE001 - executors have errors of their own
        status, message = CRASHED, f"the process that converted it did not survive ({type(error).__name__}: {error})"
    return Outcome(job.name, job.source, job.destination, status, InvalidModelError.exit_code, message)
