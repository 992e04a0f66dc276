# SPDX-License-Identifier: Apache-2.0
"""Has source and result compared, and says what came of it: beside a conversion, or of two files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onnx_convert.batch.verified import MISMATCH, NOT_THE_SAME, beside, save_verified, why
from onnx_convert.cli import github, printing
from onnx_convert.cli.tables import Table, compared

if TYPE_CHECKING:
    from onnx_convert.cli.settings import Settings
    from onnx_convert.conversion import Conversion
    from onnx_convert.verification.outcome import Output, Verification
    from onnx_convert.verification.run import Prepared

_FEW: Final = 8  # outputs in a table


def prepared(asked: Settings, source: str | bytes) -> Prepared:
    """Returns the inputs of a verification, read and checked before anything else is done."""
    from onnx_convert.verification import run

    return run.prepared(source, asked.stamps(), asked.inputs, asked.shapes())


def of_files(asked: Settings) -> int:
    """Compares two files; returns the exit code."""
    from onnx_convert.verification.run import verify
    from onnx_convert.verification.subjects import Subject

    source = asked.source()
    inputs = prepared(asked, source)
    with Subject(source, asked.stamps()) as before, Subject(asked.verify_against) as after:
        found = verify(before, after, inputs, bundle=beside(Path(asked.verify_against), "mismatch")[1])
    if asked.as_json:
        printing.print_json(found.verdict, verified=found.to_dict())
    elif not asked.quiet:
        printing.show([*told(found, verbose=asked.verbose)], sys.stdout)
    return code(found, asked.name, asked.verify_against)


def of_conversion(
    conversion: Conversion, source: str | bytes, path: str, inputs: Prepared, asked: Settings
) -> Verification:
    """Saves what was converted beside its place, verifies it, and puts it there if it computes the same; where nothing
    can be compared, it goes there too."""
    with printing.progress(shown=not asked.quiet and sys.stderr.isatty()) as progress:
        return save_verified(conversion, source, path, inputs, saving=asked.saving(), progress=progress)


def code(found: Verification, name: str, result: str, *, annotated: bool = False) -> int:
    """Returns the exit code, and says in one line why it is not 0, as an annotation of GitHub too if that is asked
    for."""
    if found.same:
        return 0
    title, text = why(found)
    if annotated:
        printing.print_lines([github.error(name, title, text)])
    printing.print_error(f"{result if title == MISMATCH and not found.kept else name}: {text}")
    return NOT_THE_SAME


def told(found: Verification, *, verbose: bool = False) -> list[Table | str]:
    """Returns what was compared, and how far apart it is."""
    rows: list[tuple[str, ...]] = []
    for run in found.runs if verbose else ():
        rows += [(run.inputs, *_row(output)) for output in run.outputs] or [(run.inputs, run.why)]
    if not verbose:
        rows = [_row(output) for output in found.outputs[:_FEW]]
    header = ("Output", "Dtype", "Elements", "Differing", "Max abs", "Max rel", "Ulp")
    first = 1 if verbose else 0
    right = tuple(range(2 + first, 7 + first))
    more = len(found.outputs) - _FEW
    table = Table(
        ("Inputs", *header) if verbose else header,
        rows,
        right,
        caption=f"and {more} more outputs" if more > 0 and not verbose else "",
    )
    return [*([table] if rows else []), *_remarks(found, verbose), *([_summary(found)] if found.runs else [])]


def _summary(found: Verification) -> str:
    """Returns the verdict in one line."""
    from onnx_convert.verification.evaluators import version_of

    evaluators = dict.fromkeys((found.source_evaluator, found.result_evaluator))
    count = len(found.runs)
    sets = f"{count} set{'s' if count > 1 else ''} of inputs"
    where = " and ".join(version_of(evaluator) for evaluator in evaluators if evaluator)
    wrong = f"{sum(not run.agrees for run in found.runs)} of them computed otherwise"
    what = compared(found.to_dict()) if found.same else wrong
    return f"compared on {where}, {sets}: {what}"


def _row(output: Output) -> tuple[str, ...]:
    if output.random:
        return (output.name, output.dtype, str(output.elements), "random", "", "", "")
    if not output.dtype:
        return (output.name, output.why)
    ulp = "" if output.max_ulp is None else str(output.max_ulp)
    numbers = (f"{output.max_abs:.3g}", f"{output.max_rel:.3g}", ulp) if output.differing else ("0", "0", "0")
    return (output.name, output.dtype, str(output.elements), str(output.differing), *numbers)


def _remarks(found: Verification, verbose: bool) -> list[Table]:
    rows: list[tuple[str, ...]] = [("note:", note) for note in found.notes]
    if found.skipped and verbose:
        rows += [("note:", f"the source does not run on {name}: {why}") for name, why in found.skipped.items()]
    elif found.skipped:
        rows.append(("note:", f"the source does not run on {', '.join(found.skipped)}: left out"))
    if (first := found.first) is not None:
        by = f" (adapter {first.adapter})" if first.adapter else ""
        became = f"became {', '.join(first.became)}{by}" if first.became else "is as it was"
        rows.append(("first:", f"{first.operator} {first.node!r}, which {became}: {first.value!r} is another value"))
        if first.folder:
            rows.append(("report:", f"{first.folder} holds the nodes around it, and the inputs"))
    return [Table((), rows)] if rows else []
