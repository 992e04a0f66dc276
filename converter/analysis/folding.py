# SPDX-License-Identifier: Apache-2.0
"""Folds nodes whose inputs are small constants, and Shape and Size of values whose dimensions are known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy

from onnx_convert.analysis import evaluation
from onnx_convert.spec import opsets
from onnx_convert.spec.types import size

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx import NodeProto, TypeProto

    Array = numpy.ndarray[Any, Any]

FOLDED_ELEMENTS: Final = 4096


def is_pure(node: NodeProto) -> bool:
    """Returns whether a node only makes a constant out of constants, so that it can go when nobody uses it."""
    return opsets.canonical_domain(node.domain) == opsets.AI_ONNX and (
        node.op_type in evaluation.OPERATORS or node.op_type in ("Constant", "Shape", "Size")
    )


def fold(
    node: NodeProto,
    constant: Callable[[str], Array | None],
    type_of: Callable[[str], TypeProto | None],
    imports: dict[str, int],
) -> Array | None:
    """Returns the one output of a node whose inputs are small constants, computed; None if it is not such a node."""
    if opsets.canonical_domain(node.domain) != opsets.AI_ONNX or len(node.output) != 1:
        return None
    if node.op_type in ("Shape", "Size"):
        return _measure(node, type_of)
    if node.op_type not in evaluation.OPERATORS or any(attribute.ref_attr_name for attribute in node.attribute):
        return None
    if any(attribute.name == "broadcast" for attribute in node.attribute):
        return None  # below opset 7, by rules that the evaluator does not know
    inputs = [constant(name) if name else None for name in node.input]
    known = zip(node.input, inputs, strict=True)
    if any(name and (value is None or value.size > FOLDED_ELEMENTS) for name, value in known):
        return None
    return evaluation.compute(node, imports.get(opsets.AI_ONNX, 0), inputs, FOLDED_ELEMENTS)


def _measure(node: NodeProto, type_of: Callable[[str], TypeProto | None]) -> Array | None:
    """Returns the outcome of Shape or Size where every dimension is known."""
    known = type_of(node.input[0])
    if known is None or not known.tensor_type.HasField("shape"):
        return None
    dims = [size(dim) for dim in known.tensor_type.shape.dim]
    if node.op_type == "Shape":
        bounds = {attribute.name: attribute.i for attribute in node.attribute}
        dims = dims[slice(bounds.get("start"), bounds.get("end"))]
    if not all(isinstance(dim, int) for dim in dims):
        return None
    return numpy.array(dims if node.op_type == "Shape" else math.prod(dims), dtype=numpy.int64)  # type: ignore[arg-type]
