# SPDX-License-Identifier: Apache-2.0
"""Attributes: as Python values, and written with the type that the operator's schema demands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy
from onnx import AttributeProto, GraphProto, NodeProto, SparseTensorProto, TensorProto, TypeProto, numpy_helper
from onnx.defs import OpSchema

from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_VALUES: Final[dict[int, Callable[[AttributeProto], Any]]] = {
    AttributeProto.FLOAT: lambda a: a.f,
    AttributeProto.INT: lambda a: a.i,
    AttributeProto.STRING: lambda a: a.s.decode("utf-8", "surrogateescape"),
    AttributeProto.TENSOR: lambda a: a.t,
    AttributeProto.GRAPH: lambda a: a.g,
    AttributeProto.SPARSE_TENSOR: lambda a: a.sparse_tensor,
    AttributeProto.TYPE_PROTO: lambda a: a.tp,
    AttributeProto.FLOATS: lambda a: list(a.floats),
    AttributeProto.INTS: lambda a: list(a.ints),
    AttributeProto.STRINGS: lambda a: [s.decode("utf-8", "surrogateescape") for s in a.strings],
    AttributeProto.TENSORS: lambda a: list(a.tensors),
    AttributeProto.GRAPHS: lambda a: list(a.graphs),
    AttributeProto.SPARSE_TENSORS: lambda a: list(a.sparse_tensors),
    AttributeProto.TYPE_PROTOS: lambda a: list(a.type_protos),
}


def attribute_value(attribute: AttributeProto) -> Any:
    """Returns what an attribute holds, as a Python value; strings are decoded, messages returned as they are."""
    kind = attribute.type or _untyped(attribute)
    return _VALUES[kind](attribute)


def given(node: NodeProto) -> dict[str, Any]:
    """Returns the attributes that a node has, as Python values by name."""
    return {attribute.name: attribute_value(attribute) for attribute in node.attribute}


def _untyped(attribute: AttributeProto) -> int:
    """Returns the type of an attribute written before IR version 2, when the populated field told it."""
    fields = {field.name for field, _ in attribute.ListFields()} - {"name", "doc_string"}
    by_field = {"f": "FLOAT", "i": "INT", "s": "STRING", "t": "TENSOR", "g": "GRAPH"}
    kind = next((by_field.get(name, name.upper()) for name in fields), "INTS")
    return int(AttributeProto.AttributeType.Value(kind))


def field_of(kind: int) -> str:
    """Returns the field in which an attribute of a type holds its value."""
    return _SCALARS.get(kind) or _LISTS.get(kind, "")


def holds_value(attribute: AttributeProto, kind: int) -> bool:
    """Tells whether an attribute has the field of a type, and no other."""
    field = field_of(kind)
    return {found.name for found, _ in attribute.ListFields()} - {"name", "doc_string", "type"} == {field}


def set_attributes(node: NodeProto, attributes: dict[str, Any], opset: int) -> None:
    """Appends attributes to a node, typed as the operator's schema at an opset says; None is left out."""
    if not attributes:
        return
    known = opsets.attributes_of(node.op_type, opset, opsets.canonical_domain(node.domain))
    for name, value in attributes.items():
        if value is not None:
            formal = known.get(name)
            node.attribute.append(attribute(name, value, KIND_NUMBERS[formal.type] if formal is not None else None))


KIND_NUMBERS: Final = {
    getattr(OpSchema.AttrType, name): number
    for name, number in AttributeProto.AttributeType.items()
    if name != "UNDEFINED"
}
_SCALARS: Final[dict[int, str]] = {
    AttributeProto.INT: "i",
    AttributeProto.FLOAT: "f",
    AttributeProto.STRING: "s",
    AttributeProto.TENSOR: "t",
    AttributeProto.GRAPH: "g",
    AttributeProto.SPARSE_TENSOR: "sparse_tensor",
    AttributeProto.TYPE_PROTO: "tp",
}
_LISTS: Final[dict[int, str]] = {
    AttributeProto.INTS: "ints",
    AttributeProto.FLOATS: "floats",
    AttributeProto.STRINGS: "strings",
    AttributeProto.TENSORS: "tensors",
    AttributeProto.GRAPHS: "graphs",
    AttributeProto.SPARSE_TENSORS: "sparse_tensors",
    AttributeProto.TYPE_PROTOS: "type_protos",
}
_KINDS: Final[tuple[tuple[type | tuple[type, ...], int], ...]] = (
    ((int, numpy.integer), AttributeProto.INT),
    ((float, numpy.floating), AttributeProto.FLOAT),
    ((str, bytes), AttributeProto.STRING),
    ((TensorProto, numpy.ndarray), AttributeProto.TENSOR),
    (GraphProto, AttributeProto.GRAPH),
    (SparseTensorProto, AttributeProto.SPARSE_TENSOR),
    (TypeProto, AttributeProto.TYPE_PROTO),
)


def attribute(name: str, value: Any, kind: int | None) -> AttributeProto:
    """Returns an attribute of a given AttributeProto.AttributeType, or of the one that the value suggests."""
    if isinstance(value, AttributeProto):
        copy = AttributeProto()
        copy.CopyFrom(value)
        copy.name = name
        return copy
    kind = kind or _kind_of(value)
    if isinstance(value, numpy.ndarray):
        value = numpy_helper.from_array(value)
    new = AttributeProto(name=name, type=kind)  # type: ignore[arg-type]
    if kind in _LISTS:
        getattr(new, _LISTS[kind]).extend(_encoded(item) for item in value)
    elif kind in (AttributeProto.INT, AttributeProto.FLOAT, AttributeProto.STRING):
        setattr(new, _SCALARS[kind], _encoded(value))
    else:
        getattr(new, _SCALARS[kind]).CopyFrom(value)
    return new


def _encoded(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    return value.item() if isinstance(value, numpy.generic) else value


def _kind_of(value: Any) -> int:
    for types, kind in _KINDS:
        if isinstance(value, types):
            return kind
    items: Sequence[Any] = value
    if not items:
        raise ValueError("an empty list says nothing of its kind; only a schema does")
    lists = dict(zip(_SCALARS, _LISTS, strict=True))
    return lists[_kind_of(items[0])]
