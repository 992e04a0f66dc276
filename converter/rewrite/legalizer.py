# SPDX-License-Identifier: Apache-2.0
"""Carries one node to the target: over the boundaries of its operator, and those of whatever it becomes on the way.

A node that an adapter or a function body brings stands at the opset that it was written for and goes on from there, up
or down, until nothing is left to cross; then its legality at the target is judged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from onnx_convert.errors import InternalError, InvalidModelError
from onnx_convert.model.functions import key_of
from onnx_convert.model.graphs import name_of
from onnx_convert.model.inlining import expand
from onnx_convert.report import CONDITIONAL, EQUIVALENT, EXACT, Step
from onnx_convert.rewrite import legality, registry, replay
from onnx_convert.rewrite.emitter import Emitter
from onnx_convert.rewrite.node import Node, Refuse
from onnx_convert.rewrite.promotion import promote
from onnx_convert.rewrite.recorder import Recorder
from onnx_convert.rewrite.registry import Adapter, Crossing, Impossible
from onnx_convert.spec import opsets, signatures

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from onnx import FunctionProto, NodeProto

    from onnx_convert.model.functions import FunctionKey
    from onnx_convert.options import Options
    from onnx_convert.rewrite.scope import Scope
    from onnx_convert.spec.opsets import Imports

    Nested = Callable[[NodeProto, Imports, Scope], None]


@dataclass(slots=True)
class Legalized:
    """What one node became. `crossing` is the last one that was tried."""

    nodes: Sequence[NodeProto | bytes] = ()
    steps: Sequence[Step] = ()
    inlined: set[FunctionKey] = field(default_factory=set)
    unknown: list[str] = field(default_factory=list)  # values whose dtype had to be assumed to be legal
    crossing: Crossing | None = None
    used: Collection[str] | None = None  # new constants that the new nodes use; None if nobody knows yet
    orphaned: Sequence[str] = ()  # inputs that the new nodes do not use, where `used` tells
    bearer: NodeProto | None = None  # the node that carries the meaning on, with name, doc string and metadata


class _Way(NamedTuple):
    """Where a node of one operator goes next from one opset: over a boundary, or to be judged by the signature at
    `stop`.

    `as_written` says that the signature is also that of the opset which the node is written for, `narrower` that it
    takes fewer types.
    """

    crossing: Crossing | None = None
    stop: int = 0
    signature: signatures.Signature | None = None
    as_written: bool = False
    narrower: bool = False
    may_hold_graphs: bool = False


class Ending(NamedTuple):
    """What is to be done about every new node of one operator."""

    domain: str
    stop: int | None
    infers: bool
    may_hold_graphs: bool

    @property
    def plain(self) -> bool:
        """Nothing: it is of ai.onnx, its types can be inferred, and it has no subgraphs."""
        return self.domain == opsets.AI_ONNX and self.infers and not self.may_hold_graphs


class _Moving(NamedTuple):
    """A node on its way: the opset that it stands at, those that nodes in its subgraphs are written for, and the
    crossings and functions that led to it."""

    node: NodeProto
    opset: int
    imports: Imports
    lineage: tuple[object, ...] = ()


class Legalizer:
    """Carries the nodes of one conversion."""

    def __init__(
        self,
        target: Mapping[str, int],
        options: Options,
        functions: Mapping[FunctionKey, FunctionProto],
        expanded: set[FunctionKey],
    ) -> None:
        self.target = target
        self.options = options
        self.functions = functions
        self.expanded = expanded
        self.function_names = {key[:2] for key in functions}
        self._ways: dict[tuple[str, str, int], _Way] = {}
        self.endings: dict[tuple[str, str], Ending] = {}
        self._replays = replay.Replays()

    def expands(self, node: NodeProto) -> bool:
        """Whether a node calls a function that is put in place of its calls."""
        return bool(self.expanded) and key_of(node) in self.expanded

    def legalize(self, node: NodeProto, opset: int, scope: Scope, result: Legalized, nested: Nested) -> None:
        """Fills in what a node becomes at the target, by a replay if one like it was there before. Raises Refuse.

        `nested` brings the subgraphs of a new node to the target, in place.
        """
        subject = replay.subject_of(node, opset) if not scope.is_function and not self.expands(node) else None
        if subject is not None and (followed := self._replays.follow(subject, scope)) is not None:
            result.nodes, values, result.steps, result.used, result.orphaned = followed
            scope.wrote_alike(result.nodes, values, self.target)
            return
        recorder = scope.recorder = Recorder(node)
        steps: list[Step] = []
        result.steps = steps
        try:
            nodes = self._legalize(node, opset, scope, result, steps, nested)
        finally:
            scope.recorder = None
        result.nodes = nodes
        endings = [self.ending(new) for new in nodes]
        if subject is None or result.unknown or not all(ending.infers for ending in endings):
            return  # types that cannot be inferred at the target are known from the way, which a replay does not go
        plain = all(ending.plain for ending in endings)
        self._replays.learn(subject, nodes, result.bearer, steps, recorder, plain=plain)

    def _legalize(
        self, node: NodeProto, opset: int, scope: Scope, result: Legalized, steps: list[Step], nested: Nested
    ) -> list[NodeProto]:
        nodes: list[NodeProto] = []
        pending = [_Moving(node, opset, scope.imports)]
        result.bearer = node
        while pending:
            moving = pending.pop()
            if self.expands(moving.node):
                pending += reversed(self._expand(moving, scope, result))
                continue
            way = self._way(opsets.canonical_domain(moving.node.domain), moving.node.op_type, moving.opset)
            if way.may_hold_graphs and moving.lineage:
                nested(moving.node, moving.imports, scope)
            result.crossing = way.crossing
            try:
                if way.crossing is not None:
                    pending += reversed(self._cross(moving, way.crossing, scope, result, steps))
                    continue
                if not way.stop:
                    scope.patch.domains.setdefault(opsets.canonical_domain(moving.node.domain), moving.opset)
                nodes += self._settle(moving, way, scope, result, steps)
            except Refuse as refuse:
                if moving.node.op_type != node.op_type:
                    refuse.reason = f"what replaces it needs {moving.node.op_type}: {refuse.reason}"
                raise
        return nodes

    def ending(self, node: NodeProto) -> Ending:
        """What is to be done about a new node."""
        ending = self.endings.get((node.domain, node.op_type))
        if ending is not None:
            return ending
        domain = opsets.canonical_domain(node.domain)
        stop = self.target.get(domain)
        signature = signatures.signature_of(node.op_type, stop, domain) if stop is not None else None
        infers = signature is None or signature.infers
        ending = Ending(domain, stop, infers, opsets.may_hold_graphs(node.op_type, domain))
        self.endings[node.domain, node.op_type] = ending
        return ending

    def _way(self, domain: str, operator: str, opset: int) -> _Way:
        key = (domain, operator, opset)
        way = self._ways.get(key)
        if way is None:
            stop = self.target.get(domain)
            holds = opsets.may_hold_graphs(operator, domain)
            if stop is None or (domain, operator) in self.function_names:
                way = _Way(may_hold_graphs=True)
            else:
                crossing = registry.route(domain, operator, opset, stop)
                signature = signatures.signature_of(operator, stop, domain)
                as_written = signature is not None and signature == signatures.signature_of(operator, opset, domain)
                narrower = stop < opset and signatures.is_narrower(operator, opset, stop, domain)
                way = _Way(crossing, stop, signature, as_written, narrower, holds)
            self._ways[key] = way
        return way

    def _expand(self, moving: _Moving, scope: Scope, result: Legalized) -> list[_Moving]:
        """The body of a function in place of a call."""
        key = key_of(moving.node)
        if key in moving.lineage:
            raise InvalidModelError(f"function {key[1]} calls itself", where=name_of(moving.node))
        result.inlined.add(key)
        function = self.functions[key]
        imports = {opsets.canonical_domain(entry.domain): entry.version for entry in function.opset_import}
        lineage = (*moving.lineage, key)
        new = [_Moving(node, at, imports, lineage) for node, at in expand(function, moving.node, scope.session.names)]
        for item in new:
            scope.wrote(item.node, item.opset)
        return new

    def _cross(
        self, moving: _Moving, crossing: Crossing, scope: Scope, result: Legalized, steps: list[Step]
    ) -> list[_Moving]:
        node, decision = moving.node, crossing.decision
        if not moving.lineage:
            _count(node, moving.opset)
        step = (node.op_type, crossing)
        if step in moving.lineage:
            raise InternalError(f"{node.op_type}@{crossing.boundary} leads to itself", node=name_of(node))
        if decision is None:
            raise Refuse(*undecided(node, crossing))
        if isinstance(decision, Impossible):
            raise Refuse(decision.reason, decision.remedy)
        landing = crossing.boundary if crossing.direction == opsets.UP else crossing.boundary - 1
        domain = opsets.canonical_domain(node.domain)
        op = Emitter(
            Node(node, scope, moving.opset),
            landing,
            landing if domain == opsets.AI_ONNX else self.target[opsets.AI_ONNX],
        )
        try:
            outcome = decision.function(op.subject, op)
        except (Refuse, InvalidModelError):
            raise
        except Exception as error:
            raise _fault(error, decision, node) from error
        if op.size and not self.options.expand_all:
            raise Refuse(f"the replacement is very large: {op.size}", "--expand all, if it may be")
        self._promise(op.form, op.condition)
        try:
            op.take_over(outcome)
        except InternalError as error:
            raise _fault(error, decision, node) from error
        if result.bearer is node:
            result.bearer = op.meaning
        shown = opsets.shown(domain)
        steps.append(
            Step(node.op_type, shown, crossing.boundary, crossing.direction, decision.name, op.form, op.condition)
        )
        lineage = (*moving.lineage, step)
        return [
            _Moving(new, opset, {**moving.imports, opsets.canonical_domain(new.domain): opset}, lineage)
            for new, opset in op.emitted
        ]

    def _promise(self, form: str, condition: str) -> None:
        """Refuses a form that the user does not allow. Inside a function the facts of a call may yield a better one."""
        if form == CONDITIONAL and not self.options.conditional:
            remedy = "--allow conditional, if you know that it holds"
            raise Refuse(f"the only form is right if {condition}", remedy, unknown=True)
        if form != EXACT and self.options.exact:
            raise Refuse(f"the only form is {form}, not exact: {condition}", "leave out --exact", unknown=True)

    def _settle(
        self, moving: _Moving, way: _Way, scope: Scope, result: Legalized, steps: list[Step]
    ) -> list[NodeProto]:
        """A node that has nothing left to cross: as it is if it is legal, in a Cast promotion if that is allowed."""
        node, signature, stop = moving.node, way.signature, way.stop
        if signature is None:
            return [node]  # a function, or a domain that the installed onnx does not define
        unknown = result.unknown if way.narrower else None
        as_written = way.as_written and bool(moving.lineage)
        finding = legality.check(node, signature, stop, scope.type_str, unknown, as_written=as_written)
        if finding is None:
            scope.settled(node, stop)
            return [node]
        if finding.formal is None or finding.remedy:
            raise Refuse(finding.reason, finding.remedy, boundary=finding.since)
        promotion = promote(Node(node, scope, moving.opset), signature, stop, finding)
        if promotion is None:
            raise Refuse(finding.reason, boundary=finding.since)
        if self.options.types == "refuse" or (promotion.form == EQUIVALENT and self.options.types == "cast"):
            raise Refuse(finding.reason, promotion.remedy, boundary=finding.since)
        self._promise(promotion.form, promotion.condition)
        shown = opsets.shown(node.domain)
        steps.append(
            Step(node.op_type, shown, finding.since, opsets.DOWN, promotion.name, promotion.form, promotion.condition)
        )
        if result.bearer is node:
            result.bearer = promotion.bearer
        return promotion.nodes


def _fault(error: Exception, adapter: Adapter, node: NodeProto) -> InternalError:
    """What an adapter did wrong, and whose it is."""
    why = error.why if isinstance(error, InternalError) else f"{type(error).__name__}: {error}".rstrip(": ")
    module = adapter.function.__module__
    author = "onnx-convert" if module.startswith("onnx_convert.") else module
    return InternalError(why, adapter=adapter.name, node=name_of(node), author=author)


def _count(node: NodeProto, opset: int) -> None:
    """InvalidModelError for a node of the model with inputs or outputs that its operator does not have: a rewrite would
    lose them."""
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
    """The reason and the remedy for a node that would cross a boundary for which nobody has written anything."""
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
