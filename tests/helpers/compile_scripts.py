# SPDX-License-Identifier: Apache-2.0
"""Compiles the decompositions that are written in ONNX Script: `python tests/helpers/compile_scripts.py`.

What it writes beside the sources is what a conversion reads.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import onnx
import pytest
from onnx import FunctionProto, ModelProto, NodeProto, helper, numpy_helper, parser, printer

from onnx_convert.model.inlining import inline

DECOMPOSE = Path(__file__).parents[2] / "adapters" / "decompose"
SCRIPTS = DECOMPOSE / "scripts"
FAMILIES = sorted(path.stem for path in SCRIPTS.glob("*.py"))
DOMAIN = "onnx_convert"
HEAD = (
    "# SPDX-License-Identifier: Apache-2.0\n# Compiled from {family}.py by `python tests/helpers/compile_scripts.py`.\n"
)


# ---- compiling


@lru_cache(maxsize=None)
def source(family: str) -> ModuleType:
    """Returns the module of a family; skips where onnxscript is missing."""
    pytest.importorskip("onnxscript", reason="ONNX Script is compiled and run by onnxscript")
    spec = importlib.util.spec_from_file_location(f"scripts_{family}", SCRIPTS / f"{family}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # where onnxscript looks it up
    spec.loader.exec_module(module)
    return module


def compiled(family: str) -> ModelProto:
    """Returns a model that holds the public functions of a family, and in each what it calls of the others."""
    found = {name: f for name, f in vars(source(family)).items() if hasattr(f, "to_function_proto")}
    bodies = {name: function.to_function_proto() for name, function in found.items()}
    functions = [flat(body, bodies) for name, body in bodies.items() if not name.startswith("_")]
    imports = {entry.domain: entry.version for function in functions for entry in function.opset_import}
    opsets = [helper.make_opsetid(domain, version) for domain, version in (*imports.items(), (DOMAIN, 1))]
    graph = helper.make_graph([], family, [], [])
    return helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=8)


def flat(function: FunctionProto, bodies: Mapping[str, FunctionProto]) -> FunctionProto:
    """Returns a function with others in place of their calls, and without what tells of its making."""
    names = Short()
    names.taken.update((*function.input, *(name for node in function.node for name in node.output)))
    nodes = [stripped(node) for node in inlined(function.node, bodies, names)]
    imports = [entry for entry in function.opset_import if not entry.domain]
    inputs, outputs, attributes = list(function.input), list(function.output), list(function.attribute)
    return helper.make_function(DOMAIN, function.name, inputs, outputs, nodes, imports, attributes)


def inlined(nodes: Iterable[NodeProto], bodies: Mapping[str, FunctionProto], names: Short) -> Iterator[NodeProto]:
    for node in nodes:
        if node.domain:
            yield from inlined([new for new, _ in inline(bodies[node.op_type], node, names)], bodies, names)
        else:
            yield node


def stripped(node: NodeProto) -> NodeProto:
    attributes = sorted(node.attribute, key=lambda attribute: attribute.name)
    for attribute in attributes:
        if attribute.HasField("t"):
            attribute.t.ClearField("name")
    return NodeProto(op_type=node.op_type, input=node.input, output=node.output, attribute=attributes)


class Short:
    """Names of values as the author gave them, with a number where that is not enough."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def fresh(self, wanted: str) -> str:
        stem, number = wanted.rpartition("/")[2], 0
        name = stem
        while name in self.taken:
            number += 1
            name = f"{stem}_{number}"
        self.taken.add(name)
        return name


def shipped(family: str) -> ModelProto:
    return parser.parse_model((SCRIPTS / f"{family}.onnxtxt").read_text(encoding="utf-8"))


def spelled(functions: Iterable[FunctionProto]) -> list[Any]:
    """Functions as something to compare, whichever way a tensor holds its elements."""

    def held(attribute: onnx.AttributeProto) -> Any:
        if attribute.type == onnx.AttributeProto.TENSOR:
            array = numpy_helper.to_array(attribute.t)
            return array.dtype, array.shape, array.tobytes()
        return attribute.SerializeToString(deterministic=True)

    return [
        (
            *(function.domain, function.name, list(function.input), list(function.output), list(function.attribute)),
            [(entry.domain, entry.version) for entry in function.opset_import],
            [
                (node.op_type, list(node.input), list(node.output), sorted((a.name, held(a)) for a in node.attribute))
                for node in function.node
            ],
        )
        for function in functions
    ]


def main() -> None:
    """Writes the text of every family."""
    for family in FAMILIES:
        made = compiled(family)
        text = HEAD.format(family=family) + printer.to_text(made).replace("\n<", "\n\n<") + "\n"
        if spelled(parser.parse_model(text).functions) != spelled(made.functions):
            raise SystemExit(f"onnx {onnx.__version__} does not print all digits of a number; a newer one does")
        (SCRIPTS / f"{family}.onnxtxt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
