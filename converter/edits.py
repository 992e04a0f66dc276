# SPDX-License-Identifier: Apache-2.0
"""A planned change of a model, as data beside the model: nothing is touched before the whole plan is known to hold.

`apply` then changes the model in place. Messages that stay are neither copied nor moved in memory, because a Constant
node may hold gigabytes: new nodes are appended, and the list is sorted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate, compress
from typing import TYPE_CHECKING, Final, NamedTuple

from onnx import NodeProto, SparseTensorProto

from onnx_convert import opsets
from onnx_convert.facts import subgraphs
from onnx_convert.wire import BYTES, prefix

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from onnx import FunctionProto, GraphProto, ModelProto, TensorProto, ValueInfoProto

FunctionKey = tuple[str, str, str]  # domain, name, overload

STRETCH: Final = 4000  # nodes of the source, some 6 MB in the hands of onnx


class Stretch:
    """Nodes in a row: where they begin in their list, and the names of the values that they use and make. Names that
    only nodes of one rewrite use may lack; of nodes that were replaced or dropped, names may remain."""

    __slots__ = ("made", "start", "used")

    def __init__(self, start: int = 0, used: Iterable[str] = (), made: Iterable[str] = ()) -> None:
        self.start = start
        self.used = set(used) - {""}  # what is left out is no value
        self.made = set(made) - {""}


def messages(nodes: Iterable[NodeProto | bytes]) -> list[NodeProto]:
    """The nodes, those that are still serialised parsed."""
    return [NodeProto.FromString(node) if isinstance(node, bytes) else node for node in nodes]


def pack(
    holder: GraphProto | FunctionProto, nodes: Sequence[NodeProto | bytes], stretches: Sequence[Stretch]
) -> list[bytes]:
    """The nodes as serialised messages of the holder's kind that hold nothing else: one for each stretch, one for all
    if there are none."""
    tag = holder.DESCRIPTOR.fields_by_name["node"].number << 3 | BYTES
    packed = []
    starts = [stretch.start for stretch in stretches] or [0]
    for start, stop in zip(starts, [*starts[1:], len(nodes)], strict=True):
        parts: list[bytes] = []
        for node in nodes[start:stop]:
            data = node if isinstance(node, bytes) else node.SerializeToString()
            parts += (prefix(tag, len(data)), data)
        packed.append(b"".join(parts))
    return packed


class Rewrite(NamedTuple):
    """A node of the source and the values that it made, by which adapter it was rewritten, and what it became."""

    node: str  # how people find it
    outputs: list[str]
    adapter: str
    new: Sequence[NodeProto | bytes]

    @property
    def nodes(self) -> list[NodeProto]:
        """What it became, as messages."""
        return messages(self.new)

    def makes(self, name: str) -> bool:
        """Whether the new nodes make a value of that name."""
        return any(name in new.output for new in self.nodes)


@dataclass(slots=True)
class GraphEdit:
    """What changes in one graph or function body.

    `items` is the new node list: source messages that stay and new ones, of which many are serialised, as hardly
    anybody will look into them; `nodes` gives messages. `children` are the edits of the subgraphs of nodes that stay (a
    new node brings its subgraphs converted). `constants` are new initializers; `inputs` new graph inputs; `dropped`
    names of initializers that lost their last use; `value_info` what inference no longer finds.
    """

    graph: GraphProto | FunctionProto
    items: list[NodeProto | bytes]
    changed: bool = False
    children: list[GraphEdit] = field(default_factory=list)
    constants: list[TensorProto] = field(default_factory=list)
    inputs: list[ValueInfoProto] = field(default_factory=list)
    dropped: set[str] = field(default_factory=set)
    value_info: list[ValueInfoProto] = field(default_factory=list)
    refined: list[ValueInfoProto] = field(default_factory=list)  # outputs of whose types inference finds less now
    domains: dict[str, int] = field(default_factory=dict)  # of the new nodes, with the opset if the model has none
    forgotten: set[str] = field(default_factory=set)
    stretches: list[Stretch] = field(default_factory=list)  # of `items`, in a main graph
    stretch: Stretch = field(default_factory=Stretch)  # that is being planned
    _packed: list[bytes] = field(default_factory=list)

    @property
    def nodes(self) -> list[NodeProto]:
        """The new node list as messages, which stay the same from now on."""
        found = messages(self.items)
        self.items = [*found]
        return found

    @property
    def packed(self) -> list[bytes]:
        """The new node list, packed. The plan must be complete, and the nodes simple: to put them into a message
        together costs a fraction of copying one by one."""
        if not self._packed:
            self._packed = pack(self.graph, self.items, self.stretches)
        return self._packed

    def begin(self, stretch: Stretch) -> None:
        """Takes note that what comes now stands for a stretch of the source."""
        self.stretch = Stretch(len(self.items), stretch.used, stretch.made)
        self.stretches.append(self.stretch)

    def discard(self, gone: Container[int]) -> None:
        """Takes nodes off the new list, by identity."""
        stays = [id(node) not in gone for node in self.nodes]
        before = [0, *accumulate(stays)]
        self.items = [*compress(self.items, stays)]
        for stretch in self.stretches:
            stretch.start = before[stretch.start]

    def walk(self) -> Iterator[GraphEdit]:
        """This edit and those of all nested graphs."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def any_change(self) -> bool:
        """Whether anything is different in this graph or below it."""
        return any(
            edit.changed
            or any((edit.constants, edit.inputs, edit.dropped, edit.value_info, edit.refined, edit.forgotten))
            for edit in self.walk()
        )


@dataclass
class ModelEdit:
    """What changes in a model: its graphs, the functions that stay, and its stamps."""

    graph: GraphEdit
    functions: list[GraphEdit] = field(default_factory=list)
    training: list[GraphEdit] = field(default_factory=list)
    removed_functions: set[FunctionKey] = field(default_factory=set)
    opsets: dict[str, int] = field(default_factory=dict)  # the version by domain ("" for ai.onnx) afterwards
    ir_version: int = 0
    simple: bool = False  # whether all nodes, those that stay and those that are new, are (see `opsets.is_simple`)

    @property
    def bodies(self) -> tuple[GraphEdit, ...]:
        """The main graph, the functions that stay, and the graphs of training information."""
        return (self.graph, *self.functions, *self.training)

    def count(self) -> int:
        """The number of nodes afterwards, subgraphs and functions included."""
        edits = [edit for body in self.bodies for edit in body.walk()]
        return sum(len(edit.items) + (0 if self.simple else _nested(edit)) for edit in edits)

    @property
    def any_change(self) -> bool:
        """Whether any node, constant or function is different (the stamps aside)."""
        return bool(self.removed_functions) or any(edit.any_change for edit in self.bodies)


def _nested(edit: GraphEdit) -> int:
    """The nodes in subgraphs that have no edit of their own: those of new nodes."""
    known = {id(child.graph) for child in edit.children}
    looked_into = [node for node in edit.items if not isinstance(node, bytes)]
    holders = [node for node in looked_into if opsets.may_hold_graphs(node.op_type, opsets.normalise(node.domain))]
    graphs = [graph for node in holders for _, _, graph in subgraphs(node)]
    return sum(_size(graph) for graph in graphs if id(graph) not in known)


def _size(graph: GraphProto) -> int:
    return len(graph.node) + sum(_size(inner) for node in graph.node for _, _, inner in subgraphs(node))


def function_key(function: FunctionProto) -> FunctionKey:
    """What identifies a model-local function: domain, name and overload (older onnx has no overload)."""
    return opsets.normalise(function.domain), function.name, getattr(function, "overload", "")


def stamp(holder: ModelProto | FunctionProto, versions: dict[str, int], *bodies: GraphEdit | None) -> None:
    """Writes opset versions into the imports of a model or function, and adds those that its new nodes need."""
    imported = set()
    for entry in holder.opset_import:
        domain = opsets.normalise(entry.domain)
        imported.add(domain)
        if domain in versions:
            entry.version = versions[domain]
    for edit in (nested for body in bodies if body is not None for nested in body.walk()):
        for domain, version in edit.domains.items():
            if domain not in imported:
                imported.add(domain)
                holder.opset_import.add(domain=domain, version=versions.get(domain, version))


def apply(edit: ModelEdit, model: ModelProto) -> None:
    """Carries out a plan on the model that it was made for."""
    for graph in edit.bodies:
        apply_graph(graph, simple=edit.simple)
    for function_edit in edit.functions:
        stamp(function_edit.graph, edit.opsets, function_edit)
    for index in reversed(range(len(model.functions))):
        if function_key(model.functions[index]) in edit.removed_functions:
            del model.functions[index]
    if not model.opset_import:  # IR versions 1 and 2 had none
        model.opset_import.add(domain=opsets.AI_ONNX, version=edit.opsets[opsets.AI_ONNX])
    stamp(model, edit.opsets, edit.graph, *edit.training)
    if edit.ir_version:
        model.ir_version = edit.ir_version


def apply_graph(edit: GraphEdit, *, simple: bool = False) -> None:
    """Carries out the plan of one graph and of those nested in it. `simple` says that all nodes are."""
    for child in edit.children:
        apply_graph(child)
    graph = edit.graph
    if edit.changed:
        if simple:
            del graph.node[:]
            for nodes in edit.packed:
                graph.MergeFromString(nodes)
        else:
            _replace_nodes(graph, edit.nodes)
    if edit.dropped:
        for repeated in (graph.initializer, graph.sparse_initializer, graph.input):
            for index in reversed(range(len(repeated))):
                if _name(repeated[index]) in edit.dropped:
                    del repeated[index]
    if edit.constants:
        graph.initializer.extend(edit.constants)
    if edit.inputs:
        graph.input.extend(edit.inputs)
    if edit.forgotten:
        for index in reversed(range(len(graph.value_info))):
            if graph.value_info[index].name in edit.forgotten:
                del graph.value_info[index]
    if edit.value_info:
        graph.value_info.extend(edit.value_info)
    for value in edit.refined:
        next(output for output in graph.output if output.name == value.name).type.CopyFrom(value.type)


def _name(item: TensorProto | SparseTensorProto | ValueInfoProto) -> str:
    return item.values.name if isinstance(item, SparseTensorProto) else item.name


def _replace_nodes(graph: GraphProto | FunctionProto, nodes: list[NodeProto]) -> None:
    """Makes `nodes` the node list. Those that are in it already may be large and are not copied."""
    held = graph.node
    present = list(held)  # the wrappers stay alive, hence their identities hold
    staying = {id(node) for node in present}
    position: dict[int, int] = {}
    added = []
    for place, node in enumerate(nodes):
        if id(node) in staying:
            position[id(node)] = place
        else:
            held.append(node)
            added.append(held[-1])
            position[id(added[-1])] = place
    held.sort(key=lambda node: position.get(id(node), len(nodes)))
    del held[len(nodes) :]
