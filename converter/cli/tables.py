# SPDX-License-Identifier: Apache-2.0
"""Reports, refusals and descriptions as tables for people: one layout, as plain text or, on a terminal, with colour and
wrapping.

A rendering is a list of parts, each a `Table` or a line of text; `plain` makes a string of it, `rich` something that a
rich console prints. Nothing here prints, and rich is imported only by the functions that need it.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from onnx_convert.cli.loaders import loaded_by
from onnx_convert.report import CONDITIONAL, EQUIVALENT

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from onnx_convert.batch.job import Outcome
    from onnx_convert.reference.model_summary import Description
    from onnx_convert.report import Refusal, Report, Step
    from onnx_convert.target.messages import Advice
    from onnx_convert.target.runtimes import Runtime


_FEW = 3
_MANY = 12  # operators of a description
_VALUES = 8  # inputs or outputs of a description
_LONG = 6  # operators that one became
_GAP = "  "
_LABELS = {EQUIVALENT: "may differ:", CONDITIONAL: "condition:"}  # of what a rewrite that is not exact says
_STYLES = {"condition:": "bold yellow", "warning:": "bold yellow"}  # of labels that are more than labels


class Table(NamedTuple):
    """Rows of text; a cell may have several lines. `header` may be empty, `right` names the columns of numbers; the
    caption follows the last row."""

    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    right: tuple[int, ...] = ()
    caption: str = ""


def report_tables(report: Report, *, verbose: bool = False) -> list[Table | str]:
    """Returns what was done, or would be: the model before and after, what nodes became, and what deserves
    attention."""
    head = [_head(report, verbose)] if report.changed else []
    details = Table((), list(_details(report, verbose)))
    parts = [details, _changes(report, verbose), *([_rewrites(report.steps), *_drawings(report)] if verbose else [])]
    return [*head, *(table for table in parts if table.rows), *remarks(report, verbose=verbose)]


def outcome(report: Report, name: str, *, checked: bool) -> str:
    """Returns the last line: what became of it."""
    opsets = opsets_text(report.opsets_after)
    where = "stdout" if report.destination == "-" else report.destination
    if report.changed and checked:
        return f"{name} can be moved to {opsets}; nothing was written."
    done = "replaced" if report.replaced else "wrote"
    size = f" ({size_text(report.destination_bytes)})" if report.destination_bytes else ""
    if report.changed:
        return f"{done} {where}{size} in {report.seconds:.2f} s"
    if report.destination:
        return f"{name} is already at {opsets}; {done} {'' if report.replaced else 'it to '}{where}{size}."
    return f"{name} is already at {opsets}; nothing to do."


def remarks(report: Report, *, verbose: bool = False) -> list[Table]:
    """Returns what deserves attention in a report, each remark under its label; no table if nothing does."""
    rows: list[tuple[str, ...]] = [*_remarks(report, verbose)]
    return [Table((), rows)] if rows else []


def outcome_line(outcome: Outcome) -> str:
    """Returns how one model of many ended, in one line."""
    head = f"{outcome.status:11} {outcome.name}"
    if not outcome.ok:
        return f"{head}: {' '.join(outcome.message.split())}"
    report = outcome.report
    verified = report.get("verified") if report is not None else None
    numbers = [f"verified: {compared(verified)}"] if verified else []
    if report is None or not report["changed"]:
        return "   ".join([head, *numbers])
    before, after = report["opsets_before"], report["opsets_after"]
    moved = [
        f"{'opset' if domain == 'ai.onnx' else domain} {_change(before.get(domain, 'none'), after.get(domain, 'none'))}"
        for domain in after
        if before.get(domain) != after[domain]
    ]
    nodes = f"{report['nodes_changed']} of {report['nodes_before']} {plural(report['nodes_before'], 'node')} changed"
    return "   ".join([head, *moved, nodes, *numbers])


def compared(verified: Mapping[str, Any]) -> str:
    """Returns in which sense source and result, verified as the same, are so."""
    if verified["identical"]:
        return "the same bits"
    random = all(output["random"] for output in verified["outputs"])
    return "the same distribution" if random else "the same within the tolerance"


def refusal_table(refusals: Iterable[Refusal], *, verbose: bool = False) -> Table:
    """Returns every refusal, equal ones as one row with their number and the first few node names (verbose: all of
    them)."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for refusal in refusals:
        key = (operator_at(refusal.domain, refusal.operator, refusal.boundary), refusal.reason, refusal.remedy)
        name = refusal.node or "(unnamed)"
        groups.setdefault(key, []).append(printable(f"{refusal.path}/{name}" if refusal.path else name))
    rows: list[tuple[str, ...]] = []
    for (operator, reason, remedy), nodes in groups.items():
        lines = [
            reason,
            f"remedy: {remedy}" if remedy else "",
            f"{plural(len(nodes), 'node')}: {', '.join(_few(nodes, verbose))}",
        ]
        rows.append((operator, str(len(nodes)), "\n".join(filter(None, lines))))
    return Table(("Refused", "Nodes", "Why"), rows, right=(1,))


def description_tables(told: Description, *, verbose: bool = False) -> list[Table]:
    """Returns what a model is, what is in it, where it can go, and what stands in the way beyond."""
    tables = [Table((), list(_described(told, verbose)))]
    for opset, refusals in ((told.lowest - 1, told.below), (told.highest + 1, told.above)):
        if refusals:
            table = refusal_table(refusals, verbose=verbose)
            tables.append(Table((f"Refused at {opset}", *table.header[1:]), table.rows, table.right))
    return tables


def runtime_tables(rows: Iterable[Runtime]) -> list[Table]:
    """Returns what each runtime loads, and how that is known; then the other names that they have."""
    header = ("Runtime", "Opset", "IR", "ai.onnx.ml", "Certainty", "Source")
    cells: list[tuple[str, ...]] = []
    names: dict[str, str] = {}
    for row in rows:
        opset = str(row.opset or "any")
        if row.minimum > 1:
            opset = f"{row.minimum}-{row.opset}" if row.opset else f"{row.minimum} and above"
        if row.minimum == row.opset:
            opset = str(row.opset)
        name = f"{row.name}@{row.version}" if row.version else row.name
        cells.append((name, opset, str(row.ir or "any"), str(row.ml or "any"), row.certainty, row.source))
        if row.also:
            names[row.name] = ", ".join(row.also)
    aliases = Table(("Runtime", "Also called"), [*names.items()])
    return [Table(header, cells, right=(1, 2, 3)), *([aliases] if names else [])]


def message_tables(told: Iterable[Advice], *, whole: bool) -> list[Table]:
    """Returns who prints each message, why, and what to type; `whole`: with its text."""
    return [
        Table(
            (),
            [
                *([("message", advice.text)] if whole else []),
                ("printed by", advice.by),
                ("because", advice.why),
                (
                    "type",
                    "\nor ".join(f"onnx-convert {option}" for option in advice.options)
                    or "nothing: onnx-convert cannot help",
                ),
                *([("note", advice.note)] if advice.note else []),
            ],
        )
        for advice in told
    ]


def opsets_text(opsets: dict[str, int]) -> str:
    """Returns opsets for people: `opset 14, ai.onnx.ml 3`."""
    default = opsets.get("ai.onnx")
    rest = [f"{domain} {version}" for domain, version in opsets.items() if domain != "ai.onnx"]
    return ", ".join([*([f"opset {default}"] if default else []), *rest])


def operator_at(domain: str, operator: str, boundary: int) -> str:
    """Returns an operator at a boundary, as the documentation writes it: Softmax@13, ai.onnx.ml.TreeEnsemble@5."""
    name = operator if domain in ("", "ai.onnx") else f"{domain}.{operator}"
    return f"{name}@{boundary}" if boundary else name


def printable(text: str) -> str:
    """Returns a text of the model's in one line that does nothing to a terminal."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def _lines(cell: str) -> list[str]:
    return [printable(line) for line in cell.split("\n")]


def plain(parts: Iterable[Table | str]) -> str:
    """Returns the parts as text of unlimited width, an empty line between them."""
    return "\n\n".join(printable(part) if isinstance(part, str) else "\n".join(_aligned(part)) for part in parts)


def rich(parts: Iterable[Table | str]) -> RenderableType:
    """Returns the parts for a rich console, which wraps the last column of a table to the width of the terminal."""
    from rich.console import Group
    from rich.text import Text

    shown: list[RenderableType] = []
    for part in parts:
        if shown:
            shown.append("")
        shown.append(Text(printable(part)) if isinstance(part, str) else _rich_table(part))
    return Group(*shown)


def _head(report: Report, verbose: bool) -> str:
    """Returns the model and its stamps in one line: `net.onnx opset 19 -> 12 IR version 9 -> 7 for rknn-toolkit2`."""
    told = [report.source + (f" ({size_text(report.source_bytes)})" if verbose and report.source_bytes else "")]
    for domain in [*report.opsets_before, *(set(report.opsets_after) - set(report.opsets_before))]:
        before, after = report.opsets_before.get(domain), report.opsets_after.get(domain)
        if domain == "ai.onnx" or before != after or verbose:
            name = "opset" if domain == "ai.onnx" else domain
            stamp = f" (stamped {report.stamped[domain]})" if domain in report.stamped else ""
            told.append(f"{name} {_change(str(before or 'none') + stamp, str(after or 'none'))}")
    told.append(f"IR version {_change(report.ir_version_before, report.ir_version_after)}")
    if report.runtime:
        told.append(f"for {report.runtime}")
    return "   ".join(filter(None, told))


def _details(report: Report, verbose: bool) -> Iterator[tuple[str, str]]:
    """Yields what is different besides nodes, and where external data are."""
    if report.inlined:
        yield "inlined", ", ".join(_few(report.inlined, verbose))
    if report.inputs_added:
        yield "inputs added", ", ".join(_few(report.inputs_added, verbose))
    if report.inputs_removed:
        yield "inputs removed", ", ".join(_few(report.inputs_removed, verbose))
    if report.data_files:
        yield "data", f"{', '.join(_few(report.data_files))} (written)"
    if report.shared_data:
        yield "data", f"{', '.join(_few(report.shared_data))} (there already, the output points to it)"


def _changes(report: Report, verbose: bool) -> Table:
    """Returns one row for nodes of one operator that became the same; verbose, with all their names."""
    counts: dict[tuple[str, str, str], list[str]] = {}
    for change in report.changes:
        became = _series(change.became) if change.became else "(gone, nothing uses it)"
        if change.became == ("initializer",):
            became = "an initializer"
        key = operator_at(change.domain, change.operator, 0), became, ", ".join(map(str, change.boundaries))
        counts.setdefault(key, []).extend(change.nodes)
    rows = [
        (operator, str(len(nodes)), became, at, *([", ".join(map(printable, nodes))] if verbose else []))
        for (operator, became, at), nodes in counts.items()
    ]
    total = report.nodes_changed + report.nodes_kept
    count = f"{report.nodes_changed} of {total} {plural(total, 'node')} changed"
    kept = f"{report.nodes_kept} {'is as it was' if report.nodes_kept == 1 else 'are as they were'}"
    text = count if not report.nodes_kept else f"{count}, {kept}"
    if not rows:
        text = "no node changed"
        if report.changed:
            return Table((), [(text,)])
    header = ("Changed", "Nodes", "Became", "At opset", *(["Names"] if verbose else []))
    return Table(header, rows, right=(1,), caption=text)


def _series(names: Sequence[str]) -> str:
    """Returns operators in order; of many the first few, and how many nodes follow."""
    shown = names if len(names) <= _LONG else [*names[: _LONG - 1], f"and {len(names) - _LONG + 1} more nodes"]
    return ", ".join(shown)


def _rewrites(steps: Counter[Step]) -> Table:
    """Returns one row for each kind of rewrite that took part: the operator at its boundary, how, and its promise."""
    rows: list[tuple[str, ...]] = [
        (operator_at(step.domain, step.operator, step.boundary), str(count), step.direction,
         step.rewrite.replace("_", " "), step.form)
        for step, count in steps.items()
    ]  # fmt: skip
    return Table(("Rewrite", "Nodes", "Way", "How", "Form"), rows, right=(1,))


def _drawings(report: Report) -> Iterator[Table]:
    """Yields one place of each kind of rewrite, before and after."""
    from onnx_convert.cli import drawing

    for example in report.examples or ():
        yield Table((), [(drawing.before_and_after(example.to_dict()),)])


def _remarks(report: Report, verbose: bool) -> Iterator[tuple[str, str]]:
    for step, count in report.steps.items():
        if step.condition:
            names = [f"'{printable(name)}'" for name in report.inexact.get(step, [])]
            where = (
                ", ".join(_few(names, verbose)) if verbose or len(names) == 1 else f"({count} {plural(count, 'node')})"
            )
            yield (
                _LABELS.get(step.form, "note:"),
                f"{operator_at(step.domain, step.operator, 0)} {where}: {step.condition}",
            )
    yield from (("warning:", warning) for warning in report.warnings)
    if report.assumed:
        yield "assumed:", ", ".join(_few(report.assumed, verbose))
    yield from (("note:", note) for note in report.notes)


def _described(told: Description, verbose: bool) -> Iterator[tuple[str, str]]:
    if told.producer:
        yield "producer", told.producer
    for domain, version in told.opsets.items():
        stamp = f" (stamped {told.stamped[domain]})" if domain in told.stamped else ""
        yield ("opset" if domain == "ai.onnx" else domain), f"{version}{stamp}"
    yield "IR version", str(told.ir_version)
    subgraphs = f", {told.subgraphs} {plural(told.subgraphs, 'subgraph')}" if told.subgraphs else ""
    for label, values in (("inputs", told.inputs), ("outputs", told.outputs)):
        yield label, "\n".join(_few([f"{printable(n)}  {t}" for n, t in values.items()], verbose, of=_VALUES)) or "none"
    yield "nodes", f"{told.nodes}{subgraphs}"
    yield "operators", _counted(told.operators, len(told.operators) if verbose else _MANY)
    if told.functions:
        yield "functions", ", ".join(_few(told.functions, verbose))
    yield "weights", f"{told.weights} {plural(told.weights, 'tensor')}, {size_text(told.weight_bytes)}"
    if told.data_files:
        files = [
            f"{name} ({', '.join([size_text(size), *_flaw(told.missing_data.get(name, ''))])})"
            for name, size in told.data_files.items()
        ]
        yield "external data", ", ".join(_few(files, verbose))
    yield "dtypes", _counted(told.dtypes, len(told.dtypes))
    if told.highest:
        yield "in reach", f"opset {told.lowest} to {told.highest}"
    yield "loaded by", "\n".join(loaded_by(told))
    yield from (("note:", note) for note in told.notes)


def _flaw(why: str) -> list[str]:
    """Returns what is wrong with a data file, in a word or two; nothing if nothing is."""
    told = why.rpartition(": ")[2]
    return [{"No such file or directory": "not there"}.get(told, told)] if why else []


def _counted(counts: Mapping[str, int], limit: int) -> str:
    """Returns the most frequent names with their numbers."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{name} {count}" for name, count in ranked[:limit]]
    return ", ".join([*shown, *([f"and {len(ranked) - limit} more"] if len(ranked) > limit else [])])


def size_text(count: float) -> str:
    """Returns bytes for people, in powers of ten."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def _change(before: object, after: object) -> str:
    return str(after) if before == after else f"{before} -> {after}"


def _few(names: Sequence[str], verbose: bool = False, of: int = _FEW) -> list[str]:
    """Returns the names, or the first few and how many there are more."""
    return [*names] if verbose or len(names) <= of + 1 else [*names[:of], f"and {len(names) - of} more"]


def counted_nodes(count: int) -> str:
    """Returns a number of nodes: `1 node`, `5,000 nodes`."""
    return f"{count:,} {plural(count, 'node')}"


def plural(count: int, noun: str) -> str:
    """Returns the noun in the number of the count."""
    return noun if count == 1 else f"{noun}s"


def _aligned(table: Table) -> Iterator[str]:
    rows = [[_lines(cell) for cell in row] for row in ([table.header] if table.header else []) + table.rows]
    widths = [max(len(line) for lines in column for line in lines) for column in zip(*rows, strict=True)]
    for row in rows:
        for line in zip_longest(*row, fillvalue=""):
            cells = (
                cell.rjust(width) if index in table.right else cell.ljust(width)
                for index, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            yield _GAP.join(cells).rstrip()
    if table.caption:
        yield printable(table.caption)


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
        shown.add_row(Text(first, style), *(Text("\n".join(_lines(cell))) for cell in rest))
    if table.caption:
        from rich.console import Group

        return Group(shown, Text(printable(table.caption)))
    return shown
