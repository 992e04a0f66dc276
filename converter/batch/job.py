# SPDX-License-Identifier: Apache-2.0
"""One model of many: what is to be done with it, and how it ended. Both travel between processes and machines."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from onnx_convert.batch.makers import welcome
from onnx_convert.batch.verified import MISMATCH, NOT_THE_SAME, UNVERIFIED, save_verified, stamps_of, why
from onnx_convert.errors import RefusedError, ending
from onnx_convert.storage.journal import is_of, mark
from onnx_convert.storage.replacing import check_replaceable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onnx_convert.conversion import Conversion
    from onnx_convert.report import Report
    from onnx_convert.rewrite.registry import Key
    from onnx_convert.storage.journal import Mark

CONVERTED: Final = "converted"
UNCHANGED: Final = "unchanged"
CHECKED: Final = "checked"
UP_TO_DATE: Final = "up to date"
REFUSED: Final = "refused"
FAILED: Final = "failed"
CRASHED: Final = "crashed"
TIMED_OUT: Final = "timed out"
STATUSES: Final = (
    CONVERTED, UNCHANGED, CHECKED, UP_TO_DATE, UNVERIFIED, MISMATCH, REFUSED, FAILED, CRASHED, TIMED_OUT,
)  # fmt: skip
"""How a model ends: moved; at its opset already (and copied, unless it is replaced in place); planned only; left alone
because an earlier run made the result; converted, but nothing could be compared; kept aside, as it computes something
else; refused; unreadable or wrong; the process did not survive it; it took too
long."""


@dataclass(frozen=True)
class Job:
    """One model to convert. Paths are absolute, since whoever does it may work in another folder.

    `destination` is None if the model is only to be checked. `conversion` and `saving` are the keywords of
    `onnx_convert.convert` and of `Conversion.save`. `guests` are crossings that only the caller's process was told of.
    `verify`: the result takes its place only if it computes the same.
    """

    name: str
    source: str
    destination: str | None
    conversion: Mapping[str, Any]
    saving: Mapping[str, Any] = field(default_factory=dict)
    force: bool = False
    guests: tuple[tuple[Key, str], ...] = ()
    verify: bool = False

    @property
    def in_place(self) -> bool:
        """Whether the result replaces the model."""
        return self.source == self.destination


@dataclass
class Outcome:
    """How one model ended.

    `status` is one of `STATUSES`, `exit_code` the one that the command line would have ended with for this model alone.
    `message` is the error or the first refusal in one line, without the model's path, "" if all went well. `report` is
    the report as plain data, None if there is none; with status "refused" it has the refusals, and under "nearest" and
    "also" the opsets within reach. `marks` tell the content of the files read and written from any other; none if a
    source was changed in the meantime, or somebody else's result took the place of one.
    """

    name: str
    source: str
    destination: str | None = None
    status: str = CONVERTED
    exit_code: int = 0
    message: str = ""
    seconds: float = 0.0
    report: dict[str, Any] | None = None
    files_read: list[str] = field(default_factory=list)
    files_written: list[str] = field(default_factory=list)
    marks: dict[str, Mark] = field(default_factory=dict, repr=False)

    @property
    def ok(self) -> bool:
        """Whether nothing stands in the way of the model."""
        return self.exit_code == 0

    def to_dict(self) -> dict[str, Any]:
        """Returns the outcome as plain data, fit for JSON."""
        plain = asdict(self)
        del plain["marks"]
        return plain


def perform(job: Job) -> Outcome:
    """Does a job; whatever goes wrong is told by the outcome. This is what an executor is handed."""
    started = time.perf_counter()
    outcome = Outcome(job.name, job.source, job.destination)
    try:
        welcome(job.guests)
        report = _check(job) if job.destination is None else _convert(job, outcome)
        outcome.report = report.to_dict()
        if outcome.ok:
            outcome.status = CHECKED if job.destination is None else CONVERTED if report.changed else UNCHANGED
    except RefusedError as error:
        outcome.status, outcome.exit_code, outcome.message = REFUSED, error.exit_code, str(error)
        outcome.report = {
            **error.report.to_dict(),
            "refusals": [refusal.to_dict() for refusal in error.refusals],
            "nearest": error.nearest,
            "also": error.also,
        }
    except Exception as error:  # noqa: BLE001 - one bad model must not end the others
        outcome.status = FAILED
        message, outcome.exit_code = ending(error)
        outcome.message = message.removeprefix(f"{job.source}: ")
    outcome.seconds = time.perf_counter() - started
    return outcome


def _check(job: Job) -> Report:
    from onnx_convert import api

    return api.plan(job.source, **job.conversion)


def _convert(job: Job, outcome: Outcome) -> Report:
    """Converts and writes a model; notes in its outcome which files took part."""
    from onnx_convert import api

    destination = Path(job.destination or "")
    if not job.in_place:
        check_replaceable(destination, force=job.force)
    with api.convert(job.source, **job.conversion) as conversion:
        if conversion.report.changed or not job.in_place:
            destination.parent.mkdir(parents=True, exist_ok=True)
            report = conversion.report
            outcome.files_read = conversion.source_files
            if job.verify:
                _save_verified(job, conversion, outcome)
            else:
                conversion.save(destination, **job.saving)
            made = [report.destination, *report.data_files]
            outcome.files_written = [*made, *report.shared_data]
            marks = {path: mark(path) for path in (*outcome.files_read, *outcome.files_written)}
            ours = all(is_of(marks[path], conversion.written) for path in made)
            outcome.marks = marks if ours and conversion.source_is_there else {}
        elif job.verify:
            conversion.report.notes.append("nothing was changed, so there is nothing to verify")
        return conversion.report


def _save_verified(job: Job, conversion: Conversion, outcome: Outcome) -> None:
    """Writes a model if it computes the same as its source, aside if not; notes in its outcome what came of it."""
    from onnx_convert.verification.run import prepared

    inputs = prepared(job.source, stamps_of(conversion.report))
    found = save_verified(conversion, job.source, job.destination or "", inputs, saving=job.saving)
    if not found.same:
        outcome.status, outcome.message = why(found)
        outcome.exit_code = NOT_THE_SAME
