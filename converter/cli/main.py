# SPDX-License-Identifier: Apache-2.0
"""The command line: options, exit codes, and what is printed where.

Imports click and nothing else that takes time, so that `--help` answers at once; onnx comes with the first model, rich
with the first terminal. What is printed goes to stdout, or to stderr when the model itself goes to stdout; errors and
refusals go to stderr. Exit codes are those of `onnx_convert.errors`, 0 for done, 5 for `--check --exit-code` of a model
that would change, and 128 and the signal's number for an interrupt.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import time
import traceback
from typing import IO, TYPE_CHECKING, Any, Final, NoReturn

import click

from onnx_convert.cli import hints, places, signals, streams, tables
from onnx_convert.cli.places import STREAM
from onnx_convert.errors import InternalError, InvalidModelError, OnnxConvertError, RefusedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from onnx_convert.conversion import Conversion
    from onnx_convert.reference.model_summary import Description
    from onnx_convert.report import Report
    from onnx_convert.storage.writer import Progress

WOULD_CHANGE: Final = 5
PATIENCE: Final = 1.0  # seconds of copying before a progress bar appears
GROUPS: Final = {
    "Target": ("--to", "--for", "--ir-version", "--check", "--exit-code"),
    "Output": ("--output", "--in-place", "--force", "--no-clobber"),
    "Promises": (
        "--types",
        "--exact",
        "--allow",
        "--strict",
        "--expand",
        "--keep-functions",
        "--keep-initializer-inputs",
    ),
    "External data": ("--save-external-data", "--embed", "--overwrite-data", "--external-data-size-threshold"),
    "Knowledge (no MODEL)": ("--list-runtimes", "--explain", "--coverage"),
    "Other": ("--json", "--quiet", "--verbose", "--debug", "--version", "--help"),
}


class _Command(click.Command):
    """Options in groups and aligned throughout; every error in one line; an exit code of our own for each ending."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        records = {max(option.opts, key=len): option.get_help_record(ctx) for option in self.get_params(ctx)}
        width = 32
        for title, names in GROUPS.items():
            with formatter.section(title):
                rows = [record for name in names if (record := records[name])]
                formatter.write_dl([(term.ljust(width), text) for term, text in rows], col_max=width)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        line = [*args]
        try:
            rest = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if hint := hints.of_option(error.option_name, line):
                raise click.UsageError(hint, ctx) from error
            raise
        if ctx.args:
            raise click.UsageError(hints.of_arguments(ctx.args), ctx)
        if "" in (ctx.params.get("model"), ctx.params.get("output")):
            raise click.UsageError("A file name is empty.", ctx)
        return rest

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        streams.open_those_that_are_closed()
        try:
            with signals.ended_by_signals():
                code = super().main(*args, **{**extra, "standalone_mode": False})
        except click.ClickException as error:
            code = error.exit_code
            _error(f"{error.format_message()} (try --help)")
        except click.Abort:
            code = 130
        sys.exit(code)


def _opset(text: str) -> tuple[str, int | str]:
    """Reads `14`, `latest`, `ai.onnx.ml:3` or `ai.onnx.ml:latest`, as (domain, opset)."""
    domain, _, version = text.rpartition(":")
    if version != "latest" and not (version.isdecimal() and int(version) > 0):
        raise click.BadParameter(f"{text!r} is not an opset; give a number, latest, or DOMAIN:NUMBER.")
    return domain or "ai.onnx", version if version == "latest" else int(version)


@click.command(
    cls=_Command,
    context_settings={"help_option_names": ["-h", "--help"], "allow_extra_args": True},
    options_metavar="[OPTIONS]",
    epilog="Exit codes: 0 done, 1 refused, 2 usage, 4 unreadable, 5 would change.",
)
@click.argument("model", metavar="MODEL", required=False, type=click.Path(readable=False))
@click.option("--to", multiple=True, type=_opset, metavar="OPSET", help="14, latest; once per domain: ai.onnx.ml:3")
@click.option("--for", "runtimes", multiple=True, metavar="RUNTIME", help="what has to load it: onnxruntime@1.14")
@click.option("--list-runtimes", is_flag=False, flag_value="", metavar="[NAME]", help="what --for knows, and how well")
@click.option("--explain", metavar="OPERATOR", help="what becomes of it: Softmax, Softmax@13")
@click.option("--coverage", is_flag=True, help="what is decided, for every operator")
@click.option("--ir-version", type=int, metavar="N", help="instead of the one of the opset")
@click.option("-o", "--output", type=click.Path(readable=False), metavar="PATH", help="file or folder, - for stdout")
@click.option("--in-place", is_flag=True, help="replace MODEL itself")
@click.option("-f", "--force", is_flag=True, help="replace a file that is no ONNX model too")
@click.option("--no-clobber", is_flag=True, help="replace no file")
@click.option("--check", is_flag=True, help="plan only, write nothing")
@click.option("--exit-code", is_flag=True, help="with --check: 5 if it would change")
@click.option(
    "--types",
    type=click.Choice(["refuse", "cast", "cast-rounding"]),
    default="refuse",
    metavar="HOW",
    help="lacking dtypes: refuse, cast, cast-rounding",
)
@click.option("--exact", is_flag=True, help="only rewrites that give the same bits")
@click.option(
    "--allow",
    multiple=True,
    type=click.Choice(["conditional"]),
    metavar="FORM",
    help="conditional: right under a condition",
)
@click.option("--strict", is_flag=True, help="refuse what is unknown, assume nothing")
@click.option("--expand", type=click.Choice(["all"]), metavar="WHAT", help="all: very large replacements as well")
@click.option("--keep-functions", is_flag=True, help="refuse instead of inlining functions")
@click.option("--keep-initializer-inputs", is_flag=True, help="from IR version 3: they stay inputs")
@click.option(
    "--save-external-data",
    "external_name",
    is_flag=False,
    flag_value="",
    metavar="[NAME]",
    help="weights to a file beside the output",
)
@click.option("--embed", is_flag=True, help="weights into the output")
@click.option("--overwrite-data", is_flag=True, help="replace data files that exist already")
@click.option(
    "--external-data-size-threshold",
    "size_threshold",
    type=int,
    default=1024,
    metavar="N",
    help="weights below N bytes stay inside [1024]",
)
@click.option("--json", "as_json", is_flag=True, help="report as JSON on stdout")
@click.option("-q", "--quiet", is_flag=True, help="errors only")
@click.option("-v", "--verbose", is_flag=True, help="each rewrite and node name")
@click.option("--debug", is_flag=True, help="tracebacks")
@click.version_option(package_name="onnx-convert", message="%(prog)s %(version)s", help="print the version")
def main(
    model: str | None,
    to: tuple[tuple[str, int | str], ...],
    runtimes: tuple[str, ...],
    list_runtimes: str | None,
    explain: str | None,
    coverage: bool,
    ir_version: int | None,
    output: str | None,
    in_place: bool,
    force: bool,
    no_clobber: bool,
    check: bool,
    exit_code: bool,
    types: str,
    exact: bool,
    allow: tuple[str, ...],
    strict: bool,
    expand: str | None,
    keep_functions: bool,
    keep_initializer_inputs: bool,
    external_name: str | None,
    embed: bool,
    overwrite_data: bool,
    size_threshold: int,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    debug: bool,
) -> int:
    """Move an ONNX model to another opset (MODEL.opsetN.onnx), or tell what it is.

    ai.onnx.ml goes down with ai.onnx, and up only by a --to of its own.
    """
    _prepare(sys.stdout, sys.stderr)
    if list_runtimes is not None:
        return _list_runtimes(list_runtimes, as_json=as_json, debug=debug)
    if explain is not None or coverage:
        return _tell(explain, as_json=as_json, debug=debug)
    if model is None and external_name:  # `--save-external-data MODEL`: the one thing given is the model
        model, external_name = external_name, ""
    if model is None:
        raise click.UsageError("Missing argument 'MODEL'.")
    external = "embed" if embed else "keep" if external_name is None else "save"
    runtime = runtimes[0] if runtimes else None
    described = not to and runtime is None and ir_version is None
    _check_usage(click.get_current_context().params, described=described)
    if output is None and model == STREAM:
        output = STREAM
    if output in streams.STDOUT_NAMES:
        output = STREAM
    piped = output == STREAM and not check and not described
    if piped and (as_json or external == "save"):
        raise click.UsageError("--json and --save-external-data need the model in a file: use -o.")
    if piped and sys.stdout.isatty():
        raise click.UsageError("The model would go to the terminal: use -o.")
    screen = sys.stderr if piped else sys.stdout

    promises: dict[str, Any] = {
        "types": types,
        "exact": exact,
        "allow": allow,
        "strict": strict,
        "expand": expand or "",
        "keep_functions": keep_functions,
    }
    saving = {
        "external": external,
        "external_name": external_name or None,
        "size_threshold": size_threshold,
        "overwrite_data": overwrite_data,
    }

    try:
        from onnx_convert import api

        source: str | bytes = sys.stdin.buffer.read() if model == STREAM else model
        if described:
            _describe(api.inspect(source, **promises), as_json=as_json, quiet=quiet, verbose=verbose)
            return 0
        options = {
            **promises,
            "runtime": runtime,
            "ir_version": ir_version,
            "keep_initializer_inputs": keep_initializer_inputs,
        }
        if check:
            report = api.plan(source, _target(to), **options)
        else:
            with api.convert(source, _target(to), **options) as conversion:
                report = conversion.report
                if report.changed or output is not None or external != "keep":
                    path = (
                        model if in_place else places.destination(model, output, report.opsets_after.get("ai.onnx", 0))
                    )
                    if not in_place:
                        places.protect(path, force=force, no_clobber=no_clobber)
                    with places.elsewhere(named=output is not None):
                        _save(conversion, path, saving, bar=not quiet)
        if as_json:
            _print_json("checked" if check else "converted" if report.changed else "unchanged", report)
        elif not quiet:
            parts = tables.report_tables(report, verbose=verbose)
            _show([*parts, tables.outcome(report, "stdin" if model == STREAM else model, checked=check)], screen)
    except RefusedError as error:
        return _refused(error, model, as_json=as_json, quiet=quiet, verbose=verbose)
    except Exception as error:  # noqa: BLE001 - whatever it is, it ends as one line and an exit code
        return _failed(error, as_json=as_json, debug=debug)
    return WOULD_CHANGE if exit_code and report.changed else 0


def _check_usage(given: dict[str, Any], *, described: bool) -> None:
    """Raises UsageError for options that contradict each other. `described` says that MODEL is not to be converted."""
    saves = given["external_name"] is not None
    runtimes = given["runtimes"]
    without = ("output", "in_place", "check", "embed", "force", "no_clobber")
    if given["embed"] and saves:
        raise click.UsageError("--embed and --save-external-data exclude each other.")
    if len(runtimes) > 1:
        raise click.UsageError(
            f"--for takes one runtime, not {len(runtimes)} ({', '.join(runtimes)}): run once for each."
        )
    if given["to"] and runtimes:
        raise click.UsageError("--to and --for exclude each other.")
    if described and (saves or any(given[name] for name in without)):
        raise click.UsageError("Missing option '--to' or '--for'.")
    if given["exit_code"] and not given["check"]:
        raise click.UsageError("--exit-code needs --check.")
    if given["no_clobber"] and (given["force"] or given["in_place"]):
        raise click.UsageError(f"--no-clobber excludes {'--force' if given['force'] else '--in-place'}.")
    if given["in_place"] and (given["output"] is not None or given["model"] == STREAM):
        raise click.UsageError("--in-place needs MODEL to be a file, and excludes -o.")


def _prepare(*streams: IO[str]) -> None:
    """Prepares the streams: a file name need not be text, nor a terminal speak UTF-8."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _list_runtimes(name: str, *, as_json: bool, debug: bool) -> int:
    """Prints what is known of all runtimes, or of one; returns the exit code."""
    from onnx_convert.target import runtimes

    try:
        rows = runtimes.rows_of(name) if name else runtimes.listed()
    except UsageError as error:
        return _failed(error, as_json=as_json, debug=debug)
    if as_json:
        _print_data([row.to_dict() for row in rows])
    else:
        _show([*tables.runtime_tables(rows)], sys.stdout)
    return 0


def _tell(operator: str | None, *, as_json: bool, debug: bool) -> int:
    """Prints what is known of an operator, or of all of them if none is named; returns the exit code."""
    try:
        from onnx_convert.cli import operator_tables
        from onnx_convert.reference import operators

        told = operators.coverage() if operator is None else operators.explain(operator)
        if as_json:
            _print_data(told.to_dict())
        else:
            _show(operator_tables.tables(told), sys.stdout)
    except Exception as error:  # noqa: BLE001 - whatever it is, it ends as one line and an exit code
        return _failed(error, as_json=as_json, debug=debug)
    return 0


def _describe(told: Description, *, as_json: bool, quiet: bool, verbose: bool) -> None:
    if as_json:
        _print_json("described", told)
    elif not quiet:
        _show([*tables.description_tables(told, verbose=verbose)], sys.stdout)


def _target(to: Sequence[tuple[str, int | str]]) -> dict[str, int | str] | None:
    """Returns the opsets by domain, as the API takes them; None if only the IR version is to change."""
    target = dict(to)
    if len(target) < len(to):
        raise UsageError("--to names a domain twice")
    return target or None


def _save(conversion: Conversion, path: str, saving: dict[str, Any], *, bar: bool) -> None:
    if path == STREAM:
        conversion.write(sys.stdout.buffer, external=saving["external"])
        sys.stdout.buffer.flush()
        return
    with _progress(shown=bar and sys.stderr.isatty()) as progress:
        conversion.save(path, progress=progress, **saving)


@contextlib.contextmanager
def _progress(*, shown: bool) -> Iterator[Progress | None]:
    """Yields what to tell the progress of a copy, which is drawn once it has taken a while; None if it is not to be
    shown."""
    with contextlib.ExitStack() as stack:
        started = time.monotonic()
        draw: Progress | None = None

        def advance(done: int, total: int, name: str) -> None:
            nonlocal draw
            if draw is None and time.monotonic() - started > PATIENCE:
                draw = _bar(stack)
            if draw is not None:
                draw(done, total, name)

        yield advance if shown else None


def _bar(stack: contextlib.ExitStack) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    bar = stack.enter_context(Progress(*columns, console=Console(stderr=True), transient=True))
    task = bar.add_task("")
    return lambda done, total, name: bar.update(task, completed=done, total=total, description=name)


def _refused(error: RefusedError, model: str, *, as_json: bool, quiet: bool, verbose: bool) -> int:
    """Prints every refusal and the way out; returns the exit code."""
    if as_json:
        refusals = [refusal._asdict() for refusal in error.refusals]
        _print_json("refused", error.report, refusals=refusals, nearest=error.nearest, also=error.also)
    count = len(error.refusals)
    name = "stdin" if model == STREAM else model
    nodes = f"{count} node{'s' if count > 1 else ''} cannot be moved"
    _error(f"{name}: {error if quiet else nodes}; nothing was written")
    if not quiet and not as_json:
        also = "".join(f" --to {domain}:{version}" for domain, version in error.also.items())
        nearest = f"{'Within reach' if also else 'The nearest opset within reach'}: --to {error.nearest}{also}"
        table = tables.refusal_table(error.refusals, verbose=verbose)
        reach = nearest if error.nearest else "No opset on the way is within reach."
        _show([table, *tables.remarks(error.report, verbose=verbose), reach], sys.stderr)
    return error.exit_code


def _failed(error: Exception, *, as_json: bool, debug: bool) -> int:
    """Prints an error as one line; returns the exit code."""
    if debug:
        traceback.print_exception(error)
    if isinstance(error, OSError):
        text = f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror or str(error)
        code = InvalidModelError.exit_code
    else:
        known = error if isinstance(error, OnnxConvertError) else InternalError(f"{type(error).__name__}: {error}")
        text, code = str(known), known.exit_code
    _error(text)
    if as_json:
        with contextlib.suppress(OSError):  # stdout may be what failed
            _print_json("error", error=text)
    return code


def _print_json(status: str, told: Report | Description | None = None, **more: Any) -> None:
    _print_data({"status": status, **(told.to_dict() if told else {}), **more})


def _print_data(data: Any) -> None:
    with streams.left_by_its_reader(sys.stdout):
        click.echo(json.dumps(data, indent=2, default=str))


def _error(text: str) -> None:
    line = tables.printable(" ".join(text.split()))
    click.echo(f"{click.style('error:', fg='red', bold=True)} {line}", err=True, color=False if _no_color() else None)


def _no_color() -> bool:
    """Returns whether NO_COLOR is set, see no-color.org."""
    return bool(os.environ.get("NO_COLOR"))


def _show(parts: list[tables.Table | str], stream: IO[str]) -> None:
    """Prints with rich on a terminal, and as plain text anywhere else."""
    if stream.isatty():
        from rich.console import Console

        console = Console(file=stream, highlight=False, color_system=None if _no_color() else "auto")
        console.print(tables.rich(parts))
        return
    with streams.left_by_its_reader(stream):
        click.echo(tables.plain(parts), file=stream)
