# SPDX-License-Identifier: Apache-2.0
"""TfIdfVectorizer, which is there from 9 on, of integers: each n-gram of the pool is compared with every place in a
row."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy

from onnx_convert.adapter import downgrade, dtype_name
from onnx_convert.adapters.lib.dtypes import FLOAT, INT64, cast
from onnx_convert.adapters.lib.shapes import END, collapse, known_size, restore, size_at

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

Grams = dict[tuple[int, ...], int]  # an n-gram, and where it is counted


@downgrade("TfIdfVectorizer", at=9)
def compare_with_every_gram(node: Node, op: Emitter) -> Value:
    """For each length and distance the elements that far apart are compared with those of the n-grams; how often all
    agree is added up, put into place and weighed."""
    x = node.input(0)
    if dtype_name(node.dtype(0)) == "string":
        node.refuse("its elements are strings, which nothing below opset 9 compares", "go no lower than opset 9")
    lengths, size = _lengths(node), max(node.attr("ngram_indexes")) + 1
    if not lengths:
        node.refuse("no n-gram of its pool is as long as it looks for", "the model counts nothing: take the node out")
    op.large("each of the n-grams is compared with every place in a row")
    before = None
    if x.rank is None:
        rows, before = collapse(op, x, 1)
    else:
        rows = op.Unsqueeze(x, axes=[0]) if x.rank == 1 else x
    counts = _counted(node, op, cast(op, rows, INT64), lengths)
    y = _weighed(node, op, _placed(op, counts, lengths, size), lengths, size)
    if before is not None:
        return restore(op, y, before)
    return op.Squeeze(y, axes=[0]) if x.rank == 1 else y


def _lengths(node: Node) -> dict[int, Grams]:
    """Returns the n-grams of each length that is looked for. Of equal ones the last counts."""
    pool, starts, places = node.attr("pool_int64s") or [], node.attr("ngram_counts"), node.attr("ngram_indexes")
    wanted = range(node.attr("min_gram_length"), node.attr("max_gram_length") + 1)
    lengths, number = {}, 0
    for length, (start, end) in enumerate(pairwise([*starts, len(pool)]), 1):
        grams = {}
        for first in range(start, end - length + 1, length):
            grams[tuple(pool[first : first + length])] = places[number]
            number += 1
        if grams and length in wanted:
            lengths[length] = grams
    return lengths


# ---- counting


def _counted(node: Node, op: Emitter, rows: Value, lengths: dict[int, Grams]) -> Value:
    """Returns how often each n-gram is in each row. What is too short gets elements that are in no n-gram."""
    furthest, size = node.attr("max_skip_count") + 1, known_size(rows, 1)
    if size is None or size < 1 + (max(lengths) - 1) * furthest:
        missing = max((max(lengths) - 1) * furthest, 1)
        rows = op.Concat(rows, _strangers(op, rows, lengths, missing), axis=1)
    elements = op.Unsqueeze(rows, axes=[2])
    parts = []
    for length, grams in lengths.items():
        pool = numpy.array(list(grams)).T
        distances = range(1, furthest + 1 if length > 1 else 2)
        parts.append(reduce(op.Add, [_hits(op, elements, pool, distance) for distance in distances]))
    return op.Concat(*parts, axis=1) if len(parts) > 1 else parts[0]


def _hits(op: Emitter, elements: Value, pool: numpy.ndarray, distance: int) -> Value:
    """Returns how often the elements at this distance from each other are those of each n-gram, a column of the
    pool."""
    last = len(pool) - 1
    agree = []
    for number, wanted in enumerate(pool):
        shifted = elements
        if last:
            end = (number - last) * distance or END
            shifted = op.Slice(elements, axes=[1], starts=[number * distance], ends=[end])
        agree.append(op.Equal(shifted, op.const(wanted)))
    return op.ReduceSum(op.Cast(reduce(op.And, agree), to=FLOAT), axes=[1], keepdims=0)


def _strangers(op: Emitter, rows: Value, lengths: dict[int, Grams], count: int) -> Value:
    known = {element for grams in lengths.values() for gram in grams for element in gram}
    stranger = next(number for number in range(len(known) + 1) if number not in known)
    batch = known_size(rows, 0)
    op.subject.limit(batch or 1, count)
    if batch is not None:
        return op.const(numpy.full((batch, count), stranger))
    return op.Expand(op.const([stranger] * count), op.Concat(size_at(op, op.Shape(rows), 0), op.const([1]), axis=0))


# ---- what becomes of the counts


def _placed(op: Emitter, counts: Value, lengths: dict[int, Grams], size: int) -> Value:
    """Returns the counts at their places in the output; anything where there is none."""
    places = [place for grams in lengths.values() for place in grams.values()]
    if places == list(range(size)):
        return counts
    if len(set(places)) == len(places):
        source = numpy.zeros(size, dtype=numpy.int64)
        source[places] = numpy.arange(len(places))
        return op.Gather(counts, op.const(source), axis=1)
    return op.MatMul(counts, op.const(numpy.array(places)[:, None] == numpy.arange(size), FLOAT))


def _weighed(node: Node, op: Emitter, counts: Value, lengths: dict[int, Grams], size: int) -> Value:
    """Returns the counts, or 1 for any, times the weights; 0 at places that no n-gram has."""
    mode, given, places = node.attr("mode"), node.attr("weights"), node.attr("ngram_indexes")
    factors = numpy.zeros(size, dtype=numpy.float32)
    factors[[place for grams in lengths.values() for place in grams.values()]] = 1
    if given and mode != "TF":
        if max(size, len(places)) > len(given):
            node.invalid("there is no weight for some places in its output", "add weights")
        if any(given[number] != given[place] for number, place in enumerate(places)):
            op.conditional(
                "the weights are numbered by their places in the output, as runtimes have it; the text of the "
                "specification numbers them as the n-grams in the pool"
            )
        factors *= numpy.array(given[:size], dtype=numpy.float32)
    if mode == "IDF":
        counts = op.Cast(op.Greater(counts, op.const(0, FLOAT)), to=FLOAT)
    return counts if (factors == 1).all() else op.Mul(counts, op.const(factors, FLOAT))
