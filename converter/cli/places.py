# SPDX-License-Identifier: Apache-2.0
"""Decides where a result goes, and which files it may replace."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onnx_convert.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onnx_convert.report import Report

STREAM: Final = "-"


def destination(model: str, output: str | None, stamps: str) -> str:
    """Returns where the result goes: the file asked for, or `model.opset14.onnx` in that folder or beside the input,
    `opset14` being what `stamps_of` returns."""
    if output == STREAM:
        return STREAM
    source = Path("model.onnx" if model == STREAM else model)
    name = f"{re.sub(r'[.]opset[0-9]+([.]ir[0-9]+)?([.]ml[0-9]+)?$', '', source.stem)}.{stamps}{source.suffix}"
    path = source.with_name(name) if output is None else Path(output)
    if output is not None and (output.endswith(("/", os.sep)) or path.is_dir()):
        path.mkdir(parents=True, exist_ok=True)
        path /= name
    if path.exists() and model != STREAM and path.samefile(model):
        raise UsageError(f"the output {path} is the input: use --in-place to replace it, or -o for another file")
    return str(path)


def stamps_of(report: Report, *, ir_version: bool) -> str:
    """Returns what tells a result from others of the same model: `opset14`, `opset14.ir8`, `opset14.ml2`.

    The IR version is named where it is not that of the opset's ONNX release, if it was asked for (`ir_version`) or
    depends on a runtime; the ai.onnx.ml opset where it is not the one that goes with the ai.onnx opset by itself.
    """
    from onnx_convert.spec import opsets

    before, after = report.opsets_before, report.opsets_after
    opset = after.get("ai.onnx", 0)
    told = [f"opset{opset}"]
    if (ir_version or report.runtime) and report.ir_version_after != opsets.ir_version_of(opset):
        told.append(f"ir{report.ir_version_after}")
    if opsets.AI_ONNX_ML in after:
        own = before.get(opsets.AI_ONNX_ML, after[opsets.AI_ONNX_ML])
        usual = own if opset >= before.get("ai.onnx", opset) else min(own, opsets.ml_opset_of(opset))
        if after[opsets.AI_ONNX_ML] != usual:
            told.append(f"ml{after[opsets.AI_ONNX_ML]}")
    return ".".join(told)


def model_beside(path: str) -> str:
    """Returns a hint at the model whose weights a file may be, going by its name: `model.onnx_data`, `model.bin`."""
    file = Path(path)
    if file.suffix == ".onnx" or not file.is_file():
        return ""
    for name in (file.with_suffix(".onnx"), file.with_suffix("")):
        if name.suffix == ".onnx" and name.is_file():
            return f"; perhaps it holds the weights of {name}"
    return ""


def is_pipe(path: str) -> bool:
    """Returns whether a pipe is there, or a device: what can be read once, and from its beginning only."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)


def protect(path: str, *, force: bool, no_clobber: bool) -> None:
    """Raises UsageError if a file is there that must not be replaced."""
    from onnx_convert.storage.replacing import check_replaceable

    if path != STREAM:
        check_replaceable(path, force=force, no_clobber=no_clobber)


@contextlib.contextmanager
def elsewhere(*, named: bool) -> Iterator[None]:
    """Makes an error of writing say how to write elsewhere, unless the place was `named`."""
    try:
        yield
    except OSError as error:
        if named or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        raise OSError(error.errno, f"{error.strerror}; -o PATH writes elsewhere", error.filename) from error
