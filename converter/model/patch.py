# SPDX-License-Identifier: Apache-2.0
"""A planned change of a model, as data beside the model: nothing is touched before the whole plan is known to hold.

`apply` then changes the model in place. Messages that stay are neither copied nor moved in memory, because a Constant
node may hold gigabytes: new nodes are appended, and the list is sorted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from onnx import GraphProto, NodeProto, SparseTensorProto, ValueInfoProto

from onnx_convert.model.functions import function_key
from onnx_convert.model.graphs import subgraphs
from onnx_convert.spec import opsets
from onnx_convert.spec.types import tensor_type

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from onnx import FunctionProto, ModelProto, TensorProto

    from onnx_convert.model.functions import FunctionKey
    from onnx_convert.model.node_list import NodeList
    from onnx_convert.report import Step


class Rewrite(NamedTuple):
    """A node of the source and the values that it made, by which adapter it was rewritten, what it became, in which
    steps. Replays of one rewrite share the tuple of steps."""

    node: str  # how people find it
    outputs: list[str]
    adapter: str
    nodes: Sequence[NodeProto]
    source: NodeProto
    steps: Sequence[Step] = ()

    def makes(self, name: str) -> bool:
        """Returns whether the new nodes make a value of that name."""
        return any(name in new.output for new in self.nodes)


@dataclass(slots=True)
class GraphPatch:
    """The changes in one graph or function body.

    `nodes` is the new node list. `children` are the patches of the subgraphs of nodes that stay (a new node brings its
    subgraphs converted). `constants` are new initializers; `inputs` new graph inputs; `dropped` names of initializers
    that lost their last use, `dropped_inputs` of those that stay, but not as inputs; `value_info` what inference no
    longer finds.
    """

    graph: GraphProto | FunctionProto
    nodes: NodeList
    children: list[GraphPatch] = field(default_factory=list)
    constants: list[TensorProto] = field(default_factory=list)
    inputs: list[ValueInfoProto] = field(default_factory=list)
    dropped: set[str] = field(default_factory=set)
    dropped_inputs: set[str] = field(default_factory=set)
    value_info: list[ValueInfoProto] = field(default_factory=list)
    refined: list[ValueInfoProto] = field(default_factory=list)  # outputs of whose types inference finds less now
    domains: dict[str, int] = field(default_factory=dict)  # of the new nodes, with the opset if the model has none
    stale_value_info: set[str] = field(default_factory=set)

    def walk(self) -> Iterator[GraphPatch]:
        """Yields this patch and those of all nested graphs."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def any_change(self) -> bool:
        """Whether anything is different in this graph or below it."""
        return any(
            patch.nodes.changed
            or any(
                (
                    patch.constants,
                    patch.inputs,
                    patch.dropped,
                    patch.dropped_inputs,
                    patch.value_info,
                    patch.refined,
                    patch.stale_value_info,
                )
            )
            for patch in self.walk()
        )


@dataclass
class ModelPatch:
    """The changes in a model: its graphs, the functions that stay, and its stamps."""

    graph: GraphPatch
    functions: list[GraphPatch] = field(default_factory=list)
    training: list[GraphPatch] = field(default_factory=list)
    removed_functions: set[FunctionKey] = field(default_factory=set)
    opsets: dict[str, int] = field(default_factory=dict)  # the version by domain ("" for ai.onnx) afterwards
    ir_version: int = 0
    simple: bool = False  # whether all nodes, those that stay and those that are new, are (see `opsets.is_simple`)

    def restated(
        self,
        stale: Collection[str] = (),
        value_info: Sequence[ValueInfoProto] = (),
        refined: Sequence[ValueInfoProto] = (),
        *,
        bare: bool = False,
    ) -> ModelPatch:
        """Returns the patch with other statements about values of the main graph: without those of `stale`, with the
        types of inner values `value_info` and of outputs `refined`. `bare` leaves out all that the source states of
        inner values, in nested graphs too."""
        graph = _without_statements(self.graph) if bare else self.graph
        graph = replace(
            graph,
            stale_value_info=graph.stale_value_info.union(stale),
            value_info=[*self.graph.value_info, *value_info],
            refined=[*self.graph.refined, *refined],
        )
        return replace(self, graph=graph)

    @property
    def bodies(self) -> tuple[GraphPatch, ...]:
        """The main graph, the functions that stay, and the graphs of training information."""
        return (self.graph, *self.functions, *self.training)

    def count(self) -> int:
        """Returns the number of nodes afterwards, subgraphs and functions included."""
        patches = [patch for body in self.bodies for patch in body.walk()]
        return sum(len(patch.nodes) + (0 if self.simple else _nested(patch)) for patch in patches)

    @property
    def any_change(self) -> bool:
        """Whether any node, constant or function is different (the stamps aside)."""
        return bool(self.removed_functions) or any(patch.any_change for patch in self.bodies)


def _without_statements(patch: GraphPatch, *, nested: bool = False) -> GraphPatch:
    """Returns the patch of a graph and those nested in it without what the source states of inner values, and of the
    sizes of outputs of nested graphs."""
    stated = {value.name for value in getattr(patch.graph, "value_info", ())}
    children = [_without_statements(child, nested=True) for child in patch.children]
    refined = list(patch.refined)
    for value in patch.graph.output if nested and isinstance(patch.graph, GraphProto) else ():
        if value.type.tensor_type.HasField("shape"):
            refined.append(ValueInfoProto(name=value.name, type=tensor_type(value.type.tensor_type.elem_type)))
    known = {id(child.graph) for child in patch.children}
    new = {
        id(node): _unstated(node)
        for node in patch.nodes.holders()
        if any(id(graph) not in known for _, _, graph in subgraphs(node))
    }
    nodes = patch.nodes.exchanged(new) if new else patch.nodes
    stale = patch.stale_value_info | stated
    return replace(patch, nodes=nodes, children=children, refined=refined, stale_value_info=stale)


def _unstated(node: NodeProto) -> NodeProto:
    """Returns a new node without statements in its graphs, which may be copies of those of the source."""
    copy = NodeProto()
    copy.CopyFrom(node)
    pending = [graph for _, _, graph in subgraphs(copy)]
    while pending:
        graph = pending.pop()
        del graph.value_info[:]
        for value in graph.output:
            if value.type.HasField("tensor_type"):
                value.type.tensor_type.ClearField("shape")
        pending += [inner for held in graph.node for _, _, inner in subgraphs(held)]
    return copy


def _nested(patch: GraphPatch) -> int:
    """Returns the number of nodes in subgraphs that have no patch of their own: those of new nodes."""
    known = {id(child.graph) for child in patch.children}
    graphs = [graph for node in patch.nodes.holders() for _, _, graph in subgraphs(node)]
    return sum(_size(graph) for graph in graphs if id(graph) not in known)


def _size(graph: GraphProto) -> int:
    return len(graph.node) + sum(_size(inner) for node in graph.node for _, _, inner in subgraphs(node))


def stamp(holder: ModelProto | FunctionProto, versions: dict[str, int], *bodies: GraphPatch | None) -> None:
    """Writes opset versions into the imports of a model or function, and adds those that its new nodes need."""
    imported = set()
    for entry in holder.opset_import:
        domain = opsets.canonical_domain(entry.domain)
        imported.add(domain)
        if domain in versions:
            entry.version = versions[domain]
    for patch in (nested for body in bodies if body is not None for nested in body.walk()):
        for domain, version in patch.domains.items():
            if domain not in imported:
                imported.add(domain)
                holder.opset_import.add(domain=domain, version=versions.get(domain, version))


def apply(patch: ModelPatch, model: ModelProto) -> None:
    """Carries out a plan on the model that it was made for."""
    for graph in patch.bodies:
        apply_graph(graph, simple=patch.simple)
    for function_patch in patch.functions:
        stamp(function_patch.graph, patch.opsets, function_patch)
    for index in reversed(range(len(model.functions))):
        if function_key(model.functions[index]) in patch.removed_functions:
            del model.functions[index]
    if not model.opset_import:  # IR versions 1 and 2 had none
        model.opset_import.add(domain=opsets.AI_ONNX, version=patch.opsets[opsets.AI_ONNX])
    stamp(model, patch.opsets, patch.graph, *patch.training)
    if patch.ir_version:
        model.ir_version = patch.ir_version


def apply_graph(patch: GraphPatch, *, simple: bool = False) -> None:
    """Carries out the plan of one graph and of those nested in it. `simple` says that all nodes are."""
    for child in patch.children:
        apply_graph(child)
    graph = patch.graph
    patch.nodes.write(simple=simple)
    if patch.dropped:
        for repeated in (graph.initializer, graph.sparse_initializer, graph.input):
            for index in reversed(range(len(repeated))):
                if _name(repeated[index]) in patch.dropped:
                    del repeated[index]
    if patch.dropped_inputs:
        for index in reversed(range(len(graph.input))):
            if graph.input[index].name in patch.dropped_inputs:
                del graph.input[index]
    if patch.constants:
        graph.initializer.extend(patch.constants)
    if patch.inputs:
        graph.input.extend(patch.inputs)
    if patch.stale_value_info:
        for index in reversed(range(len(graph.value_info))):
            if graph.value_info[index].name in patch.stale_value_info:
                del graph.value_info[index]
    if patch.value_info:
        graph.value_info.extend(patch.value_info)
    for value in patch.refined:
        next(output for output in graph.output if output.name == value.name).type.CopyFrom(value.type)


def _name(item: TensorProto | SparseTensorProto | ValueInfoProto) -> str:
    return item.values.name if isinstance(item, SparseTensorProto) else item.name
