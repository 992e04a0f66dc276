# SPDX-License-Identifier: Apache-2.0
"""Describes, checks or converts one model as it was asked for, and tells what came of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from onnx_convert.cli import github, places, printing, report_file, signals, tables, verification
from onnx_convert.cli.page.data import report_data, with_texts
from onnx_convert.cli.places import STREAM
from onnx_convert.errors import InvalidModelError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx_convert.cli.settings import Settings
    from onnx_convert.conversion import Conversion
    from onnx_convert.report import Report
    from onnx_convert.verification.outcome import Verification


def run(asked: Settings, imported: Callable[[], None]) -> int:
    """Does what was asked for with one model; returns the exit code. Calls `imported` once all imports that take time
    are done."""
    try:
        with signals.held_back():
            import onnx_convert.api  # noqa: F401 - and with it all that is heavy

        imported()
        if asked.verify_against is not None:
            return verification.of_files(asked)
        if asked.report:
            report_file.check(asked.report, (asked.model, asked.output), no_clobber=asked.no_clobber)
        if asked.compared:
            return _compared(asked)
        if asked.described:
            return _described(asked)
        report, verified = (_checked(asked), None) if asked.check else _converted(asked)
        _tell(report, verified, asked)
    except RefusedError as error:
        return _refused(error, asked)
    except Exception as error:  # noqa: BLE001 - whatever it is, it ends as one line and an exit code
        if asked.output_format == "github":
            printing.print_lines([github.error(asked.name, "failed", " ".join(str(error).split()))])
        hint = places.model_beside(asked.model) if isinstance(error, InvalidModelError) else ""
        return printing.failed(error, as_json=asked.as_json, debug=asked.debug, hint=hint)
    if verified is not None and (
        code := verification.code(verified, asked.name, report.destination, annotated=asked.output_format == "github")
    ):
        return code
    return printing.WOULD_CHANGE if asked.exit_code and report.changed else 0


def _described(asked: Settings) -> int:
    from onnx_convert import api

    told = api.inspect(asked.source(), **asked.promises())
    if asked.as_json:
        printing.print_json("described", told)
    elif not asked.quiet:
        printing.show([*tables.description_tables(told, verbose=asked.verbose)], sys.stdout)
    return 0


def _compared(asked: Settings) -> int:
    """Prints how the nodes of two models differ."""
    from onnx_convert import api

    text = api.diff(asked.source(), asked.diff)
    if asked.as_json:
        printing.print_json("compared", diff=text)
    elif text or not asked.quiet:
        printing.show_difference(text or "The nodes and the weights are the same.\n", sys.stdout)
    return 0


def _checked(asked: Settings) -> Report:
    from onnx_convert import api

    source = asked.source()
    if asked.diff is None:
        return api.plan(source, asked.target(), **asked.options())
    with api.convert(source, asked.target(), **asked.options()) as conversion:
        asked.difference = api.diff(source, conversion)
        return conversion.report


def _converted(asked: Settings) -> tuple[Report, Verification | None]:
    """Converts and writes, unless nothing changes and no place was named, and verifies that if it is asked for."""
    from onnx_convert import api

    source, verified = asked.source(), None
    inputs = verification.prepared(asked, source) if asked.verify else None
    with api.convert(source, asked.target(), **asked.options()) as conversion:
        report = conversion.report
        if asked.diff is not None:
            asked.difference = api.diff(source, conversion)
        if report.changed or asked.output is not None or asked.external != "keep":
            stamps = places.stamps_of(report, ir_version=asked.ir_version is not None)
            path = asked.model if asked.in_place else places.destination(asked.model, asked.output, stamps)
            if not asked.in_place:
                places.protect(path, force=asked.force, no_clobber=asked.no_clobber)
            with places.elsewhere(named=asked.output is not None):
                if inputs is not None:
                    verified = verification.of_conversion(conversion, source, path, inputs, asked)
                else:
                    _save(conversion, path, asked)
            if asked.external == "save" and not report.data_files and not report.shared_data:
                least = asked.size_threshold
                report.notes.append(f"no weights have {least} bytes or more: all stay inside, there is no data file")
        elif inputs is not None:
            report.notes.append("nothing was changed, so there is nothing to verify")
    return report, verified


def _save(conversion: Conversion, path: str, asked: Settings) -> None:
    if path == STREAM:
        conversion.write(sys.stdout.buffer, external=asked.external)
        sys.stdout.buffer.flush()
        return
    with printing.progress(shown=not asked.quiet and sys.stderr.isatty()) as progress:
        conversion.save(path, progress=progress, **asked.saving())


def _tell(report: Report, verified: Verification | None, asked: Settings) -> None:
    status = "checked" if asked.check else "converted" if report.changed else "unchanged"
    status = status if verified is None or verified.same else verified.verdict
    stream = sys.stderr if asked.piped else sys.stdout
    if asked.as_json:
        printing.print_json(status, report, **({"diff": asked.difference} if asked.diff is not None else {}))
    elif not asked.quiet:
        parts = tables.report_tables(report, verbose=asked.verbose)
        end = tables.outcome(report, asked.name, checked=asked.check)
        numbers = verification.told(verified, verbose=asked.verbose) if verified is not None else []
        printing.show([*parts, *numbers, *([end] if verified is None or not verified.kept else [])], stream)
    if asked.difference and not asked.as_json:
        printing.show_difference(asked.difference if asked.quiet else f"\n{asked.difference}", stream)
    _write_report(asked, report_data(status, report))


def _write_report(asked: Settings, data: dict[str, Any]) -> None:
    """Writes the report that was asked for. The conversion has succeeded, or failed, without it."""
    if asked.report:
        try:
            report_file.write(asked.report, with_texts(data, asked.command))
        except OSError as error:
            printing.print_warning(f"{asked.report}: the report cannot be written: {report_file.reason(error)}")


def _refused(error: RefusedError, asked: Settings) -> int:
    """Prints every refusal and the way out; returns the exit code."""
    refusals = [refusal.to_dict() for refusal in error.refusals]
    data = report_data("refused", error.report, refusals=refusals, nearest=error.nearest, also=error.also)
    if asked.as_json:
        printing.print_data(data)
    _write_report(asked, data)
    if asked.output_format == "github":
        printing.print_lines(github.of_refusals(asked.name, (refusal._asdict() for refusal in error.refusals)))
    count = len(error.refusals)
    nodes = f"{count} node{'s' if count > 1 else ''} cannot be moved"
    printing.print_error(f"{asked.name}: {error if asked.quiet else nodes}; nothing was written")
    if not asked.quiet and not asked.as_json:
        also = "".join(f" --to {domain}:{version}" for domain, version in error.also.items())
        whom = f", though not for {error.report.runtime}" if error.report.runtime else ""
        nearest = f"{'Within reach' if also else 'The nearest opset within reach'}{whom}: --to {error.nearest}{also}"
        table = tables.refusal_table(error.refusals, verbose=asked.verbose)
        reach = nearest if error.nearest else "No opset on the way is within reach."
        printing.show([table, *tables.remarks(error.report, verbose=asked.verbose), reach], sys.stderr)
    return error.exit_code
