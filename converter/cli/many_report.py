# SPDX-License-Identifier: Apache-2.0
"""Writes the report of many models as they end: lines of JSON, or a page for each and one that leads to them."""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from onnx_convert.cli import html, printing, report_file
from onnx_convert.cli.page.data import report_data, with_texts
from onnx_convert.cli.page.overview import Row, overview, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from onnx_convert.batch.job import Outcome
    from onnx_convert.batch.run import Batch
    from onnx_convert.cli.settings import Settings

SUFFIXES: Final = (".html", ".jsonl")
_LONG: Final = 100  # characters of a model's name that the name of its page has


def check(asked: Settings, batch: Batch | None = None) -> None:
    """Raises UsageError for a report of another kind, or in place of a model, and OSError for one that cannot be
    written."""
    if asked.report:
        jobs = batch.jobs if batch is not None else ()
        places = [asked.output, *(path for job in jobs for path in (job.source, job.destination))]
        report_file.check(asked.report, places, suffixes=SUFFIXES)


@contextmanager
def opened(asked: Settings, batch: Batch) -> Iterator[Callable[[Outcome], None]]:
    """Yields what to tell of each outcome. OSError if the report cannot be begun; what cannot be written later is told
    as a warning, since models are converted without it."""
    if not asked.report:
        yield lambda _: None
        return
    check(asked, batch)
    path = Path(asked.report)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix.lower() == ".jsonl":
        yield from _lines(path)
    else:
        yield from _pages(path, asked, batch)


def _lines(path: Path) -> Iterator[Callable[[Outcome], None]]:
    from onnx_convert.storage.writer import append_line

    report_file.put(path, "")
    failed = False

    def tell(outcome: Outcome) -> None:
        nonlocal failed
        failed = failed or not _done(path, lambda: append_line(path, printing.json_line(outcome.to_dict())))

    yield tell


def _pages(path: Path, asked: Settings, batch: Batch) -> Iterator[Callable[[Outcome], None]]:
    import onnx_convert

    folder = path.with_name(f"{path.stem}-models")
    folder.mkdir(exist_ok=True)
    rows: list[Row] = []

    def tell(outcome: Outcome) -> None:
        link = ""
        if outcome.report is not None:
            name = page_name(outcome.name)
            data = with_texts(report_data(outcome.status, None, **outcome.report), asked.command_for(outcome.source))
            if _done(folder / name, lambda: report_file.put(folder / name, html.page(data))):
                link = f"{quote(os.fsencode(folder.name))}/{name}"
        rows.append(row(outcome, link))

    try:
        yield tell
    finally:
        text = overview(rows, len(batch), onnx_convert.__version__)
        _done(path, lambda: report_file.put(path, text))


def page_name(name: str) -> str:
    """Returns the name of a model's page: the model's own, if it is one on every file system and needs no escape; else
    what is left of it, with a hash that tells it from others."""
    safe = re.sub(r"[^a-z0-9._-]+", "_", name.lower())[-_LONG:].lstrip(".")
    return f"{safe}.html" if safe == name else f"{safe}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:10]}.html"


def _done(path: Path, write: Callable[[], object]) -> bool:
    """Returns whether something could be written; if not, that is told."""
    try:
        write()
    except OSError as error:
        printing.print_warning(f"{path}: the report cannot be written: {report_file.reason(error)}")
        return False
    return True
