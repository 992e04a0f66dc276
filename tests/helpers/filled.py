# SPDX-License-Identifier: Apache-2.0
"""Fills every field of every message of a model, by the descriptors of protobuf: also those that newer releases of onnx
bring, and fields that no release knows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor import FieldDescriptor
from onnx import ModelProto

from onnx_convert.model.wire import BYTES, varint

if TYPE_CHECKING:
    from collections.abc import Iterator

MEANING = {
    "AttributeProto": "name ref_attr_name type f i s t g sparse_tensor tp floats ints strings tensors graphs"
    " sparse_tensors type_protos",
    "FunctionProto": "name input output attribute attribute_proto node opset_import domain overload value_info",
    "GraphProto": "node name initializer sparse_initializer input output value_info quantization_annotation",
    "ModelProto": "ir_version opset_import graph training_info functions",
    "NodeProto": "input output name op_type domain overload attribute",
    "OperatorSetIdProto": "domain version",
    "SparseTensorProto": "values indices dims",
    "StringStringEntryProto": "key value",
    "TensorProto": "dims data_type segment float_data int32_data string_data int64_data name raw_data external_data"
    " data_location double_data uint64_data",
    "Segment": "begin end",
    "TensorAnnotation": "tensor_name quant_parameter_tensor_names",
    "TensorShapeProto": "dim",
    "Dimension": "dim_value dim_param",
    "TrainingInfoProto": "initialization algorithm initialization_binding update_binding",
    "TypeProto": "tensor_type sequence_type map_type optional_type sparse_tensor_type opaque_type",
    "Tensor": "elem_type shape",
    "SparseTensor": "elem_type shape",
    "Sequence": "elem_type",
    "Optional": "elem_type",
    "Map": "key_type value_type",
    "Opaque": "domain name",
    "ValueInfoProto": "name type",
}
"""The fields that mean something to a conversion, by message: a model has them or not. All others are filled."""

UNKNOWN = 9999
"""The number of a field that no release of onnx knows."""


def fill(message: Any, text: bytes = b"\xff not UTF-8") -> Any:
    """Fills the fields of a message, and of those in it, that mean nothing to a conversion; returns the message. Texts
    and unknown fields hold `text`."""
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if _repeated(field) else (value,):
                fill(inner, text)
    _fill_own(message, text, 0)
    return message


def _fill_own(message: Any, text: bytes, depth: int, turn: int = 1) -> None:
    """Fills what means nothing, in the order of the fields or (-1) the other way round: of some only the first is
    taken."""
    meaning = MEANING.get(message.DESCRIPTOR.name, "").split()
    for field in message.DESCRIPTOR.fields[::turn]:
        if field.name in meaning or depth > 5:
            continue
        if field.message_type is not None:
            inner = getattr(message, field.name)
            for order in (1, -1) if _repeated(field) else (1,):
                made = inner.add() if _repeated(field) else inner
                made.SetInParent()
                _fill_all(made, text, depth + 1, order)
        elif field.containing_oneof is None or message.WhichOneof(field.containing_oneof.name) is None:
            message.MergeFromString(_value(field, text))
    message.MergeFromString(varint(UNKNOWN << 3 | BYTES) + varint(len(text)) + text)


def _fill_all(message: Any, text: bytes, depth: int, turn: int) -> None:
    """Fills a message that is there for the sake of its fields: also those that would mean something elsewhere."""
    for field in message.DESCRIPTOR.fields:
        if field.message_type is None and field.name in MEANING.get(message.DESCRIPTOR.name, "").split():
            message.MergeFromString(_value(field, text))
    _fill_own(message, text, depth, turn)


def _value(field: FieldDescriptor, text: bytes) -> bytes:
    """Returns a field with some value, as bytes: what is no UTF-8 cannot be set."""
    if field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
        return varint(field.number << 3 | BYTES) + varint(len(text)) + text
    return varint(field.number << 3) + varint(1)  # numbers of ONNX outside of tensors are varints


def _repeated(field: FieldDescriptor) -> bool:
    return field.is_repeated if hasattr(field, "is_repeated") else field.label == FieldDescriptor.LABEL_REPEATED


def messages(message: Any) -> Iterator[Any]:
    """Yields a message and all that are in it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if _repeated(field) else (value,):
                yield from messages(inner)


def fields_of(message: Any) -> Counter[tuple[str, str]]:
    """Returns how often each field is filled, by the name of its message and its own."""
    return Counter((one.DESCRIPTOR.name, field.name) for one in messages(message) for field, _ in one.ListFields())


def every_field() -> set[tuple[str, str]]:
    """Returns all fields of all messages that a model may hold, by the name of the message and their own."""
    known: dict[str, Any] = {}
    waiting = [ModelProto.DESCRIPTOR]
    while waiting:
        descriptor = waiting.pop()
        if descriptor.full_name not in known:
            known[descriptor.full_name] = descriptor
            waiting += [field.message_type for field in descriptor.fields if field.message_type is not None]
    return {(descriptor.name, field.name) for descriptor in known.values() for field in descriptor.fields}
