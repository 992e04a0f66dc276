# SPDX-License-Identifier: Apache-2.0
"""Opens a model: a file, or the bytes of one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from onnx_convert.model.wire import Memory
from onnx_convert.storage.files import File
from onnx_convert.storage.layout import External, Layout
from onnx_convert.storage.skeleton import ModelFile

if TYPE_CHECKING:
    import os


def open_model(path: str | os.PathLike[str]) -> ModelFile:
    """Opens a model file; its payloads stay on disk. InvalidModelError if it cannot be read or is no ONNX model."""
    path = Path(path)
    file = File(path)
    try:
        return ModelFile(file, path, str(path))
    except BaseException:
        file.close()
        raise


def check_external(file: ModelFile) -> None:
    """Raises InvalidModelError unless each external tensor's data file exists, is long enough, and is one it may name.

    Looks at sizes only.
    """
    layout = Layout(file, External.KEEP)
    layout.of(file.model)
    for tensor in layout.external_tensors:
        file.extent(tensor)


def open_bytes(data: bytes, name: str = "<stdin>") -> ModelFile:
    """The same for a serialised model at hand. External tensors cannot be resolved: there is no folder."""
    return ModelFile(Memory(data), None, name)
