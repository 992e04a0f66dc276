# SPDX-License-Identifier: Apache-2.0
"""Puts a result into its place once it is known to compute the same.

Until then it is a temporary file, which is removed if verification dies of it; if it differs, it is called `.mismatch`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from onnx_convert.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onnx_convert.conversion import Conversion
    from onnx_convert.report import Report
    from onnx_convert.storage.writer import Progress
    from onnx_convert.verification.outcome import Verification
    from onnx_convert.verification.run import Prepared

NOT_THE_SAME: Final = 3
"""The exit code where source and result differ, or could not be compared."""
MISMATCH: Final = "mismatch"
UNVERIFIED: Final = "unverified"


def why(found: Verification) -> tuple[str, str]:
    """Returns what is said of source and result that are not known to compute the same: a title, and the reason in one
    line."""
    if found.verdict == UNVERIFIED:
        return UNVERIFIED, f"not verified: {found.reason}"
    where = f"; the result is kept as {found.kept}" if found.kept else ""
    first = found.first
    node = f"; first at {first.operator} {first.node!r}" if first is not None and first.node not in found.reason else ""
    unseen = bool(found.runs) and all(run.agrees for run in found.runs)  # the outputs are the same
    says = "is another model than it should be" if unseen else "computes something else"
    return MISMATCH, f"{says}: {found.reason}{node}{where}"


def save_verified(
    conversion: Conversion,
    source: str | bytes,
    path: str,
    inputs: Prepared,
    *,
    saving: Mapping[str, Any],
    progress: Progress | None = None,
) -> Verification:
    """Saves what was converted beside its place, verifies it, and puts it there if it computes the same; where nothing
    can be compared, it goes there too.

    `saving` are the keywords of `Conversion.save`.
    """
    from onnx_convert.storage.files import aside, take_place
    from onnx_convert.verification.outcome import DIFFERENT
    from onnx_convert.verification.run import verify
    from onnx_convert.verification.subjects import Subject

    place = Path(path)
    if place.exists() and not place.is_file():
        raise UsageError(f"{path}: is no file; --verify needs one")
    kept, folder = beside(place, "mismatch")
    name = saving.get("external_name") or f"{place.name}.data"
    report = conversion.report

    def save(temporary: Path) -> None:
        conversion.save(str(temporary), progress=progress, **{**saving, "external_name": name})

    with aside(place, save) as temporary:
        with Subject(source, stamps_of(report)) as before, Subject(temporary) as after:
            found = verify(before, after, inputs, report, folder)
        found.result = path
        conversion.close()
        if found.verdict == DIFFERENT:
            take_place(temporary, kept)
            found.kept = found.result = report.destination = str(kept)
        else:
            report.replaced = take_place(temporary, place)
            report.destination = path
    report.verified = found.to_dict()
    return found


def stamps_of(report: Report) -> dict[str, int]:
    """Returns the opsets that the source of a conversion was read at where its stamp says otherwise."""
    return {domain: report.opsets_before[domain] for domain in report.stamped}


def beside(place: Path, word: str) -> tuple[Path, Path]:
    """Returns a file and a folder beside a place, both new: `m.mismatch.onnx` and `m.mismatch-report`."""
    number = 1
    while True:
        name = f"{place.stem}.{word}" + (f"-{number}" if number > 1 else "")
        file, folder = place.with_name(f"{name}{place.suffix}"), place.with_name(f"{name}-report")
        if not file.exists() and not folder.exists():
            return file, folder
        number += 1
