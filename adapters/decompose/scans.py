# SPDX-License-Identifier: Apache-2.0
"""CumSum, CumProd, Scan.

8: Scan works through the steps of each member of a batch.
11: CumSum gives the running sums along an axis.
26: CumProd gives the running products.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.axes import moved, permuted
from onnx_convert.adapters.lib.bodies import Body, tensor_type
from onnx_convert.adapters.lib.dtypes import BOOL, FLOAT, HALVES, INT64, cast
from onnx_convert.adapters.lib.indices import fixed, is_negative, places, vector
from onnx_convert.adapters.lib.shapes import END, never_empty, non_negative, part, product, reshape

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy

    from onnx_convert.adapter import Dim, Emitter, Node, Outcome, Value
    from onnx_convert.adapters.lib.bodies import Graph

_COMBINE: Final = {"CumSum": ("Add", 0), "CumProd": ("Mul", 1)}

# ---- CumSum, CumProd


@downgrade("CumSum", at=11)
@downgrade("CumProd", at=26)
def scan_along_axis(node: Node, op: Emitter) -> Value:
    """A Scan carries what is summed or multiplied so far, halves in float. Where axis or rank are only known at run
    time, the axes before and behind it become one each."""
    x, axis = node.input(0), node.input(1).constant
    if node.dtype(0) in HALVES:
        op.equivalent("how sums and products of halves are rounded is not specified")
        return op.Cast(_along(node, op, op.Cast(x, to=FLOAT), axis), to=node.dtype(0))
    return _along(node, op, x, axis)


def _along(node: Node, op: Emitter, x: Value, axis: numpy.ndarray[Any, Any] | None) -> Value:
    if x.shape is not None and 0 in x.shape:
        return x
    if x.rank == 1 or (axis is not None and x.rank is not None):
        return _scanned(node, op, x, 0 if axis is None else node.axis(int(axis.item()), x.rank))
    shape = op.Shape(x)
    if axis is not None and axis.item() >= 0:
        place = op.const([int(axis.item())])
    else:
        place = non_negative(op, cast(op, vector(op, node.input(1)), INT64), op.Shape(shape))
    left = op.at(7).Sub(places(op, shape, 0), place)  # below 0 for the axes before
    before, after = (
        _product_where(op, shape, is_negative(op, side)) for side in (left, op.at(7).Sub(place, places(op, shape, 0)))
    )
    blocks = op.at(4).Concat(before, op.Gather(shape, place), after, axis=0)
    return reshape(op, _scanned(node, op, reshape(op, x, blocks), 1), shape)


def _product_where(op: Emitter, sizes: Value, condition: Value) -> Value:
    """Returns the product of the sizes for which a condition holds."""
    beyond = op.at(7).Mul(op.at(7).Sub(sizes, op.const([1])), op.Cast(condition, to=INT64))
    return product(op, op.at(7).Add(beyond, op.const([1])))


def _scanned(node: Node, op: Emitter, x: Value, axis: int) -> Value:
    """Writes the Scan. It must not be of no step (runtimes fail), so where there may be none a neutral one comes first.
    Nor must it move the axis of what may be empty to the front (a division by 0 in runtimes), so that is done for
    it."""
    if axis and not never_empty(x):
        return permuted(op, x, moved(axis, 0, x.rank or 3), lambda first: _scanned(node, op, first, 0))
    backwards, exclusive, neutral = node.attr("reverse"), node.attr("exclusive"), _COMBINE[node.operator][1]
    sizes, first = x.shape, op.const(neutral, x.dtype or node.dtype(0))
    rest = None if sizes is None else (*sizes[:axis], *sizes[axis + 1 :])
    known = fixed(rest)
    if known is None:
        shape = op.Shape(x)
        shape = op.at(4).Concat(part(op, shape, 0, axis), part(op, shape, axis + 1), axis=0)
        first = op.at(8).Expand(first, shape)
    elif known:
        first = op.at(8).Expand(first, op.const(known))
    if sizes is not None and isinstance(sizes[axis], int):
        return _scan(node, op, first, x, axis, rest, exclusive=exclusive)
    neutral_step = op.at(10).Unsqueeze(first, axes=[axis])
    longer = op.at(4).Concat(*((x, neutral_step) if backwards else (neutral_step, x)), axis=axis)
    y = _scan(node, op, first, longer, axis, rest, exclusive=False)
    start, end = (0, -1) if backwards != exclusive else (1, END)
    return op.at(9).Slice(y, axes=[axis], starts=[start], ends=[end])


def _scan(
    node: Node, op: Emitter, first: Value, x: Value, axis: int, rest: Sequence[Dim] | None, *, exclusive: bool
) -> Value:
    element = tensor_type(first.dtype or node.dtype(0), *([None] * 2 if rest is None else rest))

    def step(inner: Emitter, state: Value, value: Value) -> tuple[Value, Value]:
        following = getattr(inner, _COMBINE[node.operator][0])(state, value)
        return following, state if exclusive else inner.Identity(following)

    return op.node(
        "Scan",
        first,
        x,
        outputs=2,
        body=op.graph("step", [element, element], step),
        num_scan_inputs=1,
        scan_input_axes=[axis],
        scan_output_axes=[axis],
        scan_input_directions=[node.attr("reverse")],
        scan_output_directions=[node.attr("reverse")],
    )[1]


# ---- Scan


@downgrade("Scan", at=8)
def loop_over_members_and_steps(node: Node, op: Emitter) -> Outcome:
    """A Loop over the steps takes the elements one by one; another one around it, the members of the batch."""
    if node.optional_input(0) is not None:
        node.refuse(
            "its sequences have lengths of their own, for which there is no form below opset 8",
            "leave the lengths out, or go no lower than opset 8",
        )
    values = [value for value in node.inputs[1:] if value is not None]
    scanned = node.attr("num_scan_inputs")
    directions = node.attr("directions") or [0] * scanned
    backwards = None
    if any(directions):
        steps = places(op, values[-1], 1)
        backwards = op.at(7).Sub(op.at(7).Sub(op.Shape(steps), op.const([1])), steps)
    indices = [backwards if direction else None for direction in directions]
    length = values[-1].shape[1] if values[-1].shape else None
    count = op.const(length) if isinstance(length, int) else op.Gather(op.Shape(values[-1]), op.const(1), axis=0)

    def loop_over_steps(inner: Emitter, own: list[Value]) -> tuple[Value, ...]:
        body = _step(inner, node.attr("body"), own[-scanned:], indices)
        states = own[:-scanned] or [inner.const(0, FLOAT)]
        made = inner.node("Loop", count, inner.const(True, BOOL), *states, outputs=len(body.output) - 1, body=body)
        return made if len(values) > scanned else made[1:]

    if any(value.shape and value.shape[0] == 1 for value in values):
        made = loop_over_steps(op, [op.Squeeze(value, axes=[0]) for value in values])
        return tuple(op.Unsqueeze(value, axes=[0]) for value in made)

    def member(inner: Emitter, number: Value, going: Value, unused: Value) -> tuple[Value, ...]:
        return going, unused, *loop_over_steps(inner, [inner.Gather(value, number, axis=0) for value in values])

    start, runs = op.const(0, FLOAT), op.Gather(op.Shape(values[0]), op.const(0), axis=0)
    outputs = 1 + len(node.attr("body").output)
    body = op.graph("member", [INT64, BOOL, FLOAT], member)
    return op.node("Loop", runs, op.const(True, BOOL), start, outputs=outputs, body=body)[1:]


def _step(op: Emitter, scanned: Graph, values: Sequence[Value], indices: Sequence[Value | None]) -> Graph:
    """Returns the body of a Scan as that of a Loop, which takes the elements of its step itself, and carries a number
    if it carries nothing else."""
    body = Body(op, scanned)
    states = len(body.inputs) - len(values)
    elements = body.inputs[states:]
    del body.graph.input[states:]
    if not states:
        body.give(body.node("Identity", body.take("unused", FLOAT), ahead=True), FLOAT, at=0)
    number, going = body.take("step", INT64, at=0), body.take("going", BOOL, at=1)
    body.give(body.node("Identity", going, ahead=True), BOOL, at=0)
    for value, index, element in zip(values, indices, elements, strict=True):
        place = number if index is None else body.node("Gather", index.name, number, ahead=True)
        body.node("Gather", value.name, place, to=element, ahead=True)
    return body.graph
