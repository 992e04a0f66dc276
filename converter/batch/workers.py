# SPDX-License-Identifier: Apache-2.0
"""Runs jobs elsewhere: in worker processes of this machine that may hang or die, or in anybody's executor."""

from __future__ import annotations

import os
from concurrent import futures
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from onnx_convert.batch.job import CRASHED, TIMED_OUT, Outcome, perform
from onnx_convert.batch.pool import Pool
from onnx_convert.errors import InvalidModelError, UsageError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from concurrent.futures import Executor, Future

    from onnx_convert.batch.job import Job

_PATIENCE: Final = 10.0  # seconds until a scheduler has to answer
_RETRIES: Final = 2


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
        self._waiting = {self._executor.submit(perform, job): job for job in jobs}
        try:
            for future in futures.as_completed([*self._waiting]):
                yield _outcome(future, self._waiting.pop(future))  # kept no longer: reports are large
        finally:
            for future in self._waiting:
                future.cancel()

    def at_work(self) -> str:
        """Returns the name of a model that is being converted."""
        return next((job.name for future, job in self._waiting.items() if future.running()), "")


class Processes:
    """Worker processes of this machine. Each imports once and does many jobs; one that dies, or is at a model for
    more than `timeout` seconds, is replaced, and its model is named.
    """

    def __init__(self, count: int | None = None, timeout: float | None = None) -> None:
        self._count = count or usable_cores()
        self._timeout = timeout
        self._pool: Pool | None = None

    def outcomes(self, jobs: Iterable[Job]) -> Generator[Outcome]:
        """Yields an outcome for each job."""
        self._pool = Pool(jobs, self._count, self._timeout)
        yield from self._pool.outcomes()

    def at_work(self) -> str:
        """Returns the name of a model that is being converted."""
        return self._pool.at_work() if self._pool is not None else ""


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


def _outcome(future: Future[Outcome], job: Job) -> Outcome:
    """Returns what a job came to, also if nobody was left to say it."""
    try:
        return future.result()
    except futures.TimeoutError:
        status, message = TIMED_OUT, "not done in time"
    except futures.CancelledError:
        status, message = CRASHED, "was cancelled by its executor"
    except Exception as error:  # noqa: BLE001 - executors have errors of their own
        status, message = CRASHED, f"the process that converted it did not survive ({type(error).__name__}: {error})"
    return Outcome(job.name, job.source, job.destination, status, InvalidModelError.exit_code, message)
