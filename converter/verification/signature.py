# SPDX-License-Identifier: Apache-2.0
"""What a model wants to be given: its inputs, the sizes of their dimensions, and whether what was given fits."""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Any, Final

import numpy
import onnx

from onnx_convert.errors import UsageError
from onnx_convert.spec.types import size, type_str

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from onnx import ModelProto, TypeProto, ValueInfoProto

Dims = tuple["int | str | None", ...]

_SUMS: Final[dict[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def needed(model: ModelProto) -> list[ValueInfoProto]:
    """Returns the inputs that no initializer fills."""
    filled = {tensor.name for tensor in model.graph.initializer}
    filled |= {tensor.values.name for tensor in model.graph.sparse_initializer}
    return [value for value in model.graph.input if value.name not in filled]


def dims_of(kind: TypeProto) -> Dims | None:
    """Returns the stated dimensions of a tensor, of the tensors of a sequence, or in an optional: a size, a name or
    None each; None if there is no rank."""
    which = kind.WhichOneof("value")
    if which == "sequence_type":
        return dims_of(kind.sequence_type.elem_type)
    if which == "optional_type":
        return dims_of(kind.optional_type.elem_type)
    if which != "tensor_type" or not kind.tensor_type.HasField("shape"):
        return None
    return tuple(size(dim) for dim in kind.tensor_type.shape.dim)


def dtype_of(kind: TypeProto) -> numpy.dtype[Any]:
    """Returns the dtype of a tensor as numpy has it."""
    return onnx.helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type)


def evaluated(text: str, sizes: Mapping[str, int]) -> int | None:
    """Returns what a dimension comes to that is called like a formula, `past + 1`, if its names have sizes."""
    try:
        return _value(ast.parse(text, mode="eval").body, sizes)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        return None


def _value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name) and node.id in sizes:
        return sizes[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _SUMS:
        return _SUMS[type(node.op)](_value(node.left, sizes), _value(node.right, sizes))
    raise ValueError


def is_formula(text: str) -> bool:
    """Returns whether a dimension is called like a formula."""
    try:
        return isinstance(ast.parse(text, mode="eval").body, ast.BinOp) and "/" not in text
    except (SyntaxError, RecursionError):
        return False


def bound_by(model: ModelProto, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Returns the sizes that given shapes give to named dimensions. UsageError if a shape does not fit its input."""
    inputs = {value.name: value for value in needed(model)}
    sizes: dict[str, int] = {}
    for name, shape in shapes.items():
        if name not in inputs:
            raise UsageError(f"the model has no input {name!r}; it has {_listed(inputs)}")
        _bind(name, inputs[name].type, shape, sizes)
    return sizes


def check(model: ModelProto, feeds: Mapping[str, Any], where: str) -> None:
    """Raises UsageError unless these are values for all inputs of a model, of their dtypes and shapes."""
    inputs = {value.name: value for value in needed(model)}
    optional = {name for name, value in inputs.items() if value.type.WhichOneof("value") == "optional_type"}
    missing = [name for name in inputs if name not in feeds and name not in optional]
    if missing:
        there = f"it has {_listed(feeds)}" if feeds else "it is empty"
        raise UsageError(f"{where}: input {missing[0]!r} is missing; {there}")
    filled = {value.name for value in model.graph.input}
    unknown = [name for name in feeds if name not in filled]
    if unknown:
        raise UsageError(f"{where}: the model has no input {unknown[0]!r}; it has {_listed(inputs)}")
    sizes: dict[str, int] = {}
    for name, value in inputs.items():
        if isinstance(given := feeds.get(name), numpy.ndarray):
            _check_dtype(name, value.type, given, where)
            _bind(name, value.type, given.shape, sizes, where)


def _check_dtype(name: str, kind: TypeProto, given: numpy.ndarray[Any, Any], where: str) -> None:
    if kind.WhichOneof("value") != "tensor_type":
        if kind.WhichOneof("value") == "optional_type":
            _check_dtype(name, kind.optional_type.elem_type, given, where)
            return
        raise UsageError(f"{where}: input {name!r} is a {type_str(kind)}, not a tensor")
    wanted = dtype_of(kind)
    strings = wanted.kind == "O" and given.dtype.kind in "OUS"
    if given.dtype != wanted and not strings:
        raise UsageError(f"{where}: input {name!r} is {given.dtype}, the model wants {wanted}")


def _bind(name: str, kind: TypeProto, shape: tuple[int, ...], sizes: dict[str, int], where: str = "") -> None:
    """Notes the sizes that a shape gives to names. UsageError if it does not fit."""
    dims = dims_of(kind)
    if dims is None:
        return
    wrong = len(dims) != len(shape)
    for dim, given in zip(dims, shape, strict=False) if not wrong else ():
        if isinstance(dim, int):
            wrong |= dim != given
        elif dim is not None and not is_formula(dim):
            wrong |= sizes.setdefault(dim, given) != given
    if wrong:
        told = ",".join("?" if dim is None else str(dim) for dim in dims)
        named = [f"{dim} = {sizes[dim]}" for dim in dims if isinstance(dim, str) and dim in sizes]
        named = named if len(dims) == len(shape) else []
        because = f" ({', '.join(named)})" if named else ""
        text = f"input {name!r} has shape [{','.join(map(str, shape))}], the model wants [{told}]{because}"
        raise UsageError(f"{where}: {text}" if where else text)


def _listed(names: Mapping[str, Any]) -> str:
    shown = [*names][:8]
    return ", ".join(shown) + (", ..." if len(names) > 8 else "") if shown else "none"
