# SPDX-License-Identifier: Apache-2.0
"""Prints: tables on a terminal or as plain text, data as JSON, errors as one line, the progress of a copy."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import time
from typing import IO, TYPE_CHECKING, Any, Final

import click

from onnx_convert.cli import drawing, streams, tables
from onnx_convert.cli.page.data import report_data
from onnx_convert.errors import ending

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from onnx_convert.reference.model_summary import Description
    from onnx_convert.report import Report
    from onnx_convert.storage.writer import Progress

WOULD_CHANGE: Final = 5  # the exit code of `--check --exit-code`
PATIENCE: Final = 1.0  # seconds of copying before a progress bar appears


def prepare(*streams: IO[str]) -> None:
    """Prepares the streams: a file name need not be text, nor a terminal speak UTF-8."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def print_json(status: str, told: Report | Description | None = None, **more: Any) -> None:
    """Prints how it ended, a report or a description, and what else there is to tell, as one object of JSON."""
    print_data(report_data(status, told, **more))


def print_lines(lines: Iterable[str], *, err: bool = False) -> None:
    """Prints lines on stdout, or on stderr."""
    stream = sys.stderr if err else sys.stdout
    with streams.left_by_its_reader(stream):
        for line in lines:
            click.echo(tables.printable(line), file=stream)


def json_line(data: Any) -> str:
    """Returns plain data as one line of JSON."""
    return json.dumps(data, default=str)


def print_data(data: Any) -> None:
    """Prints plain data as JSON on stdout."""
    with streams.left_by_its_reader(sys.stdout):
        click.echo(json.dumps(data, indent=2, default=str))


def show(parts: list[tables.Table | str], stream: IO[str]) -> None:
    """Prints with rich on a terminal, and as plain text anywhere else."""
    if stream.isatty():
        from rich.console import Console

        console = Console(file=stream, highlight=False, color_system=None if _no_color() else "auto")
        console.print(tables.rich(parts))
        return
    text = tables.plain(parts)
    with streams.left_by_its_reader(stream):
        click.echo(text if _speaks_unicode(stream) else text.translate(drawing.TO_ASCII), file=stream)


def show_difference(text: str, stream: IO[str]) -> None:
    """Prints a unified difference, in colour on a terminal."""
    colours = {"-": "red", "+": "green", "@": "cyan"}
    plain = not stream.isatty() or _no_color()
    lines = [line if plain or line[:1] not in colours else click.style(line, fg=colours[line[0]], bold=line[:3] in
                                                                       ("---", "+++"))
             for line in text.splitlines()]  # fmt: skip
    with streams.left_by_its_reader(stream):
        click.echo("\n".join(lines), file=stream)


def print_warning(text: str) -> None:
    """Prints a warning on stderr, as one line."""
    line = tables.printable(" ".join(text.split()))
    label = click.style("warning:", fg="yellow", bold=True)
    click.echo(f"{label} {line}", err=True, color=False if _no_color() else None)


def print_error(text: str) -> None:
    """Prints an error on stderr, as one line."""
    line = tables.printable(" ".join(text.split()))
    click.echo(f"{click.style('error:', fg='red', bold=True)} {line}", err=True, color=False if _no_color() else None)


def failed(error: Exception, *, as_json: bool, debug: bool, hint: str = "") -> int:
    """Prints an error as one line, with a hint behind it if there is one; returns the exit code."""
    if debug:
        import traceback

        traceback.print_exception(error)
    text, code = ending(error)
    text += hint
    print_error(text)
    if as_json:
        with contextlib.suppress(OSError):  # stdout may be what failed
            print_json("error", error=text)
    return code


def _speaks_unicode(stream: IO[str]) -> bool:
    return (getattr(stream, "encoding", None) or "utf-8").lower().startswith("utf")


def _no_color() -> bool:
    """Returns whether NO_COLOR is set, see no-color.org."""
    return bool(os.environ.get("NO_COLOR"))


@contextlib.contextmanager
def progress(*, shown: bool) -> Iterator[Progress | None]:
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
