# SPDX-License-Identifier: Apache-2.0
"""Which files a result may replace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from onnx_convert.errors import UsageError
from onnx_convert.storage.source import is_model

if TYPE_CHECKING:
    import os


def check_replaceable(path: str | os.PathLike[str], *, force: bool = False, no_clobber: bool = False) -> None:
    """Raises UsageError if a file is there that must not be replaced: only an ONNX model may be, unless `force`."""
    if force or not Path(path).is_file():
        return
    if no_clobber:
        raise UsageError(f"{path}: exists already, and --no-clobber replaces nothing")
    if not is_model(path):
        raise UsageError(f"{path}: exists already and is no ONNX model; -f replaces it")
