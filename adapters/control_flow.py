# SPDX-License-Identifier: Apache-2.0
"""If, Loop, Scan.

9: below, Scan works through a batch: axis 0 counts its members, axis 1 the steps, and each member may have a length of
its own. From 9 on there is no batch; any axis may be scanned, and outputs may be stacked along any axis, in reverse.
11: the branches of an If may make different shapes; a Loop need not carry a value; the axes of Scan may be negative.
13, 16: sequences, then optionals, may leave a branch and be carried; a node that has none crosses as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.adapter import downgrade, size, upgrade
from onnx_convert.adapters.lib.axes import moved, transpose
from onnx_convert.adapters.lib.bodies import Body, stacked_type, tensor_type
from onnx_convert.adapters.lib.dtypes import BOOL, FLOAT, INT64, STRING
from onnx_convert.adapters.lib.shapes import END, part, product, reshape, size_at

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Outcome, Value
    from onnx_convert.adapters.lib.bodies import Graph, Type

    Sizes = list[int | None] | None

BRANCHES: Final = ("then_branch", "else_branch")

# ---- If


@downgrade("If", at=11)
def one_shape_for_both_branches(node: Node, op: Emitter) -> Outcome:
    """Branches that differ in a shape become loops of one step or none, whose results are put together.

    So do those of which only one shape is known, because inference would take it for both.
    """
    sizes = list(zip(*(_made_by(node, branch) for branch in BRANCHES), strict=True))
    only_tensors = all(node.output(i).is_tensor for i in range(len(node.proto.output)))  # others have no way down
    if not only_tensors or all(ours == theirs for ours, theirs in sizes):
        return op.same()
    count, condition = len(sizes), node.input(0)
    if condition.rank != 0:
        condition = op.at(5).Reshape(condition, op.const([]))
    loops = []
    for branch, runs in zip(BRANCHES, (condition, op.Not(condition)), strict=True):
        body = _one_step(op, node.attr(branch))
        loops.append(op.node("Loop", None, runs, outputs=2 * count, at=11, body=body))
    results = []
    for index, pair in enumerate(sizes):
        elements, shape = (
            op.at(4).Concat(*(op.at(5).Reshape(loop[place], op.const([-1])) for loop in loops), axis=0)
            for place in (index, count + index)
        )
        full = all(known is not None and all(known) for known in pair)
        results.append(op.at(5).Reshape(elements, shape) if full else reshape(op, elements, shape))
    return tuple(results)


def _made_by(node: Node, branch: str) -> list[Sizes]:
    """Returns the sizes of what a branch makes, as far as the model states or inference finds them."""
    graph: Graph = node.attr(branch)
    facts = node.within(branch)
    return [_stated_sizes(facts.type_of(value.name) or value.type) for value in graph.output]


def _stated_sizes(kind: Type) -> Sizes:
    if not kind.tensor_type.HasField("shape"):
        return None
    return [number if isinstance(number := size(dim), int) else None for dim in kind.tensor_type.shape.dim]


def _one_step(op: Emitter, branch: Graph) -> Graph:
    """Returns a branch as the body of a Loop that ends after one step, with the shape of each of its results beside
    it."""
    body = Body(op, branch)
    body.take("step", INT64)
    going = body.take("going", BOOL)
    results = body.outputs
    body.give(body.node("Not", going), BOOL, at=0)
    for result in results:
        body.give(body.node("Shape", result), tensor_type(INT64, None))
    return body.graph


# ---- Loop


@downgrade("Loop", at=11)
def carry_a_value(node: Node, op: Emitter) -> Outcome:
    """A Loop that carries nothing carries a number, which nobody looks at."""
    if len(node.proto.input) > 2:
        return op.same()
    body = Body(op, node.attr("body"))
    body.give(body.node("Identity", body.take("unused", FLOAT)), FLOAT, at=1)
    count, condition = node.optional_input(0), node.optional_input(1)
    outputs = 1 + len(node.proto.output)
    return op.node("Loop", count, condition, op.const(0, FLOAT), outputs=outputs, body=body.graph)[1:]


# ---- Scan


@downgrade("Scan", at=11)
def scan_non_negative_axes(node: Node, op: Emitter) -> Outcome:
    """A negative axis counts from the end of a known rank; where that is unknown the axis is made the first."""
    states, scanned, stacked = _counts(node)
    entering, leaving = _list(node, "scan_input_axes", scanned), _list(node, "scan_output_axes", stacked)
    if min(*entering, *leaving, 0) == 0:
        return op.same()
    values = [node.input(i) for i in range(states + scanned)]
    here = [_counted(axis, value.rank) for axis, value in zip(entering, values[states:], strict=True)]
    there = [_counted(axis, _rank_of_output(node, states + i)) for i, axis in enumerate(leaving)]
    values[states:] = [_to_front(op, value, move) for value, (_, move) in zip(values[states:], here, strict=True)]
    results = op.sames(
        *values,
        scan_input_axes=[axis for axis, _ in here],
        scan_output_axes=[axis for axis, _ in there] or None,
    )
    moved = [_from_front(op, value, move) for value, (_, move) in zip(results[states:], there, strict=False)]
    return (*results[:states], *moved)


@downgrade("Scan", at=9)
def scan_a_batch_of_one(node: Node, op: Emitter) -> Outcome:
    """Everything gets an axis of one member in front; scanned axes come next, and what is stacked in reverse is turned
    round by a Scan of its own."""
    states, scanned, stacked = _counts(node)
    entering, leaving = _list(node, "scan_input_axes", scanned), _list(node, "scan_output_axes", stacked)
    backwards = _list(node, "scan_output_directions", stacked)
    axes = [0] * states + entering
    values = [op.Unsqueeze(_to_front(op, node.input(i), axis), axes=[0]) for i, axis in enumerate(axes)]
    gone = ("scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions")
    batches = op.sames(None, *values, drop=gone, directions=node.attr("scan_input_directions") or None)
    results = [op.Squeeze(batch, axes=[0]) if batch.name else None for batch in batches[:states]]
    for i, batch in enumerate(batches[states:]):
        if not batch.name:
            results.append(None)
            continue
        turned = _turned_round(op, batch, node.attr("body").output[states + i].type) if backwards[i] else batch
        results.append(_from_front(op, op.Squeeze(turned, axes=[0]), leaving[i]))
    return tuple(results)


@upgrade("Scan", at=9)
def scan_member_by_member(node: Node, op: Emitter) -> Outcome:
    """An outer Scan takes the members of the batch one by one, the node itself becomes the inner one in its body."""
    lengths, values = node.optional_input(0), [value for value in node.inputs[1:] if value is not None]
    body, steps = Body(op, node.attr("body")), node.attr("num_scan_inputs")
    states, directions = len(values) - steps, node.attr("directions") or None
    if lengths is not None and any(directions or ()):
        node.refuse(
            "sequences of different lengths are scanned in reverse, and no text says where each begins",
            "reverse the sequences before the model, and scan them forwards",
        )
    outer = Body(op)
    for i, value in enumerate(body.graph.input):
        outer.take("member", value.type if i < states else stacked_type(value.type))
    inputs, outputs = outer.inputs, []
    for i, value in enumerate(body.graph.output):
        outputs.append(outer.fresh("member"))
        outer.give(outputs[-1], value.type if i < states else stacked_type(value.type))
    if lengths is not None:
        length = outer.take("length", INT64)
        _stop_early(body, length, states)
        inputs, outputs = [outer.constant(0, INT64), *inputs], [outer.fresh("steps"), *outputs]
        values.append(lengths)
    backwards = {"scan_input_directions": directions} if directions else {}
    outer.nodes("Scan", *inputs, to=outputs, body=body.graph, num_scan_inputs=steps, **backwards)
    return op.same(*values, drop=("directions",), body=outer.graph, num_scan_inputs=len(values))


def _stop_early(body: Body, length: str, states: int) -> None:
    """Makes a body of a Scan count its steps, and from the length of its member on keep its states and stack zeros."""
    step, one = body.take("step", INT64, at=0), body.constant(1, INT64)
    running, following = body.node("Less", step, length), body.node("Add", step, one)
    for i, value in enumerate(body.graph.output):
        dtype = value.type.tensor_type.elem_type
        if i < states:
            value.name = body.node("Where", running, value.name, body.inputs[i + 1])
        elif dtype and dtype != STRING:  # no text demands zeros
            value.name = body.node("Where", running, value.name, body.zeros_like(value.name, dtype))
    body.give(following, INT64, at=0)


def _turned_round(op: Emitter, value: Value, element: Type) -> Value:
    """Returns the steps of a batch in reverse order."""
    body = Body(op)
    body.give(body.node("Identity", body.take("element", element)), element)
    return op.Scan(None, value, body=body.graph, num_scan_inputs=1, directions=[1])


def _counts(node: Node) -> tuple[int, int, int]:
    """Returns how many states a Scan (9) carries, how many inputs it scans, and how many outputs it stacks."""
    scanned = node.attr("num_scan_inputs")
    states = len(node.proto.input) - scanned
    return states, scanned, len(node.attr("body").output) - states


def _list(node: Node, name: str, length: int) -> list[int]:
    """Returns an attribute that is a list of zeros where it is left out."""
    return list(node.attr(name) or [0] * length)


def _counted(axis: int, rank: int | None) -> tuple[int, int]:
    """Returns the non-negative axis to scan, and the negative one that has to be moved there before (0: none)."""
    if axis >= 0:
        return axis, 0
    return (axis + rank, 0) if rank is not None else (0, axis)


def _rank_of_output(node: Node, index: int) -> int | None:
    element = node.attr("body").output[index].type.tensor_type
    if element.HasField("shape"):
        return len(element.shape.dim) + 1
    return node.output(index).rank if node.uses_output(index) else None


def _to_front(op: Emitter, x: Value, axis: int) -> Value:
    """Returns a value whose first axis is the one given; the others follow in order. The rank may be unknown."""
    if axis == 0:
        return x
    if x.rank is not None:
        return transpose(op, x, moved(axis % x.rank, 0, x.rank))
    shape = op.Shape(x)
    before, size, after = part(op, shape, 0, axis), size_at(op, shape, axis), _after(op, shape, axis)
    blocks = reshape(op, x, op.at(4).Concat(product(op, before), size, product(op, after), axis=0))
    return reshape(op, op.Transpose(blocks, perm=[1, 0, 2]), op.at(4).Concat(size, before, after, axis=0))


def _from_front(op: Emitter, y: Value, axis: int) -> Value:
    """Returns a value whose first axis went to the place given, which counts as in the result."""
    if axis == 0:
        return y
    if y.rank is not None:
        return transpose(op, y, moved(0, axis % y.rank, y.rank))
    size, shape = part(op, op.Shape(y), 0, 1), part(op, op.Shape(y), 1)
    before = shape if axis == -1 else part(op, shape, 0, axis if axis > 0 else axis + 1)
    after = part(op, shape, axis) if axis > 0 else _after(op, shape, axis)
    blocks = reshape(op, y, op.at(4).Concat(size, product(op, before), product(op, after), axis=0))
    return reshape(op, op.Transpose(blocks, perm=[1, 0, 2]), op.at(4).Concat(before, size, after, axis=0))


def _after(op: Emitter, shape: Value, axis: int) -> Value:
    """Returns the sizes behind an axis."""
    return part(op, shape, axis + 1) if axis != -1 else part(op, shape, END)
