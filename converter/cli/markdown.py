# SPDX-License-Identifier: Apache-2.0
"""The report as Markdown, for a review or a ticket: the same as the page, with drawings in text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from onnx_convert.cli import drawing
from onnx_convert.cli.page.rewrites import PROMISES, diff_lines, form_of, series
from onnx_convert.cli.page.words import facts, lead, name_of, promises, refusal_groups, remarks, way
from onnx_convert.cli.tables import counted_nodes, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Plain = Mapping[str, Any]

_FEW: Final = 20


def text(data: Plain) -> str:
    """Returns a report, given as plain data, as Markdown."""
    return "\n".join([*_head(data), *_refused(data), *_remarks(data), *_changes(data), *_pictures(data)]) + "\n"


def escaped(words: str) -> str:
    """Returns a text that means nothing to Markdown, in one line."""
    return re.sub(r"([\\`*_\[\]<>|#~&])", r"\\\1", printable(words.replace("\n", " ")))


def fenced(lines: str, kind: str = "") -> Iterator[str]:
    """Yields a block of code, with a fence that nothing in it closes."""
    longest = max((len(run) for run in re.findall(r"`+", lines)), default=0)
    fence = "`" * max(3, longest + 1)
    yield fence + kind
    yield from (printable(line) for line in lines.split("\n"))
    yield fence


def _head(data: Plain) -> Iterator[str]:
    yield f"# {escaped(name_of(data))}: {escaped(way(data))}"
    yield ""
    yield lead(data)
    yield ""
    yield "| | |"
    yield "|---|---|"
    for label, words, more in facts(data):
        yield f"| {label} | {escaped(words)}{f' ({escaped(more)})' if more else ''} |"


def _refused(data: Plain) -> Iterator[str]:
    groups = refusal_groups(data)
    if groups:
        yield "\n## Refused"
    for group in groups:
        yield f"\n### {escaped(group.operator)}: {counted_nodes(len(group.nodes))} (`{group.code}`)"
        yield f"\n{escaped(group.reason)}."
        if group.remedy:
            yield f"\nWhat helps: {escaped(group.remedy)}"
        if group.command:
            yield ""
            yield from fenced(group.command)
        yield f"\nNodes: {_few(group.nodes)}"
    if groups and data.get("nearest_command"):
        yield f"\nWithin reach is opset {data['nearest']}:\n"
        yield from fenced(data["nearest_command"])


def _remarks(data: Plain) -> Iterator[str]:
    told = remarks(data)
    if told:
        yield "\n## To look at\n"
        yield from (f"- **{label}:** {escaped(words)}" for label, words, _ in told)


def _changes(data: Plain) -> Iterator[str]:
    if data["changes"]:
        yield "\n## Changed\n"
        yield "| Nodes | Changed | Became | At opset |"
        yield "|--:|---|---|---|"
        for change in data["changes"]:
            at = ", ".join(map(str, change["boundaries"]))
            yield f"| {change['count']:,} | {escaped(change['operator'])} | {escaped(series(change))} | {at} |"


def _pictures(data: Plain) -> Iterator[str]:
    for example in data["examples"] or ():
        change = data["changes"][example["change"]]
        yield f"\n## {escaped(change['operator'])} → {escaped(series(change))}\n"
        yield f"{counted_nodes(example['count'])}, {form_of(example)}: {escaped(promises(example, PROMISES))}\n"
        for step in example["steps"]:
            if step.get("specification"):
                yield f"- {step['operator']}@{step['boundary']}: {step['specification']}"
        yield ""
        yield from fenced(drawing.before_and_after(example), "text")
        yield "\n<details><summary>As text</summary>\n"
        yield from fenced("\n".join(diff_lines(example)), "diff")
        yield f"\n</details>\n\nNodes: {_few(example['nodes'])}"


def _few(names: list[str]) -> str:
    shown = ", ".join(escaped(name) or "(unnamed)" for name in names[:_FEW])
    return f"{shown}{f', and {len(names) - _FEW:,} more' if len(names) > _FEW else ''}"
