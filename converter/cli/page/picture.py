# SPDX-License-Identifier: Apache-2.0
"""What a picture of some nodes shows: boxes for nodes and for what goes in and out, and the values between them.

Both the drawing of the page and that of the terminal are made of it. Constants stand inside the nodes that use them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from onnx_convert.cli.page.layout import Box, Edge

if TYPE_CHECKING:
    from collections.abc import Mapping

    Plain = Mapping[str, Any]

NODE: Final = "node"  # one of those that were rewritten, or that they became
AROUND: Final = "around"  # a neighbour
END: Final = "end"  # a value that comes from outside or goes there
_SHORT: Final = 24  # letters of a constant that is shown in place of its type
_LINES: Final = 5  # attributes and constants that a box shows


@dataclass(slots=True)
class Shown:
    """A box: what it is, what it is called, the lines in it, and all that is known, for who asks."""

    kind: str
    title: str
    lines: list[tuple[str, str]] = field(default_factory=list)  # names, empty for constants, and texts
    facts: list[tuple[str, str]] = field(default_factory=list)
    box: Box = field(default_factory=lambda: Box(0, 0))


@dataclass(slots=True)
class Wire:
    """A value on its way from one box to another; `label` is its type, given once for each value."""

    value: str
    label: str
    edge: Edge


@dataclass(slots=True)
class Picture:
    """The boxes and wires of one scene."""

    boxes: list[Shown]
    wires: list[Wire]


def picture(scene: Plain, values: Mapping[str, Plain]) -> Picture:
    """Returns what a scene of an example, as plain data, shows."""
    nodes = [(_shown(node, NODE, values), node) for node in scene["nodes"]]
    others = [(_shown(node, AROUND, values), node) for node in scene["around"]]
    makers = {name: shown for shown, node in (*others, *nodes) for name in node["outputs"] if name}
    told: list[Shown] = []
    wires: list[Wire] = []
    ends: dict[str, Shown] = {}
    labelled: set[str] = set()
    ours = {name for _, node in nodes for name in (*node["inputs"], *node["outputs"])}

    def connect(name: str, start: Shown, end: Shown) -> None:
        label = values.get(name, {}).get("type") or ""
        wires.append(Wire(name, "" if name in labelled else label, Edge(start.box, end.box)))
        labelled.add(name)

    for shown, node in nodes:
        for name in dict.fromkeys(node["inputs"]):
            if name and not _is_constant(name, values) or name in makers:
                if name not in makers:
                    ends[name] = makers[name] = _end(name, values)
                connect(name, makers[name], shown)
    own = {name for _, node in nodes for name in node["outputs"] if name}
    used = {name for _, node in nodes for name in node["inputs"]}
    for shown, node in others:
        for name in dict.fromkeys(node["inputs"]):
            if name in own:
                connect(name, makers[name], shown)
                used.add(name)
    if not nodes:  # what is gone leaves its neighbours
        for shown, node in others:
            for name in dict.fromkeys(node["inputs"]):
                if name in makers and makers[name] is not shown:
                    connect(name, makers[name], shown)
    for shown, node in nodes:
        for name in node["outputs"]:
            is_output = values.get(name, {}).get("role") == "output"
            if name and (name not in used or is_output):
                end = _end(name, values)
                told.append(end)
                connect(name, shown, end)
    shown_others = [shown for shown, node in others if not nodes or ours & {*node["inputs"], *node["outputs"]}]
    return Picture([*ends.values(), *shown_others, *(shown for shown, _ in nodes), *told], wires)


def _is_constant(name: str, values: Mapping[str, Plain]) -> bool:
    return values.get(name, {}).get("role") == "initializer"


def _shown(node: Plain, kind: str, values: Mapping[str, Plain]) -> Shown:
    lines = []
    if kind == NODE:
        lines = [(name, text) for name, text in node["attributes"].items()]
        for name in node["inputs"]:
            if name and _is_constant(name, values):
                constant, dtype = values[name]["constant"] or "", values[name]["type"]
                lines.append(("", constant if constant and len(constant) <= _SHORT else dtype or name))
        if len(lines) > _LINES:
            lines = [*lines[: _LINES - 1], ("", f"{len(lines) - _LINES + 1} more")]
    facts = [("name", node["name"] or "(none)")]
    facts += node["attributes"].items()
    for what, names in (("input", node["inputs"]), ("output", node["outputs"])):
        facts += [(what, value_line(name, values)) for name in names]
    return Shown(kind, node["operator"], lines, facts)


def _end(name: str, values: Mapping[str, Plain]) -> Shown:
    value = values.get(name, {})
    facts = [("value", name), ("type", value.get("type") or "not known")]
    if value.get("role"):
        facts.append(("is", f"an {value['role']} of the graph"))
    return Shown(END, name, [], facts)


def value_line(name: str, values: Mapping[str, Plain]) -> str:
    """Returns a value with what is known of it: `axes int64[2] {1, 2}`."""
    value = values.get(name, {})
    return " ".join(filter(None, (name or "(left out)", value.get("type"), value.get("constant"))))
