# SPDX-License-Identifier: Apache-2.0
"""Sees to worker processes that may die or hang: which model it was is known, and the others go on.

Each has a pipe of its own. It is handed jobs one by one, the next one before it is done with the first, and answers in
order: so the first that it has not answered is the one that it did not survive.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from multiprocessing import connection, util
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, NoReturn

from onnx_convert.batch import processes
from onnx_convert.batch.job import CRASHED, TIMED_OUT, Outcome, perform
from onnx_convert.errors import InvalidModelError, UsageError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from onnx_convert.batch.job import Job

_NAME: Final = "a worker of onnx-convert"
_UNGUARDED: Final = 64  # the exit code of a worker whose script would start workers itself
_ATTEMPTS: Final = 3  # workers that may fail to start, one after the other
_PATIENCE: Final = 3.0  # seconds that a worker has to clean up
_AHEAD: Final = 2  # jobs that a worker has at once, as long as there are many
_UNSEEN: Final = 4  # outcomes for each worker that the caller has not taken, until they wait for it
_NAP: Final = 1.0 if sys.platform == "win32" else None  # seconds; there, Ctrl-C does not reach what waits for ever
_MOST: Final = 30 if sys.platform == "win32" else 10_000  # there, nobody can wait for more than 63 things at once
READY: Final = "ready"


class Pool:
    """Jobs and the processes that do them, at most `count`; one that is at a job for more than `timeout` seconds is
    ended. A thread sees to them, so that they are ended in time and have work while the caller is busy with an outcome.
    """

    def __init__(self, jobs: Iterable[Job], count: int, timeout: float | None) -> None:
        self._waiting = deque(jobs)
        self._count = min(count, len(self._waiting), _MOST)
        self._timeout = timeout
        self._workers: list[_Worker] = []
        self._leaving: list[_Worker] = []
        self._failures = 0
        self._ended: SimpleQueue[Outcome | BaseException | None] = SimpleQueue()
        self._heard, self._bell = connection.Pipe(duplex=False)
        self._closed = self._is_full = False
        self._at_work = ""

    def outcomes(self) -> Generator[Outcome]:
        """Yields an outcome for each job, in the order in which they end; ends all workers in the end."""
        thread = threading.Thread(target=self._run, name="onnx-convert", daemon=True)
        close = util.Finalize(None, self._close, (thread,), exitpriority=0)  # at the latest when the program ends
        try:
            thread.start()
            while (ended := self._next()) is not None:
                if isinstance(ended, BaseException):
                    raise ended
                yield ended
        finally:
            close()

    def at_work(self) -> str:
        """Returns the name of a job that a worker is at, "" if there is none."""
        return self._at_work

    def _next(self) -> Outcome | BaseException | None:
        while True:
            with suppress(Empty):
                ended = self._ended.get(timeout=_NAP)
                if self._is_full:
                    self._ring()
                return ended

    def _close(self, thread: threading.Thread) -> None:
        self._closed = True
        self._ring()
        if thread.is_alive() and thread is not threading.current_thread():  # which may be the one to collect garbage
            thread.join()

    def _ring(self) -> None:
        with suppress(OSError):  # the thread is through
            self._bell.send_bytes(b"!")

    def _run(self) -> None:
        """Sees to the processes until all is done, or nobody wants more."""
        last: BaseException | None = None
        try:
            while not self._closed and self._is_something_to_do():
                self._start()
                self._look()
        except BaseException as error:  # noqa: BLE001 - it is the caller's
            last = error
        for worker in [*self._workers]:
            self._let_go(worker)
        self._ended.put(last)
        while self._leaving:
            connection.wait([worker.process.sentinel for worker in self._leaving], self._time_left())
            self._see_off()

    def _is_something_to_do(self) -> bool:
        return bool(self._waiting) or any(worker.jobs for worker in (*self._workers, *self._leaving))

    def _start(self) -> None:
        """Starts as many workers as have something to do."""
        busy = sum(bool(worker.jobs) for worker in self._workers)
        there = len(self._workers) + sum(worker.is_lost for worker in self._leaving)
        missing = min(self._count, busy + len(self._waiting)) - there
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

    def _look(self) -> None:
        """Waits until something happens, and sees to it."""
        by_pipe = {worker.pipe: worker for worker in self._workers}
        sentinels = [worker.process.sentinel for worker in self._leaving]
        for pipe in connection.wait([self._heard, *by_pipe, *sentinels], self._time_left()):
            if pipe is self._heard:
                self._heard.recv_bytes()
            elif (worker := by_pipe.get(pipe)) is not None:
                self._listen(worker)
        self._see_off()
        for worker in [*self._workers]:
            if self._is_late(worker):
                self._ended.put(_ended(worker.jobs.popleft(), TIMED_OUT, f"not done after {self._timeout:g} s"))
                self._let_go(worker)
            elif worker.is_ready:
                self._hand_out(worker)
        self._at_work = next((worker.jobs[0].name for worker in self._workers if worker.jobs), "")

    def _listen(self, worker: _Worker) -> None:
        said = None
        with suppress(EOFError, OSError):
            said = worker.pipe.recv()
        if said is None:
            self._lose(worker)
            return
        worker.since = time.monotonic()
        if isinstance(said, Outcome):
            worker.jobs.popleft()
            self._ended.put(said)
        elif said != READY:  # what kept it from reading the job, or from telling how it ended
            self._ended.put(_crashed(worker.jobs.popleft(), said))
        worker.is_ready, self._failures = True, 0

    def _hand_out(self, worker: _Worker) -> None:
        ahead = _AHEAD if len(self._waiting) > _AHEAD * self._count else 1
        while self._waiting and len(worker.jobs) < ahead and not self._is_too_much():
            job = self._waiting.popleft()
            try:
                content = pickle.dumps(job)
            except Exception as error:  # noqa: BLE001 - whatever the options are, pickling them runs their code
                why = f"its options cannot be handed to a process ({type(error).__name__}: {error})"
                self._ended.put(_ended(job, CRASHED, why))
                continue
            with suppress(OSError):  # a worker that is gone is noticed at its pipe
                worker.pipe.send_bytes(content)
            worker.since = worker.since if worker.jobs else time.monotonic()
            worker.jobs.append(job)
        if not worker.jobs and not self._waiting:
            self._let_go(worker)

    def _is_too_much(self) -> bool:
        """Returns whether the caller has so many outcomes to see that more have to wait: reports are large."""
        self._is_full = True  # first, so that the caller, who may take one just now, rings
        self._is_full = self._ended.qsize() >= _UNSEEN * self._count
        return self._is_full

    def _let_go(self, worker: _Worker) -> None:
        """Ends a worker; what it has not begun is for others."""
        self._waiting.extendleft(reversed(worker.jobs))
        worker.jobs.clear()
        worker.pipe.close()
        worker.process.terminate()
        worker.until = time.monotonic() + _PATIENCE
        self._workers.remove(worker)
        self._leaving.append(worker)

    def _lose(self, worker: _Worker) -> None:
        """Waits for the end of a worker that says no more; what it was to do next is for others."""
        while len(worker.jobs) > 1:
            self._waiting.appendleft(worker.jobs.pop())
        worker.is_lost = True
        worker.until = time.monotonic() + _PATIENCE
        self._workers.remove(worker)
        self._leaving.append(worker)

    def _see_off(self) -> None:
        """Forgets the workers that have ended, and kills those that do not, such as one that hangs in native code."""
        for worker in [*self._leaving]:
            if worker.process.is_alive():
                if time.monotonic() < worker.until:
                    continue
                worker.process.kill()
                worker.process.join(_PATIENCE)
            self._leaving.remove(worker)
            if worker.is_lost:
                self._name(worker)

    def _name(self, worker: _Worker) -> None:
        """Names the job that a worker did not survive."""
        worker.pipe.close()
        code = worker.process.exitcode
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        if worker.jobs:
            self._ended.put(_crashed(worker.jobs.popleft(), how))
        elif not worker.is_ready:
            self._failures += 1
            if code == _UNGUARDED:
                raise UsageError(
                    "convert_many starts processes that import this script again: call it under "
                    'if __name__ == "__main__":'
                )
        if self._failures >= _ATTEMPTS:
            why = f"no process for it can be started ({how})"
            while self._waiting:
                self._ended.put(_ended(self._waiting.popleft(), CRASHED, why))

    def _is_late(self, worker: _Worker) -> bool:
        return bool(worker.jobs) and self._timeout is not None and time.monotonic() - worker.since > self._timeout

    def _time_left(self) -> float | None:
        """Returns for how many seconds no worker is late."""
        ends = [worker.until for worker in self._leaving]
        if self._timeout is not None:
            ends += [worker.since + self._timeout for worker in self._workers if worker.jobs]
        return max(min(ends) - time.monotonic(), 0.0) + 0.001 if ends else None


class _Worker:
    """A process, this end of its pipe, and the jobs that it has not answered, with the time at which it began the
    first, and until which it has to end."""

    def __init__(self, context: Any) -> None:
        self.pipe, theirs = context.Pipe()
        self.jobs: deque[Job] = deque()
        self.is_ready = self.is_lost = False
        self.since = self.until = 0.0
        self.process = context.Process(target=work, args=(theirs,), name=_NAME, daemon=True)
        self.process.start()
        theirs.close()


def work(pipe: Any) -> None:
    """Does jobs as long as there are any. This is what a worker runs.

    One that is told to stop leaves no half-written file behind. What is heavy is imported before the first job: a time
    limit is for the model alone.
    """

    def stop(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    processes.end_with_parent()
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
