# SPDX-License-Identifier: Apache-2.0
"""Decides where a result goes, and which files it may replace."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onnx_convert.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

STREAM: Final = "-"


def destination(model: str, output: str | None, opset: int) -> str:
    """Returns where the result goes: the file asked for, or `model.opset14.onnx` in that folder or beside the input."""
    if output == STREAM:
        return STREAM
    source = Path("model.onnx" if model == STREAM else model)
    name = f"{re.sub(r'[.]opset[0-9]+$', '', source.stem)}.opset{opset}{source.suffix}"
    path = source.with_name(name) if output is None else Path(output)
    if output is not None and (output.endswith(("/", os.sep)) or path.is_dir()):
        path.mkdir(parents=True, exist_ok=True)
        path /= name
    if path.exists() and model != STREAM and path.samefile(model):
        raise UsageError(f"the output {path} is the input: use --in-place to replace it, or -o for another file")
    return str(path)


def protect(path: str, *, force: bool, no_clobber: bool) -> None:
    """Raises UsageError if a file is there that must not be replaced: only an ONNX model may be, unless forced."""
    from onnx_convert.storage.source import is_model

    if path == STREAM or force or not Path(path).is_file():
        return
    if no_clobber:
        raise UsageError(f"{path}: exists already, and --no-clobber replaces nothing")
    if not is_model(path):
        raise UsageError(f"{path}: exists already and is no ONNX model; -f replaces it")


@contextlib.contextmanager
def elsewhere(*, named: bool) -> Iterator[None]:
    """Makes an error of writing say how to write elsewhere, unless the place was `named`."""
    try:
        yield
    except OSError as error:
        if named or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        raise OSError(error.errno, f"{error.strerror}; -o PATH writes elsewhere", error.filename) from error
