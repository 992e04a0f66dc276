# SPDX-License-Identifier: Apache-2.0
"""Nodes, attributes, types and tensors as people read them: in ONNX's text form, what is long cut short."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from onnx import AttributeProto, GraphProto, SparseTensorProto, TensorProto, TypeProto

from onnx_convert.model.attributes import attribute_value
from onnx_convert.model.graphs import plain
from onnx_convert.model.tensors import elements, elements_of
from onnx_convert.spec import opsets
from onnx_convert.spec.types import MADE_UP, dtype_name, size

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onnx import NodeProto

_MANY: Final = 16  # elements that are shown of a list
_LONG: Final = 120  # characters that are shown of a string


def operator(node: NodeProto) -> str:
    """Returns the operator of a node, with its domain unless that is ai.onnx."""
    domain = opsets.canonical_domain(plain(node.domain))
    return f"{domain}.{plain(node.op_type)}" if domain else plain(node.op_type)


def type_text(kind: TypeProto | None) -> str:
    """Returns a type: `float[2,N,?]`, `float[]` where the rank is unknown, `seq(float[2])`; "" if nothing is known."""
    which = kind.WhichOneof("value") if kind is not None else None
    if kind is None or which is None:
        return ""
    if which in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(kind, which)
        if not tensor.elem_type:
            return ""
        shape = "[]"
        if tensor.HasField("shape"):
            dims = [_dim_text(size(dim)) for dim in tensor.shape.dim]
            shape = f"[{','.join(dims)}]" if dims else ""
        text = dtype_name(tensor.elem_type) + shape
        return text if which == "tensor_type" else f"sparse({text})"
    if which == "map_type":
        return f"map({dtype_name(kind.map_type.key_type)},{type_text(kind.map_type.value_type)})"
    inner = kind.sequence_type if which == "sequence_type" else kind.optional_type
    return f"{'seq' if which == 'sequence_type' else 'optional'}({type_text(inner.elem_type)})"


def _dim_text(dim: int | str | bytes | None) -> str:
    if isinstance(dim, int):
        return str(dim)
    return "?" if dim is None or plain(dim).startswith(MADE_UP) else plain(dim)


def tensor_text(tensor: TensorProto) -> str:
    """Returns a tensor: `int64[2] {1, 2}`; without its elements if they lie elsewhere or make no sense."""
    dims = f"[{','.join(map(str, tensor.dims))}]" if tensor.dims else ""
    kind = f"{dtype_name(tensor.data_type)}{dims}" if tensor.data_type in TensorProto.DataType.values() else "?"
    return f"{kind} {shown}" if (shown := elements_text(tensor)) else kind


def elements_text(tensor: TensorProto) -> str:
    """Returns the first elements of a tensor: `{1, 2}`; "" where they cannot be had without a file."""
    if tensor.data_location == TensorProto.EXTERNAL or elements(tensor) > 10**6:
        return ""
    try:
        flat = elements_of(tensor).ravel()
    except Exception:  # noqa: BLE001 - whatever is wrong with it, there is nothing to show
        return ""
    found = [value_text(item) for item in flat[: _MANY + 1].tolist()]
    text = _listed(found, flat.size)
    return text if tensor.dims else text[1:-1]


def attribute_text(attribute: AttributeProto) -> str:
    """Returns what an attribute holds; of a graph how many nodes it has."""
    if attribute.ref_attr_name:
        return f"@{plain(attribute.ref_attr_name)}"
    try:
        value = attribute_value(attribute)
    except Exception:  # noqa: BLE001 - of a type that nobody knows
        return "?"
    return value_text(value)


def value_text(value: Any) -> str:
    """Returns a value of an attribute, or an element of a tensor."""
    if isinstance(value, list):
        return _listed([value_text(item) for item in value[: _MANY + 1]], len(value), "[]")
    if isinstance(value, TensorProto):
        return tensor_text(value)
    if isinstance(value, GraphProto):
        return f"graph of {len(value.node)} node{'' if len(value.node) == 1 else 's'}"
    if isinstance(value, SparseTensorProto):
        return f"sparse {tensor_text(value.values)}"
    if isinstance(value, TypeProto):
        return type_text(value)
    if isinstance(value, str | bytes):
        text = plain(value)
        text = text.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else text
        return json.dumps(text if len(text) <= _LONG else f"{text[:_LONG]}...", ensure_ascii=False)
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def _listed(shown: list[str], count: int, brackets: str = "{}") -> str:
    """Returns a list, of a long one the beginning and how many there are."""
    if count > _MANY:
        shown = [*shown[:_MANY], f"... {count - _MANY} more"]
    return f"{brackets[0]}{', '.join(shown)}{brackets[1]}"


def attributes_text(pairs: Iterable[tuple[str, str]]) -> str:
    """Returns attributes as the text form has them: ` <axis = 1>`, or nothing."""
    told = ", ".join(f"{name} = {value}" for name, value in pairs)
    return f" <{told}>" if told else ""


def node_text(node: NodeProto) -> str:
    """Returns a node in ONNX's text form: `y = Softmax <axis = 1> (x)`."""
    pairs = ((plain(attribute.name), attribute_text(attribute)) for attribute in node.attribute)
    outputs, inputs = (", ".join(map(plain, names)) for names in (node.output, node.input))
    return f"{outputs} = {operator(node)}{attributes_text(pairs)} ({inputs})"
