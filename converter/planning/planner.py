# SPDX-License-Identifier: Apache-2.0
"""Plans the conversion of a whole model: which functions are inlined, then every body, then what is left over."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from onnx import NodeProto

from onnx_convert.analysis import inference
from onnx_convert.analysis.facts import Facts
from onnx_convert.errors import InvalidModelError
from onnx_convert.model.functions import callees_first, key_of, nodes_with_calls_inlined
from onnx_convert.model.graphs import name_of, names_in_use
from onnx_convert.model.names import Names
from onnx_convert.model.node_list import NodeList
from onnx_convert.model.patch import GraphPatch, ModelPatch
from onnx_convert.planning import blame, call_sites, dead_constants
from onnx_convert.planning.plan import Plan
from onnx_convert.report import Refusal
from onnx_convert.rewrite.context import Session
from onnx_convert.rewrite.driver import Driver
from onnx_convert.rewrite.initializers import initializers_leave_inputs, initializers_to_inputs
from onnx_convert.spec import opsets
from onnx_convert.target import ir_versions
from onnx_convert.validation.inferred import Judge

if TYPE_CHECKING:
    from onnx import GraphProto, TypeProto

    from onnx_convert.model.functions import FunctionKey
    from onnx_convert.model.source import SourceModel
    from onnx_convert.options import Options
    from onnx_convert.report import Step
    from onnx_convert.rewrite.driver import Work
    from onnx_convert.rewrite.scope import Scope
    from onnx_convert.target.resolve import Target


MOST_NODES: Final = 200_000
"""Nodes that the calls of functions may stand for."""


def plan(source: SourceModel, target: Target, options: Options) -> Plan:
    """Returns the plan that brings a model to a target; where nodes are refused it leaves them as they are.

    Raises InvalidModelError if an adapter stumbles over a model that onnx itself finds wrong.
    """
    if source.functions and (too_large := _refused_for_size(source)) is not None:
        return too_large
    planner = _Planner(source, target, options)
    try:
        return planner.plan()
    except InvalidModelError:
        raise
    except Exception as error:  # an adapter may take what the schemas demand for granted
        node = getattr(error, "node", "")
        if isinstance(error.__cause__ or error, MemoryError):
            return _refused(source, f"what replaces it ({node or 'a node'}) is too large for the memory", "")
        raise blame.blamed(source, error) from error


def _refused_for_size(source: SourceModel) -> Plan | None:
    """Returns a refusal if the calls of functions stand for more nodes than anybody can go through, onnx included."""
    graph = source.proto.graph
    count = nodes_with_calls_inlined(graph, source.functions)
    if count <= MOST_NODES + source.index.nodes:
        return None
    call = next(node for node in graph.node if key_of(node) in source.functions)
    reason = (
        f"the functions, inlined at their calls, are too large: {count if count < 10**12 else 'more than 10^12'} nodes"
    )
    return _refused(source, reason, "call functions less often", call)


def _refused(source: SourceModel, reason: str, remedy: str, node: NodeProto | None = None) -> Plan:
    """Returns a plan that changes nothing, and says why."""
    graph = source.proto.graph
    node = node if node is not None else next(iter(graph.node), NodeProto())
    refusal = Refusal(node.op_type, node.domain, name_of(node), 0, opsets.DOWN, reason, remedy, code="too-large")
    return Plan(ModelPatch(GraphPatch(graph, NodeList(graph))), Counter(), [refusal])


class _Planner:
    """One planning."""

    def __init__(self, source: SourceModel, target: Target, options: Options) -> None:
        self.source = source
        self.target = target
        self.options = options
        model, index = source.proto, source.index
        self._session = Session(
            model.ir_version or opsets.INPUTS_ONLY,
            target.ir_version,
            Names(index.names),
            source.elements,
            lambda: names_in_use(model),
            source.texts,
        )
        self._false: set[str] = set()
        self._doubtful = False
        self._facts = Facts(lambda: inference.of_source(source, self._false.update, self._doubt), len(model.graph.node))
        self._steps: Counter[Step] = Counter()
        self._refusals: list[Refusal] = []
        self._assumed: list[str] = []
        self._removed: list[NodeProto] = []
        self._orphaned: list[str] = []  # in the main graph and those of training
        self._calls: dict[FunctionKey, list[call_sites.Call]] | None = None
        self._inlined: set[FunctionKey] = set()
        self._inlined_in_order: dict[str, None] = {}

    def plan(self) -> Plan:
        source, target = self.source, self.target
        functions, index = source.functions, source.index
        inlined = {key for key, f in functions.items() if ir_versions.of_function(f) > target.ir_version}
        driver = Driver(
            self._session,
            target.opsets,
            self.options,
            functions,
            simple=index.simple,
            kernels=target.kernels,
            judge=Judge(source.name).judge,
        )
        driver.inline(inlined)
        kept = []
        for key in callees_first(functions):
            if key not in inlined:
                before = len(driver.rewrites), len(driver.folded)
                scope, work = self._function(driver, key)
                if work.unknown and not self.options.keep_functions:
                    inlined.add(key)  # the calls may know what the body alone does not tell
                    del driver.rewrites[before[0] :], driver.folded[before[1] :]
                    driver.inline([key])
                else:
                    kept.append(scope.patch)
                    self._take(work)
        main = driver.scope(source.proto.graph, self._facts, source.imports.main, chunks=index.chunks)
        self._take(work := driver.body(main))
        self._orphaned += work.orphaned
        training = [scope.patch for scope in self._training(driver, main)]
        self._removed += dead_constants.sweep([main.patch, *training], self._orphaned, overridable=self._overridable)
        self._refuse_conflicts()
        self._refuse_doubles()
        if target.ir_version <= opsets.INPUTS_ONLY:
            initializers_to_inputs(main.patch)
        elif not self._overridable and not self.options.keep_initializer_inputs:
            initializers_leave_inputs(main.patch)
        simple = index.simple and driver.writes_simple_nodes
        patch = ModelPatch(main.patch, kept, training, inlined, dict(target.opsets), target.ir_version, simple)
        return Plan(
            patch=patch,
            steps=self._steps,
            refusals=self._refusals,
            inlined=list(self._inlined_in_order),
            assumed=self._assumed,
            notes=self._notes(main.patch),
            rewrites=driver.rewrites,
            folded=driver.folded,
            removed=self._removed,
            known=self._known(driver),
            operators=driver.written,
            false=self._false,
            doubtful=self._is_doubtful(driver),
        )

    def _doubt(self) -> None:
        self._doubtful = True

    def _is_doubtful(self, driver: Driver) -> bool:
        """Returns whether onnx's inference finds fault with a source of which nodes were rewritten: it will not see
        these nodes any more in the result."""
        if driver.rewrites:
            _ = self._facts.stated
        return self._doubtful

    def _notes(self, patch: GraphPatch) -> list[str]:
        gone = sum(tensor.name in patch.dropped_inputs for tensor in self.source.proto.graph.initializer)
        if gone:
            what = "1 initializer is no longer an input" if gone == 1 else f"{gone} initializers are no longer inputs"
            why = f"IR version {self._session.ir_before} made them inputs, and runtimes do not fold what is one"
            return [f"{what}: {why} (--keep-initializer-inputs leaves them)"]
        if self._session.took_ir3_initializer:
            return ["IR version 3 makes every initializer an input: they were taken to be constant"]
        return []

    def _known(self, driver: Driver) -> dict[str, bytes] | None:
        """Returns what inference found of the values that rewritten nodes made; None if nobody had to ask.

        Serialised, so that all else that it found can be let go: the check of the result needs as much memory again.
        """
        facts = self._facts
        if not facts.asked:
            return None
        made = (name for rewrite in driver.rewrites for name in rewrite.outputs)
        return {name: kind.SerializeToString() for name in made if (kind := facts.type_of(name)) is not None}

    @property
    def _overridable(self) -> bool:
        return self._session.ir_before > opsets.INPUTS_ONLY

    def _function(self, driver: Driver, key: FunctionKey) -> tuple[Scope, Work]:
        function = self.source.functions[key]
        imports = {opsets.canonical_domain(entry.domain): entry.version for entry in function.opset_import}
        scope = driver.scope(function, self._function_facts(key), imports, path=f"function {function.name}")
        work = driver.body(scope)
        if not work.unknown:
            self._removed += dead_constants.sweep([scope.patch], work.orphaned, overridable=self._overridable)
        return scope, work

    def _function_facts(self, key: FunctionKey) -> Facts:
        return Facts(lambda: self._infer_function(key), len(self.source.functions[key].node))

    def _infer_function(self, key: FunctionKey) -> GraphProto:
        """Returns a function's body, inferred from what all its calls have in common."""
        return inference.of_function(self.source, self.source.functions[key], self._common_inputs(key))

    def _common_inputs(self, key: FunctionKey) -> dict[str, TypeProto]:
        functions = self.source.functions
        if self._calls is None:
            self._calls = call_sites.find(self.source.proto, functions, self._facts, self._function_facts)
        return call_sites.common_inputs(functions[key], self._calls.get(key, []))

    def _training(self, driver: Driver, main: Scope) -> list[Scope]:
        """Plans the graphs of training information, which see the values of the main graph."""
        scopes = []
        for training in self.source.proto.training_info:
            for graph in (training.initialization, training.algorithm):
                scope = driver.scope(graph, Facts(lambda: None), self.source.imports.main, main, "training")
                self._take(work := driver.body(scope))
                self._orphaned += work.orphaned
                scopes.append(scope)
        return scopes

    def _take(self, work: Work) -> None:
        self._steps.update(work.steps)
        self._refusals += work.refusals
        self._assumed += work.assumed
        self._inlined |= work.inlined
        self._inlined_in_order |= dict.fromkeys(f"{opsets.shown(key[0])}.{key[1]}" for key in sorted(work.inlined))

    def _refuse_conflicts(self) -> None:
        """Refuses functions to inline whose imports contradict the model's: an operator of a domain that stays means
        what its version says."""
        known = {domain: (version, "the model") for domain, version in self.source.imports.main.items()}
        named = {key[0] for key in self.source.functions}  # the domains of functions, whose versions mean nothing
        for key in sorted(self._inlined):
            for entry in self.source.functions[key].opset_import:
                domain = opsets.canonical_domain(entry.domain)
                if domain in self.target.opsets or domain in named:
                    continue
                version, holder = known.setdefault(domain, (entry.version, f"function {key[1]}"))
                if version != entry.version:
                    reason = f"it has to be inlined, and imports {domain} {entry.version}, {holder} {version}"
                    remedy = "go no lower than opset 15, whose IR version has functions"
                    refusal = Refusal(key[1], key[0], "", 0, opsets.DOWN, reason, remedy, code="function-imports")
                    self._refusals.append(refusal)

    def _refuse_doubles(self) -> None:
        """Refuses functions that are called like an operator which changes; which of the two a call means is nowhere
        said."""
        called = {(opsets.canonical_domain(domain), operator) for domain, operator in self.source.index.operators}
        for domain, name, _ in self.source.functions:
            start, stop = self.source.imports.main.get(domain, 0), self.target.opsets.get(domain, 0)
            if start != stop and (domain, name) in called and opsets.history(name, domain):
                direction = opsets.UP if start < stop else opsets.DOWN
                reason = "it is a function of the model as well, and runtimes differ in which of the two they run"
                remedy = "give the function another name"
                place = name, opsets.shown(domain), "", 0, direction
                self._refusals.append(Refusal(*place, reason, remedy, code="function-is-operator"))
