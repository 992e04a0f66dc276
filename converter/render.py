# SPDX-License-Identifier: Apache-2.0
"""Reports and refusals as tables for people: one layout, as plain text or, on a terminal, with colour and wrapping.

A rendering is a list of parts, each a `Table` or a line of text; `plain` makes a string of it, `rich` something that a
rich console prints. Nothing here prints, and rich is imported only by the functions that need it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from onnx_convert.report import CONDITIONAL, EQUIVALENT, EXACT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import RenderableType

    from onnx_convert.errors import Refusal
    from onnx_convert.report import Report, Step


_FEW = 3
_GAP = "  "
_FORMS = {
    EXACT: "exact",
    EQUIVALENT: "equivalent: the same mathematics, float rounding may differ",
    CONDITIONAL: "conditional: see below",
}
_STYLES = {"condition:": "bold yellow", "warning:": "bold yellow"}  # of labels that are more than labels


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text; a cell may have several lines. `header` may be empty, `right` names the columns of numbers."""

    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    right: tuple[int, ...] = ()


def report_tables(report: Report, *, verbose: bool = False) -> list[Table]:
    """What was done, or would be: the model before and after, the rewrites, and what deserves attention."""
    summary = Table((), list(_summary(report, verbose)) if report.changed else [])
    remarks = Table((), list(_remarks(report, verbose)))
    return [table for table in (summary, _rewrites(report.steps, verbose), remarks) if table.rows]


def refusal_table(refusals: Iterable[Refusal], *, verbose: bool = False) -> Table:
    """Every refusal, equal ones as one row with their number and the first few node names (verbose: all of them)."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for refusal in refusals:
        key = (operator_at(refusal.domain, refusal.operator, refusal.boundary), refusal.reason, refusal.remedy)
        name = refusal.node or "(unnamed)"
        groups.setdefault(key, []).append(f"{refusal.path}/{name}" if refusal.path else name)
    rows: list[tuple[str, ...]] = []
    for (operator, reason, remedy), nodes in groups.items():
        lines = [
            reason,
            f"remedy: {remedy}" if remedy else "",
            f"{_plural(len(nodes), 'node')}: {_few(nodes, verbose)}",
        ]
        rows.append((operator, str(len(nodes)), "\n".join(filter(None, lines))))
    return Table(("Refused", "Nodes", "Why"), rows, right=(1,))


def opsets_text(opsets: dict[str, int]) -> str:
    """Opsets for people: `opset 14, ai.onnx.ml 3`."""
    default = opsets.get("ai.onnx")
    rest = [f"{domain} {version}" for domain, version in opsets.items() if domain != "ai.onnx"]
    return ", ".join([*([f"opset {default}"] if default else []), *rest])


def operator_at(domain: str, operator: str, boundary: int) -> str:
    """An operator at a boundary, as the documentation writes it: Softmax@13, ai.onnx.ml.TreeEnsemble@5."""
    name = operator if domain in ("", "ai.onnx") else f"{domain}.{operator}"
    return f"{name}@{boundary}" if boundary else name


def plain(parts: Iterable[Table | str]) -> str:
    """The parts as text of unlimited width, an empty line between them."""
    return "\n\n".join(part if isinstance(part, str) else "\n".join(_aligned(part)) for part in parts)


def rich(parts: Iterable[Table | str]) -> RenderableType:
    """The parts for a rich console, which wraps the last column of a table to the width of the terminal."""
    from rich.console import Group
    from rich.text import Text

    shown: list[RenderableType] = []
    for part in parts:
        if shown:
            shown.append("")
        shown.append(Text(part) if isinstance(part, str) else _rich_table(part))
    return Group(*shown)


def _summary(report: Report, verbose: bool) -> Iterator[tuple[str, str]]:
    for domain in [*report.opsets_before, *(set(report.opsets_after) - set(report.opsets_before))]:
        before, after = report.opsets_before.get(domain), report.opsets_after.get(domain)
        if domain == "ai.onnx" or before != after or verbose:
            yield ("opset" if domain == "ai.onnx" else domain), _change(before or "none", after or "none")
    yield "IR version", _change(report.ir_version_before, report.ir_version_after)
    yield "nodes", _change(report.nodes_before, report.nodes_after)
    if report.inlined:
        yield "inlined", _few(report.inlined, verbose)
    if report.data_files:
        yield "data", f"{_few(report.data_files)} (written)"
    if report.shared_data:
        yield "data", f"{_few(report.shared_data)} (left in place, the output points to it)"
    yield "result", _FORMS[report.form]


def _rewrites(steps: Counter[Step], verbose: bool) -> Table:
    """One row for an operator at a boundary; verbose, one for each kind of rewrite, with its name and direction."""
    counts: Counter[tuple[str, ...]] = Counter()
    for step, count in steps.items():
        row = (operator_at(step.domain, step.operator, 0), str(step.boundary or ""), step.form)
        counts[(*row, step.direction, step.rewrite.replace("_", " ")) if verbose else row] += count
    rows = [(operator, boundary, str(count), *rest) for (operator, boundary, *rest), count in counts.items()]
    more = ("Way", "Rewrite") if verbose else ()
    return Table(("Rewritten", "Boundary", "Nodes", "Form", *more), rows, right=(1, 2))


def _remarks(report: Report, verbose: bool) -> Iterator[tuple[str, str]]:
    for step, count in report.steps.items():
        if step.condition:
            operator = operator_at(step.domain, step.operator, step.boundary)
            yield "condition:", f"{operator} ({count} {_plural(count, 'node')}): {step.condition}"
    yield from (("warning:", warning) for warning in report.warnings)
    if report.assumed:
        yield "assumed:", _few(report.assumed, verbose)
    if verbose:
        yield from (("note:", note) for note in report.notes)


def _change(before: object, after: object) -> str:
    return str(after) if before == after else f"{before} -> {after}"


def _few(names: Sequence[str], verbose: bool = False) -> str:
    shown = list(names) if verbose or len(names) <= _FEW + 1 else [*names[:_FEW], f"and {len(names) - _FEW} more"]
    return ", ".join(shown)


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"


def _aligned(table: Table) -> Iterator[str]:
    rows = [table.header, *table.rows] if table.header else table.rows
    widths = [max(len(line) for cell in column for line in cell.split("\n")) for column in zip(*rows, strict=True)]
    for row in rows:
        for line in zip_longest(*(cell.split("\n") for cell in row), fillvalue=""):
            cells = (
                cell.rjust(width) if index in table.right else cell.ljust(width)
                for index, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            yield _GAP.join(cells).rstrip()


def _rich_table(table: Table) -> RenderableType:
    from rich.table import Table as RichTable
    from rich.text import Text

    columns = len(table.rows[0])
    shown = RichTable(box=None, padding=(0, len(_GAP), 0, 0), pad_edge=False, show_header=bool(table.header))
    for index in range(columns):
        shown.add_column(
            table.header[index] if table.header else "",
            header_style="bold",
            justify="right" if index in table.right else "left",
            overflow="fold",
            no_wrap=index in table.right,
            min_width=40 if index == columns - 1 == 2 else None,
        )
    for first, *rest in table.rows:
        style = "" if table.header else _STYLES.get(first, "dim")
        shown.add_row(Text(first, style), *(Text(cell) for cell in rest))
    return shown
