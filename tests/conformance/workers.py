# SPDX-License-Identifier: Apache-2.0
"""Spreads cases over worker processes. A worker that dies or hangs costs one target of one case: it is replaced, the
target gets a verdict that says so, and the case goes on with the next target."""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any

from conformance.converters import CONVERTERS
from conformance.corpus import Case
from conformance.judge import CRASH, INVALID, UNVERIFIABLE, Record, Trial

SECONDS_A_STEP = 60.0  # a step is one conversion, one check or one evaluation
CASES_A_WORKER = 300  # then it is replaced, so that nothing piles up

Task = tuple[Case, list[int]]


@dataclass(frozen=True)
class Setup:
    """What every case of a run has in common: the converter (a key of CONVERTERS) and its options."""

    converter: str = "onnx-convert"
    options: Mapping[str, Any] = field(default_factory=dict)


def run(tasks: Sequence[Task], setup: Setup, jobs: int, limit: float = SECONDS_A_STEP) -> Iterator[Record]:
    """The record of every target of every case, as they come."""
    waiting = [task for task in reversed(tasks) if task[1]]
    workers = [_Worker(setup) for _ in range(min(jobs, len(waiting)))]
    try:
        while waiting or any(worker.task for worker in workers):
            for index, worker in enumerate(workers):
                if worker.task is None and waiting:
                    if worker.served >= CASES_A_WORKER:
                        worker.stop()
                        workers[index] = worker = _Worker(setup)
                    worker.give(waiting.pop())
            busy = {worker.pipe: worker for worker in workers if worker.task}
            for pipe in wait(list(busy), timeout=0.5):
                yield from busy[pipe].receive()  # type: ignore[index]
            for index, worker in enumerate(workers):
                if worker.task and (worker.dead or time.monotonic() - worker.heard > limit):
                    worker.stop()
                    yield from worker.obituary("died" if worker.dead else f"took more than {limit:g} s")
                    if worker.task[1]:
                        waiting.append(worker.task)
                    workers[index] = _Worker(setup)
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """A process and what it is doing."""

    def __init__(self, setup: Setup) -> None:
        context = multiprocessing.get_context("spawn")  # forking after onnxruntime has started its threads can hang
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, setup), daemon=True)
        self.process.start()
        theirs.close()
        self.task: Task | None = None
        self.served = 0
        self.dead = False
        self.phase: tuple[int, str] = (0, "source")
        self.heard = time.monotonic()

    def give(self, task: Task) -> None:
        self.task, self.phase, self.heard = task, (0, "source"), time.monotonic()
        self.served += 1
        self.pipe.send(task)

    def receive(self) -> Iterator[Record]:
        self.heard = time.monotonic()
        try:
            kind, content = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            self.dead = True
            return
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


def _serve(pipe: Connection, setup: Setup) -> None:
    warnings.simplefilter("ignore")  # numpy and onnx warn about the data of many cases
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # and onnxruntime about the models, not always through its log
    convert = partial(CONVERTERS[setup.converter], options=setup.options)
    while True:
        try:
            case, targets = pipe.recv()
        except EOFError:
            return
        trial = Trial(case)
        for target in targets:
            record = trial.judge(target, convert, lambda phase, target=target: pipe.send(("at", (target, phase))))
            pipe.send(("record", record))
        pipe.send(("done", None))
