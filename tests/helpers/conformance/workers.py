# SPDX-License-Identifier: Apache-2.0
"""Spreads cases over worker processes. A worker that dies or hangs costs one target of one case: it is replaced, the
target gets a verdict that says so, and the case goes on with the next target."""

from __future__ import annotations

import multiprocessing
import os
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from multiprocessing.connection import Connection, wait

from conformance.converters import Converter
from conformance.corpus import Case
from conformance.judge import CRASH, INVALID, UNVERIFIABLE, Record, Trial

SECONDS_TO_START = 60.0  # a worker imports a lot
SECONDS_A_STEP = 60.0  # a step is one conversion, one check or one evaluation
CASES_A_WORKER = 300  # then it is replaced, so that nothing piles up

Task = tuple[Case, list[int]]


def run(tasks: Sequence[Task], convert: Converter, jobs: int, limit: float = SECONDS_A_STEP) -> Iterator[Record]:
    """The record of every target of every case, as they come. `convert` has to be picklable."""
    waiting = [task for task in reversed(tasks) if task[1]]
    workers = [_Worker(convert) for _ in range(min(jobs, len(waiting)))]
    try:
        while waiting or any(worker.task for worker in workers):
            for index, worker in enumerate(workers):
                if worker.task is None and waiting:
                    if worker.served >= CASES_A_WORKER:
                        worker.stop()
                        workers[index] = _Worker(convert)
                    workers[index].give(waiting.pop())
            busy = {worker.pipe: worker for worker in workers if worker.task}
            for pipe in wait(list(busy), timeout=0.5):
                yield from busy[pipe].receive()  # type: ignore[index]
            for index, worker in enumerate(workers):
                if worker.task and (worker.dead or time.monotonic() - worker.heard > limit):
                    worker.stop()
                    yield from worker.obituary("died" if worker.dead else f"took more than {limit:g} s")
                    if worker.task[1]:
                        waiting.append(worker.task)
                    workers[index] = _Worker(convert)
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """A process and what it is doing."""

    def __init__(self, convert: Converter) -> None:
        context = multiprocessing.get_context("spawn")  # forking after onnxruntime has started its threads can hang
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, convert), daemon=True)
        self.process.start()
        theirs.close()
        self.task: Task | None = None
        self.served = 0
        self.dead = False
        self.phase: tuple[int, str] = (0, "source")
        self.heard = time.monotonic() + SECONDS_TO_START

    def give(self, task: Task) -> None:
        self.task, self.phase = task, (0, "source")
        self.heard = max(self.heard, time.monotonic())
        self.served += 1
        self.pipe.send(task)

    def receive(self) -> Iterator[Record]:
        self.heard = time.monotonic()
        try:
            kind, content = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            self.dead = True
            return
        if kind == "broken":
            raise RuntimeError(content)
        if kind == "at":
            self.phase = content
        elif kind == "record":
            assert self.task
            self.task = (self.task[0], [t for t in self.task[1] if t != content["target"]])
            yield content
        else:
            self.task = None

    def obituary(self, end: str) -> Iterator[Record]:
        """The records of the targets that the end of the process has cost."""
        assert self.task
        case, targets = self.task
        target, phase = self.phase
        lost = [target] if target else targets  # 0: it was still busy with the source
        verdict = {"source": UNVERIFIABLE, "convert": CRASH}.get(phase, INVALID)
        for one in lost:
            direction = "up" if one > case.opset else "down"
            yield {
                "case": case.id,
                "operator": case.operator,
                "opset": case.opset,
                "target": one,
                "direction": direction,
                "verdict": verdict,
                "why": f"the process {end} ({phase})",
            }
        self.task = (case, [t for t in targets if t not in lost])

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(pipe: Connection, convert: Converter) -> None:
    warnings.simplefilter("ignore")  # numpy and onnx warn about the data of many cases
    for stream in (1, 2):  # and C++ code about the models, not always through its log
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    while True:
        try:
            case, targets = pipe.recv()
        except EOFError:
            return
        try:
            _announce(pipe, 0, "source")
            trial = Trial(case)
            for target in targets:
                at = partial(_announce, pipe, target)
                pipe.send(("record", trial.judge(target, convert, at)))
        except Exception:  # noqa: BLE001 (a fault of these tests themselves has to be seen)
            pipe.send(("broken", f"{case.id}: {traceback.format_exc()}"))
        pipe.send(("done", None))


def _announce(pipe: Connection, target: int, phase: str) -> None:
    pipe.send(("at", (target, phase)))
