# SPDX-License-Identifier: Apache-2.0
"""Draws a picture as SVG. Colours and fonts are the style sheet's; what is known of a box stands in its title, which
browsers show and read aloud, and which the page's script shows on a tap."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from onnx_convert.cli.page import layout
from onnx_convert.cli.page.picture import AROUND, END, NODE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from onnx_convert.cli.page.layout import Box
    from onnx_convert.cli.page.picture import Picture, Shown, Wire

_TITLE: Final = 7.7  # width of a letter
_MONO: Final = 6.9
_SMALL: Final = 6.4
_LINE: Final = 17  # height of a line
_CUT: Final = 30  # letters of a line
_MARGIN: Final = 4
_RISE: Final = 54  # between layers
_PAST: Final = 22  # of which edges go straight down, past the label of their type


def clean(text: str) -> str:
    """Returns text for a page: escaped, and with control characters as people write them."""
    shown = "".join(sign if sign.isprintable() or sign == "\n" else repr(sign)[1:-1] for sign in text)
    return escape(shown)


def cut(text: str, limit: int = _CUT) -> str:
    """Returns a text, of a long one the ends: names differ at either."""
    if len(text) <= limit:
        return text
    return f"{text[: limit // 2 - 1]}…{text[len(text) - limit + limit // 2 :]}"


def drawing(picture: Picture, caption: str) -> str:
    """Returns the picture as an svg element; `caption` is what a screen reader calls it."""
    for shown in picture.boxes:
        _measure(shown)
    for shown in picture.boxes:  # labels stand below the maker of their values, and must not meet
        labels = [len(cut(wire.label)) for wire in picture.wires if wire.label and wire.edge.start is shown.box]
        shown.box.width = max(shown.box.width, (sum(labels) + 2 * len(labels)) * _SMALL * (1.3 if labels[1:] else 0.9))
    placed = layout.place([shown.box for shown in picture.boxes], [wire.edge for wire in picture.wires], 22, _RISE, 14)
    width, height = placed.width + 2 * _MARGIN, placed.height + 2 * _MARGIN
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="{-_MARGIN} {-_MARGIN} {width:.0f} {height:.0f}"'
    parts = [f'<svg class="picture" role="group" aria-label="{clean(caption)}" {size}>']
    parts += _wires(picture)
    for shown in picture.boxes:
        parts += _box(shown)
    for wire in picture.wires:
        parts += _label(wire, picture)
    return "".join([*parts, "</svg>"])


def _measure(shown: Shown) -> None:
    title = len(cut(shown.title)) * (_SMALL if shown.kind == END else _TITLE)
    lines = [len(f"{cut(name, 14)} {cut(text)}" if name else cut(text)) * _MONO for name, text in shown.lines]
    shown.box.width = max(title + 26, max(lines, default=0) + 22, 40 if shown.kind == END else 92)
    shown.box.height = {END: 22, AROUND: 28}.get(shown.kind, 31 + (len(shown.lines) * _LINE + 5) * bool(lines))


def _box(shown: Shown) -> Iterator[str]:
    box = shown.box
    told = "\n".join([shown.title, *(f"{name}: {text}" for name, text in shown.facts)])
    radius = 11 if shown.kind == END else 7
    yield (
        f'<g class="box {shown.kind}" tabindex="0" role="img" aria-label="{clean(told)}">'
        f"<title>{clean(told)}</title>"
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="{radius}"/>'
    )
    baseline = box.y + {END: 15, AROUND: 18.5}.get(shown.kind, 20)
    yield f'<text x="{box.middle:.1f}" y="{baseline:.1f}">{clean(cut(shown.title))}</text>'
    if shown.kind == NODE and shown.lines:
        yield f'<path class="rule" d="M{box.x:.1f} {box.y + 30:.1f}h{box.width:.1f}"/>'
        for place, (name, text) in enumerate(shown.lines):
            y = box.y + 46 + place * _LINE
            label = f'<tspan class="key">{clean(cut(name, 14))}</tspan> ' if name else ""
            yield f'<text class="line" x="{box.x + 11:.1f}" y="{y:.1f}">{label}{clean(cut(text))}</text>'
    yield "</g>"


def _wires(picture: Picture) -> Iterator[str]:
    """Yields the edges, each from its place at the bottom of a box to its place at the top of another."""
    arriving: dict[int, list[Wire]] = {}
    for wire in picture.wires:
        arriving.setdefault(id(wire.edge.end), []).append(wire)
    ends = {id(wire): _port(wire, arriving[id(wire.edge.end)]) for wire in picture.wires}
    named = {wire.value for wire in picture.wires if wire.label}
    for wire in picture.wires:
        x = _leaving(wire, picture.wires)
        y = wire.edge.start.y + wire.edge.start.height
        path = [f"M{x:.1f} {y:.1f}"]
        if wire.value in named:  # down past the label of its type
            y += _PAST
            path.append(f"v{_PAST}")
        for passed in wire.edge.bends:
            path.append(_curve(x, y, passed.middle, passed.y))
            x, y = passed.middle, passed.y
        end = ends[id(wire)]
        top = wire.edge.end.y
        path.append(_curve(x, y, end, top - 5))
        yield f'<path class="wire" d="{"".join(path)}"/>'
        yield f'<path class="head" d="M{end - 4:.1f} {top - 7:.1f}h8l-4 7z"/>'


def _port(wire: Wire, wires: list[Wire]) -> float:
    """Returns where an edge arrives at a box: edges are spread over its middle, in the order of where they come
    from."""
    order = sorted(wires, key=lambda one: one.edge.path()[-2].middle)
    return _spread(wire.edge.end, order.index(wire), len(order), 40)


def _leaving(wire: Wire, wires: Sequence[Wire]) -> float:
    """Returns where an edge leaves a box: each value at one place."""
    starts: dict[str, float] = {}
    for one in wires:
        if one.edge.start is wire.edge.start:
            starts.setdefault(one.value, one.edge.path()[1].middle)
    order = sorted(starts, key=lambda name: starts[name])
    return _spread(wire.edge.start, order.index(wire.value), len(order), 90)


def _spread(box: Box, place: int, count: int, room: float) -> float:
    share = (place + 1) / (count + 1) - 0.5
    return box.middle + share * min(box.width * 0.75, room * count) if count > 1 else box.middle


def _curve(x: float, y: float, to_x: float, to_y: float) -> str:
    half = (to_y - y) / 2
    return f"C{x:.1f} {y + half:.1f} {to_x:.1f} {to_y - half:.1f} {to_x:.1f} {to_y:.1f}"


def _label(wire: Wire, picture: Picture) -> Iterator[str]:
    """Yields the type of a value, on the first piece of its way."""
    if wire.label:
        x = _leaving(wire, picture.wires)
        y = wire.edge.start.y + wire.edge.start.height + 16
        yield f'<text class="type" x="{x:.1f}" y="{y:.1f}">{clean(cut(wire.label))}</text>'
