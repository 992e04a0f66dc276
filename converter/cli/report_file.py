# SPDX-License-Identifier: Apache-2.0
"""The file that `--report` asks for: whether it can be written, known before the conversion, and what is in it."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from onnx_convert.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SUFFIXES: Final = (".html", ".json", ".md")


def check(
    path: str, others: Iterable[str | None], *, no_clobber: bool = False, suffixes: tuple[str, ...] = SUFFIXES
) -> None:
    """Raises UsageError for a report of another kind, or in place of the model, its result or what has to stay, and
    OSError for one that cannot be written."""
    file = Path(path)
    if file.suffix.lower() not in suffixes:
        kinds = " or ".join((", ".join(suffixes[:-1]), suffixes[-1]))
        several = "" if suffixes == SUFFIXES else " on several models"
        raise UsageError(f"a report{several} is an {kinds} file, not {path!r}")
    if any(other is not None and os.path.realpath(other) == os.path.realpath(path) for other in others):
        raise UsageError(f"the report {path} would take the place of the model: choose another name")
    if no_clobber and file.exists():
        raise UsageError(f"{path}: exists already, and --no-clobber replaces nothing")
    if file.exists() and not file.is_file():
        raise OSError(errno.EISDIR, "the report cannot be written: it is no file", path)
    folder = next(parent for parent in file.absolute().parents if parent.exists())
    if not folder.is_dir():
        raise OSError(errno.ENOTDIR, "the report cannot be written: a folder of its path is a file", path)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OSError(errno.EACCES, "the report cannot be written: its folder takes no file", path)


def write(path: str, data: Mapping[str, Any]) -> None:
    """Writes a report, given as plain data, as the suffix says. Raises OSError."""
    put(path, text(Path(path).suffix.lower(), data))


def reason(error: OSError) -> str:
    """Returns why a report cannot be written, whoever says so."""
    return (error.strerror or str(error)).removeprefix("the report ").removeprefix("cannot be written: ")


def put(path: str | os.PathLike[str], content: str) -> None:
    """Writes a text file, whole or not at all. Raises OSError."""
    from onnx_convert.storage.writer import write_report

    write_report(path, content)


def text(suffix: str, data: Mapping[str, Any]) -> str:
    """Returns a report as HTML, JSON or Markdown."""
    if suffix == ".json":
        return json.dumps(data, indent=2, default=str) + "\n"
    if suffix == ".md":
        from onnx_convert.cli import markdown

        return markdown.text(data)
    from onnx_convert.cli import html

    return html.page(data)
