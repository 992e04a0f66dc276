# SPDX-License-Identifier: Apache-2.0
"""Brings graphs to the target: main graph, subgraphs and function bodies, node by node, in order.

There is no loop over opsets: a node that crosses nothing but compatible boundaries costs one dictionary look-up. The
model is only read: what is to change is returned as a patch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from onnx import NodeProto, TensorProto

from onnx_convert.analysis import folding
from onnx_convert.analysis.facts import Facts
from onnx_convert.model import trailing
from onnx_convert.model.graphs import name_of, subgraphs, used_names
from onnx_convert.model.node_list import NewNodes
from onnx_convert.model.patch import Rewrite, apply_graph
from onnx_convert.report import Refusal
from onnx_convert.rewrite import legality
from onnx_convert.rewrite.legalizer import Legalizer, values_of
from onnx_convert.rewrite.node import Refuse
from onnx_convert.rewrite.scope import Scope
from onnx_convert.spec import opsets, signatures

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from collections.abc import Set as AbstractSet

    from onnx import FunctionProto, GraphProto

    from onnx_convert.model.functions import FunctionKey
    from onnx_convert.model.node_list import Chunk
    from onnx_convert.model.patch import GraphPatch
    from onnx_convert.options import Options
    from onnx_convert.report import Step
    from onnx_convert.rewrite.context import Session
    from onnx_convert.rewrite.draft import Draft
    from onnx_convert.rewrite.graph_facts import GraphFacts
    from onnx_convert.rewrite.kernels import Kernels
    from onnx_convert.rewrite.legalizer import Legalized
    from onnx_convert.rewrite.routes import Route
    from onnx_convert.spec.opsets import Imports

    Judge = Callable[[NodeProto, int, GraphFacts], None]


@dataclass(slots=True)
class Work:
    """The outcome for one body, the main graph or a function, with everything nested in it."""

    steps: list[Step] = field(default_factory=list)  # each as often as it was gone
    refusals: list[Refusal] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    unknown: bool = False  # a refusal may go away if the facts of a call are known
    inlined: set[FunctionKey] = field(default_factory=set)
    orphaned: list[str] = field(default_factory=list)  # values that a rewrite may have left without a use


class Driver:
    """One conversion of one model. `rewrites` tells of all bodies so far who wrote which node.

    `simple` says that all nodes of the model are (see `opsets.is_simple`). `judge` raises InvalidModelError for a node
    of the model that is to be rewritten although it is not valid at its opset.
    """

    def __init__(
        self,
        session: Session,
        target: dict[str, int],
        options: Options,
        functions: dict[FunctionKey, FunctionProto],
        *,
        simple: bool,
        kernels: Kernels | None = None,
        judge: Judge | None = None,
    ) -> None:
        self.rewrites: list[Rewrite] = []
        self.folded: list[NodeProto] = []  # nodes whose value is an initializer now
        self._session = session
        self._simple = simple
        self._target = target
        self._options = options
        self._legalizer = Legalizer(target, options, functions, kernels)
        self._work = Work()
        self._judge = judge
        self._new_graphs = 0  # around the one at hand

    @property
    def writes_simple_nodes(self) -> bool:
        """Whether all new nodes can be copied without a look into them."""
        return all(opsets.is_simple(operator, domain) for domain, operator in self._legalizer.written)

    @property
    def written(self) -> AbstractSet[tuple[str, str]]:
        """The operators of new nodes, by domain and name."""
        return self._legalizer.written

    def inline(self, keys: Collection[FunctionKey]) -> None:
        """Puts functions in place of their calls, in the bodies that come from now on."""
        self._legalizer.inline(keys)

    def scope(
        self,
        graph: GraphProto | FunctionProto,
        inferred: Facts,
        imports: Imports,
        outer: Scope | Draft | None = None,
        path: str = "",
        *,
        chunks: Sequence[Chunk] = (),
        finished: AbstractSet[str] = frozenset(),
    ) -> Scope:
        """Returns the scope of a graph, whose parameters these are; the session is that of the conversion."""
        return Scope(
            graph,
            self._session,
            inferred,
            imports,
            self._bring_new_subgraphs,
            outer,
            path,
            chunks=chunks,
            compact=self._simple,
            finished=finished,
        )

    def body(self, scope: Scope) -> Work:
        """Plans the main graph or a function body; the plan is `scope.patch`."""
        work = self._work = Work()
        self._graph(scope)
        return work

    # ---- graphs

    def _graph(self, scope: Scope) -> None:
        nodes, keep = scope.graph.node, scope.patch.nodes.keep
        routes: dict[tuple[str, str], tuple[Route, int]] = {}
        done = 0
        for index, node in enumerate(nodes):
            operator = node.domain, node.op_type
            if operator not in routes:
                domain = opsets.canonical_domain(node.domain)
                opset = scope.imports.get(domain, 0)
                routes[operator] = self._legalizer.routes.of(domain, node.op_type, opset), opset
            route, opset = routes[operator]
            if not route.stays:
                if done < index:
                    keep(nodes[done:index])
                self._node(index, node, opset, route, scope)
                done = index + 1
        keep(nodes[done:])
        if scope.is_subgraph and self._session.ir_after <= opsets.INPUTS_ONLY:
            self._hoist(scope)
        scope.finish()

    def _hoist(self, scope: Scope) -> None:
        """Moves the initializers of a subgraph to the main graph, which alone has any up to IR version 3.

        Other branches may use the names for something else, so the initializers get new ones.
        """
        aliases = []
        for tensor in scope.graph.initializer:
            moved = TensorProto()
            moved.CopyFrom(tensor)
            moved.name = self._session.names.fresh(tensor.name)
            scope.constants.place(moved)
            scope.patch.dropped.add(tensor.name)
            aliases.append(NodeProto(op_type="Identity", input=[moved.name], output=[tensor.name]))
        if aliases:
            scope.patch.nodes.put_first(aliases)

    def _node(self, index: int, node: NodeProto, opset: int, route: Route, scope: Scope) -> None:
        nodes = scope.patch.nodes
        if self._legalizer.inlines(node):
            self._replace(node, node, opset, scope)
        elif route.is_unknown:
            where = f"opset {opset}" if opset else "any opset: its domain is not imported"
            reason = f"not an operator of {opsets.shown(node.domain)} at {where}"
            self._refuse(node, Refuse(reason, _other_stamp(node, opset), code="unknown-operator"), scope)
            nodes.keep([node])
        elif route.is_undecided:
            reason = f"what becomes of it between {node.domain} {opset} and {route.stop} is not decided"
            self._refuse(node, Refuse(reason, "register an adapter, or declare it compatible", code="undecided"), scope)
            nodes.keep([node])
        elif route.crossing is not None:
            moving = node
            if route.may_hold_graphs and any(subgraphs(node)):
                moving = NodeProto()
                moving.CopyFrom(node)
                for child in self._children(index, moving, scope):
                    apply_graph(child)
            self._replace(node, moving, opset, scope)
        else:
            if route.may_hold_graphs:
                scope.patch.children += self._children(index, node, scope)
            if self._is_legal(node, route, scope):
                nodes.keep([node])
                if route.is_judged and not route.infers:
                    scope.keep_types(node)
            else:
                self._replace(node, node, opset, scope)

    def _children(self, index: int, node: NodeProto, scope: Scope) -> list[GraphPatch]:
        """Returns the patches of the subgraphs of a source node."""
        found = []
        for attribute, position, graph in subgraphs(node):
            if scope.finished and not scope.finished.isdisjoint(values_of(graph)):
                continue
            facts = scope.facts.inferred.child(index, attribute, position, len(graph.node))
            path = _path(scope.path, node, attribute)
            child = self.scope(graph, facts, scope.imports, scope, path, finished=scope.finished)
            self._graph(child)
            found.append(child.patch)
        return found

    def _bring_new_subgraphs(self, node: NodeProto, imports: Imports, draft: Draft, finished: AbstractSet[str]) -> None:
        """Brings the subgraphs of a new node to the target, in place, unless they are there already."""
        self._new_graphs += 1
        try:
            for attribute, _, graph in subgraphs(node):
                if not finished.isdisjoint(values_of(graph)):
                    continue
                path = _path(draft.path, node, attribute)
                child = self.scope(graph, _stated_by(graph), imports, draft, path, finished=finished)
                for inner in graph.node:
                    child.facts.write(inner, imports.get(opsets.canonical_domain(inner.domain), 1))
                self._graph(child)
                if node.op_type == "If":  # whose branches may have to make one shape
                    child.keep_new_output_types()
                apply_graph(child.patch)
        finally:
            self._new_graphs -= 1

    # ---- one node

    def _is_legal(self, node: NodeProto, route: Route, scope: Scope) -> bool:
        """Returns whether a node that crosses nothing may stay: by its schema if that is judged, and by its kernel."""
        if route.has_no_kernel:
            return False
        if route.is_judged:
            assert route.signature is not None
            assert route.stop is not None
            finding, unknown = legality.check(node, route.signature, route.stop, scope.facts.type_str)
            if finding is None and route.narrower:
                self._assume(node, unknown, scope)
            if finding is not None:
                return False
        return self._legalizer.has_kernel(node, route, scope.facts.type_str)

    def _assume(self, node: NodeProto, unknown: Sequence[str], scope: Scope) -> None:
        """Takes note that the dtypes of some values are not known, and taken to be legal at the target."""
        stop = self._target.get(opsets.canonical_domain(node.domain), 0)
        for name in dict.fromkeys(unknown):
            if self._options.strict:
                reason = f"the dtype of {name!r} is not known, and opset {stop} takes fewer than the model's opset"
                remedy = "leave out --strict to have it assumed"
                self._refuse(node, Refuse(reason, remedy, code="unknown-dtype", unknown=True), scope)
            shown = f"{node.op_type} {name_of(node)!r}"
            self._work.assumed.append(f"{shown}: the dtype of {name!r} is legal at opset {stop}")

    def _replace(self, source: NodeProto, moving: NodeProto, opset: int, scope: Scope) -> None:
        """Puts what the node becomes at the target in its place; if it cannot get there, records why."""
        if self._judge is not None and not self._new_graphs and not self._legalizer.inlines(source):
            self._judge(source, opset, scope.facts)
        try:
            legalized = self._legalizer.legalize(trailing.without(moving), opset, scope)
        except Refuse as refuse:
            if not self._fold(source, scope):
                self._refuse(source, refuse, scope)
                scope.patch.nodes.keep([source])
            return
        work, nodes = self._work, legalized.nodes
        work.steps += legalized.steps
        if legalized.used is not None and opsets.AI_ONNX in scope.imports:
            scope.constants.use(legalized.used)
            scope.patch.nodes.replace(nodes, legalized.used)
            work.orphaned += legalized.orphaned
        else:
            work.inlined |= legalized.inlined
            if legalized.unknown:
                self._assume(source, legalized.unknown, scope)
            nodes = self._look_into(source, legalized, scope)
        adapter = legalized.steps[0].rewrite if legalized.steps else ""
        self.rewrites.append(Rewrite(name_of(source), source.output[:], adapter, nodes, source, legalized.steps))

    def _look_into(self, source: NodeProto, legalized: Legalized, scope: Scope) -> NewNodes:
        """Puts new nodes into the place of a source node, does for each what its graph needs, and returns them."""
        used: set[str] = set()
        made: list[str] = []
        nodes = legalized.nodes.parsed()
        for node in nodes:
            made += node.output
            route = self._legalizer.route_of_new(node)
            if route.is_plain and opsets.AI_ONNX in scope.imports:
                used.update(node.input)
            else:
                used |= used_names(node)
                if route.stop is not None:
                    scope.patch.domains.setdefault(opsets.canonical_domain(node.domain), route.stop)
                if not route.infers:
                    scope.keep_types(node)
            if legalized.inlined and folding.is_pure(node):
                self._work.orphaned += node.output
        used.discard("")
        scope.constants.use(used)
        scope.patch.nodes.replace(nodes, used, made)
        self._work.orphaned += [name for name in source.input if name and name not in used]
        return nodes

    def _fold(self, node: NodeProto, scope: Scope) -> bool:
        """Puts a constant in place of a node that cannot be legalized but only computes one, as for axes and shapes."""
        if scope.is_function or not folding.is_pure(node) or len(node.output) != 1:
            return False
        if node.op_type in ("Shape", "Size"):
            return False  # these look at a value, whose dtype may not exist at the target
        array = scope.facts.constant(node.output[0])
        type_str = scope.facts.type_str(node.output[0])
        if array is None or (type_str and signatures.first_opset_of(type_str) > self._target[opsets.AI_ONNX]):
            return False
        if scope.become_constant(node.output[0], array):
            scope.patch.nodes.leave_out()
        else:
            constant = scope.constants.share(array, f"{name_of(node)}/constant")
            scope.constants.use((constant,))
            alias = NodeProto(op_type="Identity", input=[constant], output=node.output)
            scope.patch.nodes.replace(NewNodes([alias]), (constant,))
        self._work.orphaned += (*node.input, node.output[0])
        self.folded.append(node)
        return True

    def _refuse(self, node: NodeProto, why: Refuse, scope: Scope) -> None:
        domain = opsets.canonical_domain(node.domain)
        start, stop = scope.imports.get(domain, 0), self._target.get(domain, 0)
        self._work.unknown |= why.unknown
        self._work.refusals.append(
            Refusal(
                operator=node.op_type,
                domain=opsets.shown(domain),
                node=name_of(node),
                boundary=why.boundary,
                direction=why.direction or (opsets.UP if start <= stop else opsets.DOWN),
                reason=why.reason,
                remedy=why.remedy,
                path=scope.path,
                code=why.code,
            )
        )


def _stated_by(graph: GraphProto) -> Facts:
    """Returns what is known of a new subgraph: what it states."""
    return Facts(lambda: graph, len(graph.node))


def _path(path: str, node: NodeProto, attribute: int) -> str:
    return f"{path}/{name_of(node)}.{node.attribute[attribute].name}".lstrip("/")


def _other_stamp(node: NodeProto, opset: int) -> str:
    """Returns what helps a node that is no operator at the opset of its model, which is 0 if its domain is not
    imported."""
    domain = opsets.canonical_domain(node.domain)
    has = [other for other in range(1, opsets.latest(domain) + 1) if opsets.schema_at(node.op_type, other, domain)]
    if not has or not opset:
        return "the model is not valid: stamp it with the opset that its nodes were written for"
    nearest = min(has, key=lambda other: abs(other - opset))
    way = f"--from {nearest}" if domain == opsets.AI_ONNX else f"--from {domain}:{nearest}"
    return f"the model is not valid; if its stamp is wrong, {way} reads it at {nearest}, which has {node.op_type}"
