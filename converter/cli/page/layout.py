# SPDX-License-Identifier: Apache-2.0
"""Places the boxes of a small graph in layers, from top to bottom, so that few edges cross and most run straight.

The steps are those of Sugiyama: layers by the longest path, bends for edges that pass a layer, an order by the means of
neighbours, places by the means of neighbours. Sizes are in whatever unit the caller draws in.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

_SWEEPS: Final = 8
_FIRM: Final = 50.0


@dataclass(slots=True, eq=False)
class Box:
    """Something to be placed; `x` and `y` are its left upper corner."""

    width: float
    height: float
    x: float = 0
    y: float = 0
    layer: int = 0

    @property
    def middle(self) -> float:
        """The middle from left to right."""
        return self.x + self.width / 2


@dataclass(slots=True, eq=False)
class Edge:
    """A way from one box down to another. `bends` are the boxes without a size that it passes in between."""

    start: Box
    end: Box
    bends: list[Box] = field(default_factory=list)

    def path(self) -> list[Box]:
        """Returns the boxes that the edge passes, its ends included."""
        return [self.start, *self.bends, self.end]


@dataclass(slots=True)
class Layout:
    """Boxes that have their places, by layer, and the room that they take, in pixels."""

    layers: list[list[Box]]
    width: float
    height: float


def place(boxes: Sequence[Box], edges: Sequence[Edge], gap: float, rise: float, bend: float = 0) -> Layout:
    """Places boxes with at least `gap` between neighbours and `rise` between layers. `bend` is how wide a way past
    boxes is."""
    _set_layers(boxes, edges)
    layers = _with_bends(boxes, edges, bend)
    links = [pair for edge in edges for pair in pairwise(edge.path())]
    above, below = _neighbours(links)
    for box_row in layers:
        _pack(box_row, gap)
    for sweep in range(_SWEEPS):
        ahead = sweep % 2 == 0
        for row in layers if ahead else reversed(layers):
            near = above if ahead else below
            row.sort(key=lambda box: _mean(near[box], box.middle))
            _pack(row, gap)
    around = {box: above[box] + below[box] for row in layers for box in row}
    for sweep in range(2 * _SWEEPS):
        ahead = sweep % 2 == 0
        near = around if sweep >= _SWEEPS else above if ahead else below
        for row in layers if ahead else reversed(layers):
            _settle(row, near, gap)
    single = {box: above[box] for box in around if len(above[box]) == 1 and len(below[above[box][0]]) == 1}
    for row in layers:  # what follows one box alone stands straight below it
        _settle(row, {box: single.get(box, []) for box in row}, gap, single)
    return _finished(layers, rise)


def _set_layers(boxes: Sequence[Box], edges: Sequence[Edge]) -> None:
    """Puts each box below all that lead to it, then what has room as near to what it leads to as it can."""
    before: dict[Box, list[Box]] = defaultdict(list)
    after: dict[Box, list[Box]] = defaultdict(list)
    for edge in edges:
        before[edge.end].append(edge.start)
        after[edge.start].append(edge.end)
    for box in boxes:
        box.layer = 0
    for _ in boxes:  # no path is longer
        changed = False
        for edge in edges:
            if edge.end.layer <= edge.start.layer < len(boxes):
                edge.end.layer = edge.start.layer + 1
                changed = True
        if not changed:
            break
    for box in sorted(boxes, key=lambda one: -one.layer):
        if after[box] and not before[box]:
            box.layer = max(box.layer, min(end.layer for end in after[box]) - 1)


def _with_bends(boxes: Sequence[Box], edges: Sequence[Edge], bend: float) -> list[list[Box]]:
    """Returns the boxes by layer, with one without a height where an edge passes a layer."""
    layers: list[list[Box]] = [[] for _ in range(max((box.layer for box in boxes), default=-1) + 1)]
    for box in boxes:
        layers[box.layer].append(box)
    for edge in edges:
        edge.bends = [Box(bend, 0, layer=layer) for layer in range(edge.start.layer + 1, edge.end.layer)]
        for passed in edge.bends:
            layers[passed.layer].append(passed)
    return layers


def _neighbours(links: Iterable[tuple[Box, Box]]) -> tuple[dict[Box, list[Box]], dict[Box, list[Box]]]:
    above: dict[Box, list[Box]] = defaultdict(list)
    below: dict[Box, list[Box]] = defaultdict(list)
    for start, end in links:
        above[end].append(start)
        below[start].append(end)
    return above, below


def _mean(near: Sequence[Box], otherwise: float) -> float:
    return sum(box.middle for box in near) / len(near) if near else otherwise


def _pack(row: Sequence[Box], gap: float) -> None:
    """Puts boxes side by side around 0."""
    x = -(sum(box.width for box in row) + gap * (len(row) - 1)) / 2
    for box in row:
        box.x = x
        x += box.width + gap


def _settle(row: Sequence[Box], near: Mapping[Box, list[Box]], gap: float, firm: Collection[Box] = ()) -> None:
    """Moves boxes to the means of their neighbours, as near as the order and the gaps between them allow.

    Boxes that would overlap are moved together, by what they want in the mean; those that are `firm` count more.
    """
    groups: list[tuple[list[Box], float, float, float]] = []  # boxes side by side, where they begin, width, weight
    for box in row:
        group, start, width = [box], _mean(near[box], box.middle) - box.width / 2, box.width
        weight = _FIRM if box in firm else 1.0
        while groups and groups[-1][1] + groups[-1][2] + gap > start:
            others, other_start, other_width, other_weight = groups.pop()
            shifted = start - other_width - gap
            start = (other_start * other_weight + shifted * weight) / (other_weight + weight)
            group, width, weight = others + group, other_width + gap + width, other_weight + weight
        groups.append((group, start, width, weight))
    for group, start, _, _ in groups:
        x = start
        for box in group:
            box.x = x
            x += box.width + gap


def _finished(layers: list[list[Box]], rise: float) -> Layout:
    """Gives each layer its height, and moves all to where x and y are not below 0."""
    left = min((box.x for row in layers for box in row), default=0)
    right = max((box.x + box.width for row in layers for box in row), default=0)
    y = 0.0
    for row in layers:
        height = max((box.height for box in row), default=0)
        for box in row:
            box.x -= left
            box.y = y + (height - box.height) / 2
        y += height + rise
    return Layout(layers, right - left, max(y - rise, 0))
