# SPDX-License-Identifier: Apache-2.0
"""Brings graphs to the target: main graph, subgraphs and function bodies, node by node, in order.

There is no loop over opsets: a node that crosses nothing but compatible boundaries costs one dictionary look-up. The
model is only read: what is to change is returned as an patch.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from onnx import AttributeProto, NodeProto, TensorProto

from onnx_convert.analysis import folding
from onnx_convert.analysis.facts import Facts
from onnx_convert.model import node_list, patch
from onnx_convert.model.graphs import name_of, subgraphs, used_names
from onnx_convert.model.patch import Rewrite, apply_graph
from onnx_convert.report import Refusal
from onnx_convert.rewrite import legality, registry
from onnx_convert.rewrite.legalizer import Ending, Legalized, Legalizer
from onnx_convert.rewrite.node import Refuse
from onnx_convert.rewrite.scope import Scope
from onnx_convert.spec import opsets, signatures

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onnx import FunctionProto, GraphProto

    from onnx_convert.model.functions import FunctionKey
    from onnx_convert.model.node_list import Chunk
    from onnx_convert.options import Options
    from onnx_convert.report import Step
    from onnx_convert.rewrite.context import Session
    from onnx_convert.rewrite.registry import Crossing
    from onnx_convert.spec.opsets import Imports

# A subgraph that is at the target already, while the node that holds it is not. An adapter may put it into a graph of
# its own making, whose nodes still have to get there; the name of a graph means nothing, so it can hold the mark, one
# that no model has.
_DONE: Final = f"\0{os.urandom(8).hex()}:"


@dataclass
class Work:
    """What came of one body, the main graph or a function, with everything nested in it."""

    steps: list[Step] = field(default_factory=list)  # each as often as it was gone
    refusals: list[Refusal] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    unknown: bool = False  # a refusal may go away if the facts of a call are known
    inlined: set[FunctionKey] = field(default_factory=set)
    orphaned: list[str] = field(default_factory=list)  # values that a rewrite may have left without a use


class Fate(NamedTuple):
    """What happens to every node of one operator: computed once an operator."""

    crossing: Crossing | None = None
    signature: signatures.Signature | None = None  # to be judged by, even if no rewrite is due
    narrower: bool = False
    may_hold_graphs: bool = False
    unknown_operator: bool = False
    undecided: bool = False  # a domain that onnx does not define, and nobody says a word about the operator

    @property
    def stays(self) -> bool:
        """Whether nodes of the operator need not even be looked at."""
        return not (self.crossing or self.signature or self.may_hold_graphs or self.unknown_operator or self.undecided)


_STAYS: Final = Fate()


class Driver:
    """One conversion of one model. `expanded` holds the functions that are put in place of their calls; `simple` says
    that all nodes of the model are (see `opsets.is_simple`)."""

    def __init__(
        self,
        session: Session,
        target: dict[str, int],
        options: Options,
        functions: dict[FunctionKey, FunctionProto],
        expanded: set[FunctionKey],
        *,
        simple: bool,
    ) -> None:
        self.session = session
        self.simple = simple
        self.target = target
        self.options = options
        self.rewrites: list[Rewrite] = []
        self.folded: list[NodeProto] = []  # nodes whose value is an initializer now
        self.legalizer = Legalizer(target, options, functions, expanded)
        self._fates: dict[tuple[str, str, int], Fate] = {}
        self._work = Work()

    @property
    def writes_simple_nodes(self) -> bool:
        """Whether all new nodes can be copied without a look into them."""
        return all(opsets.is_simple(operator, domain) for domain, operator in self.legalizer.endings)

    def body(self, scope: Scope, chunks: Iterable[Chunk] = ()) -> Work:
        """Plans the main graph, with its chunks, or a function body; the plan is `scope.patch`."""
        work = self._work = Work()
        self._graph(scope, chunks)
        return work

    # ---- graphs

    def _graph(self, scope: Scope, chunks: Iterable[Chunk] = ()) -> None:
        patch, items = scope.patch, scope.patch.items
        ahead = {chunk.start: chunk for chunk in chunks}
        fates: dict[tuple[str, str], tuple[Fate, int]] = {}
        for index, node in enumerate(scope.graph.node):
            if index in ahead:
                patch.begin(ahead[index])
            operator = node.domain, node.op_type
            if operator not in fates:
                domain = opsets.canonical_domain(node.domain)
                opset = scope.imports.get(domain, 0)
                fates[operator] = self._fate(domain, node.op_type, opset), opset
            fate, opset = fates[operator]
            if fate is not _STAYS:
                self._node(index, node, opset, fate, scope)
            elif self.simple and patch.changed:
                items.append(node.SerializeToString())  # which is due anyway; a message in hand costs more
            else:
                items.append(node)
        if scope.parent is not None:
            if self.session.ir_after <= opsets.INPUTS_ONLY:
                self._hoist(scope)
            if patch.changed:
                scope.keep_output_types()
        used = self.session.used
        patch.constants += [tensor for name, tensor in scope.new_constants.items() if name in used]

    def _hoist(self, scope: Scope) -> None:
        """Moves the initializers of a subgraph to the main graph, which alone has any up to IR version 3.

        Other branches may use the names for something else, so the initializers get new ones.
        """
        aliases = []
        for tensor in scope.graph.initializer:
            moved = TensorProto()
            moved.CopyFrom(tensor)
            moved.name = self.session.names.fresh(tensor.name)
            scope.constant_home.patch.constants.append(moved)
            scope.patch.dropped.add(tensor.name)
            aliases.append(NodeProto(op_type="Identity", input=[moved.name], output=[tensor.name]))
        if aliases:
            scope.patch.items[:0] = aliases
            scope.patch.changed = True

    def _fate(self, domain: str, operator: str, opset: int) -> Fate:
        key = domain, operator, opset
        if key in self._fates:
            return self._fates[key]
        holds = opsets.may_hold_graphs(operator, domain)
        stop = self.target.get(domain)
        if (domain, operator) in self.legalizer.function_names or stop is None:
            fate = Fate(may_hold_graphs=True)
        elif (
            opsets.is_known(domain)
            and opsets.schema_at(operator, opset, domain) is None
            and not registry.is_experimental(operator, domain)
        ):
            fate = Fate(unknown_operator=True)
        elif opset == stop:
            fate = Fate(may_hold_graphs=holds)
        elif not opsets.is_known(domain) and not registry.has_operator(operator, domain):
            fate = Fate(undecided=True)
        else:
            crossing = registry.route(domain, operator, opset, stop)
            downhill = stop < opset and bool(registry.crossings(domain, operator, opset, stop))
            signature = signatures.signature_of(operator, stop, domain) if downhill and crossing is None else None
            narrower = signature is not None and signatures.is_narrower(operator, opset, stop, domain)
            fate = Fate(crossing, signature, narrower, holds)
        self._fates[key] = _STAYS if fate.stays else fate
        return self._fates[key]

    def _node(self, index: int, node: NodeProto, opset: int, fate: Fate, scope: Scope) -> None:
        if self.legalizer.expands(node):
            self._replace(node, node, opset, scope)
        elif fate.unknown_operator:
            where = f"opset {opset}" if opset else "any opset: its domain is not imported"
            self._refuse(node, None, Refuse(f"not an operator of {opsets.shown(node.domain)} at {where}"), scope)
        elif fate.undecided:
            reason = f"what becomes of it between {node.domain} {opset} and {self.target[node.domain]} is not decided"
            self._refuse(node, None, Refuse(reason, "register an adapter, or declare it compatible"), scope)
        elif fate.crossing is not None:
            moving = node
            if fate.may_hold_graphs and any(subgraphs(node)):
                moving = NodeProto()
                moving.CopyFrom(node)
                for child in self._children(index, moving, scope):
                    apply_graph(child)
                _mark(moving)
            self._replace(node, moving, opset, scope)
        else:
            if fate.may_hold_graphs:
                scope.patch.children += self._children(index, node, scope)
            if fate.signature is None or self._is_legal(node, fate, scope):
                scope.patch.items.append(node)
                if fate.signature is not None and not fate.signature.infers:
                    scope.keep_types(node)
            else:
                self._replace(node, node, opset, scope)

    def _children(self, index: int, node: NodeProto, scope: Scope) -> list[patch.GraphPatch]:
        found = []
        for attribute, position, graph in subgraphs(node):
            if graph.name.startswith(_DONE):
                continue
            facts = scope.facts.child(index, attribute, position, len(graph.node))
            child = Scope(graph, self.session, facts, scope.imports, scope, _path(scope, node, attribute))
            self._graph(child)
            found.append(child.patch)
        return found

    def _nested(self, node: NodeProto, imports: Imports, scope: Scope) -> None:
        """Brings the subgraphs of a new node to the target, in place, unless they are there already."""
        for attribute, _, graph in subgraphs(node):
            if graph.name.startswith(_DONE):
                continue
            facts = Facts(partial(_itself, graph), len(graph.node))
            child = Scope(graph, self.session, facts, imports, scope, _path(scope, node, attribute))
            for inner in graph.node:
                child.wrote(inner, imports.get(opsets.canonical_domain(inner.domain), 1))
            self._graph(child)
            apply_graph(child.patch)
        _mark(node)

    # ---- one node

    def _is_legal(self, node: NodeProto, fate: Fate, scope: Scope) -> bool:
        assert fate.signature is not None
        unknown: list[str] = []
        stop = self.target[opsets.canonical_domain(node.domain)]
        if legality.check(node, fate.signature, stop, scope.type_str, unknown if fate.narrower else None) is not None:
            return False
        self._assume(node, unknown, scope)
        return True

    def _assume(self, node: NodeProto, unknown: list[str], scope: Scope) -> None:
        """Takes note that the dtypes of some values are not known, and taken to be legal at the target."""
        stop = self.target.get(opsets.canonical_domain(node.domain), 0)
        for name in dict.fromkeys(unknown):
            if self.options.strict:
                reason = f"the dtype of {name!r} is not known, and opset {stop} takes fewer than the model's opset"
                self._refuse(node, None, Refuse(reason, "leave out --strict to have it assumed", unknown=True), scope)
            shown = f"{node.op_type} {name_of(node)!r}"
            self._work.assumed.append(f"{shown}: the dtype of {name!r} is legal at opset {stop}")

    def _replace(self, source: NodeProto, moving: NodeProto, opset: int, scope: Scope) -> None:
        """Puts what the node becomes at the target in its place; if it cannot get there, records why."""
        legalized = Legalized()
        try:
            self.legalizer.legalize(moving, opset, scope, legalized, self._nested)
        except Refuse as refuse:
            if not self._fold(source, scope):
                self._refuse(source, legalized.crossing, refuse, scope)
                scope.patch.items.append(source)
            return
        work, patch = self._work, scope.patch
        work.steps += legalized.steps
        work.inlined |= legalized.inlined
        if legalized.unknown:
            self._assume(source, legalized.unknown, scope)
        adapter = legalized.steps[0].rewrite if legalized.steps else ""
        used = legalized.used if opsets.AI_ONNX in scope.imports else None
        if used is None:
            used = self._look_into(legalized, scope)
            legalized.orphaned = [name for name in source.input if name and name not in used]
        self.session.used.update(used)
        patch.chunk.used.update(used)
        work.orphaned += legalized.orphaned
        self.rewrites.append(
            Rewrite(name_of(source), source.output[:], adapter, legalized.nodes, source, legalized.steps)
        )
        patch.items += legalized.nodes
        patch.changed = True

    def _look_into(self, legalized: Legalized, scope: Scope) -> set[str]:
        """Does for each new node what its graph needs; what the nodes use."""
        used: set[str] = set()
        legalized.nodes = nodes = node_list.messages(legalized.nodes)
        for node in nodes:
            scope.patch.chunk.made.update(node.output)
            ending = self.legalizer.ending(node)
            if ending.plain and opsets.AI_ONNX in scope.imports:
                used.update(node.input)
            else:
                self._finish(node, ending, scope)
                used |= used_names(node)
            if legalized.inlined and folding.is_pure(node):
                self._work.orphaned += node.output
        used.discard("")
        return used

    def _finish(self, node: NodeProto, ending: Ending, scope: Scope) -> None:
        """What the graph has to know of a new node."""
        if ending.stop is not None:
            scope.patch.domains.setdefault(ending.domain, ending.stop)
        if not ending.infers:
            scope.keep_types(node)
        if ending.may_hold_graphs:
            _unmark(node)

    def _fold(self, node: NodeProto, scope: Scope) -> bool:
        """Puts a constant in place of a node that cannot be legalized but only computes one, as for axes and shapes."""
        if scope.is_function or not folding.is_pure(node) or len(node.output) != 1:
            return False
        if node.op_type in ("Shape", "Size"):
            return False  # these look at a value, whose dtype may not exist at the target
        array = scope.constant(node.output[0])
        type_str = scope.type_str(node.output[0])
        if array is None or (type_str and signatures.first_opset_of(type_str) > self.target[opsets.AI_ONNX]):
            return False
        if not scope.become_constant(node.output[0], array):
            constant = scope.share(array, f"{name_of(node)}/constant")
            self.session.used.add(constant)
            scope.patch.chunk.used.add(constant)
            scope.patch.items.append(NodeProto(op_type="Identity", input=[constant], output=node.output))
        self._work.orphaned += (*node.input, node.output[0])
        self.folded.append(node)
        scope.patch.changed = True
        return True

    def _refuse(self, node: NodeProto, crossing: Crossing | None, why: Refuse, scope: Scope) -> None:
        domain = opsets.canonical_domain(node.domain)
        start, stop = scope.imports.get(domain, 0), self.target.get(domain, 0)
        direction = opsets.UP if start <= stop else opsets.DOWN
        self._work.unknown |= why.unknown
        self._work.refusals.append(
            Refusal(
                operator=node.op_type,
                domain=opsets.shown(domain),
                node=name_of(node),
                boundary=crossing.boundary if crossing else why.boundary,
                direction=crossing.direction if crossing else direction,
                reason=why.reason,
                remedy=why.remedy,
                path=scope.path,
            )
        )


def _itself(graph: GraphProto) -> GraphProto:
    """What is known of a new subgraph: what it states."""
    return graph


def _path(scope: Scope, node: NodeProto, attribute: int) -> str:
    return f"{scope.path}/{name_of(node)}.{node.attribute[attribute].name}".lstrip("/")


def _mark(node: NodeProto) -> None:
    for _, _, graph in subgraphs(node):
        if not graph.name.startswith(_DONE):
            graph.name = _DONE + graph.name


def _unmark(node: NodeProto) -> None:
    """Takes the marks off all graphs in a node."""
    for attribute in node.attribute:
        for graph in (attribute.g,) if attribute.type == AttributeProto.GRAPH else attribute.graphs:
            _unmark_graph(graph)


def _unmark_graph(graph: GraphProto) -> None:
    graph.name = graph.name.removeprefix(_DONE)
    for node in graph.node:
        if opsets.may_hold_graphs(node.op_type, opsets.canonical_domain(node.domain)):
            _unmark(node)
