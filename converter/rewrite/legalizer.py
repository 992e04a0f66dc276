# SPDX-License-Identifier: Apache-2.0
"""Carries one node to the target: over the boundaries of its operator, and those of whatever it becomes on the way.

A node that an adapter or a function body brings stands at the opset that it was written for and goes on from there, up
or down, until nothing is left to cross; then its legality at the target is judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from onnx_convert.errors import InternalError, InvalidModelError
from onnx_convert.model.functions import key_of
from onnx_convert.model.graphs import name_of, subgraphs
from onnx_convert.model.inlining import inline
from onnx_convert.model.node_list import NewNodes
from onnx_convert.model.node_template import parts_of
from onnx_convert.report import CONDITIONAL, EQUIVALENT, EXACT, Step
from onnx_convert.rewrite import kernels, legality
from onnx_convert.rewrite.emitter import Emitter
from onnx_convert.rewrite.node import Node, Refuse
from onnx_convert.rewrite.promotion import promote
from onnx_convert.rewrite.recorder import Recorder
from onnx_convert.rewrite.registry import Adapter, Crossing, Impossible
from onnx_convert.rewrite.replay import Replays
from onnx_convert.rewrite.routes import Routes
from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from onnx import FunctionProto, GraphProto, NodeProto

    from onnx_convert.model.functions import FunctionKey
    from onnx_convert.options import Options
    from onnx_convert.rewrite.draft import Draft
    from onnx_convert.rewrite.kernels import Kernels
    from onnx_convert.rewrite.legality import Finding
    from onnx_convert.rewrite.routes import Route
    from onnx_convert.rewrite.scope import Scope
    from onnx_convert.spec.opsets import Imports
    from onnx_convert.spec.signatures import Signature


class Legalized(NamedTuple):
    """The outcome for one node."""

    nodes: NewNodes
    steps: Sequence[Step] = ()
    inlined: AbstractSet[FunctionKey] = frozenset()
    unknown: Sequence[str] = ()  # values whose dtype had to be assumed to be legal
    used: Sequence[str] | None = None  # new constants that the new nodes use; None if these have to be looked into
    orphaned: Sequence[str] = ()  # inputs that the new nodes do not use, where `used` tells


class _Moving(NamedTuple):
    """A node on its way: the opset that it stands at, those that nodes in its subgraphs are written for, the crossings
    and functions that led to it, the values of subgraphs that are at the target already, and the operators that are
    taken apart because the runtime has no kernel for such nodes."""

    node: NodeProto
    opset: int
    imports: Imports
    lineage: tuple[object, ...] = ()
    finished: AbstractSet[str] = frozenset()
    apart: AbstractSet[tuple[str, str]] = frozenset()


class _Rewriting:
    """One node on its way, with all that it becomes. `whole` says that nothing is taken apart for the want of a kernel,
    `lacking` why something was."""

    def __init__(self, draft: Draft, node: NodeProto, *, whole: bool = False) -> None:
        self.draft = draft
        self.whole = whole
        self.lacking = ""
        self.bearer: NodeProto | None = node  # carries the meaning on, with name, doc string and metadata
        self.nodes: list[NodeProto] = []
        self.steps: list[Step] = []
        self.inlined: set[FunctionKey] = set()
        self.unknown: list[str] = []


class Legalizer:
    """Legalizes the nodes of one conversion."""

    def __init__(
        self,
        target: Mapping[str, int],
        options: Options,
        functions: Mapping[FunctionKey, FunctionProto],
        implemented: Kernels | None = None,
    ) -> None:
        self.routes = Routes(target, {key[:2] for key in functions}, implemented)
        self._kernels = implemented
        self._target = target
        self._options = options
        self._functions = functions
        self._inlined: set[FunctionKey] = set()
        self._replays = Replays()
        self.written: set[tuple[str, str]] = set()  # the operators of new nodes, by domain and name

    def inline(self, keys: Collection[FunctionKey]) -> None:
        """Puts functions in place of their calls from now on."""
        self._inlined.update(keys)

    def inlines(self, node: NodeProto) -> bool:
        """Returns whether a node calls a function that is put in place of its calls."""
        return bool(self._inlined) and key_of(node) in self._inlined

    def legalize(self, node: NodeProto, opset: int, scope: Scope) -> Legalized:
        """Returns what a node becomes at the target, by a replay if one like it was there before.

        What it writes is committed to the scope. Raises Refuse if it cannot get there, which leaves no trace. Subgraphs
        of the node must be at the target already.
        """
        subject = parts_of(node) if not scope.is_function and not self.inlines(node) else None
        if subject is not None and (followed := self._replays.follow(subject, opset, scope)) is not None:
            scope.facts.take_replayed(followed.nodes, followed.values, self._target)
            return Legalized(followed.nodes, followed.steps, used=followed.used, orphaned=followed.orphaned)
        recorder = Recorder(scope.facts, node)
        draft = scope.draft(recorder, node)
        rewriting = _Rewriting(draft, node)
        try:
            self._rewrite(rewriting, node, opset, scope)
        except Refuse as refuse:
            if not rewriting.lacking:
                raise
            draft = scope.draft(recorder, node)
            rewriting = self._whole(refuse, _Rewriting(draft, node, whole=True), node, opset, scope)
        scope.commit(draft)
        nodes, steps = rewriting.nodes, tuple(rewriting.steps)
        routes = [self.route_of_new(new) for new in nodes]
        self.written.update((new.domain, new.op_type) for new in nodes)
        # Types that cannot be inferred at the target are known from the way, which a replay does not go.
        if subject is not None and not rewriting.unknown and all(route.infers for route in routes):
            plain = all(route.is_plain for route in routes)
            self._replays.learn(subject, opset, nodes, rewriting.bearer, steps, recorder, draft, plain=plain)
        return Legalized(NewNodes(nodes), steps, frozenset(rewriting.inlined), tuple(rewriting.unknown))

    def route_of_new(self, node: NodeProto) -> Route:
        """Returns the route of a node that has come to the target."""
        return self.routes.at_target(opsets.canonical_domain(node.domain), node.op_type)

    def has_kernel(self, node: NodeProto, route: Route, type_str_of: Callable[[str], str]) -> bool:
        """Returns whether the runtime that was named has a kernel for a node, as far as is known; true without one."""
        return self._lacking(node, route, type_str_of) is None

    def _lacking(self, node: NodeProto, route: Route, type_str_of: Callable[[str], str]) -> Finding | None:
        """Returns what keeps a node at the target without a kernel of the runtime; None if it has one, or may have."""
        if self._kernels is None or route.stop is None:
            return None
        if route.kernel is None and not route.has_no_kernel and not route.has_limits:
            return None
        return kernels.finding(self._kernels, node, route.kernel, route.stop, type_str_of)

    def _whole(self, first: Refuse, rewriting: _Rewriting, node: NodeProto, opset: int, scope: Scope) -> _Rewriting:
        """Returns the rewriting of a node that cannot be taken apart, or raises a refusal that says both."""
        try:
            return self._rewrite(rewriting, node, opset, scope)
        except Refuse as refuse:
            if refuse.code != "no-kernel":
                raise
            reason = f"{refuse.reason}; taken apart: {first.reason}"
            remedy = first.remedy or refuse.remedy
            raise Refuse(reason, remedy, code="no-kernel", unknown=first.unknown or refuse.unknown) from first

    def _rewrite(self, rewriting: _Rewriting, node: NodeProto, opset: int, scope: Scope) -> _Rewriting:
        draft = rewriting.draft
        pending = [_Moving(node, opset, scope.imports, finished=scope.finished | values_within(node))]
        while pending:
            moving = pending.pop()
            domain = opsets.canonical_domain(moving.node.domain)
            if self.inlines(moving.node):
                pending += reversed(self._inline(moving, rewriting))
                continue
            route = self._route(moving, domain, rewriting)
            if route.may_hold_graphs and moving.lineage:
                scope.bring_subgraphs(moving.node, moving.imports, draft, moving.finished)
                moving = moving._replace(finished=moving.finished | values_within(moving.node))
            try:
                if route.crossing is not None:
                    pending += reversed(self._cross(moving, route.crossing, rewriting))
                    continue
                if route.stop is None:
                    draft.domains.setdefault(domain, moving.opset)
                if self._goes_apart(moving, domain, route, rewriting):
                    pending.append(moving._replace(apart=moving.apart | {(domain, moving.node.op_type)}))
                    continue
                rewriting.nodes += self._settle(moving, route, rewriting)
            except Refuse as refuse:
                raise _located(refuse, moving.node, node, route.crossing) from refuse
        return rewriting

    def _route(self, moving: _Moving, domain: str, rewriting: _Rewriting) -> Route:
        """Returns the route of a node, which leads apart where its operator has no kernel."""
        operator = moving.node.op_type
        route = self.routes.of(domain, operator, moving.opset)
        if rewriting.whole or not (route.has_no_kernel or (domain, operator) in moving.apart):
            return route
        apart = self.routes.apart(domain, operator, moving.opset)
        if apart is not None and not rewriting.lacking:
            rewriting.lacking = f"no kernel for {operator}"
        return apart or route

    def _goes_apart(self, moving: _Moving, domain: str, route: Route, rewriting: _Rewriting) -> bool:
        """Returns whether a node at the target has no kernel for its dtypes, but can be taken apart."""
        operator = moving.node.op_type
        if rewriting.whole or (domain, operator) in moving.apart:
            return False
        if self._lacking(moving.node, route, rewriting.draft.type_str) is None:
            return False
        return self.routes.apart(domain, operator, moving.opset) is not None

    def _inline(self, moving: _Moving, rewriting: _Rewriting) -> list[_Moving]:
        """Returns the body of a function in place of a call."""
        key = key_of(moving.node)
        if key in moving.lineage:
            raise InvalidModelError(f"function {key[1]} calls itself", where=name_of(moving.node))
        rewriting.inlined.add(key)
        function = self._functions[key]
        imports = {opsets.canonical_domain(entry.domain): entry.version for entry in function.opset_import}
        lineage = (*moving.lineage, key)
        names = rewriting.draft.session.names
        new = [_Moving(node, at, imports, lineage) for node, at in inline(function, moving.node, names)]
        for item in new:
            rewriting.draft.write(item.node, item.opset)
        return new

    def _cross(self, moving: _Moving, crossing: Crossing, rewriting: _Rewriting) -> list[_Moving]:
        """Returns what an adapter makes of a node at a boundary."""
        node, decision = moving.node, crossing.decision
        if not moving.lineage:
            _count(node, moving.opset)
        step = (node.op_type, crossing)
        if step in moving.lineage and rewriting.lacking:
            raise Refuse(f"what replaces {node.op_type} leads back to it", code="no-kernel")
        if step in moving.lineage:
            raise InternalError(f"{node.op_type}@{crossing.boundary} leads to itself", node=name_of(node))
        if decision is None:
            raise Refuse(*undecided(node, crossing), code="undecided")
        if isinstance(decision, Impossible):
            raise Refuse(decision.reason, decision.remedy)
        landing = crossing.boundary if crossing.direction == opsets.UP else crossing.boundary - 1
        domain = opsets.canonical_domain(node.domain)
        op = Emitter(
            Node(node, rewriting.draft, moving.opset),
            landing,
            landing if domain == opsets.AI_ONNX else self._target[opsets.AI_ONNX],
        )
        try:
            outcome = decision.function(op.subject, op)
        except (Refuse, InvalidModelError):
            raise
        except Exception as error:
            raise _fault(error, decision, node) from error
        if op.size and not self._options.expand_all:
            raise Refuse(
                f"the replacement is very large: {op.size}",
                "--expand all, if a very large model is acceptable",
                code="too-large",
            )
        self._promise(op.form, op.condition)
        try:
            op.take_over(outcome)
        except InternalError as error:
            raise _fault(error, decision, node) from error
        if rewriting.bearer is node:
            rewriting.bearer = op.meaning
        shown = opsets.shown(domain)
        rewriting.steps.append(
            Step(node.op_type, shown, crossing.boundary, crossing.direction, decision.name, op.form, op.condition)
        )
        lineage = (*moving.lineage, step)
        return [
            _Moving(
                new,
                opset,
                {**moving.imports, opsets.canonical_domain(new.domain): opset},
                lineage,
                moving.finished,
                moving.apart,
            )
            for new, opset in op.emitted
        ]

    def _promise(self, form: str, condition: str) -> None:
        """Refuses a form that the user does not allow. Inside a function the facts of a call may yield a better one."""
        if form == CONDITIONAL and not self._options.conditional:
            remedy = "--allow conditional, if you know that it holds"
            raise Refuse(f"the only form is right if {condition}", remedy, code="conditional-only", unknown=True)
        if form != EXACT and self._options.exact:
            reason = f"the only form is {form}, not exact: {condition}"
            raise Refuse(reason, "leave out --exact", code="not-exact", unknown=True)

    def _settle(self, moving: _Moving, route: Route, rewriting: _Rewriting) -> list[NodeProto]:
        """Returns what stands for a node that has nothing left to cross: the node if it is legal, else the node in a
        promotion if that is allowed."""
        node, signature, draft = moving.node, route.signature, rewriting.draft
        if signature is None or route.stop is None:
            return [node]  # a function, or a domain that the installed onnx does not define
        as_written = route.as_written and bool(moving.lineage)
        finding, unknown = legality.check(node, signature, route.stop, draft.type_str, as_written=as_written)
        if route.narrower:
            rewriting.unknown += unknown
        if finding is not None:
            if finding.formal is None or finding.remedy:
                code = "not-legal" if finding.formal is None else "dtype-floor"
                raise Refuse(finding.reason, finding.remedy, code=code, boundary=finding.since)
            return self._promoted(moving, signature, route.stop, finding, rewriting, ("dtype", "dtype-cast"))
        lacking = self._lacking(node, route, draft.type_str)
        if lacking is None:
            draft.arrive(node, route.stop)
            return [node]
        if lacking.formal is None or route.kernel is None:
            raise Refuse(lacking.reason, self._kernel_remedy(node, route.stop), code="no-kernel")
        return self._promoted(moving, route.kernel, route.stop, lacking, rewriting, ("no-kernel", "no-kernel"))

    def _kernel_remedy(self, node: NodeProto, opset: int) -> str:
        """Returns what helps a node that the runtime has no kernel for."""
        assert self._kernels is not None
        return self._kernels.remedy(opsets.canonical_domain(node.domain), node.op_type, opset)

    def _promoted(
        self,
        moving: _Moving,
        signature: Signature,
        stop: int,
        finding: Finding,
        rewriting: _Rewriting,
        codes: tuple[str, str],
    ) -> list[NodeProto]:
        """Returns a node in a wider dtype between Casts. Refuses with the first code if there is none, with the second
        if it is not allowed."""
        node, boundary = moving.node, finding.since or stop
        promotion = promote(Node(node, rewriting.draft, moving.opset), signature, stop, finding)
        if promotion is None:
            remedy = self._kernel_remedy(node, stop) if codes[0] == "no-kernel" else ""
            raise Refuse(finding.reason, remedy, code=codes[0], boundary=finding.since)
        if self._options.types == "refuse" or (promotion.form == EQUIVALENT and self._options.types == "cast"):
            raise Refuse(finding.reason, promotion.remedy, code=codes[1], boundary=finding.since)
        for new in promotion.nodes:
            lacking = self._lacking(new, self.route_of_new(new), rewriting.draft.type_str)
            if lacking is not None:
                reason = f"{finding.reason}; between Casts: {lacking.reason}"
                raise Refuse(reason, self._kernel_remedy(new, stop), code="no-kernel")
        self._promise(promotion.form, promotion.condition)
        shown = opsets.shown(node.domain)
        rewriting.steps.append(
            Step(node.op_type, shown, boundary, opsets.DOWN, promotion.name, promotion.form, promotion.condition)
        )
        if rewriting.bearer is node:
            rewriting.bearer = promotion.bearer
        return promotion.nodes


def values_within(node: NodeProto) -> frozenset[str]:
    """Returns the values that the subgraphs of a node are given and make themselves. No other graph that may be written
    for the same node has one of them, so they tell a copy of such a subgraph from a new one."""
    if not opsets.may_hold_graphs(node.op_type, opsets.canonical_domain(node.domain)):
        return frozenset()
    return frozenset(name for _, _, graph in subgraphs(node) for name in values_of(graph))


def values_of(graph: GraphProto) -> set[str]:
    """Returns the inputs of a graph and what its nodes make."""
    names = {value.name for value in graph.input}
    names.update(name for node in graph.node for name in node.output)
    names.discard("")
    return names


def _located(refuse: Refuse, moving: NodeProto, source: NodeProto, crossing: Crossing | None) -> Refuse:
    """Returns a refusal that says where it happened: at which boundary, and to which node if it is a new one."""
    within = f"what replaces it needs {moving.op_type}: " if moving.op_type != source.op_type else ""
    boundary, direction = (crossing.boundary, crossing.direction) if crossing is not None else (refuse.boundary, "")
    reason = f"{within}{refuse.reason}"
    return Refuse(
        reason, refuse.remedy, code=refuse.code, unknown=refuse.unknown, boundary=boundary, direction=direction
    )


def _fault(error: Exception, adapter: Adapter, node: NodeProto) -> InternalError:
    """Returns an error that says what an adapter did wrong, and whose adapter it is."""
    why = error.why if isinstance(error, InternalError) else f"{type(error).__name__}: {error}".rstrip(": ")
    module = adapter.function.__module__
    author = "onnx-convert" if module.startswith("onnx_convert.") else module
    return InternalError(why, adapter=adapter.name, node=name_of(node), author=author)


def _count(node: NodeProto, opset: int) -> None:
    """Raises InvalidModelError for a node of the model with more or fewer inputs or outputs than its operator has: a
    rewrite would lose them."""
    schema = opsets.schema_at(node.op_type, opset, opsets.canonical_domain(node.domain))
    if schema is None:
        return
    for what, names, least, most in (
        ("inputs", node.input, schema.min_input, schema.max_input),
        ("outputs", node.output, schema.min_output, schema.max_output),
    ):
        if not least <= len(names) <= most:
            limits = str(least) if least == most else f"{least} to {most}"
            where = f"{node.op_type} {name_of(node)!r}"
            raise InvalidModelError(f"has {len(names)} {what}, at opset {opset} there are {limits}", where=where)


def undecided(node: NodeProto, crossing: Crossing) -> tuple[str, str]:
    """Returns the reason and the remedy for a node at a boundary that no adapter and no table decides."""
    versions = opsets.history(node.op_type, opsets.canonical_domain(node.domain))
    if crossing.direction == opsets.DOWN and versions and crossing.boundary == versions[0]:
        return (
            f"{node.op_type} exists only from opset {crossing.boundary} on, and there is no replacement yet",
            f"go no lower than opset {crossing.boundary}",
        )
    way = "no lower than" if crossing.direction == opsets.DOWN else "no higher than"
    limit = crossing.boundary if crossing.direction == opsets.DOWN else crossing.boundary - 1
    where = f"boundary {crossing.boundary} on the way {crossing.direction}"
    return f"what becomes of {node.op_type} at {where} is not decided", f"go {way} opset {limit}"
