# SPDX-License-Identifier: Apache-2.0
"""Plans the conversion of a whole model: which functions are expanded, then every body, then what is left over."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from onnx_convert import calls, constants, engine, inference, irversion, leftovers, opsets, view
from onnx_convert.edits import GraphEdit, ModelEdit, function_key
from onnx_convert.errors import Refusal
from onnx_convert.facts import Facts, nothing_known
from onnx_convert.scope import Scope
from onnx_convert.session import Names, Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx import FunctionProto, GraphProto, ModelProto, TensorProto, TypeProto

    from onnx_convert.carrier import Options
    from onnx_convert.edits import FunctionKey, Rewrite
    from onnx_convert.engine import Work
    from onnx_convert.report import Report
    from onnx_convert.structure import Census


class Planner:
    """One plan for one model. After `plan`, `report` holds the steps and refusals, `rewrites` who wrote what."""

    def __init__(
        self,
        model: ModelProto,
        imports: dict[str, int],
        target: dict[str, int],
        ir_version: int,
        options: Options,
        read: Callable[[TensorProto], TensorProto],
        report: Report,
        census: Census,
    ) -> None:
        self.model = model
        self.imports = imports
        self.target = target
        self.ir_version = ir_version
        self.options = options
        self.read = read
        self.report = report
        self.rewrites: list[Rewrite] = []
        self.session = Session(
            model.ir_version or 3,
            ir_version,
            Names(census.names),
            read,
            lambda: calls.names_in_use(model),
            lambda: sum(constants.elements(tensor) for graph in census.graphs for tensor in graph.initializer),
        )
        self._census = census
        self.faults: list[Exception] = []  # what inference finds wrong with the source
        self.false: set[str] = set()  # values of which the source states what is not so
        self.operators: set[tuple[str, str]] = set()  # of new nodes, by domain
        infer = partial(inference.of_source, model, read, self.faults.append, census, self.false.update)
        self.facts = Facts(infer, len(model.graph.node))
        self.lost: list[str] = []  # in the main graph and those of training
        self.functions: dict[FunctionKey, FunctionProto] = {function_key(f): f for f in model.functions}
        self._sites: dict[FunctionKey, list[calls.Call]] | None = None
        self._inlined: set[FunctionKey] = set()

    def plan(self) -> ModelEdit:
        """The edit that carries the model to the target; where nodes were refused it leaves them as they are."""
        expanded = {key for key, f in self.functions.items() if irversion.of_function(f) > self.ir_version}
        simple = self._census.simple
        run = engine.Engine(self.session, self.target, self.options, self.functions, expanded, simple=simple)
        kept = []
        for key in calls.callees_first(self.functions):
            if key not in expanded:
                scope, work = self._function(run, key)
                if work.unknown and not self.options.keep_functions:
                    expanded.add(key)  # the calls may know what the body alone does not tell
                else:
                    kept.append(scope.edit)
                    self._take(work)
        main = Scope(self.model.graph, self.session, self.facts, self.imports)
        work = run.body(main, self._census.stretches)
        self._take(work)
        training = [scope.edit for scope in self._training(run, main)]
        edit = ModelEdit(main.edit, kept, training, expanded, dict(self.target), self.ir_version)
        self.rewrites = run.rewrites
        self.operators.update(run.carrier.endings)
        edit.simple = simple and run.writes_simple_nodes
        self.lost += work.lost
        self._sweep([main.edit, *edit.training], self.lost)
        self._refuse_conflicts()
        self._refuse_doubles()
        if self.ir_version <= irversion.INPUTS_ONLY:
            self._initializers_to_inputs(edit)
        return edit

    def take_known(self) -> dict[str, bytes] | None:
        """What inference found of the values that rewritten nodes made, serialised; None if nobody had to ask. All else
        that it found is let go: the check of the result needs as much memory again."""
        facts, self.facts = self.facts, nothing_known()
        if not facts.asked:
            return None
        made = (name for rewrite in self.rewrites for name in rewrite.outputs)
        return {name: kind.SerializeToString() for name in made if (kind := facts.type_of(name)) is not None}

    def _function(self, run: engine.Engine, key: FunctionKey) -> tuple[Scope, Work]:
        function = self.functions[key]
        imports = {opsets.normalise(entry.domain): entry.version for entry in function.opset_import}
        scope = Scope(function, self.session, Facts(lambda: self._infer_function(key), len(function.node)), imports,
                      path=f"function {function.name}")  # fmt: skip
        work = run.body(scope)
        if not work.unknown:
            self._sweep([scope.edit], work.lost)
        return scope, work

    def _sweep(self, roots: list[GraphEdit], lost: list[str]) -> None:
        leftovers.sweep(roots, lost, overridable=self.session.ir_before > irversion.INPUTS_ONLY)

    def _infer_function(self, key: FunctionKey) -> GraphProto:
        """A function's body, inferred from what all its calls have in common."""
        function = self.functions[key]
        return inference.of_function(function, self._common_inputs(key), self.model, self.read)

    def _common_inputs(self, key: FunctionKey) -> dict[str, TypeProto]:
        if self._sites is None:
            self._sites = calls.find(self.model, self.functions, self.facts, self._function_facts)
        function = self.functions[key]
        return calls.common_inputs(function, self._sites.get(key, []))

    def _function_facts(self, key: FunctionKey) -> Facts:
        return Facts(lambda: self._infer_function(key), len(self.functions[key].node))

    def _training(self, run: engine.Engine, main: Scope) -> list[Scope]:
        """The graphs of training information, which see the values of the main graph."""
        scopes = []
        for training in self.model.training_info:
            for graph in (training.initialization, training.algorithm):
                scope = Scope(graph, self.session, Facts(lambda: None), self.imports, main, "training")
                work = run.body(scope)
                self._take(work)
                self.lost += work.lost
                scopes.append(scope)
        return scopes

    def _refuse_conflicts(self) -> None:
        """An operator of a domain that stays means what its version says: an expanded function has to agree on it."""
        known = {domain: (version, "the model") for domain, version in self.imports.items()}
        named = {key[0] for key in self.functions}  # the domains of functions, whose versions mean nothing
        for key in sorted(self._inlined):
            for entry in self.functions[key].opset_import:
                domain = opsets.normalise(entry.domain)
                if domain in self.target or domain in named:
                    continue
                version, holder = known.setdefault(domain, (entry.version, f"function {key[1]}"))
                if version != entry.version:
                    reason = f"it has to be expanded, and imports {domain} {entry.version}, {holder} {version}"
                    remedy = "keep_functions, or an opset whose IR version has functions (15 or above)"
                    self.report.refusals.append(Refusal(key[1], key[0], "", 0, opsets.DOWN, reason, remedy))

    def _refuse_doubles(self) -> None:
        """A function may be called like an operator; which of the two its calls mean is nowhere said."""
        called = {(opsets.normalise(domain), operator) for domain, operator in self._census.operators}
        for domain, name, _ in self.functions:
            start, stop = self.imports.get(domain, 0), self.target.get(domain, 0)
            if start != stop and (domain, name) in called and opsets.history(name, domain):
                direction = opsets.UP if start < stop else opsets.DOWN
                reason = "it is a function of the model as well, and runtimes differ in which of the two they run"
                remedy = "give the function another name"
                self.report.refusals.append(Refusal(name, opsets.shown(domain), "", 0, direction, reason, remedy))

    def _take(self, work: Work) -> None:
        self.report.steps.update(work.steps)
        self.report.refusals += work.refusals
        self.report.assumed += work.assumed
        self._inlined |= work.inlined
        self.report.inlined += [
            f"{opsets.shown(key[0])}.{key[1]}" for key in sorted(work.inlined)
            if f"{opsets.shown(key[0])}.{key[1]}" not in self.report.inlined
        ]  # fmt: skip

    def _initializers_to_inputs(self, edit: ModelEdit) -> None:
        """Up to IR version 3 every initializer is an input too."""
        main = edit.graph
        graph = self.model.graph
        given = {value.name for value in graph.input}
        for tensor in [*graph.initializer, *main.constants]:
            if tensor.name not in given and tensor.name not in main.dropped:
                main.inputs.append(view.typed(tensor.name, tensor.data_type, tensor.dims))
