# SPDX-License-Identifier: Apache-2.0
"""Opens a model: a file, the bytes of one, or an object in memory."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnx import ModelProto

from onnx_convert.errors import InternalError, InvalidModelError, UsageError
from onnx_convert.model.source import SourceModel
from onnx_convert.model.wire import Memory
from onnx_convert.storage.files import File
from onnx_convert.storage.layout import External, Layout
from onnx_convert.storage.skeleton import ModelFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx import TensorProto
    from typing_extensions import Self

    Wrap = Callable[[ModelProto], Any]


class OpenSource(SourceModel):
    """A source model with the file behind it (None for one in memory), which stays open until it is closed.

    `wrap` turns a message into the kind of object that was opened.
    """

    def __init__(
        self, proto: ModelProto, name: str, file: ModelFile | None = None, wrap: Wrap = lambda message: message
    ) -> None:
        super().__init__(proto, name)
        self.file = file
        self.wrap = wrap

    def elements(self, tensor: TensorProto) -> TensorProto:
        """Returns a tensor of the model with its elements, read from the file they are in."""
        return self.file.tensor(tensor) if self.file is not None else tensor

    def payload(self, tensor: TensorProto) -> int | None:
        """Returns how many bytes of raw data a tensor has in its file: None if it holds what it has, or in a data file,
        -1 if they are not raw."""
        return self.file.raw_size(tensor) if self.file is not None else None

    def close(self) -> None:
        """Closes the file."""
        if self.file is not None:
            self.file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_to_change(model: Any, *, in_place: bool) -> OpenSource:
    """Opens a model whose message may be changed: a copy of a ModelProto, or that itself if it is to change in place.

    UsageError if a model of another kind is to change in place, and what `open_source` raises.
    """
    if in_place and not isinstance(model, ModelProto):
        raise UsageError("in_place needs a ModelProto; to replace a file, save to its path")
    source = open_source(model)
    if source.proto is model and not in_place:
        source.proto = ModelProto()
        source.proto.CopyFrom(model)
    return source


def open_source(model: Any) -> OpenSource:
    """Opens a path, the bytes of a file, a ModelProto or an onnx_ir.Model, to be read.

    UsageError for an object of another kind; InvalidModelError if it cannot be read.
    """
    if isinstance(model, ModelProto):
        return OpenSource(model, "<ModelProto>")
    if isinstance(model, bytes):
        file = open_bytes(model)
        return OpenSource(file.model, file.name, file)
    if isinstance(model, str | os.PathLike):
        file = open_model(model)
        try:
            check_external(file)
        except BaseException:
            file.close()
            raise
        return OpenSource(file.model, os.fspath(model), file)
    ir = sys.modules.get("onnx_ir")  # whoever has such a model has imported it
    if ir is not None and isinstance(model, ir.Model):
        return OpenSource(ir.to_proto(model), "<Model>", wrap=ir.from_proto)
    raise UsageError(f"a model is a path, bytes, a ModelProto or an onnx_ir.Model, not {type(model).__name__}")


def open_model(path: str | os.PathLike[str]) -> ModelFile:
    """Opens a model file; its payloads stay on disk. InvalidModelError if it cannot be read or is no ONNX model."""
    path = Path(path)
    file = File(path)
    try:
        return ModelFile(file, path, str(path))
    except BaseException:
        file.close()
        raise


def open_bytes(data: bytes, name: str = "<stdin>") -> ModelFile:
    """Opens a serialised model at hand. External tensors cannot be resolved: there is no folder."""
    return ModelFile(Memory(data), None, name)


def check_external(file: ModelFile) -> None:
    """Raises InvalidModelError unless each external tensor's data file exists, is long enough, and is one it may name.

    Looks at sizes only.
    """
    layout = Layout(file, External.KEEP)
    try:
        layout.of(file.model)
    except InternalError as error:
        raise InvalidModelError("the location of an external tensor is no file name", where=file.name) from error
    for tensor in layout.external_tensors:
        file.extent(tensor)
