# SPDX-License-Identifier: Apache-2.0
"""Draws nodes before and after a rewrite in text, for terminals: a line for each node, and lines between them."""

from __future__ import annotations

from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any, Final

from onnx_convert.cli.page import layout
from onnx_convert.cli.page.picture import AROUND, END, picture
from onnx_convert.cli.page.svg import cut

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onnx_convert.cli.page.layout import Box
    from onnx_convert.cli.page.picture import Picture, Shown

    Plain = Mapping[str, Any]

_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_SIGNS: Final = " ╵╷│╴╯╮┤╶╰╭├─┴┬┼"  # by the directions in which they lead
TO_ASCII: Final = str.maketrans(dict(zip("╵╷│╴╯╮┤╶╰╭├─┴┬┼…", "|||-++|-++|-+++~", strict=True)))
_GAP: Final = 3
_NODES: Final = 24  # that are drawn
_WIDTH: Final = 100  # within which two drawings stand side by side


def before_and_after(example: Plain) -> str:
    """Returns the two drawings of an example, side by side where there is room."""
    drawings = [_scene(example[which], example["values"]) for which in ("before", "after")]
    if not drawings[1]:
        drawings[1] = ["(nothing)"]
    wide = max(map(len, drawings[0]), default=0)
    if wide + max(map(len, drawings[1]), default=0) + 2 * _GAP > _WIDTH:
        return "\n".join(["before", *drawings[0], "", "after", *drawings[1]])
    wide = max(wide, len("before"))
    pairs = zip_longest(["before", *drawings[0]], ["after", *drawings[1]], fillvalue="")
    return "\n".join(f"{one:{wide + 2 * _GAP}}{other}".rstrip() for one, other in pairs)


def _scene(scene: Plain, values: Mapping[str, Plain]) -> list[str]:
    if len(scene["nodes"]) > _NODES:
        return [f"{len(scene['nodes'])} nodes, too many for a drawing"]
    return drawn(picture(scene, values))


def drawn(what: Picture) -> list[str]:
    """Returns the lines of a picture."""
    texts = {id(shown.box): _text(shown) for shown in what.boxes}
    for shown in what.boxes:
        shown.box.width = len(texts[id(shown.box)]) // 2 * 2 + 1  # odd, so that it has a middle
        shown.box.height = 1
    edges = [wire.edge for wire in what.wires]
    placed = layout.place([shown.box for shown in what.boxes], edges, _GAP, 1, 1)
    links = {(id(one), id(other)): (one, other) for edge in edges for one, other in pairwise(edge.path())}
    lines: list[str] = []
    for row in placed.layers:
        if lines:
            lines += _between([pair for pair in links.values() if pair[1].layer == row[0].layer])
        lines.append(_row(row, texts))
    return lines


def _text(shown: Shown) -> str:
    if shown.kind in (END, AROUND):
        return cut(shown.title) if shown.kind == END else f"({cut(shown.title)})"
    told = [f"{name}={text.replace(', ', ',')}" if name else text.replace(", ", ",") for name, text in shown.lines]
    return " ".join([shown.title, *(cut(text, 24) for text in told)])


def _column(box: Box) -> int:
    """Returns the column of the middle of a box."""
    return int(box.x + 0.5) + int(box.width) // 2


def _row(row: list[Box], texts: Mapping[int, str]) -> str:
    line = ""
    for box in sorted(row, key=_column):
        text = texts.get(id(box), "│")
        line = f"{line:{max(_column(box) - len(text) // 2, 0)}}{text}"
    return line


def _between(links: list[tuple[Box, Box]]) -> list[str]:
    """Returns the lines that lead from one row to the next: down, across at a height of its own, and down."""
    ways = sorted({(_column(one), _column(other)) for one, other in links}, key=lambda way: (abs(way[0] - way[1]), way))
    heights: list[list[tuple[int, int, int]]] = []  # by line: from column, to column, whose
    at: dict[tuple[int, int], int] = {}
    for start, end in ways:
        low, high = min(start, end), max(start, end)
        if low == high:
            continue
        free = (
            height
            for height, taken in enumerate(heights)
            if all(other == start or high < left or right < low for left, right, other in taken)
        )
        height = next(free, len(heights))
        if height == len(heights):
            heights.append([])
        heights[height].append((low, high, start))
        at[start, end] = height
    width = max((max(way) for way in ways), default=0) + 1
    grid = [[0] * width for _ in range(max(len(heights), 1))]
    for start, end in ways:
        height = at.get((start, end), 0)
        for y in range(len(grid)):
            if y < height:
                grid[y][start] |= _UP | _DOWN
            elif y > height or start == end:
                grid[y][end] |= _UP | _DOWN
            else:
                grid[y][start] |= _UP
                grid[y][end] |= _DOWN
        for x in range(min(start, end), max(start, end)):
            grid[height][x] |= _RIGHT
            grid[height][x + 1] |= _LEFT
    return ["".join(_SIGNS[cell] for cell in line).rstrip() for line in grid]
