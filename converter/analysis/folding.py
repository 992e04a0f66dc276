# SPDX-License-Identifier: Apache-2.0
"""Constants: the tensor behind a Constant node, and small values that a few nodes make out of constants."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy
import onnx
from onnx import NodeProto

from onnx_convert.spec import opsets
from onnx_convert.spec.types import size

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx import TypeProto

    Array = numpy.ndarray[Any, Any]

FOLDED_ELEMENTS: Final = 4096

# Shape arithmetic: deterministic, cheap on small values, and read the same way by onnx.reference at every version
# that they have had.
_FOLDABLE: Final = frozenset(
    "Add Cast Concat ConstantOfShape Div Equal Expand Gather Identity Mul Neg Range ReduceProd Reshape Slice Squeeze"
    " Sub Transpose Unsqueeze Where".split()
)


def is_pure(node: NodeProto) -> bool:
    """Whether a node only makes a constant out of constants, so that it can go when nobody uses it."""
    return opsets.canonical_domain(node.domain) == opsets.AI_ONNX and (
        node.op_type in _FOLDABLE or node.op_type in ("Constant", "Shape", "Size")
    )


def fold(
    node: NodeProto,
    constant: Callable[[str], Array | None],
    type_of: Callable[[str], TypeProto | None],
    imports: dict[str, int],
) -> Array | None:
    """The one output of a node whose inputs are small constants, by running it; None if it is not such a node."""
    if opsets.canonical_domain(node.domain) != opsets.AI_ONNX or len(node.output) != 1:
        return None
    if node.op_type in ("Shape", "Size"):
        return _measure(node, type_of)
    if node.op_type not in _FOLDABLE or any(attribute.ref_attr_name for attribute in node.attribute):
        return None
    if any(attribute.name == "broadcast" for attribute in node.attribute):
        return None  # below opset 7, by rules that the evaluator does not know
    feeds = {}
    for name in node.input:
        value = constant(name) if name else None
        if name and (value is None or value.size > FOLDED_ELEMENTS):
            return None
        feeds[name] = value
    return _run(node, feeds, imports)


def _measure(node: NodeProto, type_of: Callable[[str], TypeProto | None]) -> Array | None:
    """The outcome of Shape or Size where every dimension is known."""
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


def _run(node: NodeProto, feeds: dict[str, Array | None], imports: dict[str, int]) -> Array | None:
    from onnx.reference import ReferenceEvaluator  # half as heavy as onnx itself, and seldom needed

    inputs = [onnx.ValueInfoProto(name=name) for name in feeds if name]
    graph = onnx.GraphProto(name="fold", node=[node], input=inputs, output=[onnx.ValueInfoProto(name=node.output[0])])
    model = onnx.ModelProto(graph=graph, ir_version=opsets.newest_ir_version())
    model.opset_import.extend(onnx.OperatorSetIdProto(domain=d, version=v) for d, v in imports.items())
    try:
        (value,) = ReferenceEvaluator(model).run(None, {name: value for name, value in feeds.items() if name})
    except Exception:  # an evaluator that cannot run a node is no reason to fail: the value just is not known
        return None
    return value if isinstance(value, numpy.ndarray) and value.size <= FOLDED_ELEMENTS else None
