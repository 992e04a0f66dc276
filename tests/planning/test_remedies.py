# SPDX-License-Identifier: Apache-2.0
"""Every remedy works: it is followed for the refusals of all rows, and leads to a result or to what it announces.

A remedy that names options is followed by setting them, one that names an opset by going there, one that asks for
shapes, types or constants by giving them: the row as it stands has them all. What asks for another model is listed in
MANUAL, so that each such remedy is a decision.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import ModelProto

import onnx_convert
from boundaries.rows import Row
from boundaries.tables import rows
from boundaries.variants import VARIANTS, Case
from onnx_convert import Refusal, RefusedError
from onnx_convert.options import Options
from onnx_convert.planning import remedies
from onnx_convert.report import CODES
from onnx_convert.spec import opsets
from onnx_convert.target.request import requested

NEWEST = onnx.defs.onnx_opset_version()
ROWS = [row for row in rows() if max(row.source, row.target) <= NEWEST]
PARTS = 16
FREE: dict[str, Any] = {"types": "cast", "allow": ("conditional",), "expand": "all"}

MANUAL = (
    r"^the model is not valid",
    r"^do this before the model, and feed it the outcome",
    r"^Cast to float around the node$",
    r"^cast it to float or bool$",
    r"^drop the outputs, or is_test$",
    r"^give it an alpha above 0$",
    r"^use mode linear$",
    r"^set sampling_ratio to a number",
    r"^reverse the sequences before the model",
    r"^leave the lengths out, or go no lower",
    r"^make the input float",
    r"^make lengths of sequences and places in them constants",
    r"^remove one$",
    r"^pad the output by an operator of its own$",
    r"^the model counts nothing: take the node out$",
    r"^write the normalisation out, or state `axes`$",
    r"^export the model with linear_before_reset=0$",
    r"^set stash_type to 1, float$",
    r"^leave the Identity out$",
    r"^name the axes$",
    r"^no runtime would be served by that; choose smaller sizes$",
    r"^there is none$",
)
FACTS = re.compile(r"shapes|a shape|value_info|the types?\b|make it a constant|make K a constant|the attribute|inline")
OPERATORS = {schema.name for schema in onnx.defs.get_all_schemas_with_history() if not schema.domain}
GO = re.compile(r"go no (lower|higher) than opset (\d+)(?: of ([\w.]+))?")


def refusals_of(source: ModelProto, to: int, **options: Any) -> tuple[Refusal, ...]:
    try:
        onnx_convert.plan(source, to=to, **options)
    except RefusedError as error:
        return error.refusals
    return ()


def same_node(refusals: tuple[Refusal, ...], refusal: Refusal) -> Refusal | None:
    found = [
        one for one in refusals if (one.path, one.node, one.operator) == (refusal.path, refusal.node, refusal.operator)
    ]
    return found[0] if found else None


def keywords(options: Options) -> dict[str, Any]:
    """The options of the API that mean these."""
    return {
        "types": options.types,
        "exact": options.exact,
        "allow": ("conditional",) if options.conditional else (),
        "strict": options.strict,
        "expand": "all" if options.expand_all else "",
    }


def dead_end(row: Row, source: ModelProto, to: int, refusal: Refusal, options: dict[str, Any]) -> str:
    """What is wrong with a remedy; "" if it works."""
    remedy = refusal.remedy
    if not remedy or refusal.code not in CODES:
        return f"no remedy, or no code: {refusal}"
    for word in OPERATORS.intersection(re.findall(r"\w+", remedy)) - {refusal.operator}:
        if opsets.schema_at(word, to) is None:
            return f"it names {word}, which opset {to} does not have"
    before = requested(to, **options).options
    after = before
    for part in remedy.split("; then "):
        after = remedies.options_after(part, after)
    if after != before and ", and go no" not in remedy:
        again = same_node(refusals_of(source, to, **keywords(after)), refusal)
        if again is not None and again.reason not in remedy:
            return f"its options lead to another refusal, which was not announced: {again}"
    for _, opset, domain in GO.findall(remedy.rpartition("; then ")[2]):
        if domain in ("", "ai.onnx"):
            aim = int(opset)
            if not min(row.source, to) <= aim <= max(row.source, to):
                return f"it leads out of the way from {row.source} to {to}"
            again = same_node(refusals_of(source, aim, **keywords(after)), refusal)
            announced = again is not None and f"; there {again.reason}: {again.remedy}" in remedy
            if announced:  # for want of a fact, which the row as it stands has
                again = same_node(refusals_of(row.model, aim, **keywords(after)), refusal)
            if again is not None:
                return f"at {aim} it is refused, too: {again}"
    last = remedy.rpartition(": " if "; then " in remedy else "\0")[2]
    if FACTS.search(last):
        again = next(iter(refusals_of(row.model, to, **keywords(after))), None)
        if again is not None and again.reason == refusal.reason and not GO.search(remedy):
            return f"with all facts it is refused, too: {again}"
        return ""
    known = after != before or GO.search(remedy) or any(re.search(manual, last) for manual in MANUAL)
    return "" if known else "nobody can follow it; if it is for people, list it in MANUAL"


def judged(rows: list[Row], variant: str, targets: tuple[int, ...], options: dict[str, Any]) -> list[str]:
    found: dict[tuple[str, str], str] = {}
    for row in rows:
        for target in targets or (row.target,):
            if targets and target >= row.source:
                continue
            case = VARIANTS[variant](Case(row.model, row.inputs, min(row.source, target)))
            if case is None:
                continue
            for refusal in refusals_of(case.model, target, **options):
                wrong = dead_end(row, case.model, target, refusal, options)
                if wrong:
                    told = f"{refusal.operator}: {refusal.reason} | {refusal.remedy} | {wrong}"
                    key = re.sub(r"\d+", "#", refusal.reason), re.sub(r"\d+", "#", refusal.remedy)
                    found.setdefault(key, f"{row} {variant} at {target}: {told}")
    return list(found.values())


@pytest.mark.parametrize(
    ("remedy", "way", "told"),
    [
        (f"fold it, or {remedies._HERE}", "go no lower than opset 5", "fold it, or go no lower than opset 5"),
        (f"fold it, or {remedies._HERE}", remedies.NONE, "fold it"),
        (f"{remedies._HERE}, or cast", remedies.NONE, "cast"),
        (remedies._HERE, remedies.NONE, remedies.NONE),
        ("", "go no lower than opset 5", "go no lower than opset 5"),
    ],
)
def test_a_way_that_is_none_is_not_offered(remedy: str, way: str, told: str) -> None:
    assert remedies.with_way(remedy, way) == told


def test_a_remedy_that_sends_somewhere_says_where() -> None:
    root = Path(__file__).parents[2]
    sources = [path for folder in ("adapters", "converter") for path in (root / folder).rglob("*.py")]
    told = [
        found for path in sources for found in re.findall(r"go no (?:lower|higher)\b.{0,9}", path.read_text("utf-8"))
    ]
    assert [found for found in told if " than" not in found] == []
    assert len(told) > 10


@pytest.mark.parametrize("part", range(PARTS))
def test_remedies_of_rows(part: int) -> None:
    assert judged(ROWS[part::PARTS], "plain", (), {}) + judged(ROWS[part::PARTS], "plain", (), FREE) == []


@pytest.mark.parametrize("variant", ["dims", "ranks", "computed", "branch"])
def test_remedies_where_less_is_known(variant: str) -> None:
    rows = ROWS[3::23]
    assert judged(rows, variant, (), {}) + judged(rows, variant, (), FREE) == []


@pytest.mark.thorough
@pytest.mark.parametrize("options", [{}, FREE, {"exact": True}, {"strict": True}], ids=",".join)
def test_remedies_on_long_ways_down(options: dict[str, Any]) -> None:
    assert judged(ROWS[2::29], "plain", (8, 5, 1), options) == []


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["plain", "dims", "ranks", "computed", "branch", "function"])
@pytest.mark.parametrize("options", [{}, FREE], ids=",".join)
def test_remedies_of_everything(variant: str, options: dict[str, Any]) -> None:
    assert judged(ROWS, variant, (), options) + judged(ROWS[::3], variant, (8, 5, 1), options) == []
