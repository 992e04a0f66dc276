# SPDX-License-Identifier: Apache-2.0
"""Removes constants that lost their last use through a rewrite, as when axes go from an input into an attribute.

Only what we orphaned goes: an unused node or initializer of the source's own stays.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from onnx import GraphProto, NodeProto

from onnx_convert.analysis import folding
from onnx_convert.model.graphs import subgraphs, used_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onnx import TensorProto

    from onnx_convert.model.patch import GraphPatch

    Definition = tuple[GraphPatch, NodeProto | TensorProto]


def sweep(roots: list[GraphPatch], orphaned: Iterable[str], *, overridable: bool) -> list[NodeProto]:
    """Drops the constants among the values `orphaned` that nothing uses any more, and then what only they used. Returns
    the nodes that went.

    `overridable` says that an initializer which is also an input is none.
    """
    candidates = list(orphaned)
    if not candidates:
        return []
    patches = [nested for root in roots for nested in root.walk()]
    uses = _count(patches)
    definitions = _define(patches, overridable=overridable)
    gone: dict[int, NodeProto] = {}
    while candidates:
        name = candidates.pop()
        patch, source = definitions.get(name, (None, None))
        if patch is None or uses[name] or (isinstance(source, NodeProto) and any(uses[o] for o in source.output)):
            continue
        del definitions[name]
        patch.stale_value_info.add(name)
        if isinstance(source, NodeProto):
            gone[id(source)] = source
            uses.subtract(name for name in source.input if name)
            candidates += source.input
        else:
            patch.dropped.add(name)
            patch.constants[:] = [tensor for tensor in patch.constants if tensor.name != name]
    for patch in patches:
        if patch.stale_value_info:
            patch.nodes.discard(gone)
            patch.value_info[:] = [value for value in patch.value_info if value.name not in patch.stale_value_info]
    return list(gone.values())


def _define(patches: list[GraphPatch], *, overridable: bool) -> dict[str, Definition]:
    """Returns what makes each constant, in the graphs as they will be."""
    found: dict[str, Definition] = {}
    for patch in patches:
        for node in patch.nodes:
            if folding.is_pure(node):
                found.update((output, (patch, node)) for output in node.output)
        graph = patch.graph
        if isinstance(graph, GraphProto):
            inputs = {value.name for value in graph.input} if overridable else set()
            held = (*graph.initializer, *patch.constants)
            found.update((tensor.name, (patch, tensor)) for tensor in held if tensor.name not in inputs)
    return found


def _count(patches: list[GraphPatch]) -> Counter[str]:
    """Returns how often each name is used. Nodes that stay are counted with their subgraphs' patches, new ones as they
    are."""
    uses: Counter[str] = Counter()
    for patch in patches:
        staying = {id(child.graph) for child in patch.children}
        for node in patch.nodes:
            uses.update(name for name in node.input if name)
            inner = used_names(node).difference(node.input)
            if inner and not any(id(graph) in staying for _, _, graph in subgraphs(node)):
                uses.update(inner)
        uses.update(value if isinstance(value, str) else value.name for value in patch.graph.output)
    return uses
