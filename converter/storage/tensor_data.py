# SPDX-License-Identifier: Apache-2.0
"""The elements of a tensor as bytes: in which fields they lie, how many they are, and the same as raw data."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnx_convert.model.tensor_validation import count
from onnx_convert.model.wire import BYTES, FIXED32, FIXED64, VARINT, Piece, Span, joined, records
from onnx_convert.spec.types import BITS

_FLOAT, _INT32, _INT64, _RAW, _DOUBLE, _UINT64 = 4, 5, 7, 9, 10, 11
_NAMES = {
    _FLOAT: "float_data",
    _INT32: "int32_data",
    6: "string_data",
    _INT64: "int64_data",
    _RAW: "raw_data",
    _DOUBLE: "double_data",
    _UINT64: "uint64_data",
}
PAYLOAD_TAGS = frozenset(
    [number << 3 | BYTES for number in _NAMES]
    + [number << 3 | VARINT for number in (_INT32, _INT64, _UINT64)]  # repeated numbers may also come unpacked
    + [_FLOAT << 3 | FIXED32, _DOUBLE << 3 | FIXED64]
)
RAW_TAG = _RAW << 3 | BYTES


def bytes_needed(tensor: TensorProto) -> int | None:
    """Returns what the elements take as raw data, by type and shape; None for strings and types that are not known
    here."""
    bits = BITS.get(tensor.data_type)
    if bits is None:
        return None
    return (count(max(dim, 0) for dim in tensor.dims) * bits + 7) // 8


def external_data(tensor: TensorProto) -> dict[str, str | bytes]:
    """Returns the tensor's entries of external data; protobuf hands out a text that is not UTF-8 as bytes."""
    return {str(entry.key): entry.value for entry in tensor.external_data}


def embedded(tensor: TensorProto) -> TensorProto:
    """Returns the tensor without its elements, and without any word of external data."""
    bare = TensorProto()
    bare.CopyFrom(tensor)
    for name in (*_NAMES.values(), "external_data", "data_location"):
        bare.ClearField(name)
    return bare


def as_raw(data_type: int, spans: list[Span]) -> list[Piece] | None:
    """Returns what raw_data would hold in place of these payload fields; None where there is no such thing."""
    values: dict[int, list[Piece]] = {}
    for span in spans:
        for tag, _, start, stop in records(span.source, span.start, span.stop):
            values.setdefault(tag >> 3, []).append(Span(span.source, start, stop))
    bits = BITS.get(data_type)
    if len(values) != 1 or bits is None:
        return None
    (number, pieces), *_ = values.items()
    if number == _RAW:
        return pieces[-1:]  # of a field that may be there once, the last one counts
    if number in (_FLOAT, _DOUBLE):
        return pieces  # packed or not: little-endian numbers, one after the other
    if bits == 6:
        return None  # one element an entry there, four in three bytes here
    numbers = np.array(getattr(TensorProto.FromString(joined(spans)), _NAMES[number]))
    return [numbers.astype(f"<u{max(bits // 8, 1)}").tobytes()]
