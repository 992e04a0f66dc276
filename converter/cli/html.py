# SPDX-License-Identifier: Apache-2.0
"""The report as one page, to be looked at: no network, nothing beside it, and nothing of a file runs in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from onnx_convert.cli.page.document import document
from onnx_convert.cli.page.rewrites import rewrites
from onnx_convert.cli.page.svg import clean
from onnx_convert.cli.page.words import ENDINGS, facts, lead, name_of, refusal_groups, remarks, way
from onnx_convert.cli.tables import counted_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Plain = Mapping[str, Any]

_OPERATORS: Final = 14  # that are shown in the chart
_NAMED: Final = 200  # nodes, or remarks, that are listed
_MARKS: Final = {**dict.fromkeys(("refused", "different", "mismatch"), "badge bad"), "unverified": "badge warn"}
"""How endings stand out."""


def page(data: Plain) -> str:
    """Returns the page of a report, which is given as plain data."""
    parts = [*_header(data), '<main id="content">']
    for section in (_refusals, _attention, _chart, rewrites, _notes):
        parts += section(data)
    parts.append("</main>")
    version = clean(str(data["tool"]["version"]))
    footer = f'Made by onnx-convert {version}. <span class="mono">{clean(data["source"])}</span>'
    title = f"{name_of(data)}: {way(data)}"
    return document(title, parts, footer, styles=("page.css",), script="page.js")


def _header(data: Plain) -> Iterator[str]:
    ending = ENDINGS.get(data["status"], str(data["status"]))
    mark = _MARKS.get(data["status"], "badge")
    yield f'<header><p class="brand">onnx-convert report &nbsp; <span class="{mark}">{clean(ending)}</span></p>'
    yield f'<h1>{clean(name_of(data))} <span class="quiet">{clean(way(data))}</span></h1>'
    yield f'<p class="lead">{clean(lead(data))}</p><dl class="facts">'
    for label, text, more in facts(data):
        said = f' <span class="quiet">{clean(more)}</span>' if more else ""
        yield f"<div><dt>{label}</dt><dd>{clean(text)}{said}</dd></div>"
    yield "</dl></header>"


def _refusals(data: Plain) -> Iterator[str]:
    groups = refusal_groups(data)
    if not groups:
        return
    yield '<section aria-labelledby="refused"><h2 id="refused">Refused</h2>'
    for group in groups:
        yield f'<article class="card refusal"><header><h3>{clean(group.operator)} '
        yield f'<span class="quiet">{counted_nodes(len(group.nodes))}</span> '
        yield f'<span class="badge bad mono">{clean(group.code)}</span></h3></header>'
        yield f"<p>{clean(_capital(group.reason))}.</p>"
        if group.remedy:
            yield f'<p><span class="quiet">What helps:</span> {clean(group.remedy)}</p>'
        yield _command(group.command)
        count = len(group.nodes)
        yield f"<details><summary>{'The node' if count == 1 else f'{count:,} nodes'}</summary><ul>"
        yield from (f"<li>{clean(name)}</li>" for name in group.nodes[:_NAMED])
        rest = f'<p class="quiet small">and {count - _NAMED:,} more</p>' if count > _NAMED else ""
        yield f"</ul>{rest}</details></article>"
    if data.get("nearest"):
        yield f'<article class="card"><h3>Within reach: opset {data["nearest"]}</h3>'
        yield f"{_command(data.get('nearest_command') or '')}</article>"
    yield "</section>"


def _command(command: str) -> str:
    if not command:
        return ""
    button = '<button class="copy" type="button" hidden>Copy</button>'
    return f'<div class="command"><code>{clean(command)}</code>{button}</div>'


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _attention(data: Plain) -> Iterator[str]:
    yield from _remarks(data, "To look at", "attention", warnings=True)


def _notes(data: Plain) -> Iterator[str]:
    yield from _remarks(data, "Notes", "notes", warnings=False)


def _remarks(data: Plain, title: str, name: str, *, warnings: bool) -> Iterator[str]:
    told = [(label, text) for label, text, warns in remarks(data) if warns == warnings]
    if not told:
        return
    yield f'<section aria-labelledby="{name}"><h2 id="{name}">{title}</h2><ul class="remarks">'
    mark = ' class="warn"' if warnings else ""
    yield from (f"<li{mark}><b>{label}</b>{clean(text)}</li>" for label, text in told[:_NAMED])
    if len(told) > _NAMED:
        yield f"<li>and {len(told) - _NAMED:,} more, which the JSON report lists</li>"
    yield "</ul></section>"


# ---- operators


def _chart(data: Plain) -> Iterator[str]:
    before, after = data["operators_before"] or {}, data["operators_after"] or {}
    different = [name for name in before.keys() | after.keys() if before.get(name, 0) != after.get(name, 0)]
    different.sort(key=lambda name: (-max(before.get(name, 0), after.get(name, 0)), name))
    if not after or not different:
        return
    shown, same = different[:_OPERATORS], len(before.keys() | after.keys()) - len(different)
    most = max(max(before.get(name, 0), after.get(name, 0)) for name in shown)
    yield '<section aria-labelledby="operators"><h2 id="operators">Operators</h2><div class="card">'
    yield '<p class="key-line" aria-hidden="true"><span class="was"><i></i>before</span><span><i></i>after</span></p>'
    yield '<ul class="chart">'
    for name in shown:
        one, other = before.get(name, 0), after.get(name, 0)
        yield f'<li aria-label="{clean(name)}: {one} before, {other} after"><span class="name">{clean(name)}</span>'
        yield f'<span class="bars" aria-hidden="true">{_bar("was", one, most)}{_bar("is", other, most)}</span></li>'
    yield "</ul>"
    rest = [f"{len(different) - len(shown)} more with other numbers"] if len(different) > len(shown) else []
    rest += [f"{same} {'operator is' if same == 1 else 'operators are'} as many as before"] if same else []
    if rest:
        yield f'<p class="quiet small" style="margin-top:1rem">{_capital("; ".join(rest))}.</p>'
    yield "</div></section>"


def _bar(kind: str, count: int, most: int) -> str:
    bar = f'<i style="--share:{count / most:.3f}"></i>' if count else ""
    return f'<span class="{kind}">{bar}{count:,}</span>'
