# SPDX-License-Identifier: Apache-2.0
"""Sorts the nodes of a model into kinds, which runtimes treat alike: one operator at one opset with the same types. A
runtime is asked about each kind once, and many runtimes about the same kinds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from onnx import AttributeProto, NodeProto

from onnx_convert.analysis import inference
from onnx_convert.analysis.facts import Facts
from onnx_convert.model.functions import key_of
from onnx_convert.model.graphs import name_of
from onnx_convert.planning import call_sites
from onnx_convert.rewrite import kernels as implemented
from onnx_convert.spec import opsets
from onnx_convert.spec.types import type_str

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from onnx import FunctionProto, GraphProto

    from onnx_convert.model.functions import FunctionKey
    from onnx_convert.model.source import SourceModel
    from onnx_convert.rewrite.kernels import Kernels

Setting = tuple[str, int | str]


class Kind(NamedTuple):
    """What nodes have in common that a kernel is for: the types of inputs and outputs, "" where they are left out or
    not known, and the attributes that hold a number or a word."""

    domain: str
    operator: str
    opset: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    settings: tuple[Setting, ...]

    def lacking(self, kernels: Kernels) -> str:
        """Returns why a runtime has no kernel for such nodes, "" if it has one, or if nothing is known."""
        at = opsets.named(self.opset, self.domain if opsets.is_known(self.domain) else opsets.AI_ONNX)
        if not kernels.has(self.domain, self.operator, self.opset):
            return f"{kernels.runtime} has no kernel for {self._shown} at {at}"
        node = self._node()
        signature = implemented.signature_of(kernels, self.operator, self.opset, self.domain)
        types = dict(zip([*node.input, *node.output], [*self.inputs, *self.outputs], strict=True))
        found = implemented.finding(kernels, node, signature, self.opset, types.__getitem__)
        return found.reason if found is not None else ""

    @property
    def _shown(self) -> str:
        return self.operator if opsets.is_known(self.domain) else f"{self.domain}.{self.operator}"

    def _node(self) -> NodeProto:
        """Returns a node of this kind."""
        node = NodeProto(op_type=self.operator, domain=self.domain)
        node.input.extend(f"i{index}" if kind else "" for index, kind in enumerate(self.inputs))
        node.output.extend(f"o{index}" for index in range(len(self.outputs)))
        for name, value in self.settings:
            if isinstance(value, int):
                node.attribute.append(AttributeProto(name=name, type=AttributeProto.INT, i=value))
            else:
                node.attribute.append(AttributeProto(name=name, type=AttributeProto.STRING, s=value.encode()))
        return node


def without_kernel(kinds: Mapping[Kind, list[str]], kernels: Kernels) -> dict[str, list[str]]:
    """Returns why nodes have no kernel of a runtime, with the names of these nodes."""
    told: dict[str, list[str]] = {}
    for kind, names in kinds.items():
        if reason := kind.lacking(kernels):
            told.setdefault(reason, []).extend(names)
    return told


def reasons_of(kinds: Mapping[Kind, list[str]], kernels: Kernels) -> dict[str, list[str]]:
    """Returns what nodes have no kernel of a runtime, each with their names, without saying of which runtime."""
    start = f"{kernels.runtime} has no kernel for "
    return {reason.removeprefix(start): names for reason, names in without_kernel(kinds, kernels).items()}


def named(names: Sequence[str]) -> str:
    """Returns the names of nodes, few of them."""
    shown = ", ".join(repr(name) for name in names[:3] if name)
    more = len(names) - 3
    return f"{shown} and {more} more" if more > 0 else shown


def kinds_of(source: SourceModel) -> dict[Kind, list[str]]:
    """Returns the kinds of nodes that a model has, those of functions and subgraphs included, with the names of the
    nodes. Calls of the model's functions are none. Runs inference once."""
    functions = source.functions
    main = Facts(lambda: inference.of_source(source), len(source.proto.graph.node))
    sites: dict[FunctionKey, list[call_sites.Call]] = {}

    def facts_of(key: FunctionKey) -> Facts:
        return Facts(partial(body_of, key), len(functions[key].node))

    def body_of(key: FunctionKey) -> GraphProto:
        if not sites:
            sites.update(call_sites.find(source.proto, functions, main, facts_of))
        common = call_sites.common_inputs(functions[key], sites.get(key, []))
        return inference.of_function(source, functions[key], common)

    found: dict[Kind, list[str]] = {}
    _sort(source.proto.graph, main, source.imports.main, found, functions)
    for key, function in functions.items():
        imports = {opsets.canonical_domain(entry.domain): entry.version for entry in function.opset_import}
        _sort(function, facts_of(key), imports, found, functions)
    return found


def _sort(
    body: GraphProto | FunctionProto,
    facts: Facts,
    imports: Mapping[str, int],
    found: dict[Kind, list[str]],
    functions: Mapping[FunctionKey, FunctionProto],
) -> None:
    """Adds the nodes of a body to the kinds found."""
    for call in call_sites.walk(body, (facts,)):
        node = call.node
        if key_of(node) in functions:
            continue
        domain = opsets.canonical_domain(node.domain)
        kind = Kind(
            domain,
            node.op_type,
            imports.get(domain, 0),
            _types(call, node.input),
            _types(call, node.output),
            tuple(
                (attribute.name, attribute.i if attribute.type == AttributeProto.INT else attribute.s.decode("latin-1"))
                for attribute in node.attribute
                if attribute.type in (AttributeProto.INT, AttributeProto.STRING)
            ),
        )
        found.setdefault(kind, []).append(name_of(node))


def _types(call: call_sites.Call, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(type_str(known) if name and (known := call.type_of(name)) is not None else "" for name in names)
