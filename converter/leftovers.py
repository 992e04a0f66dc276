# SPDX-License-Identifier: Apache-2.0
"""Removes constants that lost their last use through a rewrite, as when axes go from an input into an attribute.

Only what we orphaned goes: an unused node or initializer of the source's own stays.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from onnx import GraphProto, NodeProto

from onnx_convert import constants
from onnx_convert.facts import subgraphs, used_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onnx import TensorProto

    from onnx_convert.edits import GraphEdit

    Definition = tuple[GraphEdit, NodeProto | TensorProto]


def sweep(roots: list[GraphEdit], lost: Iterable[str], *, overridable: bool) -> None:
    """Drops the constants among the values `lost` that nothing uses any more, and then what only they used.

    `overridable` says that an initializer which is also an input is none.
    """
    candidates = list(lost)
    if not candidates:
        return
    edits = [nested for root in roots for nested in root.walk()]
    uses = _count(edits)
    definitions = _define(edits, overridable=overridable)
    gone: set[int] = set()
    while candidates:
        name = candidates.pop()
        edit, source = definitions.get(name, (None, None))
        if edit is None or uses[name] or (isinstance(source, NodeProto) and any(uses[o] for o in source.output)):
            continue
        del definitions[name]
        edit.changed = True
        edit.forgotten.add(name)
        if isinstance(source, NodeProto):
            gone.add(id(source))
            uses.subtract(name for name in source.input if name)
            candidates += source.input
        else:
            edit.dropped.add(name)
            edit.constants[:] = [tensor for tensor in edit.constants if tensor.name != name]
    for edit in edits:
        if edit.forgotten:
            edit.discard(gone)
            edit.value_info[:] = [value for value in edit.value_info if value.name not in edit.forgotten]


def _define(edits: list[GraphEdit], *, overridable: bool) -> dict[str, Definition]:
    """What makes each constant, in the graphs as they will be."""
    found: dict[str, Definition] = {}
    for edit in edits:
        for node in edit.nodes:
            if constants.is_pure(node):
                found.update((output, (edit, node)) for output in node.output)
        graph = edit.graph
        if isinstance(graph, GraphProto):
            inputs = {value.name for value in graph.input} if overridable else set()
            held = (*graph.initializer, *edit.constants)
            found.update((tensor.name, (edit, tensor)) for tensor in held if tensor.name not in inputs)
    return found


def _count(edits: list[GraphEdit]) -> Counter[str]:
    """How often each name is used. Nodes that stay are counted with their subgraphs' edits, new ones as they are."""
    uses: Counter[str] = Counter()
    for edit in edits:
        staying = {id(child.graph) for child in edit.children}
        for node in edit.nodes:
            uses.update(name for name in node.input if name)
            inner = used_names(node).difference(node.input)
            if inner and not any(id(graph) in staying for _, _, graph in subgraphs(node)):
                uses.update(inner)
        uses.update(value if isinstance(value, str) else value.name for value in edit.graph.output)
    return uses
