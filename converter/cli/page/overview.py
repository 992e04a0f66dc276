# SPDX-License-Identifier: Apache-2.0
"""The page about many models: a table of all of them, to be sorted and filtered, with links to the page of each."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onnx_convert.cli.page.document import document
from onnx_convert.cli.page.svg import clean
from onnx_convert.cli.tables import compared, opsets_text, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from onnx_convert.batch.job import Outcome

_HEADS: Final = ("Model", "Status", "From", "To", "Nodes changed", "Form", "Verified", "Code", "Seconds", "Message")
_NUMBERS: Final = ("Nodes changed", "Seconds")


class Row(NamedTuple):
    """The cells of one model; `link` leads to its page, "" if there is none."""

    name: str
    status: str
    ok: bool
    before: str = ""
    after: str = ""
    changed: int | None = None
    form: str = ""
    verified: str = ""
    codes: str = ""
    seconds: float = 0.0
    message: str = ""
    link: str = ""


def row(outcome: Outcome, link: str) -> Row:
    """Returns what the table says of a model."""
    report: Mapping[str, Any] | None = outcome.report
    told = Row(
        outcome.name, outcome.status, outcome.ok, seconds=outcome.seconds, message=outcome.message, link=link
    )  # fmt: skip
    if report is None:
        return told
    told = told._replace(
        before=opsets_text(report["opsets_before"]),
        after=opsets_text(report["opsets_after"]),
        codes=", ".join(sorted({refusal["code"] for refusal in report.get("refusals") or ()})),
    )
    if told.codes:
        return told
    return told._replace(changed=report["nodes_changed"], form=report["form"], verified=_verified(report))


def _verified(report: Mapping[str, Any]) -> str:
    told = report.get("verified")
    if not told:
        return ""
    return compared(told) if told["same"] else "not verified" if told["verdict"] == "unverified" else "mismatch"


def overview(rows: Sequence[Row], total: int, version: str) -> str:
    """Returns the page; `total` is the number of models that were to be done."""
    title = f"{len(rows):,} {plural(len(rows), 'model')}"
    parts = [*_header(rows, title, total), '<main id="content">', *_controls(rows), *_table(rows), "</main>"]
    footer = f"Made by onnx-convert {clean(version)}."
    return document(title, parts, footer, styles=("page.css", "table.css"), script="table.js")


def _header(rows: Sequence[Row], title: str, total: int) -> Iterator[str]:
    yield f'<header><p class="brand">onnx-convert report</p><h1>{title}</h1>'
    if total > len(rows):
        yield f'<p class="lead">It was stopped before the other {total - len(rows):,} had ended.</p>'
    yield '<dl class="facts">'
    for status, count in Counter(row.status for row in rows).most_common():
        yield f"<div><dt>{clean(status.capitalize())}</dt><dd>{count:,}</dd></div>"
    yield "</dl></header>"


def _controls(rows: Sequence[Row]) -> Iterator[str]:
    yield '<p class="controls" hidden><input class="filter" id="word" type="search" placeholder="Filter" '
    yield 'aria-label="Filter the models by any word of their rows">'
    yield '<select class="filter" id="status" aria-label="Filter the models by status">'
    yield '<option value="">any status</option>'
    yield from (f"<option>{clean(status)}</option>" for status in dict.fromkeys(row.status for row in rows))
    yield '</select><span class="quiet" id="said" role="status"></span></p>'


def _table(rows: Sequence[Row]) -> Iterator[str]:
    yield '<div class="models"><table><thead><tr>'
    yield from (f'<th scope="col"{_number(head)}>{head}</th>' for head in _HEADS)
    yield "</tr></thead><tbody>"
    for row in rows:
        name = f'<a href="{clean(row.link)}">{clean(row.name)}</a>' if row.link else clean(row.name)
        changed = (-1, "") if row.changed is None else (row.changed, f"{row.changed:,}")
        words = (row.status, row.before, row.after)
        bad = "" if row.ok else ' class="bad"'
        yield f'<tr data-status="{clean(row.status)}"{bad}><td>{name}</td>'
        yield "".join(f"<td>{clean(word)}</td>" for word in words)
        yield f'<td class="number" data-value="{changed[0]}">{changed[1]}</td>'
        yield "".join(f"<td>{clean(word)}</td>" for word in (row.form, row.verified, row.codes))
        yield f'<td class="number" data-value="{row.seconds:.6f}">{row.seconds:.2f}</td>'
        yield f"<td>{clean(' '.join(row.message.split()))}</td></tr>\n"
    yield "</tbody></table></div>"


def _number(head: str) -> str:
    return ' class="number"' if head in _NUMBERS else ""
