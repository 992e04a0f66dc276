# SPDX-License-Identifier: Apache-2.0
"""Sequences and optionals, which types below do not have: they are followed back to the tensors that they hold.

11: sequences of tensors. 15: optionals. 17: SequenceMap.

What takes a tensor out of a sequence whose elements are known is written with that tensor. What makes a sequence is
then read by nobody: a constant stands in its place, until it is swept away like all that a rewrite orphans.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final

from onnx_convert.adapter import canonical_domain, downgrade
from onnx_convert.adapters.lib.bodies import Body, Graph, sequence_type
from onnx_convert.adapters.lib.dtypes import BOOL, INT64
from onnx_convert.adapters.lib.shapes import known_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx_convert.adapter import Emitter, Node, Outcome, Value

    Element = Callable[[Emitter], Value]  # writes the nodes that make an element, or gives a value that is there

_OPTIONALS: Final = ("Identity", "Optional", "OptionalGetElement", "OptionalHasElement")
_READERS: Final = (
    *_OPTIONALS,
    *("ConcatFromSequence", "SequenceAt", "SequenceErase", "SequenceInsert", "SequenceLength"),
)
_FIXED: Final = "make lengths of sequences and places in them constants, and keep sequences out of If and Loop"

# ---- what makes a sequence or an optional


@downgrade("SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SplitToSequence", at=11)
def forget_the_sequence(node: Node, op: Emitter) -> Outcome:
    """Drops the node: the nodes that take its tensors know them."""
    return _forgotten(node, op, _READERS, "there are no sequences below opset 11")


@downgrade("Optional", at=15)
def forget_the_optional(node: Node, op: Emitter) -> Outcome:
    """Drops the node: the nodes that take its value know it."""
    why, name = "there are no optionals below opset 15", node.proto.output[0]
    if not any(name in other.output for other in node.graph.node):  # a call stands there, and who reads it is not known
        node.refuse(f"{why}, and this one is made in a function", "inline the function", unknown=True)
    return _forgotten(node, op, _OPTIONALS, why)


def _forgotten(node: Node, op: Emitter, readers: tuple[str, ...], why: str) -> Outcome:
    name = node.proto.output[0]
    if not node.is_read(0):
        return ()
    graph = node.graph
    if not isinstance(graph, Graph):
        node.refuse(f"{why}, and this one is made in a function", "inline the function", unknown=True)
    taker = _taker(graph, name, readers)
    if taker:
        node.refuse(f"{why}, and this one {taker}", _FIXED)
    return op.Shape(op.const(0))


def _taker(graph: Graph, name: str, readers: tuple[str, ...]) -> str:
    """Returns what happens to a value, other than that these operators read it; "" if nothing does."""
    if any(value.name == name for value in graph.output):
        return "leaves its graph"
    for node in graph.node:
        if name in node.input and (canonical_domain(node.domain) or node.op_type not in readers):
            return f"is read by {node.op_type}"
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                taker = _taker(inner, name, readers)
                if taker:
                    return taker
    return ""


# ---- what takes tensors out


@downgrade("SequenceAt", at=11)
def take_the_known_element(node: Node, op: Emitter) -> Value:
    """The tensor at a constant position."""
    elements = _known(node)
    place = int(node.constant(1).item())
    if not -len(elements) <= place < len(elements):
        node.invalid(f"position {place} is not in a sequence of {len(elements)}")
    return elements[place](op)


@downgrade("SequenceLength", at=11)
def write_the_known_length(node: Node, op: Emitter) -> Value:
    """The number of elements is a constant."""
    return op.const(len(_known(node)))


@downgrade("ConcatFromSequence", at=11)
def concat_known_elements(node: Node, op: Emitter) -> Value:
    """Concat of the tensors, with a new axis each if that is asked for."""
    elements, axis = _known(node), node.attr("axis")
    if not elements:
        node.invalid("its sequence is empty")
    values = [element(op) for element in elements]
    if node.attr("new_axis"):
        values = [op.at(11).Unsqueeze(value, axes=[axis]) for value in values]
    return op.at(11).Concat(*values, axis=axis)


@downgrade("OptionalGetElement", at=15)
def take_the_known_value(node: Node, op: Emitter) -> Value:
    """The value that the optional was made of."""
    held = _held(node)
    if held is None:
        node.invalid("its optional holds nothing")
    return op.Identity(held)


@downgrade("OptionalHasElement", at=15)
def write_whether_there_is_a_value(node: Node, op: Emitter) -> Value:
    """A constant."""
    return op.const(_held(node) is not None, BOOL)


def _known(node: Node) -> list[Element]:
    """Returns the elements of the sequence that the node takes."""
    elements = _elements(node.input(0))
    if elements is None:
        node.refuse("there are no sequences below opset 11, and the elements of this one are not fixed", _FIXED)
    return elements


def _held(node: Node) -> Value | None:
    """Returns the value in the optional that the node takes, None if there is none."""
    held = _values_of_optional(node.input(0))
    if held is None:
        node.refuse("there are no optionals below opset 15, and it is not known what this one holds", _FIXED)
    return held[0] if held else None


# ---- following values back


def _made_of(value: Value) -> tuple[Node | None, list[Value]]:
    """Returns the node of ai.onnx that makes a value, with the inputs that it has."""
    producer = value.producer
    if producer is None or producer.domain:
        return None, []
    return producer, [held for held in producer.inputs if held]


def _values_of_optional(optional: Value) -> list[Value] | None:
    """Returns the value in an optional, or nothing; None if it is not known."""
    node, inputs = _made_of(optional)
    if node is not None and node.operator == "Identity":
        return _values_of_optional(inputs[0])
    return inputs if node is not None and node.operator == "Optional" else None


def _elements(sequence: Value) -> list[Element] | None:
    """Returns how each element of a sequence is written, None if they are not fixed."""
    node, inputs = _made_of(sequence)
    if node is None:
        return None
    if node.operator == "Identity":
        return _elements(inputs[0])
    if node.operator == "OptionalGetElement":
        return _elements((_values_of_optional(inputs[0]) or inputs)[0])
    if node.operator in ("SequenceEmpty", "SequenceConstruct"):
        return [_there(element) for element in inputs]
    if node.operator == "SplitToSequence":
        return _pieces(node, *inputs)
    elements = _elements(inputs[0]) if node.operator in ("SequenceInsert", "SequenceErase") else None
    if elements is None:
        return None
    added = [_there(inputs[1])] if node.operator == "SequenceInsert" else []
    last = len(elements) if added else len(elements) - 1
    position = inputs[1 + len(added) :]
    if not position:
        place = last
    elif position[0].constant is None:
        return None
    else:
        place = int(position[0].constant.item())
        place += len(elements) * (place < 0)
    return [*elements[:place], *added, *elements[place + (not added) :]] if 0 <= place <= last else None


def _there(value: Value) -> Element:
    return lambda _: value


def _pieces(node: Node, x: Value, split: Value | None = None) -> list[Element] | None:
    """Returns the pieces of SplitToSequence, which are slices."""
    axis, known = node.attr("axis"), None if split is None else split.constant
    size = known_size(x, axis)
    if (split is not None and known is None) or (axis < 0 and x.rank is None):
        return None
    if known is not None and known.ndim:
        sizes = [int(length) for length in known]
    elif size is None:
        return None
    else:
        length = 1 if known is None else int(known.item())
        sizes = [min(length, size - start) for start in range(0, size, length)]
    squeeze = split is None and not node.attr("keepdims")
    axis = axis if x.rank is None else axis % x.rank
    return [
        _slice(x, axis, end - length, end, squeeze=squeeze)
        for length, end in zip(sizes, accumulate(sizes), strict=True)
    ]


def _slice(x: Value, axis: int, start: int, end: int, *, squeeze: bool) -> Element:
    def write(op: Emitter) -> Value:
        piece = op.at(9).Slice(x, axes=[axis], starts=[start], ends=[end])
        return op.at(10).Squeeze(piece, axes=[axis]) if squeeze else piece

    return write


# ---- SequenceMap


@downgrade("SequenceMap", at=17)
def loop_over_elements(node: Node, op: Emitter) -> Outcome:
    """A Loop takes the elements one by one and appends what comes out to sequences."""
    body = Body(op, node.attr("body"))
    taken, made = body.inputs, list(node.attr("body").output)
    del body.graph.input[:], body.graph.output[:]
    number, going = body.take("step", INT64), body.take("going", BOOL)
    body.give(body.node("Identity", going, ahead=True), BOOL)
    for value, element in zip(node.inputs, taken, strict=True):
        if value is None or value.type is None:
            node.refuse("whether each of its inputs is a sequence is not known", "state the types", unknown=True)
        if value.is_tensor:
            body.node("Identity", value.name, to=element, ahead=True)
        else:
            body.node("SequenceAt", value.name, number, to=element, ahead=True)
    starts = []
    for index, element in enumerate(made):
        kind = sequence_type(element.type)
        if not element.type.tensor_type.elem_type:  # exporters leave it out
            known = node.output(index).type
            if known is None:
                node.refuse(f"the type of {node.output(index).name!r} is not known", "state the types", unknown=True)
            kind = known
        body.give(body.node("SequenceInsert", body.take("before", kind), element.name), kind)
        starts.append(op.SequenceEmpty(dtype=kind.sequence_type.elem_type.tensor_type.elem_type))
    count = op.SequenceLength(node.input(0))
    return op.node("Loop", count, op.const(True, BOOL), *starts, outputs=len(starts), body=body.graph)
