# SPDX-License-Identifier: Apache-2.0
"""Many models in one call: which are to be done, which are up to date, and how each ended."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import closing, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unicodedata import normalize

from onnx_convert.batch.collection import find
from onnx_convert.batch.job import CONVERTED, STATUSES, UNCHANGED, UP_TO_DATE, Job, Outcome
from onnx_convert.batch.makers import guests, makers
from onnx_convert.batch.pool import refuse_in_worker
from onnx_convert.batch.workers import Elsewhere, Processes
from onnx_convert.errors import UsageError
from onnx_convert.storage.files import tells_case_apart
from onnx_convert.storage.journal import Journal
from onnx_convert.storage.skeleton import PAYLOAD_MINIMUM
from onnx_convert.target.request import requested
from onnx_convert.target.resolve import check_opsets

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from concurrent.futures import Executor

    from typing_extensions import Self

    from onnx_convert.batch.workers import Workers
    from onnx_convert.target.request import Opsets

_WORST_FIRST: Final = (70, 4, 3, 2, 1)


class Batch:
    """Models to be converted or checked. Iterating does them and gives an `Outcome` each, in the order in which they
    end; whoever stops, or calls `close`, leaves what has not begun undone, and the same call again goes on from there.

    `len()` is the number of models, `counts` that of outcomes so far by status, `exit_code` the worst so far.
    """

    def __init__(self, jobs: list[Job], workers: Workers, journal: Journal | None, *, redo: bool) -> None:
        self.jobs = jobs
        self.counts: Counter[str] = Counter(dict.fromkeys(STATUSES, 0))
        self.exit_code = 0
        self._workers = workers
        self._journal = journal
        self._redo = redo
        self._iterator = self._outcomes()

    def __len__(self) -> int:
        return len(self.jobs)

    def __iter__(self) -> Iterator[Outcome]:
        return self._iterator

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancels what has not begun and lets the workers go."""
        self._iterator.close()

    def at_work(self) -> str:
        """Returns the name of a model that a worker is at, "" if that is not known."""
        return self._workers.at_work()

    def _outcomes(self) -> Generator[Outcome]:
        waiting = []
        for job in self.jobs:
            if self._is_current(job):
                yield self._counted(Outcome(job.name, job.source, job.destination, UP_TO_DATE))
            else:
                waiting.append(job)
        if not waiting:
            return
        with closing(self._workers.outcomes(waiting)) as outcomes:
            for outcome in outcomes:
                self._record(outcome)
                yield self._counted(outcome)

    def _counted(self, outcome: Outcome) -> Outcome:
        self.counts[outcome.status] += 1
        codes = (self.exit_code, outcome.exit_code)
        self.exit_code = next((code for code in _WORST_FIRST if code in codes), 0)
        return outcome

    def _is_current(self, job: Job) -> bool:
        if self._journal is None or self._redo or job.destination is None:
            return False
        return self._journal.is_current(job.name, [job.source], job.destination)

    def _record(self, outcome: Outcome) -> None:
        if self._journal is not None and outcome.marks and outcome.status in (CONVERTED, UNCHANGED):
            marks = outcome.marks
            read = {path: marks[path] for path in outcome.files_read}
            written = {path: marks[path] for path in outcome.files_written}
            with suppress(OSError):  # then it is done again next time
                self._journal.add(outcome.name, read, written)


def convert_many(
    models: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    to: Opsets | None = None,
    *,
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
    check: bool = False,
    executor: Executor | None = None,
    workers: int | None = None,
    timeout: float | None = None,
    redo: bool = False,
    force: bool = False,
    verify: bool = False,
    external: str = "keep",
    size_threshold: int = PAYLOAD_MINIMUM,
    overwrite_data: bool = False,
    **options: Any,
) -> Batch:
    """Converts many models, each as `convert` and `save` do it, with worker processes; one that fails does not stop the
    others.

    Args:
        models: files, folders (their whole trees) and patterns. Results keep the tree below the folder that all of
            them have in common.
        to: as for `convert`.
        output: the folder for the results. What an earlier call made there of the same model with the same options is
            left as it is.
        in_place: instead of `output`, replace each model that changes.
        check: instead of `output`, plan only.
        executor: a `concurrent.futures.Executor` that does the work, on machines that see the same files under the same
            paths; else processes of this machine.
        workers: how many processes, as many as there are cores unless told.
        timeout: seconds after which the process that is at a model is killed, and goes on with the next one.
        redo: convert also what is up to date.
        force: replace also files that are no ONNX models.
        verify: run each model and its result on the same inputs; a result that computes something else does not take
            its place, and is kept beside it.
        external: as for `Conversion.save`.
        size_threshold: as for `Conversion.save`.
        overwrite_data: as for `Conversion.save`.
        options: the other keywords of `convert`: `runtime`, `types`, `exact` ...

    Returns a `Batch`, whose iteration does the work. A script that has the processes made has to ask for
    `if __name__ == "__main__"`, as with any pool. UsageError if the request makes no sense for any model.
    """
    if executor is None:
        refuse_in_worker()
    conversion = {"to": to, **options}
    request = requested(**{"runtime": None, "ir_version": None, **conversion})
    check_opsets(to)
    if (output is not None) + in_place + check != 1:
        raise UsageError("many models need one of: a folder for the results, in_place, check")
    if verify and check:
        raise UsageError("check makes no results that could be verified")
    folder = Path(output) if output is not None else None
    if folder is not None and folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: many models need a folder for the results, and this is a file")
    who = _workers(executor, workers, timeout)
    given = [models] if isinstance(models, str | os.PathLike) else [*models]
    layout = {"external": external, "size_threshold": size_threshold}
    saving, known = {**layout, "overwrite_data": overwrite_data}, guests()
    jobs = []
    for path, name in find(given, leave_out=folder):
        source = str(path.absolute())
        destination = source if in_place else str((folder / name).absolute()) if folder is not None else None
        if not in_place and destination is not None and _are_one_file(destination, source):
            raise UsageError(f"{path}: its result would take its place: name another folder, or convert in place")
        jobs.append(Job(name, source, destination, conversion, saving, force, known, verify))
    journal = None
    if folder is not None:
        _check_apart(jobs)
        folder.mkdir(parents=True, exist_ok=True)
        _check_distinct(jobs, folder)
        recipe = {"request": repr(request), "layout": layout} | ({"verified": True} if verify else {})
        journal = Journal(folder, lambda: {**recipe, "makers": makers()})
    return Batch(jobs, who, journal, redo=redo)


def _workers(executor: Executor | None, count: int | None, timeout: float | None) -> Workers:
    """Returns who does the jobs: somebody's executor, or processes of this machine."""
    if executor is not None and (count is not None or timeout is not None):
        raise UsageError("the number of workers and the time limit are the executor's affair")
    if count is not None and count < 1:
        raise UsageError(f"{count} workers do nothing")
    if timeout is not None and not timeout > 0:
        raise UsageError(f"{timeout} s is no time limit")
    return Processes(count, timeout) if executor is None else Elsewhere(executor)


def _check_apart(jobs: list[Job]) -> None:
    """Raises UsageError if the result of one model would take the place of another."""
    folder_of = lru_cache(maxsize=None)(os.path.realpath)

    def place(path: str) -> str:
        folder, name = os.path.split(path)
        return os.path.realpath(path) if os.path.islink(path) else os.path.join(folder_of(folder), name)

    sources = {place(job.source): job.source for job in jobs}
    for job in jobs:
        if job.destination is not None and (other := sources.get(place(job.destination))) is not None:
            raise UsageError(f"{other}: is one of the models, and the result of {job.source} would take its place")


def _check_distinct(jobs: list[Job], folder: Path) -> None:
    """Raises UsageError if the names of two results are one where they go: there, case may make no difference."""
    by_name: dict[str, list[str]] = {}
    for job in jobs:
        by_name.setdefault(normalize("NFC", job.name).casefold(), []).append(job.name)
    for first, *others in by_name.values():
        if others and not tells_case_apart(folder):
            raise UsageError(f"{folder}: is on a file system for which {first!r} and {others[0]!r} are one name")


def _are_one_file(path: str, other: str) -> bool:
    with suppress(OSError):
        return os.path.samefile(path, other)
    return False
