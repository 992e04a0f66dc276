# SPDX-License-Identifier: Apache-2.0
"""Split.

2: below, `axis` has no default, and the sizes may also come as a second input, a float like the data.
11: `axis` may be negative.
13: `split`, the sizes of the parts, is an input; below, an attribute.
18: `num_outputs` cuts into equal parts, of which the last may be smaller; one of it and `split` is required. Below,
parts without sizes are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.axes import from_the_front
from onnx_convert.adapters.lib.dtypes import INT64
from onnx_convert.adapters.lib.numbers import Numbers
from onnx_convert.adapters.lib.shapes import size_at

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Outcome, Value

_SIZES: Final = 1


@upgrade("Split", at=2)
def sizes_from_floats(node: Node, op: Emitter) -> Value | tuple[Value, ...]:
    """An absent axis is 0. Sizes in an input become the attribute, or int64 if they are computed."""
    x, sizes = node.input(0), node.optional_input(_SIZES)
    if sizes is None:
        return op.same(x)
    known = sizes.constant
    if known is not None:
        return op.same(x, split=[int(size) for size in known])
    whole = op.at(6).Cast(sizes, to=INT64)
    return op.node("Split", x, whole, outputs=len(node.proto.output), at=13, axis=node.attribute("axis"))


@downgrade("Split", at=2)
def spell_out_axis(node: Node, op: Emitter) -> Value:
    """An absent axis is 0."""
    return op.same() if node.has("axis") else op.same(axis=0)


@downgrade("Split", at=11)
def split_at_positive_axis(node: Node, op: Emitter) -> Outcome:
    """A negative axis counts from the end of a known rank; of an unknown one, all before it becomes one dimension."""
    return from_the_front(node, op, [node.attr("axis")], lambda x, axes: op.sames(x, axis=axes[0]))


@upgrade("Split", at=13)
def sizes_to_input(node: Node, op: Emitter) -> Value:
    """The attribute becomes a constant."""
    sizes = op.attribute_as_input("split")
    return op.same() if sizes is None else op.same(node.input(0), sizes, drop=("split",))


@downgrade("Split", at=13)
def sizes_to_attribute(node: Node, op: Emitter) -> Value | tuple[Value | None, ...]:
    """Constant sizes become the attribute; with others each part is a Slice that ends where the next one starts. So it
    is with a size below 0, an error only if the node is run, which runtimes would not load as an attribute."""
    x, sizes = node.input(0), node.optional_input(_SIZES)
    if sizes is None:
        return op.same(x)
    known = sizes.constant
    if known is not None and (known >= 0).all():
        return op.same(x, split=known.tolist())
    numbers, axis = Numbers(op), op.const([node.attr("axis")])
    parts: list[Value | None] = []
    start = numbers.of(0)
    for index in range(len(node.proto.output)):
        end = start + numbers.of(sizes)[index]
        if known is not None and node.is_read(index) and not start.number <= end.number <= known.sum():
            node.refuse("more parts are asked for than there are, which fails at every run", "ask for fewer parts")
        parts.append(op.Slice(x, start.value, end.value, axis) if node.uses_output(index) else None)
        start = end
    return tuple(parts)


@upgrade("Split", at=18)
def spell_out_number(node: Node, op: Emitter) -> Value:
    """Without sizes, the number of parts is that of the outputs."""
    if node.optional_input(_SIZES) is not None:
        return op.same()
    return op.same(node.input(0), num_outputs=len(node.proto.output))


@downgrade("Split", at=18)
def number_to_sizes(node: Node, op: Emitter) -> Value:
    """Equal parts need no number; where the last one is or may be smaller, the sizes are given."""
    x, count, numbers = node.input(0), len(node.proto.output), Numbers(op)
    if node.optional_input(_SIZES) is not None or count == 1:
        return op.same(*node.inputs, drop=("num_outputs",))
    length = numbers.size(x, node.attr("axis"))
    size = length.divided_up(count)
    last = length - size * (count - 1)
    if last.number == size.number is not None:
        return op.same(x, drop=("num_outputs",))
    if last.number is not None and last.number < 0:
        # Too few elements are an error, but only when the node is run: it may stand in an unused branch.
        last = numbers.computed(size_at(op, op.Shape(x), node.attr("axis"))) - size * (count - 1)
    return op.same(x, numbers.vector([*[size] * (count - 1), last]), drop=("num_outputs",))
