# SPDX-License-Identifier: Apache-2.0
"""Small questions about types and tensors, asked in many rooms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx import TensorProto, TensorShapeProto, TypeProto

if TYPE_CHECKING:
    from collections.abc import Iterable


# Bits of an element, by the numbers of TensorProto.DataType (their names come and go with the release of onnx).
BITS: dict[int, int] = dict.fromkeys((2, 3, 9, 17, 18, 19, 20, 24), 8) | dict.fromkeys((4, 5, 10, 16), 16)
BITS |= dict.fromkeys((1, 6, 12), 32) | dict.fromkeys((7, 11, 13, 14), 64) | {15: 128}
BITS |= dict.fromkeys((25, 26), 2) | dict.fromkeys((21, 22, 23), 4) | dict.fromkeys((27, 28), 6)

MADE_UP: Final = "unk__"  # how the names begin that inference gives to dimensions


def dtype_name(dtype: int) -> str:
    """Returns the name of a TensorProto.DataType as operator schemas spell it: 1 is "float", 16 is "bfloat16"."""
    return str(TensorProto.DataType.Name(dtype)).lower()


def dtype_number(name: str) -> int:
    """Returns the TensorProto.DataType of that name, in upper or lower case."""
    return int(TensorProto.DataType.Value(name.upper()))


_TENSORS: Final = {
    number: f"tensor({name.lower()})"
    for name, number in TensorProto.DataType.items()
    if number != TensorProto.UNDEFINED
}


def type_str(kind: TypeProto) -> str:
    """Returns a type as schemas spell it: "tensor(float)", "seq(tensor(int64))"; "" if the element type is not
    known."""
    which = kind.WhichOneof("value")
    if which == "tensor_type":
        return _TENSORS.get(kind.tensor_type.elem_type, "")
    if which == "sequence_type":
        inner = type_str(kind.sequence_type.elem_type)
        return f"seq({inner})" if inner else ""
    if which == "optional_type":
        inner = type_str(kind.optional_type.elem_type)
        return f"optional({inner})" if inner else ""
    if which == "sparse_tensor_type":
        return f"sparse_tensor({dtype_name(kind.sparse_tensor_type.elem_type)})"
    if which == "map_type":
        inner = type_str(kind.map_type.value_type)
        return f"map({dtype_name(kind.map_type.key_type)},{inner})" if inner else ""
    return ""


def tensor_type(dtype: int, dims: Iterable[int] | None = None) -> TypeProto:
    """Returns the type of a tensor, of unknown rank if no dimensions are given."""
    made = TypeProto(tensor_type=TypeProto.Tensor(elem_type=dtype))
    if dims is not None:
        made.tensor_type.shape.SetInParent()
        made.tensor_type.shape.dim.extend(TensorShapeProto.Dimension(dim_value=number) for number in dims)
    return made


def type_of_elements(text: str) -> TypeProto | None:
    """Returns the tensor type, of unknown shape, that schemas spell "tensor(float)"; None for any other."""
    return tensor_type(dtype_number(text[7:-1])) if text.startswith("tensor(") else None


def size(dim: TensorShapeProto.Dimension) -> int | str | None:
    """Returns a dimension: its number, the name of its symbol, or None. Some exporters write -1 for one that is not
    known."""
    if dim.HasField("dim_value"):
        number: int = dim.dim_value
        return number if number >= 0 else None
    return dim.dim_param or None


def has_shape(known: TypeProto | None) -> bool:
    """Returns whether all that can be known in outline is: the rank of a tensor."""
    if known is None:
        return False
    return bool(known.tensor_type.HasField("shape") or known.WhichOneof("value") != "tensor_type")


def is_complete(known: TypeProto | None) -> bool:
    """Returns whether nothing more can be known: every dimension of a tensor is a number."""
    if known is None or not has_shape(known):
        return False
    return all(isinstance(size(dim), int) for dim in known.tensor_type.shape.dim)


def nameless(kind: TypeProto) -> TypeProto:
    """Returns a type without the names that inference makes up for unknown dimensions."""
    clean = TypeProto()
    clean.CopyFrom(kind)
    if clean.HasField("tensor_type"):
        for dim in clean.tensor_type.shape.dim:
            if dim.dim_param.startswith(MADE_UP):
                dim.ClearField("dim_param")
    return clean


def is_vaguer(found: TypeProto | None, known: TypeProto) -> bool:
    """Returns whether a type says less than what was known before: a rank or a dimension got lost."""
    if found is None or not found.WhichOneof("value"):
        return True
    if known.WhichOneof("value") != "tensor_type" or found.WhichOneof("value") != "tensor_type":
        return False
    if not known.tensor_type.HasField("shape"):
        return False
    if not found.tensor_type.HasField("shape"):
        return True
    pairs = zip(found.tensor_type.shape.dim, known.tensor_type.shape.dim, strict=False)
    return any(isinstance(size(k), int) and not isinstance(size(f), int) for f, k in pairs)


def contradicts(found: TypeProto | None, known: TypeProto) -> bool:
    """Returns whether two types cannot both be true of one value."""
    if found is None or not found.WhichOneof("value"):
        return False
    if found.WhichOneof("value") != known.WhichOneof("value"):
        return True
    if not found.HasField("tensor_type"):
        return False
    f, k = found.tensor_type, known.tensor_type
    if f.elem_type and k.elem_type and f.elem_type != k.elem_type:
        return True
    if not f.HasField("shape") or not k.HasField("shape"):
        return False
    if len(f.shape.dim) != len(k.shape.dim):
        return True
    sizes = [(size(a), size(b)) for a, b in zip(f.shape.dim, k.shape.dim, strict=True)]
    return any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in sizes)
