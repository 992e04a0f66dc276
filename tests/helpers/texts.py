# SPDX-License-Identifier: Apache-2.0
"""Models from ONNX's text form, and what tests ask of a model."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import onnx.parser
from onnx import GraphProto, ModelProto, NodeProto

from oracle import all_nodes, compare, evaluate, feeds_for, ir_version_of, scopes, validate


def model(graph: str, opset: int, *functions: str, ir: int | None = None, **domains: int) -> ModelProto:
    """Returns a model of a graph `(inputs) => (outputs) <initializers> { nodes }`, at the IR version of its opset or at
    `ir`.

    Functions follow as `<domain: "f", opset_import: ["" : 13]> Name (x) => (y) { nodes }`; `domains` are imported,
    with a dot for an underscore. Nodes have no names, since older onnx cannot parse them: see `with_names`.
    """
    imports = {"": opset, **{name.replace("_", "."): version for name, version in domains.items()}}
    listed = ", ".join(f'"{name}" : {version}' for name, version in imports.items())
    if ir is None:
        ir = ir_version_of(opset)
    header = f"<ir_version: {ir}, opset_import: [{listed}]>"
    return onnx.parser.parse_model("\n".join([header, f"g {graph}", *functions]))


def function(body: str, opset: int = 12, name: str = "F", attributes: str = "", calls: str = "") -> str:
    """Returns the text of a function of domain f, from x to y, for `model`."""
    imports = f'"" : {opset}' + (f', "{calls}" : 1' if calls else "")
    return f'<domain: "f", opset_import: [{imports}]> {name} {attributes} (x) => (y) {{ {body} }}'


def with_names(model: ModelProto, *names: str) -> ModelProto:
    """Returns the model itself, all nodes named in order, subgraphs after their node; `Relu_0` and so on by default."""
    nodes = list(all_nodes(model))
    for node, name in zip(nodes, names or [f"{n.op_type}_{i}" for i, n in enumerate(nodes)], strict=True):
        node.name = name
    return model


def opset_imports(model: ModelProto) -> dict[str, int]:
    """Returns the version of each domain that a model imports, the domain as the model spells it."""
    return {entry.domain: entry.version for entry in model.opset_import}


def operators(graph: ModelProto | GraphProto) -> list[str]:
    """Returns the operators of a graph in order, Constants apart."""
    nodes = graph.graph.node if isinstance(graph, ModelProto) else graph.node
    return [node.op_type for node in nodes if node.op_type != "Constant"]


def defined_names(model: ModelProto) -> Iterator[str]:
    """Each name of a value once for each place that defines it, in all graphs and functions."""
    for scope in scopes(model):
        for node in scope.node:
            yield from (name for name in node.output if name)
        if isinstance(scope, GraphProto):
            inputs = {value.name for value in scope.input}
            yield from inputs | {tensor.name for tensor in scope.initializer}


def node_named(model: ModelProto, name: str) -> NodeProto:
    """Returns the one node of that name, wherever it stands."""
    (found,) = [node for scope in scopes(model) for node in scope.node if node.name == name]
    return found


def assert_same_numbers(before: ModelProto, after: ModelProto) -> None:
    """The second is legal, and computes the same as the first on random inputs."""
    validate(after)
    feeds = feeds_for(before)
    difference = compare(evaluate(before, feeds).values, evaluate(after, feeds).values)
    assert difference is None, difference
