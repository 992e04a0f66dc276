# SPDX-License-Identifier: Apache-2.0
"""The plan by which a skeleton becomes bytes again: that of a model file, and of the data file beside it.

A skeleton is serialised, the tensors in it that are placeholders or external are found by the mark that both carry,
long texts by theirs, and each is replaced by a list of pieces. Nothing is read or written here but what a conversion to
raw elements needs.
"""

from __future__ import annotations

from bisect import bisect_left
from enum import Enum
from typing import TYPE_CHECKING

from google.protobuf.message import EncodeError  # type: ignore[import-untyped]
from onnx import ModelProto, NodeProto, TensorProto

from onnx_convert.errors import InternalError, UsageError
from onnx_convert.model.forms import ATTRIBUTE, GRAPH, NODE, TENSOR, Trail, rewrite
from onnx_convert.model.wire import Memory, Piece, Source, Span, length, prefix, records
from onnx_convert.storage.tensor_data import PAYLOAD_TAGS, RAW_TAG, as_raw, embedded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onnx_convert.storage.skeleton import ModelFile

ALIGNMENT = 4096
"""Where tensors begin in a data file: at pages, so that runtimes can map them."""


# Every external tensor, a placeholder too, has this in its serialised form.
_EXTERNAL_MARK = b"\x0a\x08location\x12"


class External(Enum):
    """The treatment of the weights on writing."""

    KEEP = "keep"
    """Embedded stay embedded, external stay external."""
    SAVE = "save"
    """All go to one data file beside the model."""
    EMBED = "embed"
    """External ones move into the model."""


class Layout:
    """The plan by which a skeleton becomes bytes: `of` gives the pieces of the model file, `data` are those of a new
    data file, into which tensors that are external already move too if it `gathers`."""

    def __init__(
        self, file: ModelFile, external: External, data_name: str = "", threshold: int = 0, *, gathers: bool = False
    ) -> None:
        self.file = file
        self.external = external
        self.data_name = data_name
        self.threshold = threshold
        self.gathers = gathers
        self.data: list[Piece] = []
        self.data_size = 0
        self.external_tensors: list[TensorProto] = []
        self._spliced = 0

    def of(self, model: ModelProto) -> list[Piece]:
        """Returns the pieces of the model file. To be called once; InternalError if a placeholder cannot be put
        back."""
        data = serialised(model)
        self._bytes = Memory(data)
        self._marks = sorted([*_places(data, _EXTERNAL_MARK), *_places(data, self.file.text_mark)])
        pieces = rewrite(self._bytes, 0, len(data), self) or [Span(self._bytes, 0, len(data))]
        if self._spliced != data.count(self.file.mark.encode()) + data.count(self.file.text_mark):
            raise InternalError("a placeholder stands where no tensor or text belongs")
        return pieces

    def enter(self, start: int, stop: int) -> bool:
        """Returns whether there is something between two places of the serialised skeleton that may change."""
        if self.external is External.SAVE and stop - start >= self.threshold:
            return True
        index = bisect_left(self._marks, start)
        return index < len(self._marks) and self._marks[index] < stop

    def text(self, source: Source, start: int, stop: int, tag: int, trail: Trail) -> list[Piece] | None:  # noqa: ARG002
        """Returns a text with what was left in the file; None if nothing was."""
        text = source.read(start, stop)
        count = text.count(self.file.text_mark)
        self._spliced += count
        return self.file.restored(text) if count else None

    def tensor(self, source: Source, start: int, stop: int, trail: Trail) -> list[Piece] | None:
        """Returns what a tensor of the skeleton is in the file; None if it is the same."""
        tensor = TensorProto.FromString(source.read(start, stop))
        if self.file.is_placeholder(tensor):
            bare, spans, location = self.file.split(tensor)
            self._spliced += len(tensor.external_data) - len(bare.external_data)
            raw = as_raw(tensor.data_type, spans) if self._may_move(trail) else None
            return self._outside(bare, raw) or [*self._written(bare), *spans, location]
        if tensor.data_location != TensorProto.EXTERNAL:
            spans = [Span(source, at, end) for tag, at, _, end in records(source, start, stop) if tag in PAYLOAD_TAGS]
            moved = self._outside(tensor, as_raw(tensor.data_type, spans)) if self._may_move(trail) else None
            return moved or rewrite(source, start, stop, self, TENSOR, trail)
        if any(str(entry.value).startswith("\0") for entry in tensor.external_data):
            raise InternalError(f"tensor {tensor.name!r} is a placeholder of another file")
        if self.external is External.EMBED and tensor.data_type != TensorProto.STRING:
            span = self.file.extent(tensor)
            return [*self._written(embedded(tensor)), prefix(RAW_TAG, len(span)), span]
        if self.gathers and self._may_move(trail) and tensor.data_type != TensorProto.STRING:
            moved = self._outside(tensor, [self.file.extent(tensor)])
            if moved is not None:
                return moved
        self.external_tensors.append(tensor)
        return rewrite(source, start, stop, self, TENSOR, trail)

    def _written(self, tensor: TensorProto) -> list[Piece]:
        """Returns a tensor as bytes, long texts spliced in."""
        data = tensor.SerializeToString()
        if self.file.text_mark not in data:
            return [data]
        whole = Memory(data)
        return rewrite(whole, 0, len(data), _Texts(self), TENSOR) or [data]

    def _outside(self, tensor: TensorProto, raw: list[Piece] | None) -> list[Piece] | None:
        """Returns the tensor as one that lies in the data file, where its elements are put; None if it stays where it
        is."""
        if raw is None or length(raw) < self.threshold:
            return None
        gap = -self.data_size % ALIGNMENT
        offset = self.data_size + gap
        self.data += [bytes(gap), *raw]
        self.data_size = offset + length(raw)
        moved = embedded(tensor)
        moved.data_location = TensorProto.EXTERNAL
        for key, value in ("location", self.data_name), ("offset", offset), ("length", length(raw)):
            moved.external_data.add(key=key, value=str(value))
        return self._written(moved)

    def _may_move(self, trail: Trail) -> bool:
        """Returns whether a tensor may move, as initializers and the tensors of Constant nodes may: runtimes look for
        external data nowhere else."""
        if self.external is not External.SAVE:
            return False
        if trail[-1][0] is ATTRIBUTE and trail[-2][0] is NODE:
            node = NodeProto.FromString(self._bytes.read(*trail[-2][1:]))
            return node.op_type == "Constant" and node.domain in ("", "ai.onnx")
        return trail[-1][0] is GRAPH


class _Texts:
    """The walk through one tensor that is written anew, for its texts alone."""

    def __init__(self, layout: Layout) -> None:
        self.text = layout.text

    def enter(self, start: int, stop: int) -> bool:
        return stop > start

    def tensor(self, *_: object) -> None:
        """Leaves the tensor as it is: there is none in a tensor."""


def _places(data: bytes, mark: bytes) -> Iterator[int]:
    """Yields where a mark stands in some bytes."""
    place = data.find(mark)
    while place >= 0:
        yield place
        place = data.find(mark, place + len(mark))


def serialised(model: ModelProto) -> bytes:
    """Returns the model's bytes; UsageError above protobuf's 2 GiB."""
    try:
        data: bytes = model.SerializeToString()
    except (EncodeError, ValueError) as error:
        raise UsageError(f"the model in memory cannot be serialised (2 GiB are the most): {error}") from error
    return data
