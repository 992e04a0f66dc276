# SPDX-License-Identifier: Apache-2.0
"""Runs rows: each as it stands, and in variants that apply to it.

Whatever the row expects, the model that goes in must not change. What comes out must be legal, declare the target,
know as much about shapes as the source did, and compute the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import onnx
import pytest
from onnx import GraphProto, ModelProto, NodeProto

import onnx_convert
from boundaries.rows import KEEPS, REFUSES, REWRITES, Row
from boundaries.variants import VARIANTS, Case
from onnx_convert.analysis import claims, settling
from oracle import all_nodes, compare, evaluate, is_inferable, one_spelling, opset_of, validate

NEWEST = onnx.defs.onnx_opset_version()


def each_of(rows: Sequence[Row]) -> Callable[[Row, str], None]:
    """Returns the test of these rows. `tests/conftest.py` calls it for each row and variant, by the mark."""

    @pytest.mark.rows(rows)
    def test_row(row: Row, variant: str) -> None:
        check(row, variant)

    return test_row


def parameters(rows: Sequence[Row], *, every_variant: bool) -> Iterator[Any]:
    """Yields (row, name of a variant) for each test of the rows: plain and one variant more, or all that apply."""
    for row in rows:
        needed = max(row.source, row.target)
        if needed > NEWEST:
            too_new = pytest.mark.skipif(True, reason=f"this onnx ends at opset {NEWEST}")
            yield pytest.param(row, "plain", marks=too_new, id=f"{row}-plain")
            continue
        case = case_of(row)
        names = (name for name in _in_order(row) if name not in row.unjudged and VARIANTS[name](case) is not None)
        for name in ("plain", *(names if every_variant else islice(names, 1))):
            yield pytest.param(row, name, id=f"{row}-{name}")


def _in_order(row: Row) -> list[str]:
    """Returns the names of all variants but the plain one, beginning with another one for each row."""
    names = [name for name in VARIANTS if name != "plain"]
    start = zlib.crc32(str(row).encode()) % len(names)
    return names[start:] + names[:start]


def case_of(row: Row) -> Case:
    """Returns the model of a row, as variants take it."""
    return Case(row.model, row.inputs, min(row.source, row.target))


def check(row: Row, variant: str) -> None:
    """Converts the model of a row in a variant, and compares what comes of it with what the row expects."""
    case = VARIANTS[variant](case_of(row))
    assert case is not None
    validate(case.model)
    before = case.model.SerializeToString(deterministic=True)
    try:
        result = onnx_convert.convert(case.model, to=row.target, **row.options).model
    except onnx_convert.RefusedError as refused:
        _check_refusal(row, variant, refused)
        return
    finally:
        assert case.model.SerializeToString(deterministic=True) == before, "the source was changed"
    assert row.outcome != REFUSES, f"converted to {[n.op_type for n in all_nodes(result)]}"
    _check_form(row, variant, case.model, result)
    _check_knowledge(case.model, result)
    _check_numbers(row, case, result)


def _check_refusal(row: Row, variant: str, refused: onnx_convert.RefusedError) -> None:
    word = row.because if row.outcome == REFUSES else row.refusal_allowed(variant)
    if word is None:
        raise refused
    reasons = [refusal.reason for refusal in refused.refusals]
    assert any(word.casefold() in reason.casefold() for reason in reasons), f"{word!r} is in none of {reasons}"


def _check_form(row: Row, variant: str, source: ModelProto, result: ModelProto) -> None:
    validate(result)
    assert opset_of(result) == row.target
    assert {o.domain for o in result.opset_import} <= {o.domain for o in source.opset_import}
    assert [v.name for v in result.graph.output] == [v.name for v in source.graph.output]
    assert _signature(result) == _signature(source)
    if row.outcome == KEEPS and len(source.functions) == len(result.functions):
        assert _meaningful(result) == _meaningful(source)  # value_ints becomes a tensor below 12
    if row.outcome == REWRITES and variant == "plain":
        operators = [node.op_type for node in result.graph.node if not _is_constant(node)]
        assert row.into is None or operators == list(row.into)
        assert row.nodes is None or len(operators) <= row.nodes, operators


def _meaningful(model: ModelProto) -> list[NodeProto]:
    return [node for node in all_nodes(model) if not _is_constant(node)]


def _is_constant(node: NodeProto) -> bool:
    return node.op_type == "Constant"


def _signature(model: ModelProto) -> list[str]:
    """Returns the inputs that a caller has to give."""
    filled = {t.name for t in model.graph.initializer}
    return [v.name for v in model.graph.input if v.name not in filled]


Shape = tuple[int | None, ...]


def _known_shapes(model: ModelProto, *, strict: bool) -> dict[str, Shape]:
    """Returns what inference finds out about the values of the main graph: sizes, None for each unknown one."""
    graph = onnx.shape_inference.infer_shapes(one_spelling(model), strict_mode=strict, data_prop=True).graph
    return _shapes(graph)


def _shapes(graph: GraphProto) -> dict[str, Shape]:
    shapes = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type.tensor_type
        if kind.HasField("shape"):
            shapes[value.name] = tuple(d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim)
    return shapes


def _true_shapes(model: ModelProto) -> dict[str, Shape]:
    """The same, but for what inference says although it is not so."""
    found = _known_shapes(model, strict=False)
    true = _shapes(settling.settle(one_spelling(model), None, claims.leniently).graph)
    return {
        name: tuple(size if size == other else None for size, other in zip(shape, true[name], strict=True))
        for name, shape in found.items()
        if name in true and len(true[name]) == len(shape)
    }


def _check_knowledge(source: ModelProto, result: ModelProto) -> None:
    """Inference must find out as much about the result as about the source, for every value that both have.

    Where an operator of the result has no inference at all, it can at least not contradict.
    """
    strict = is_inferable(one_spelling(result))
    after = _known_shapes(result, strict=strict)
    kept = {name for node in result.graph.node for name in node.output} | {v.name for v in result.graph.output}
    for name, shape in _true_shapes(source).items():
        if name not in kept or not (strict or name in after):
            continue
        assert name in after, f"the rank of {name!r} was {len(shape)} and is unknown now"
        found = after[name]
        agrees = len(found) == len(shape) and all(
            size in (None, other) or not (strict or other) for size, other in zip(shape, found, strict=True)
        )
        assert agrees, f"the shape of {name!r} was {shape} and is {found} now"


def _check_numbers(row: Row, case: Case, result: ModelProto) -> None:
    expected, got = evaluate(case.model, case.feeds), evaluate(result, case.feeds)
    exact = bool(row.options.get("exact")) and expected.evaluator == got.evaluator
    difference = compare(expected.values, got.values, exact=exact)
    assert difference is None, f"{difference} ({expected.evaluator}, then {got.evaluator})"
