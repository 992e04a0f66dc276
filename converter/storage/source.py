# SPDX-License-Identifier: Apache-2.0
"""Opens a model: a file, the bytes of one, or an object in memory."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnx import ModelProto

from onnx_convert.errors import InternalError, InvalidModelError, UsageError
from onnx_convert.model.source import SourceModel
from onnx_convert.model.wire import Memory, WireError, records
from onnx_convert.storage.files import File
from onnx_convert.storage.layout import External, Layout
from onnx_convert.storage.skeleton import ModelFile
from onnx_convert.storage.tensor_data import external_data

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx import TensorProto
    from typing_extensions import Self

    from onnx_convert.spec.opsets import Imports

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
        """Returns a tensor of the model with its elements, read from their file; as it is if that is missing."""
        if self.file is None or (self.missing and _location(tensor) in self.missing):
            return tensor
        return self.file.tensor(tensor)

    def payload(self, tensor: TensorProto) -> int | None:
        """Returns how many bytes of raw data a tensor has in its file, below 0 if they are not raw: how many there are,
        -1 if nobody knows; None if it holds what it has, or in a data file."""
        return self.file.raw_size(tensor) if self.file is not None else None

    def texts(self, value: Any) -> Any:
        """Returns the value of an attribute with the long texts that were left in the file."""
        return self.file.texts(value) if self.file is not None else value

    def close(self) -> None:
        """Closes the file."""
        if self.file is not None:
            self.file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_to_change(model: Any, stamps: Imports | None, *, in_place: bool) -> OpenSource:
    """Opens a model whose message may be changed: a copy of a ModelProto, or that itself if it is to change in place.
    It is read at the opsets of `stamps`.

    UsageError if a model of another kind is to change in place, and what `open_source` raises.
    """
    if in_place and not isinstance(model, ModelProto):
        raise UsageError("in_place needs a ModelProto; to replace a file, save to its path")
    source = _opened(model)
    if source.proto is model and not in_place:
        source.proto = _copy(model)
    return _stamped(source, stamps)


def open_source(model: Any, stamps: Imports | None, *, incomplete: bool = False) -> OpenSource:
    """Opens a path, the bytes of a file, a ModelProto, an onnx_ir.Model or an ONNXProgram of torch, to be read at the
    opsets of `stamps`; also if it is `incomplete`, without all its data files. Bytes that have a `name` are
    called by it.

    UsageError for an object of another kind; InvalidModelError if it cannot be read.
    """
    source = _opened(model, incomplete=incomplete)
    if stamps and source.proto is model:
        source.proto = _copy(model)
    return _stamped(source, stamps)


def _copy(model: ModelProto) -> ModelProto:
    copied = ModelProto()
    copied.CopyFrom(model)
    return copied


def _stamped(source: OpenSource, stamps: Imports | None) -> OpenSource:
    try:
        if stamps:
            source.read_at(stamps)
    except BaseException:
        source.close()
        raise
    return source


def _opened(model: Any, *, incomplete: bool = False) -> OpenSource:
    if isinstance(model, ModelProto):
        return OpenSource(model, "<ModelProto>")
    if isinstance(model, bytes):
        file = open_bytes(model, getattr(model, "name", "<bytes>"))
        return OpenSource(file.model, file.name, file)
    if isinstance(model, str | os.PathLike):
        file = open_model(model)
        source = OpenSource(file.model, os.fspath(model), file)
        try:
            if incomplete:
                source.missing = find_missing(file)
            else:
                check_external(file)
        except BaseException:
            file.close()
            raise
        return source
    ir = sys.modules.get("onnx_ir")  # whoever has such a model has imported it
    if ir is not None and isinstance(model, ir.Model):
        return OpenSource(ir.to_proto(model), "<Model>", wrap=ir.from_proto)
    exported = getattr(model, "model_proto", None)
    if isinstance(exported, ModelProto):  # a torch.onnx.ONNXProgram, which makes it anew for everybody who asks
        if exported is model.model_proto:
            exported = _copy(exported)
        return OpenSource(exported, f"<{type(model).__name__}>")
    kinds = "a path, bytes, a ModelProto, an onnx_ir.Model or an ONNXProgram of torch"
    raise UsageError(f"a model is {kinds}, not {type(model).__name__}")


def open_model(path: str | os.PathLike[str]) -> ModelFile:
    """Opens a model file; its payloads stay on disk. InvalidModelError if it cannot be read or is no ONNX model."""
    path = Path(path)
    file = File(path)
    try:
        return ModelFile(file, path, str(path))
    except BaseException:
        file.close()
        raise


def open_bytes(data: bytes, name: str = "<bytes>") -> ModelFile:
    """Opens a serialised model at hand. External tensors cannot be resolved: there is no folder."""
    return ModelFile(Memory(data), None, name)


def is_model(path: str | os.PathLike[str]) -> bool:
    """Returns whether a file is an ONNX model as far as its outermost fields tell, or empty."""
    known = ModelProto.DESCRIPTOR.fields_by_number
    try:
        with closing(File(Path(path))) as file:
            if not file.size:
                return True
            fields = {tag >> 3 for tag, _, _, _ in records(file, 0, file.size)}
    except (InvalidModelError, WireError):
        return False
    graph = ModelProto.DESCRIPTOR.fields_by_name["graph"].number
    return graph in fields and fields <= set(known)


def holds_a_model(path: str | os.PathLike[str]) -> bool:
    """Returns whether a file of any name is an ONNX model: one with opsets and a graph that has outputs."""
    try:
        if not is_model(path) or not os.path.getsize(path):
            return False
        with closing(open_model(path)) as file:
            return bool(file.model.graph.output and any(entry.version > 0 for entry in file.model.opset_import))
    except (InvalidModelError, OSError):
        return False


def check_external(file: ModelFile) -> None:
    """Raises InvalidModelError unless each external tensor's data file exists, is long enough, and is one it may name.

    Looks at sizes only.
    """
    for why in find_missing(file).values():
        raise InvalidModelError(why, where=file.name)


def find_missing(file: ModelFile) -> dict[str, str]:
    """Returns what is wrong with data files that do not exist, are too short, or that no model may name, by location.

    Looks at sizes only.
    """
    layout = Layout(file, External.KEEP)
    try:
        layout.of(file.model)
    except InternalError as error:
        raise InvalidModelError("the location of an external tensor is not a file name", where=file.name) from error
    missing: dict[str, str] = {}
    for tensor in layout.external_tensors:
        try:
            file.extent(tensor)
        except InvalidModelError as error:
            missing.setdefault(_location(tensor), error.why)
    return missing


def _location(tensor: TensorProto) -> str:
    return str(external_data(tensor).get("location", "")) if tensor.external_data else ""
