# SPDX-License-Identifier: Apache-2.0
"""Checks one tensor, and the type that is stated of a value: dtypes that exist, sizes that can be, the payload that
they demand. Nothing of a payload is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx import TensorProto

from onnx_convert.spec.types import BITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from onnx import SparseTensorProto, TypeProto

MOST_AXES: Final = 1000
"""More axes than any tensor has."""

_MOST_BITS: Final = 2**63 * 8  # of one tensor
_DTYPES: Final = frozenset(TensorProto.DataType.values()) - {TensorProto.UNDEFINED}
_FIELDS: Final = {1: "float_data", 6: "int32_data", 7: "int64_data", 8: "string_data", 11: "double_data"}
_FIELDS_OF: Final = _FIELDS | {12: "uint64_data", 13: "uint64_data", 14: "float_data", 15: "double_data"}
_ALL_FIELDS: Final = ("raw_data", *sorted(set(_FIELDS_OF.values())))
_LONGEST_ENTRY: Final = 11  # bytes: a tag, and a number
_PACKED: Final = {21: 2, 22: 2, 23: 2, 25: 4, 26: 4}  # elements in an entry of int32_data


def count(dims: Iterable[int]) -> int:
    """Returns the number of elements, or some number beyond all that can be."""
    dims = list(dims)
    product = 0 if 0 in dims else 1
    for size in dims:
        product *= size
        if product > _MOST_BITS:
            return product
    return product


def dims_fault(dims: Sequence[int], bits: int) -> str:
    """Returns what is wrong with dimensions of elements of so many bits, "" if nothing is. Those below 0 count as not
    known."""
    if len(dims) > MOST_AXES:
        return f"has {len(dims)} dimensions"
    elements = count(size for size in dims if size > 0)
    if elements * max(bits, 1) > _MOST_BITS and 0 not in dims:
        return "would take more than 2^63 bytes"
    return ""


def fault(tensor: TensorProto, raw: int | None = None) -> str:
    """Returns what is wrong with a tensor, "" if nothing is. `raw` counts the bytes of a payload that is elsewhere,
    below 0 if they are not raw; -1 says that nobody knows."""
    dtype = tensor.data_type
    if dtype not in _DTYPES:
        return f"dtype {dtype} does not exist" if dtype else "it has no dtype"
    bits = BITS.get(dtype, 8)
    if wrong := dims_fault(tensor.dims, bits):
        return f"it {wrong}"
    if any(size < 0 for size in tensor.dims):
        return "a dimension is below 0"
    if tensor.data_location == TensorProto.EXTERNAL and raw is None:
        return ""
    if raw != -1 and sum([bool(getattr(tensor, field)) for field in _ALL_FIELDS]) + (raw is not None) > 1:
        return "it has elements in two fields"
    elements = count(tensor.dims)
    if raw is not None and raw < 0:
        most = _LONGEST_ENTRY * elements * (2 if dtype in (14, 15) else 1)
        if raw == -1 or dtype == TensorProto.STRING or -raw <= most + _LONGEST_ENTRY:
            return ""
        return f"it has {-raw} bytes of data where its dimensions demand {elements} elements"
    if raw is not None or tensor.HasField("raw_data"):
        size = raw if raw is not None else len(tensor.raw_data)
        needed = (elements * bits + 7) // 8
        if dtype == TensorProto.STRING:
            return "its texts are raw data"
        return "" if size == needed else f"it has {size} bytes of data where its dimensions demand {needed}"
    field = _FIELDS_OF.get(dtype, "int32_data")
    entries = len(getattr(tensor, field))
    if not entries and any(getattr(tensor, other) for other in _ALL_FIELDS):
        return f"it has no elements in {field}, but in another field"
    if dtype in (14, 15):
        elements *= 2
    per_entry = _PACKED.get(dtype, 1)
    needed = (elements + per_entry - 1) // per_entry
    what = "elements" if needed == count(tensor.dims) else f"entries in {field}"  # which hold several, or half of one
    return "" if entries == needed else f"it has {entries} {what} where its dimensions demand {needed}"


def sparse_fault(tensor: SparseTensorProto) -> str:
    """Returns what is wrong with a sparse tensor, "" if nothing is."""
    if any(size < 0 for size in tensor.dims):
        return "a dimension is below 0"
    bits = BITS.get(tensor.values.data_type, 8)
    wrong = dims_fault(tensor.dims, bits)
    return (f"it {wrong}" if wrong else "") or fault(tensor.values, _elsewhere(tensor.values))


def _elsewhere(tensor: TensorProto) -> int | None:
    return -1 if tensor.data_location == TensorProto.EXTERNAL else None


def type_fault(kind: TypeProto) -> str:
    """Returns what is wrong with a stated type, "" if nothing is."""
    which = kind.WhichOneof("value")
    if which in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(kind, which)
        if tensor.elem_type and tensor.elem_type not in _DTYPES:
            return f"dtype {tensor.elem_type} does not exist"
        sizes = [dim.dim_value for dim in tensor.shape.dim if dim.HasField("dim_value")]
        if not all(isinstance(dim.dim_param, str) for dim in tensor.shape.dim):
            return "the name of a size is not UTF-8"
        if len(tensor.shape.dim) > MOST_AXES:
            return f"it has {len(tensor.shape.dim)} dimensions"
        wrong = dims_fault(sizes, BITS.get(tensor.elem_type, 8))
        return f"it {wrong}" if wrong else ""
    if which in ("sequence_type", "optional_type"):
        return type_fault(getattr(kind, which).elem_type)
    if which == "map_type":
        if kind.map_type.key_type not in _DTYPES:
            return f"dtype {kind.map_type.key_type} does not exist"
        return type_fault(kind.map_type.value_type)
    return ""


def stated_count(kind: TypeProto) -> int:
    """Returns the number of elements of a tensor by the sizes that its type states."""
    return count(dim.dim_value for dim in kind.tensor_type.shape.dim if dim.dim_value > 0)


def has_negative(kind: TypeProto) -> bool:
    """Tells whether a stated type has a dimension below 0, by which some exporters say that it is not known."""
    which = kind.WhichOneof("value")
    if which in ("tensor_type", "sparse_tensor_type"):
        return any(dim.dim_value < 0 for dim in getattr(kind, which).shape.dim)
    return which in ("sequence_type", "optional_type") and has_negative(getattr(kind, which).elem_type)


def forget_negatives(kind: TypeProto) -> None:
    """Takes the dimensions below 0 out of a type, in place."""
    which = kind.WhichOneof("value")
    if which in ("tensor_type", "sparse_tensor_type"):
        for dim in getattr(kind, which).shape.dim:
            if dim.dim_value < 0:
                dim.Clear()
    elif which in ("sequence_type", "optional_type"):
        forget_negatives(getattr(kind, which).elem_type)
