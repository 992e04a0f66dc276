# SPDX-License-Identifier: Apache-2.0
"""Worker processes that may die or hang: which model it was is known, and the others go on.

Each has a pipe of its own. It is handed jobs one by one, the next one before it is done with the first, and answers in
order: so the first that it has not answered is the one that it did not survive.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import time
from collections import deque
from contextlib import suppress
from multiprocessing import connection
from typing import TYPE_CHECKING, Any, Final, NoReturn

from onnx_convert.batch import processes
from onnx_convert.batch.job import CRASHED, TIMED_OUT, Outcome, perform
from onnx_convert.errors import InvalidModelError, UsageError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from onnx_convert.batch.job import Job

_NAME: Final = "a worker of onnx-convert"
_UNGUARDED: Final = 64  # the exit code of a worker whose script would start workers itself
_ATTEMPTS: Final = 3  # workers that may fail to start, one after the other
_PATIENCE: Final = 3.0  # seconds that a worker has to clean up
_AHEAD: Final = 2  # jobs that a worker has at once, as long as there are many
READY: Final = "ready"


class Pool:
    """Jobs and the processes that do them, at most `count`; one that is at a job for more than `timeout` seconds is
    ended."""

    def __init__(self, jobs: Iterable[Job], count: int, timeout: float | None) -> None:
        self._waiting = deque(jobs)
        self._count = min(count, len(self._waiting))
        self._timeout = timeout
        self._workers: list[_Worker] = []
        self._failures = 0
        self._ended: deque[Outcome] = deque()

    def start(self) -> None:
        """Starts as many workers as have something to do."""
        busy = sum(bool(worker.jobs) for worker in self._workers)
        missing = min(self._count, busy + len(self._waiting)) - len(self._workers)
        if missing > 0:
            context = processes.context()
            with processes.deaf():
                for _ in range(missing):
                    try:
                        self._workers.append(_Worker(context))
                    except OSError:  # of files, processes or memory there are no more: then with fewer
                        if not self._workers:
                            raise
                        self._count = len(self._workers)
                        return

    def outcomes(self) -> Generator[Outcome]:
        """Yields an outcome for each job, in the order in which they end; ends all workers in the end."""
        try:
            while True:
                while self._ended:
                    yield self._ended.popleft()
                self.start()
                if not self._workers:
                    return
                self._look()
        finally:
            self._stop(self._workers)

    def at_work(self) -> str:
        """Returns the name of a job that a worker is at, "" if there is none."""
        return next((worker.jobs[0].name for worker in self._workers if worker.jobs), "")

    def _look(self) -> None:
        """Waits until something happens, and sees to it."""
        by_pipe = {worker.pipe: worker for worker in self._workers}
        for pipe in connection.wait([*by_pipe], self._time_left()):
            worker = by_pipe[pipe]
            said = None
            with suppress(EOFError, OSError):
                said = worker.pipe.recv()
            if said is None:
                self._lost(worker)
                continue
            worker.since = time.monotonic()
            if isinstance(said, Outcome):
                worker.jobs.popleft()
                self._ended.append(said)
            elif said != READY:  # what kept it from reading the job, or from telling how it ended
                self._ended.append(_crashed(worker.jobs.popleft(), said))
            worker.ready, self._failures = True, 0
            self._hand_out(worker)
        for worker in [*self._workers]:
            if self._is_late(worker):
                late = worker.jobs.popleft()
                message = f"not done after {self._timeout:g} s"
                self._ended.append(_ended(late, TIMED_OUT, message))
                self._let_go(worker)

    def _hand_out(self, worker: _Worker) -> None:
        ahead = _AHEAD if len(self._waiting) > _AHEAD * self._count else 1
        while self._waiting and len(worker.jobs) < ahead:
            job = self._waiting.popleft()
            try:
                content = pickle.dumps(job)
            except Exception as error:  # noqa: BLE001 - whatever the options are, pickling them runs their code
                self._ended.append(_crashed(job, f"{type(error).__name__}: {error}"))
                continue
            with suppress(OSError):  # a worker that is gone is noticed at its pipe
                worker.pipe.send_bytes(content)
            worker.since = worker.since if worker.jobs else time.monotonic()
            worker.jobs.append(job)
        if not worker.jobs and not self._waiting:
            self._let_go(worker)

    def _lost(self, worker: _Worker) -> None:
        """Names the job that a worker did not survive; what it was to do next is for others."""
        code = worker.exit_code()
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        if worker.jobs:
            self._ended.append(_crashed(worker.jobs.popleft(), how))
        elif not worker.ready:
            self._failures += 1
            if code == _UNGUARDED:
                raise UsageError(
                    "convert_many starts processes that import this script again: call it under "
                    'if __name__ == "__main__":'
                )
        self._let_go(worker)
        if self._failures >= _ATTEMPTS:
            why = f"no process for it can be started ({how})"
            self._ended.extend(_ended(job, CRASHED, why) for job in self._waiting)
            self._waiting.clear()

    def _let_go(self, worker: _Worker) -> None:
        """Ends a worker; what it has not begun is for others."""
        self._workers.remove(worker)
        self._waiting.extendleft(reversed(worker.jobs))
        worker.jobs.clear()
        self._stop([worker])

    def _stop(self, workers: Sequence[_Worker]) -> None:
        for worker in workers:
            worker.pipe.close()
            worker.process.terminate()
        until = time.monotonic() + _PATIENCE
        for worker in workers:
            worker.process.join(max(until - time.monotonic(), 0.0))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()

    def _is_late(self, worker: _Worker) -> bool:
        return bool(worker.jobs) and self._timeout is not None and time.monotonic() - worker.since > self._timeout

    def _time_left(self) -> float | None:
        """Returns for how many seconds no job is late."""
        if self._timeout is None:
            return None
        begun = [worker.since for worker in self._workers if worker.jobs]
        return max(min(begun) + self._timeout - time.monotonic(), 0.0) + 0.001 if begun else None


class _Worker:
    """A process, this end of its pipe, and the jobs that it has not answered, with the time at which it began the
    first."""

    def __init__(self, context: Any) -> None:
        self.pipe, theirs = context.Pipe()
        self.jobs: deque[Job] = deque()
        self.ready = False
        self.since = 0.0
        self.process = context.Process(target=work, args=(theirs,), name=_NAME, daemon=True)
        self.process.start()
        theirs.close()

    def exit_code(self) -> int | None:
        """Returns how the process ended, whose end of the pipe is closed."""
        self.process.join(_PATIENCE)
        code: int | None = self.process.exitcode
        return code


def work(pipe: Any) -> None:
    """Does jobs as long as there are any. This is what a worker runs.

    One that is told to stop leaves no half-written file behind. What is heavy is imported before the first job: a time
    limit is for the model alone.
    """

    def stop(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    with suppress(ImportError):  # each job says so
        import onnx_convert.api  # noqa: F401
    with suppress(OSError, EOFError):  # the parent is gone, or wants no more
        pipe.send(READY)
        while True:
            content = pipe.recv_bytes()
            try:
                answer = pickle.dumps(perform(pickle.loads(content)))  # noqa: S301 - from our parent
            except Exception as error:  # noqa: BLE001 - pickling runs the code of whatever it is
                answer = pickle.dumps(f"{type(error).__name__}: {error}")
            pipe.send_bytes(answer)


def refuse_in_worker() -> None:
    """Ends a worker that is about to start workers: the script that it imports asks for them without looking whether it
    is the main one. Its parent says so."""
    if multiprocessing.current_process().name == _NAME:
        raise SystemExit(_UNGUARDED)


def _crashed(job: Job, how: str) -> Outcome:
    return _ended(job, CRASHED, f"the process that converted it did not survive ({how})")


def _ended(job: Job, status: str, message: str) -> Outcome:
    return Outcome(job.name, job.source, job.destination, status, InvalidModelError.exit_code, message)
