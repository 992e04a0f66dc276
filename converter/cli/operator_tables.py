# SPDX-License-Identifier: Apache-2.0
"""Explanations of operators and the coverage of all of them, as tables for people and as Markdown for the README."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from onnx_convert.cli.tables import Table, operator_at
from onnx_convert.reference.operators import ADAPTED, COMPATIBLE, DECISIONS, REFUSED, UNDECIDED, Explanation
from onnx_convert.report import EXACT
from onnx_convert.spec.opsets import DOWN, UP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onnx_convert.reference.operators import Boundary, Coverage, Way

_MARKS: Final = {ADAPTED: "~", COMPATIBLE: "=", REFUSED: "x", UNDECIDED: "?", None: "-"}
_LEGEND: Final = (
    "13~= is boundary 13: ~ on the way up, = on the way down.\n"
    "= stays as it is, ~ is rewritten, x is refused, ? is not decided (and refused), - has nothing below."
)


def tables(told: Explanation | Coverage, *, drawn: bool = False) -> list[Table | str]:
    """Returns what is told of an operator, its rewrites drawn if that is wanted, or of all of them."""
    return _explanation(told, drawn) if isinstance(told, Explanation) else _coverage(told)


def _explanation(told: Explanation, drawn: bool) -> list[Table | str]:
    """Returns the explanation of an operator: where it begins, then each boundary with what changed and what is
    done."""
    name = operator_at(told.domain, told.operator, 0)
    since = f"{name} exists from opset {told.since} of {told.domain} on." if told.since else f"{name}, not of onnx."
    parts: list[Table | str] = [since if told.boundaries else f"{since} It has not changed: no boundary to cross."]
    for boundary in told.boundaries:
        parts += [
            operator_at(told.domain, told.operator, boundary.opset),
            Table((), list(_rows(boundary))),
            *(_drawings(told, boundary) if drawn else ()),
        ]
    return parts


def _drawings(told: Explanation, boundary: Boundary) -> Iterator[Table]:
    """Yields a rewrite at a boundary, up and down, before and after."""
    from onnx_convert.cli import drawing
    from onnx_convert.reference.samples import sample

    for direction, way in ((UP, boundary.up), (DOWN, boundary.down)):
        if told.domain == "ai.onnx" and way is not None and way.decision == ADAPTED:
            example = sample(told.operator, boundary.opset, direction)
            if example is not None:
                text = drawing.before_and_after(example.to_dict())
                yield Table((), [(f"{direction}, for example\n\n{text}",)])


def _rows(boundary: Boundary) -> Iterator[tuple[str, str]]:
    changed = [*boundary.told, *boundary.changes]
    yield "changed", "\n".join(changed) or "the wording only, or nothing that onnx knows of"
    if boundary.up is not None:
        yield "up", "\n".join(_way(boundary.up))
    yield "down", "\n".join(_way(boundary.down))


def _way(way: Way) -> Iterator[str]:
    """Yields what becomes of a node, then what the rewrite promises, asks for and refuses."""
    if way.decision == ADAPTED:
        yield f"{way.rewrite.replace('_', ' ')}: {way.text}"
    elif way.decision == COMPATIBLE:
        yield f"stays as it is: {way.text}" if way.text else "stays as it is"
    elif way.decision == REFUSED:
        yield f"refused: {way.text}"
        if way.remedy:
            yield f"remedy: {way.remedy}"
    else:
        yield "not decided, and so refused"
    for number, form in enumerate(way.forms):
        label = form.form if not number else f"or {form.form}"
        yield f"{label}: {form.why}" if form.why and form.form != EXACT else label
    if way.needs:
        yield f"may ask for: {', '.join(way.needs)}"
    for reason in way.refusals:
        yield f"may refuse: {reason}"
    if way.narrows:
        yield "of a dtype that the target does not take: refused, or cast where --types allows it"


def _coverage(coverage: Coverage) -> list[Table | str]:
    """Returns all operators that have a boundary, a line each, and the totals."""
    rows: list[tuple[str, ...]] = [
        (operator_at(one.domain, one.operator, 0), marks(one.crossings)) for one in coverage.operators
    ]
    legend = Table((), [(line,) for line in _LEGEND.split("\n")])
    return [Table(("Operator", "Boundaries"), rows), legend, _totals(coverage)]


def marks(crossings: tuple[tuple[int, str | None, str], ...]) -> str:
    """Returns the boundaries of an operator in short: `11=~ 13~~`."""
    return " ".join(f"{opset}{_MARKS[up]}{_MARKS[down]}" for opset, up, down in crossings)


def _totals(coverage: Coverage) -> Table:
    rows: list[tuple[str, ...]] = []
    for direction in (UP, DOWN):
        counts = coverage.count(direction)
        rows.append((direction, *(str(counts[decision]) for decision in DECISIONS), str(counts.total())))
    return Table(("Crossings", *(decision.capitalize() for decision in DECISIONS), "All"), rows, right=(1, 2, 3, 4, 5))


def coverage_markdown(coverage: Coverage) -> str:
    """Returns the coverage for the README: the totals, what is refused or undecided, and folded away, every
    operator."""
    totals = _totals(coverage)
    newest = ", ".join(f"{domain} {opset}" for domain, opset in coverage.newest.items() if opset > 1)
    lines = [
        f"Up to {newest}: {len(coverage.operators)} operators have boundaries, {coverage.unchanged} never changed.",
        "",
        *_markdown(totals),
        "",
        f"Refused: {_listed(coverage, REFUSED)}.",
        "",
        f"Not decided: {_listed(coverage, UNDECIDED)}.",
        "",
        "<details><summary>Every operator</summary>",
        "",
        _LEGEND.replace("\n", " "),
        "",
    ]
    groups: dict[str, list[str]] = defaultdict(list)
    for one in coverage.operators:
        groups[marks(one.crossings)].append(operator_at(one.domain, one.operator, 0))
    table = Table(("Operators", "Boundaries"), [(", ".join(names), f"`{text}`") for text, names in groups.items()])
    return "\n".join([*lines, *_markdown(table), "", "</details>", ""])


def _listed(coverage: Coverage, decision: str) -> str:
    """Returns the crossings with a decision: `StringConcat@20 down`; one that goes both ways is named twice."""
    found = [
        f"{operator_at(one.domain, one.operator, opset)} {direction}"
        for one in coverage.operators
        for opset, *ways in one.crossings
        for direction, way in zip((UP, DOWN), ways, strict=True)
        if way == decision
    ]
    return ", ".join(found) or "nothing"


def _markdown(table: Table) -> Iterator[str]:
    rules = ["--:" if index in table.right else "---" for index in range(len(table.header))]
    for cells in (table.header, rules, *table.rows):
        yield f"| {' | '.join(cells)} |"
