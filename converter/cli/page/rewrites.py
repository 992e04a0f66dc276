# SPDX-License-Identifier: Apache-2.0
"""The kinds of rewrites on the page: a card for each, with the nodes before and after drawn from one of its places."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from onnx_convert.cli.page.picture import picture, value_line
from onnx_convert.cli.page.svg import clean, drawing
from onnx_convert.cli.page.words import promises
from onnx_convert.report import CONDITIONAL, EQUIVALENT, EXACT, FORMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Plain = Mapping[str, Any]

_DRAWN: Final = 120  # kinds that are drawn
_NODES: Final = 60  # nodes of a picture
_WIDE: Final = 14  # nodes from which a picture keeps its size and is moved in its frame
_FIRST: Final = 12  # places that are named at once
_SERIES: Final = 6
PROMISES: Final = {
    EXACT: "The two specifications give the same bits.",
    EQUIVALENT: "The same mathematics; what may differ:",
    CONDITIONAL: "Right only under a condition:",
}


def rewrites(data: Plain) -> Iterator[str]:
    """Yields the section of the rewrites."""
    examples = sorted(data["examples"] or (), key=lambda example: -example["count"])
    if not examples:
        return
    kinds = f"{len(examples)} {'kind' if len(examples) == 1 else 'kinds'}"
    yield f'<section aria-labelledby="rewrites"><h2 id="rewrites">Rewrites <span class="quiet">{kinds}</span></h2>'
    if len(examples) > 3:
        yield '<ul class="kinds">'
        for place, example in enumerate(examples):
            operator = clean(data["changes"][example["change"]]["operator"])
            yield f'<li><a href="#kind-{place}">{operator} <span class="quiet">{example["count"]:,}</span></a></li>'
        yield "</ul>"
    for place, example in enumerate(examples):
        yield from _card(place, example, data["changes"][example["change"]])
    yield "</section>"


def form_of(example: Plain) -> str:
    """Returns the weakest promise among the steps of an example."""
    return max((step["form"] for step in example["steps"]), key=FORMS.index, default=EXACT)


def badge(form: str) -> str:
    """Returns a form as a small label."""
    return f'<span class="badge{" warn" if form == CONDITIONAL else ""}">{form}</span>'


def series(change: Plain) -> str:
    """Returns what nodes became, as text: `Transpose, Softmax, Transpose`."""
    became: Sequence[str] = change["became"]
    if not became:
        return "gone, nothing uses it"
    if list(became) == ["initializer"]:
        return "an initializer"
    more = len(became) - _SERIES + 1
    return ", ".join(became if len(became) <= _SERIES else [*became[: _SERIES - 1], f"and {more} more nodes"])


def _card(place: int, example: Plain, change: Plain) -> Iterator[str]:
    count = example["count"]
    name = change["operator"] if change["domain"] == "ai.onnx" else f"{change['domain']}.{change['operator']}"
    yield f'<article class="card kind" id="kind-{place}" aria-labelledby="kind-{place}-name"><header>'
    yield f'<h3 id="kind-{place}-name">{clean(name)} <span class="arrow" aria-label="becomes">→</span> '
    yield f"{clean(series(change))}</h3>"
    yield f'<p>{badge(form_of(example))} <span class="quiet">{count:,} {"node" if count == 1 else "nodes"}</span></p>'
    yield "</header>"
    if place < _DRAWN:
        stack = " stack" if _is_wide(example["after"]) or _is_wide(example["before"]) else ""
        yield f'<div class="scenes{stack}">{_scene("before", example, change)}{_scene("after", example, change)}</div>'
    yield from _told(example, change)
    yield from _places(place, example)
    yield from _as_text(example)
    yield "</article>"


def _is_wide(scene: Plain) -> bool:
    return _WIDE <= len(scene["nodes"]) <= _NODES


def _scene(which: str, example: Plain, change: Plain) -> str:
    scene = example[which]
    shown = scene["nodes"] or scene["around"]
    title = which.capitalize()
    caption = f"{title}: {', '.join(node['operator'] for node in scene['nodes'][:_SERIES]) or series(change)}"
    more = f'<p class="quiet small">and {scene["more"]} neighbours more</p>' if scene["more"] else ""
    if not shown:
        inner = f'<p class="quiet">{clean(series(change).capitalize())}.</p>'
    elif len(scene["nodes"]) > _NODES:
        inner = f'<p class="quiet">{len(scene["nodes"])} nodes, too many for a picture; they are listed as text.</p>'
    else:
        inner = drawing(picture(scene, example["values"]), caption)
    wide = f' wide" role="region" aria-label="{title}" tabindex="0' if _is_wide(scene) else ""
    return (
        f'<figure class="scene {which}"><figcaption><h4>{title}</h4></figcaption>'
        f'<div class="canvas{wide}">{inner}</div>{more}</figure>'
    )


def prose(text: str) -> str:
    """Returns a sentence for the page, what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", clean(text))


def _told(example: Plain, change: Plain) -> Iterator[str]:
    """Yields what the specification changed, what is done about it, and what the form promises."""
    rows: dict[str, list[str]] = {}
    later = []
    for step in example["steps"]:
        at = f"{step['operator']}@{step['boundary']}" if step["boundary"] else step["operator"]
        if step["operator"] != change["operator"] and example["steps"][0] is not step:
            later.append(at)  # of what it becomes, not of the node itself
            continue
        if step.get("specification"):
            rows.setdefault("What changed", []).append(f"<b>{clean(at)}</b> {prose(step['specification'])}")
        rewrite = clean(step["rewrite"].replace("_", " "))
        done = prose(step["done"]) if step.get("done") else f"{rewrite[:1].upper()}{rewrite[1:]}."
        rows.setdefault("What is done", []).append(done)
    if later:
        rows["On the way"] = [f"Of the new nodes, {clean(', '.join(dict.fromkeys(later)))} as well."]
    if example["steps"]:
        rows["Form"] = [f"{badge(form_of(example))} {prose(promises(example, PROMISES))}"]
    if example["path"]:
        rows["Drawn from"] = [f'<span class="mono">{clean(example["path"])}</span>']
    yield '<dl class="tell">'
    for label, texts in rows.items():
        yield f"<dt>{label}</dt><dd>{'<br>'.join(dict.fromkeys(texts))}</dd>"
    yield "</dl>"


def _places(place: int, example: Plain) -> Iterator[str]:
    """Yields the names of all nodes of the kind: of many the first ones, and the rest as data for the script."""
    names: Sequence[str] = example["nodes"]
    long = len(names) > _FIRST
    attribute = f' data-names="names-{place}"' if long else ""
    label = "The node" if len(names) == 1 else f"All {len(names):,} nodes" if not long else f"{len(names):,} nodes"
    yield f'<details class="places"{attribute}><summary>{label}</summary><ul>'
    yield from (f"<li>{clean(name) or '(unnamed)'}</li>" for name in names[:_FIRST])
    yield "</ul>"
    if long:
        yield f'<p class="rest quiet small">and {len(names) - _FIRST:,} more, which the JSON report lists</p>'
    yield "</details>"
    if long:
        yield f'<script type="application/json" id="names-{place}">{as_data(names)}</script>'


def as_data(value: Any) -> str:
    """Returns JSON that may stand inside a script element, whatever is in it."""
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _as_text(example: Plain) -> Iterator[str]:
    lines = diff_lines(example)
    if lines:
        yield '<details><summary>As text</summary><pre class="mono">'
        yield "\n".join(map(clean, lines))
        yield "</pre></details>"


def diff_lines(example: Plain) -> list[str]:
    """Returns the nodes before and after in ONNX's text form, the first with `-`, the others with `+`."""
    return [
        f"{sign} {node_line(node, example['values'])}"
        for sign, which in (("-", "before"), ("+", "after"))
        for node in example[which]["nodes"]
    ]


def node_line(node: Plain, values: Mapping[str, Plain]) -> str:
    """Returns a node in ONNX's text form, small constants in their places."""
    pairs = ", ".join(f"{name} = {text}" for name, text in node["attributes"].items())
    inputs = ", ".join(
        value_line(name, values) if values.get(name, {}).get("constant") else name for name in node["inputs"]
    )
    attributes = f" <{pairs}>" if pairs else ""
    return f"{', '.join(node['outputs'])} = {node['operator']}{attributes} ({inputs})"
