# SPDX-License-Identifier: Apache-2.0
"""Constant.

9: any dtype; below, only floats.
11: `sparse_value` gives the elements that are not 0.
12: `value_int`, `value_floats`, `value_string` and their kin give elements as they are, without a tensor.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from onnx_convert.adapter import downgrade, tensor_of
from onnx_convert.adapters.lib.dtypes import FIRST_FLOATS, STRING

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

_ELEMENTS: Final = ("value_int", "value_ints", "value_float", "value_floats", "value_string", "value_strings")


@downgrade("Constant", at=12)
def elements_to_tensor(node: Node, op: Emitter) -> Value:
    """Elements become a tensor: a scalar, or a vector of a list."""
    given = next((attribute.name for attribute in node.proto.attribute if attribute.name in _ELEMENTS), None)
    if given is None:
        return op.same()
    node.attr(given)  # refuses a reference to an attribute of the function, which no tensor can be
    return op.same(drop=(given,), value=tensor_of(node.proto))


@downgrade("Constant", at=11)
def scatter_sparse_elements(node: Node, op: Emitter) -> Value:
    """The elements that are not 0 are scattered at run time, so the file stays as small as it is."""
    sparse = node.attr("sparse_value")
    if sparse is None:
        return op.same()
    sizes, dtype = list(sparse.dims), sparse.values.data_type
    elements, places = op.Constant(value=sparse.values), op.Constant(value=sparse.indices)
    if len(sparse.indices.dims) == 2:  # coordinates
        strides = [prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
        places = op.at(10).ReduceSum(op.Mul(places, op.const(strides)), axes=[1], keepdims=0)
    zeros = op.Expand(op.const("" if dtype == STRING else 0, dtype), op.const([prod(sizes)]))
    return op.Reshape(op.Scatter(zeros, places, elements, axis=0), op.const(sizes))


@downgrade("Constant", at=9)
def constant_to_initializer(node: Node, op: Emitter) -> Value:
    """Makes an initializer of what is no float; in a function, which has none, a number is cast from double."""
    dtype = node.attr("value").data_type
    if dtype in FIRST_FLOATS:
        return op.same()
    known, in_function = node.output().constant, node.in_function
    hidden = known is None or (in_function and (dtype == STRING or bool((abs(known) > 2**53).any())))
    outputs = [getattr(value, "name", value) for value in node.graph.output]
    if hidden or not (in_function or node.output().producer is None or node.output().name in outputs):
        # Where it can, the engine puts an initializer of the same name in place of a constant that is refused.
        node.refuse("below opset 9 a Constant makes only floats", "inline the function that it is in", unknown=True)
    return op.const(known, dtype)
