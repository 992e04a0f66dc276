# SPDX-License-Identifier: Apache-2.0
"""Sum, Mean, Max, Min.

6: below, there is `consumed_inputs`, a hint about memory.
8: below, all inputs have one shape; from 8 on they are stretched to a common one as in numpy.
12: below, Max and Min take no integers.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.broadcast import same_shape, stretched
from onnx_convert.adapters.lib.dtypes import is_integer

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

OPERATORS: Final = ("Sum", "Mean", "Max", "Min")


@upgrade(*OPERATORS, at=6)
def forget_memory_hint(node: Node, op: Emitter) -> Value:
    """`consumed_inputs` never changed a number."""
    return op.same(drop=["consumed_inputs"])


@downgrade("Sum", at=8)
def add_one_by_one(node: Node, op: Emitter) -> Value:
    """Inputs of different shapes are added from left to right."""
    inputs = _inputs(node)
    if _have_one_shape(inputs):
        return op.same()
    if len(inputs) > 2:
        op.equivalent("Sum may add in another order")
    return reduce(op.Add, inputs)


@downgrade("Mean", "Max", "Min", at=8)
def repeat_to_common_shape(node: Node, op: Emitter) -> Value:
    """Inputs of different shapes are repeated to the common one."""
    inputs = _inputs(node)
    return op.same() if _have_one_shape(inputs) else op.same(*stretched(op, *inputs))


@downgrade("Max", "Min", at=12)
def choose_integers_pairwise(node: Node, op: Emitter) -> Value:
    """Integers are compared two at a time, and the larger (smaller) one chosen."""
    inputs = _inputs(node)
    dtype = next((value.dtype for value in inputs if value.dtype is not None), None)
    if dtype is None or not is_integer(dtype):
        return op.same()
    compare = op.Greater if node.operator == "Max" else op.Less
    return reduce(lambda a, b: op.Where(compare(a, b), a, b), inputs)


def _inputs(node: Node) -> list[Value]:
    return [node.input(index) for index in range(len(node.inputs))]


def _have_one_shape(values: list[Value]) -> bool:
    return all(same_shape(values[0], value) for value in values[1:])
