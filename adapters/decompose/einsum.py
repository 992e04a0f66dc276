# SPDX-License-Identifier: Apache-2.0
"""Einsum, which is there from 12 on: as transpositions, products and sums, one pair of operands after the other."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Final

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.indices import fixed, into
from onnx_convert.adapters.lib.shapes import part, product

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from onnx_convert.adapter import Dim, Emitter, Node, Value

_ORDER: Final = "the order in which products are summed is not specified"


@dataclass(frozen=True, slots=True)
class Operand:
    """A value, and the label of each of its axes."""

    value: Value
    labels: tuple[str, ...]

    def size(self, label: str) -> Dim:
        """Returns the size of the axis with this label, None if it is not known."""
        shape = self.value.shape
        return None if shape is None else shape[self.labels.index(label)]


@downgrade("Einsum", at=12)
def contract_pair_by_pair(node: Node, op: Emitter) -> Value:
    """Axes that no other operand and not the result names are summed, two operands multiplied by MatMul or Mul."""
    terms, result = labels_of(node)
    operands = [
        _diagonal(op, Operand(value, term)) for value, term in zip(node.inputs, terms, strict=True) if value is not None
    ]
    total = _summed(op, operands[0], {*result}.union(*(other.labels for other in operands[1:])))
    for index, other in enumerate(operands[1:], 2):
        later = {*result}.union(*(operand.labels for operand in operands[index:]))
        total = _multiplied(op, total, _summed(op, other, {*later, *total.labels}), later)
    return _transposed(op, total, result).value


def labels_of(node: Node) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Returns the labels of each operand and of the result; the axes of an ellipsis count from their end: "-1", "-2",
    ..."""
    equation = node.attr("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    widths = [node.rank(i) - len(term.replace("...", "")) if "..." in term else 0 for i, term in enumerate(terms)]
    letters = left.replace(",", "").replace("...", "")
    if not arrow:
        right = "..." * ("..." in left) + "".join(sorted(label for label in {*letters} if letters.count(label) == 1))
    return [_labels_of(term, width) for term, width in zip(terms, widths, strict=True)], _labels_of(right, max(widths))


def _labels_of(term: str, width: int) -> tuple[str, ...]:
    """Returns the labels of a term, those of an ellipsis of `width` axes written out."""
    before, dots, after = term.partition("...")
    return (*before, *(str(place - width) for place in range(width if dots else 0)), *after)


# ---- one operand


def _diagonal(op: Emitter, operand: Operand) -> Operand:
    """Returns an operand without repeated labels: of equal indices the elements are gathered, which keeps infinities
    out."""
    labels, x = operand.labels, operand.value
    repeated = next((label for label in labels if labels.count(label) > 1), None)
    if repeated is None:
        return operand
    first, second = [axis for axis, label in enumerate(labels) if label == repeated][:2]
    others = [axis for axis in range(len(labels)) if axis not in (first, second)]
    moved = op.Transpose(x, perm=[first, second, *others])
    size, rest = operand.size(repeated), [x.shape[axis] if x.shape is not None else None for axis in others]
    shape = op.Shape(moved)
    count = op.const([size]) if isinstance(size, int) else part(op, shape, 0, 1)
    if isinstance(size, int):
        index = op.const([place * (size + 1) for place in range(size)])
    else:
        numbers = op.Range(op.const(0), op.Squeeze(count, axes=[0]), op.const(1))
        index = op.Mul(numbers, op.Add(count, op.const([1])))
    squared = size * size if isinstance(size, int) else None
    lines = into(op, moved, [squared, *rest], lambda: op.Concat(op.Mul(count, count), part(op, shape, 2), axis=0))
    taken = op.Gather(lines, index, axis=0)
    return _diagonal(op, Operand(taken, (repeated, *(labels[axis] for axis in others))))


def _summed(op: Emitter, operand: Operand, needed: Collection[str]) -> Operand:
    """Returns an operand without the axes that nobody needs."""
    axes = [axis for axis, label in enumerate(operand.labels) if label not in needed]
    if not axes:
        return operand
    op.equivalent(_ORDER)
    left = tuple(label for label in operand.labels if label in needed)
    return Operand(op.ReduceSum(operand.value, axes=axes, keepdims=0), left)


def _transposed(op: Emitter, operand: Operand, labels: Sequence[str]) -> Operand:
    """Returns an operand whose axes come in this order; those that it has not are left out."""
    order = [operand.labels.index(label) for label in labels if label in operand.labels]
    wanted = tuple(operand.labels[axis] for axis in order)
    if wanted == operand.labels:
        return operand
    return Operand(op.Transpose(operand.value, perm=order), wanted)


def _without_ones(op: Emitter, operand: Operand, other: Operand) -> Operand:
    """Returns an operand without the axes of length 1 that the other one has too: what they are to be multiplied with
    decides their length."""
    axes = [i for i, label in enumerate(operand.labels) if label in other.labels and operand.size(label) == 1]
    if not axes:
        return operand
    left = tuple(label for i, label in enumerate(operand.labels) if i not in axes)
    return Operand(op.Squeeze(operand.value, axes=axes), left)


# ---- two operands


def _multiplied(op: Emitter, a: Operand, b: Operand, needed: Collection[str]) -> Operand:
    """Returns the product of two operands, summed over the axes that nobody needs later."""
    a = _without_ones(op, a, b)
    b = _without_ones(op, b, a)
    a, b = _summed(op, a, {*needed, *b.labels}), _summed(op, b, {*needed, *a.labels})
    both = [label for label in a.labels if label in b.labels]
    batch = [label for label in both if label in needed]
    summed = [label for label in both if label not in needed]
    ours, theirs = ([label for label in x.labels if label not in both] for x in (a, b))
    op.equivalent(_ORDER)
    if not summed:
        order = (*batch, *ours, *theirs)
        return Operand(op.Mul(_aligned(op, a, order), _aligned(op, b, order)), order)
    left, right = _transposed(op, a, [*batch, *ours, *summed]), _transposed(op, b, [*batch, *summed, *theirs])
    rows = _grouped(op, left, len(batch), len(ours), len(summed))
    columns = _grouped(op, right, len(batch), len(summed), len(theirs))
    made = op.MatMul(rows, columns)
    return Operand(_ungrouped(op, made, left, right, len(batch), len(ours), len(theirs)), (*batch, *ours, *theirs))


def _aligned(op: Emitter, operand: Operand, order: Sequence[str]) -> Value:
    """Returns a value with an axis for each label, of length 1 for those that it has not; leading ones are not
    needed."""
    x = _transposed(op, operand, order)
    missing = [axis for axis, label in enumerate(order) if label not in x.labels]
    leading = next((axis for axis, label in enumerate(order) if label in x.labels), len(order))
    axes = [axis - leading for axis in missing if axis >= leading]
    return op.Unsqueeze(x.value, axes=axes) if axes else x.value


def _grouped(op: Emitter, operand: Operand, batch: int, first: int, second: int) -> Value:
    """Returns a value whose axes behind the batch become two, of so many axes each."""
    x = operand.value
    if (first, second) == (1, 1):
        return x
    if first + second == 1:
        return op.Unsqueeze(x, axes=[batch if first == 0 else batch + 1])
    sizes = x.shape or (None,) * len(operand.labels)
    target = [*sizes[:batch], _total(sizes[batch : batch + first]), _total(sizes[batch + first :])]

    def measured() -> Value:
        shape = op.Shape(x)
        parts = [part(op, shape, 0, batch)] if batch else []
        parts += [product(op, part(op, shape, batch, batch + first)), product(op, part(op, shape, batch + first))]
        return op.Concat(*parts, axis=0)

    return into(op, x, target, measured)


def _total(sizes: Sequence[Dim]) -> int | None:
    known = fixed(sizes)
    return None if known is None else prod(known)


def _ungrouped(op: Emitter, made: Value, left: Operand, right: Operand, batch: int, ours: int, theirs: int) -> Value:
    """Returns the two axes behind the batch as what they were made of: the first ones of the left operand, the last
    ones of the right one."""
    if (ours, theirs) == (1, 1):
        return made
    if max(ours, theirs) == 1 or ours == theirs == 0:
        return op.Squeeze(made, axes=[batch + place for place, count in enumerate((ours, theirs)) if count == 0])
    last = len(right.labels) - theirs
    outer, rows, columns = (
        x.shape or (None,) * len(labels)
        for x, labels in ((made, (None,) * (batch + 2)), (left.value, left.labels), (right.value, right.labels))
    )
    sizes = [*outer[:batch], *rows[batch : batch + ours], *columns[last:]]

    def measured() -> Value:
        parts = [part(op, op.Shape(made), 0, batch)] if batch else []
        parts += [part(op, op.Shape(left.value), batch, batch + ours)] if ours else []
        parts += [part(op, op.Shape(right.value), last)] if theirs else []
        return parts[0] if len(parts) == 1 else op.Concat(*parts, axis=0)

    return into(op, made, sizes, measured)
