# SPDX-License-Identifier: Apache-2.0
"""The walk through the bytes of a model, down to what is worth a look: tensors, and texts that mean nothing to a
conversion, which are doc strings, values of metadata, and fields that the installed onnx does not know.

The forms of the messages come from their descriptors, so that no kind of message is left out.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any, Final, Protocol

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

from onnx_convert.model.wire import (
    BYTES,
    FIXED32,
    FIXED64,
    VARINT,
    Piece,
    Source,
    Span,
    WireError,
    length,
    prefix,
    records,
)

MAX_DEPTH: Final = 100
"""Messages inside the model, one in the other, that protobuf's parsers accept."""


class Form:
    """A kind of message, by the descriptor that protobuf has of it. `is_metadata` says of an entry of two texts that it
    is one of metadata: others tell where external data lie."""

    def __init__(self, descriptor: Any, *, is_metadata: bool) -> None:
        self._descriptor = descriptor
        self._is_metadata = is_metadata

    @cached_property
    def children(self) -> dict[int, Form]:
        """The forms of the messages in this one, by tag."""
        return {
            field.number << 3 | BYTES: _form(field.message_type, field.name == "metadata_props")
            for field in self._descriptor.fields
            if field.message_type is not None and field.name != "external_data"
        }

    @cached_property
    def plain(self) -> frozenset[int]:
        """The tags of fields that have to be read: all that are known, but messages and texts."""
        texts = {"value"} if self._is_metadata else {"doc_string", *_BLOBS.get(self._descriptor.name, ())}
        numbers = [field.number for field in self._descriptor.fields if field.name not in texts]
        tags = {number << 3 | wire for number in numbers for wire in (VARINT, FIXED64, BYTES, FIXED32)}
        return frozenset(tags - self.children.keys())


_BLOBS: Final = {"AttributeProto": ("s", "strings")}
"""Texts that mean something, or nothing, as the operator will have it."""

BLOB_TAGS: Final = frozenset(
    AttributeProto.DESCRIPTOR.fields_by_name[name].number << 3 | BYTES for name in _BLOBS["AttributeProto"]
)


@lru_cache(maxsize=None)
def _form(descriptor: Any, is_metadata: bool) -> Form:
    return Form(descriptor, is_metadata=is_metadata)


MODEL: Final = _form(ModelProto.DESCRIPTOR, False)
GRAPH: Final = _form(GraphProto.DESCRIPTOR, False)
NODE: Final = _form(NodeProto.DESCRIPTOR, False)
ATTRIBUTE: Final = _form(AttributeProto.DESCRIPTOR, False)
TENSOR: Final = _form(TensorProto.DESCRIPTOR, False)

Trail = tuple[tuple[Form, int, int], ...]
"""The messages around a field, the outermost first: form, start, stop."""


class Visitor(Protocol):
    """What is done on a walk."""

    def enter(self, start: int, stop: int) -> bool:
        """Returns whether a field whose value lies there is worth a look."""

    def tensor(self, source: Source, start: int, stop: int, trail: Trail) -> list[Piece] | None:
        """Returns what a tensor becomes; None if it stays as it is."""

    def text(self, source: Source, start: int, stop: int, tag: int, trail: Trail) -> list[Piece] | None:
        """Returns what a text, or a field that nobody knows, becomes; None if it stays as it is."""


def rewrite(
    source: Source, start: int, stop: int, visitor: Visitor, form: Form = MODEL, trail: Trail = ()
) -> list[Piece] | None:
    """Returns the message at [start, stop) with some of its tensors and texts changed, the lengths around them fixed;
    None: unchanged. All that is not on the way to what changes is kept byte for byte."""
    trail = (*trail, (form, start, stop))
    if len(trail) > MAX_DEPTH + 1:
        raise WireError(f"messages nested more than {MAX_DEPTH} deep (byte {start})")
    pieces: list[Piece] = []
    kept = start
    plain, enter = form.plain, visitor.enter
    for tag, position, value, end in records(source, start, stop):
        if tag in plain or not enter(value, end):  # most are
            continue
        changed = rewrite_field(source, tag, value, end, visitor, trail)
        if changed is None:
            continue
        if kept < position:
            pieces.append(Span(source, kept, position))
        pieces.append(prefix(tag, length(changed)))
        pieces += changed
        kept = end
    if not pieces:
        return None
    if kept < stop:
        pieces.append(Span(source, kept, stop))
    return pieces


def rewrite_field(source: Source, tag: int, value: int, end: int, visitor: Visitor, trail: Trail) -> list[Piece] | None:
    """Returns the value at [value, end) of a field of the last message of `trail`, changed; None: unchanged."""
    form = trail[-1][0]
    child = form.children.get(tag)
    if tag in form.plain or tag & 7 != BYTES or not visitor.enter(value, end):
        return None
    if child is None:
        return visitor.text(source, value, end, tag, trail)
    if child is TENSOR:
        return visitor.tensor(source, value, end, trail)
    return rewrite(source, value, end, visitor, child, trail)
