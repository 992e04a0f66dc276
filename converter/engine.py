# SPDX-License-Identifier: Apache-2.0
"""Carries each node across the boundaries of its own operator, in graphs, subgraphs and functions.

There is no loop over opsets: a node that crosses nothing but compatible boundaries costs one dictionary look-up. A node
that an adapter writes stands at the opset that it was written for and goes on from there, up or down, until nothing is
left to cross; then its legality at the target is judged. The model is only read: what is to change is returned as an
edit.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from onnx import NodeProto

from onnx_convert import edits, legality, opsets, recipes, registry
from onnx_convert.calls import key_of
from onnx_convert.emitter import Emitted, Emitter, Outcome
from onnx_convert.errors import InternalError, InvalidModelError, Refusal
from onnx_convert.facts import subgraphs
from onnx_convert.inline import expand
from onnx_convert.registry import Adapter, Crossing, Impossible
from onnx_convert.report import CONDITIONAL, EQUIVALENT, Step
from onnx_convert.sandwich import wrap
from onnx_convert.scope import Scope, Session, used_names
from onnx_convert.site import Node, Refuse, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx import FunctionProto

    from onnx_convert.checks import Attribution
    from onnx_convert.edits import FunctionKey


@dataclass(frozen=True, slots=True)
class Options:
    """What the user allows. `types` is "refuse", "cast" or "cast-rounding"."""

    types: str = "refuse"
    exact: bool = False
    conditional: bool = False
    strict: bool = False


@dataclass(slots=True)
class Work:
    """What came of one body, the main graph or a function, with everything nested in it."""

    steps: Counter[Step] = field(default_factory=Counter)
    refusals: list[Refusal] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    unknown: bool = False  # a refusal may go away if the facts of a call are known
    inlined: set[FunctionKey] = field(default_factory=set)
    lost: list[tuple[Scope, str]] = field(default_factory=list)  # names that a rewritten node no longer uses


@dataclass(frozen=True, slots=True)
class Fate:
    """What happens to every node of one operator: computed once an operator."""

    crossing: Crossing | None = None
    rule: legality.Rule | None = None  # to be judged by, even if no rewrite is due
    narrower: bool = False
    may_hold_graphs: bool = False
    unknown_operator: bool = False

    @property
    def stays(self) -> bool:
        """Whether nodes of the operator need not even be looked at."""
        return not (self.crossing or self.rule or self.may_hold_graphs or self.unknown_operator)


_STAYS: Final = Fate()


@dataclass(frozen=True, slots=True)
class Way:
    """Where a node of one operator goes next from one opset: over a boundary, or to be judged by the rule at `stop`.

    `as_written` says that the rule is also that of the opset which the node is written for.
    """

    crossing: Crossing | None = None
    stop: int = 0
    rule: legality.Rule | None = None
    as_written: bool = False


Lineage = tuple[object, ...]  # the crossings and functions that led to a node


class Engine:
    """One conversion of one model. `inlined` holds the functions that are expanded at their calls."""

    def __init__(
        self,
        session: Session,
        target: dict[str, int],
        options: Options,
        attribution: Attribution,
        functions: dict[FunctionKey, FunctionProto],
        inlined: set[FunctionKey],
    ) -> None:
        self.session = session
        self.target = target
        self.options = options
        self.attribution = attribution
        self.functions = functions
        self.inlined = inlined
        self._names = {key[:2] for key in functions}
        self._fates: dict[tuple[str, str, int], Fate] = {}
        self._ways: dict[tuple[str, str, int], Way] = {}
        self._recipes = recipes.Recipes()

    # ---- graphs

    def body(self, scope: Scope) -> Work:
        """Plans the main graph or a function body; the plan is `scope.edit`."""
        work = Work()
        self._graph(scope, work)
        return work

    def _graph(self, scope: Scope, work: Work) -> None:
        nodes = scope.edit.nodes
        imports, fates = scope.imports, self._fates
        for index, node in enumerate(scope.graph.node):
            domain = opsets.normalise(node.domain)
            opset = imports.get(domain, 0)
            key = (domain, node.op_type, opset)
            fate = fates.get(key)
            if fate is None:
                fate = fates[key] = self._fate(*key)
            if fate is _STAYS:
                nodes.append(node)
            else:
                self._node(index, node, opset, fate, scope, work)
        self._finish(scope)

    def _fate(self, domain: str, operator: str, opset: int) -> Fate:
        holds = opsets.may_hold_graphs(operator, domain)
        stop = self.target.get(domain)
        if (domain, operator) in self._names or stop is None:
            fate = Fate(may_hold_graphs=True)
        elif opsets.is_known(domain) and opsets.schema_at(operator, opset, domain) is None:
            fate = Fate(unknown_operator=True)
        elif opset == stop:
            fate = Fate(may_hold_graphs=holds)
        else:
            crossing = registry.route(domain, operator, opset, stop)
            downhill = stop < opset and bool(registry.crossings(domain, operator, opset, stop))
            rule = legality.rule_of(operator, stop, domain) if downhill and crossing is None else None
            narrower = rule is not None and legality.is_narrower(operator, opset, stop, domain)
            fate = Fate(crossing, rule, narrower, holds)
        return _STAYS if fate.stays else fate

    def _node(self, index: int, node: NodeProto, opset: int, fate: Fate, scope: Scope, work: Work) -> None:
        if self._expands(node):
            self._replace(node, node, opset, scope, work)
        elif fate.unknown_operator:
            where = f"opset {opset}" if opset else "any opset: its domain is not imported"
            self._refuse(node, None, Refuse(f"not an operator of {opsets.shown(node.domain)} at {where}"), scope, work)
        elif fate.crossing is not None:
            moving = node
            if fate.may_hold_graphs and any(subgraphs(node)):
                moving = NodeProto()
                moving.CopyFrom(node)
                for child in self._children(index, moving, scope, work):
                    edits.apply_graph(child)
            self._replace(node, moving, opset, scope, work)
        else:
            if fate.may_hold_graphs:
                scope.edit.children += self._children(index, node, scope, work)
            if fate.rule is None or self._is_legal(node, fate, scope, work):
                scope.edit.nodes.append(node)
            else:
                self._replace(node, node, opset, scope, work)

    def _children(self, index: int, node: NodeProto, scope: Scope, work: Work) -> list[edits.GraphEdit]:
        found = []
        for attribute, position, graph in subgraphs(node):
            facts = scope.facts.child(index, attribute, position, len(graph.node))
            path = f"{scope.path}/{scope.shown(node)}.{node.attribute[attribute].name}".lstrip("/")
            child = Scope(graph, self.session, facts, scope.imports, scope, path)
            self._graph(child, work)
            found.append(child.edit)
        return found

    def _finish(self, scope: Scope) -> None:
        used = self.session.used
        scope.edit.constants = [tensor for name, tensor in scope.new_constants.items() if name in used]

    # ---- one node

    def _expands(self, node: NodeProto) -> bool:
        return bool(self.inlined) and key_of(node) in self.inlined

    def _is_legal(self, node: NodeProto, fate: Fate, scope: Scope, work: Work) -> bool:
        assert fate.rule is not None
        unknown: list[str] = []
        stop = self.target[opsets.normalise(node.domain)]
        if legality.check(node, fate.rule, stop, scope.spelled, unknown if fate.narrower else None) is not None:
            return False
        for name in unknown:
            if self.options.strict:
                reason = f"the dtype of {name!r} is not known, and opset {stop} takes fewer than the model's opset"
                self._refuse(node, None, Refuse(reason, "leave out --strict to have it assumed", unknown=True), scope, work)
            work.assumed.append(f"{node.op_type} {scope.shown(node)!r}: the dtype of {name!r} is legal at opset {stop}")
        return True

    def _replace(self, source: NodeProto, moving: NodeProto, opset: int, scope: Scope, work: Work) -> None:
        """Puts what the node becomes at the target in its place; if it cannot get there, records why."""
        crossing: list[Crossing | None] = [None]
        try:
            written, steps = self._written(moving, opset, scope, work, crossing)
        except Refuse as refuse:
            self._refuse(source, crossing[0], refuse, scope, work)
            scope.edit.nodes.append(source)
            return
        for step in steps:
            work.steps[step] += 1
        used: set[str] = set()
        by = (steps[0].rewrite if steps else "", scope.shown(source))
        domains = scope.edit.domains
        for node in written:
            used |= used_names(node)
            domains.setdefault(opsets.normalise(node.domain), self.target.get(opsets.normalise(node.domain), 1))
            for name in node.output:
                self.attribution.by_value[name] = by
        self.session.used |= used
        work.lost += [(scope, name) for name in source.input if name and name not in used]
        scope.edit.nodes += written
        scope.edit.changed = True

    def _written(
        self, node: NodeProto, opset: int, scope: Scope, work: Work, at: list[Crossing | None]
    ) -> tuple[list[NodeProto], Sequence[Step]]:
        """What a node becomes at the target, by a recipe if one like it was there before."""
        key = recipes.key_of(node, opset) if not scope.is_function and not self._expands(node) else None
        if key is not None and (followed := self._recipes.follow(key, node, scope)) is not None:
            for new in followed[0]:
                scope.wrote(new, self.target.get(opsets.normalise(new.domain), 1))
            return followed
        listener = scope.listener = recipes.Listener(node)
        steps: list[Step] = []
        try:
            written = self._carry(node, opset, scope, work, steps, at)
        finally:
            scope.listener = None
        if key is not None:
            self._recipes.learn(key, node, written, steps, listener, scope)
        return written, steps

    def _carry(
        self, node: NodeProto, opset: int, scope: Scope, work: Work, steps: list[Step], at: list[Crossing | None]
    ) -> list[NodeProto]:
        """The nodes that one node becomes at the target. `at` tells the caller how far it got."""
        done: list[NodeProto] = []
        pending: list[tuple[NodeProto, int, Lineage]] = [(node, opset, ())]
        while pending:
            moving, opset, lineage = pending.pop()
            if self.inlined and key_of(moving) in self.inlined:
                emitted = self._expand(moving, scope, work, lineage)
                origin: object = key_of(moving)
            else:
                way = self._way(opsets.normalise(moving.domain), moving.op_type, opset)
                at[0] = crossing = way.crossing
                if crossing is None:
                    if not way.stop:
                        scope.edit.domains.setdefault(opsets.normalise(moving.domain), opset)
                    done += self._settle(moving, opset, way, scope, steps, lineage)
                    continue
                origin = (moving.op_type, crossing)
                if origin in lineage:
                    raise InternalError(f"{moving.op_type}@{crossing.boundary} leads to itself", node=scope.shown(node))
                emitted = self._cross(moving, opset, crossing, scope, steps)
            lineage = (*lineage, origin)
            pending += [(new, version, lineage) for new, version in reversed(emitted)]
        return done

    def _way(self, domain: str, operator: str, opset: int) -> Way:
        key = (domain, operator, opset)
        way = self._ways.get(key)
        if way is None:
            stop = self.target.get(domain)
            if stop is None or (domain, operator) in self._names:
                way = Way()
            else:
                crossing = registry.route(domain, operator, opset, stop)
                rule = legality.rule_of(operator, stop, domain)
                as_written = rule is not None and rule == legality.rule_of(operator, opset, domain)
                way = Way(crossing, stop, rule, as_written)
            self._ways[key] = way
        return way

    def _expand(self, call: NodeProto, scope: Scope, work: Work, lineage: Lineage) -> list[Emitted]:
        """The body of a function in place of a call."""
        key = key_of(call)
        if key in lineage:
            raise InvalidModelError(f"function {key[1]} calls itself", where=scope.shown(call))
        work.inlined.add(key)
        emitted = list(expand(self.functions[key], call, self.session.names))
        for new, version in emitted:
            scope.wrote(new, version)
        return emitted

    def _cross(
        self, node: NodeProto, opset: int, crossing: Crossing, scope: Scope, steps: list[Step]
    ) -> list[Emitted]:
        decision = crossing.decision
        if decision is None:
            raise Refuse(*_undecided(node, crossing))
        if isinstance(decision, Impossible):
            raise Refuse(decision.reason, decision.remedy)
        landing = crossing.boundary if crossing.direction == opsets.UP else crossing.boundary - 1
        subject = Node(node, scope, opset)
        own = opsets.normalise(node.domain) == opsets.AI_ONNX
        op = Emitter(subject, landing, landing if own else self.target[opsets.AI_ONNX])
        try:
            outcome = decision.function(subject, op)
        except (Refuse, InvalidModelError, InternalError):
            raise
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise InternalError(why, adapter=decision.name, node=scope.shown(node)) from error
        self._promise(op.form, op.condition)
        take_over(op, outcome, decision)
        steps.append(
            Step(
                node.op_type,
                opsets.shown(node.domain),
                crossing.boundary,
                crossing.direction,
                decision.name,
                op.form,
                op.condition,
            )
        )
        return op.emitted

    def _promise(self, form: str, condition: str) -> None:
        """Refuses a form that the user does not allow."""
        if form == CONDITIONAL and not self.options.conditional:
            raise Refuse(f"the only form is right if {condition}", "--allow conditional, if you know that it holds")
        if form != "exact" and self.options.exact:
            raise Refuse(f"the only form is {form}, not exact: {condition}", "leave out --exact")

    def _settle(
        self, node: NodeProto, opset: int, way: Way, scope: Scope, steps: list[Step], lineage: Lineage
    ) -> list[NodeProto]:
        """A node that has nothing left to cross: as it is if it is legal, in a Cast sandwich if that is allowed."""
        rule, stop, domain = way.rule, way.stop, opsets.normalise(node.domain)
        if rule is None:
            return [node]  # a function, or a domain that the installed onnx does not define
        finding = legality.check(node, rule, stop, scope.spelled, as_written=way.as_written and bool(lineage))
        if finding is None:
            return [node]
        if finding.formal is None or finding.remedy:
            raise Refuse(finding.reason, finding.remedy, boundary=finding.since)
        sandwich = wrap(Node(node, scope, opset), rule, stop, finding)
        if sandwich is None:
            raise Refuse(finding.reason, boundary=finding.since)
        if self.options.types == "refuse" or (sandwich.form == EQUIVALENT and self.options.types == "cast"):
            raise Refuse(finding.reason, sandwich.remedy, boundary=finding.since)
        self._promise(sandwich.form, sandwich.condition)
        steps.append(
            Step(
                node.op_type,
                opsets.shown(domain),
                finding.since,
                opsets.DOWN,
                sandwich.name,
                sandwich.form,
                sandwich.condition,
            )
        )
        return sandwich.nodes

    def _refuse(self, node: NodeProto, crossing: Crossing | None, why: Refuse, scope: Scope, work: Work) -> None:
        domain = opsets.normalise(node.domain)
        direction = crossing.direction if crossing else _direction(scope.imports.get(domain, 0), self.target.get(domain, 0))
        boundary = crossing.boundary if crossing else why.boundary
        work.unknown |= why.unknown
        work.refusals.append(
            Refusal(node.op_type, opsets.shown(domain), scope.shown(node), boundary, direction, why.reason, why.remedy, scope.path)
        )  # fmt: skip


def _direction(start: int, stop: int) -> str:
    return opsets.UP if start <= stop else opsets.DOWN


def _undecided(node: NodeProto, crossing: Crossing) -> tuple[str, str]:
    versions = opsets.history(node.op_type, opsets.normalise(node.domain))
    if crossing.direction == opsets.DOWN and versions and crossing.boundary == versions[0]:
        return (
            f"{node.op_type} exists only from opset {crossing.boundary} on, and there is no replacement yet",
            f"go no lower than opset {crossing.boundary}",
        )
    way = "no lower than" if crossing.direction == opsets.DOWN else "no higher than"
    limit = crossing.boundary if crossing.direction == opsets.DOWN else crossing.boundary - 1
    return (
        f"what becomes of {node.op_type} at boundary {crossing.boundary} on the way {crossing.direction} is not decided",
        f"go {way} opset {limit}",
    )


def take_over(op: Emitter, outcome: Outcome, adapter: Adapter) -> None:
    """Gives the values that an adapter returned the output names of the node that it rewrote."""
    node = op.subject.proto
    made = {name: new for new, _ in op.emitted for name in new.output}
    values: Sequence[Value | None] = outcome if isinstance(outcome, tuple) else (outcome,)
    if len(node.output) > 1 and isinstance(outcome, Value) and outcome.name in made:
        values = [Value(name, op.scope) if name else None for name in made[outcome.name].output]
    renamed: dict[str, str] = {}
    for index, name in enumerate(node.output):
        if not name:
            continue
        value = values[index] if index < len(values) else None
        if value is None:
            raise InternalError(f"no value for output {name!r}", adapter=adapter.name, node=node.name)
        if value.name in renamed or value.name not in made:
            value = op.Identity(value)
            made[value.name] = op.emitted[-1][0]
        renamed[value.name] = name
    if op.meaning is None and node.output:
        bearer = made[next(temporary for temporary, name in renamed.items())]
        bearer.name, bearer.doc_string = node.name, node.doc_string
        if getattr(node, "metadata_props", None):
            bearer.metadata_props.extend(node.metadata_props)
    for new, _ in op.emitted:
        for names in (new.input, new.output):
            for index, name in enumerate(names):
                if name in renamed:
                    names[index] = renamed[name]
    for temporary, name in renamed.items():
        op.scope.renamed(temporary, name)
