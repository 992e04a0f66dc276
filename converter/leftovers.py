# SPDX-License-Identifier: Apache-2.0
"""Removes constants that lost their last use through a rewrite, as when axes go from an input into an attribute.

Only what we orphaned goes: an unused node or initializer of the source's own stays.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from onnx import GraphProto, NodeProto, TensorProto

from onnx_convert import constants
from onnx_convert.scope import used_names

if TYPE_CHECKING:
    from onnx_convert.edits import GraphEdit
    from onnx_convert.scope import Scope


def sweep(roots: list[GraphEdit], lost: list[tuple[Scope, str]]) -> None:
    """Drops what `lost` names, in the graph where it is defined, if nothing below `roots` uses it any more."""
    candidates = [(home, name) for scope, name in lost if (home := _home(scope, name)) is not None]
    if not candidates:
        return
    uses = _count(roots)
    gone: set[int] = set()
    touched: list[Scope] = []
    while candidates:
        scope, name = candidates.pop()
        if uses[name] or name in scope.edit.dropped:
            continue
        source = scope.source(name)
        if isinstance(source, TensorProto):
            scope.edit.dropped.add(name)
        elif isinstance(source, NodeProto) and constants.is_pure(source) and not any(uses[o] for o in source.output):
            if id(source) in gone:
                continue
            gone.add(id(source))
            touched.append(scope)
            for used in source.input:
                uses[used] -= 1
                if (home := _home(scope, used)) is not None:
                    candidates.append((home, used))
        else:
            continue
        scope.edit.changed = True
        scope.edit.forgotten.add(name)
    for scope in touched:
        scope.edit.nodes[:] = [node for node in scope.edit.nodes if id(node) not in gone]


def _home(scope: Scope | None, name: str) -> Scope | None:
    """The scope that defines a name; None for a name that no source defines."""
    while scope is not None and name and not scope.defines(name):
        scope = scope.parent
    return scope if name else None


def _count(roots: list[GraphEdit]) -> Counter[str]:
    """How often each name is used. Nodes that stay are counted with their subgraphs' edits, new ones as they are."""
    uses: Counter[str] = Counter()
    for edit in (nested for root in roots for nested in root.walk()):
        staying = {id(child.graph) for child in edit.children}
        for node in edit.nodes:
            uses.update(name for name in node.input if name)
            if not staying or not any(id(graph) in staying for graph in _graphs(node)):
                uses.update(used_names(node).difference(node.input))
        uses.update(value if isinstance(value, str) else value.name for value in edit.graph.output)
    return uses


def _graphs(node: NodeProto) -> list[GraphProto]:
    return [graph for attribute in node.attribute for graph in (attribute.g, *attribute.graphs)]
