# SPDX-License-Identifier: Apache-2.0
"""Inlining: calls of functions become their nodes."""

from __future__ import annotations

import pytest
from texts import assert_same_numbers, function, model, operators, opset_imports

import onnx_convert
import onnx_convert.adapters
from onnx_convert import RefusedError
from oracle import all_nodes

# ---- functions


CALL = "(float[2] x) => (float[1,2] y) { y = f.F (x) }"


@pytest.mark.parametrize(("keep", "ir_version"), [(False, 7), (True, 8)])
def test_functions_are_inlined_below_ir_version_8(keep: bool, ir_version: int) -> None:
    node = "axes = Constant <value_ints = [0]> () z = Unsqueeze (x, axes) y = Neg (z)"
    source = model(CALL, 17, function(node, 17), f=1)
    converted = onnx_convert.convert(source, to=12, keep_functions=keep)
    assert converted.model.ir_version == ir_version
    assert len(converted.model.functions) == keep
    assert converted.report.inlined == ([] if keep else ["f.F"])
    if not keep:
        assert operators(converted.model) == ["Unsqueeze", "Neg"]
    assert_same_numbers(source, converted.model)


def test_nested_calls_are_inlined_through() -> None:
    source = model(
        "(float[2] x) => (float[1,1,2] y) { a = f.Outer (x) y = Neg (a) }",
        17,
        function("z = f.F (x) y = f.F (z)", 17, "Outer", calls="f"),
        function("axes = Constant <value_ints = [0]> () y = Unsqueeze (x, axes)", 17),
        f=1,
    )
    converted = onnx_convert.convert(source, to=12)
    assert operators(converted.model) == ["Unsqueeze", "Unsqueeze", "Neg"]
    assert set(converted.report.inlined) == {"f.F", "f.Outer"}
    assert_same_numbers(source, converted.model)


def test_calls_in_subgraphs_are_inlined() -> None:
    source = model(
        """(bool c, float[2] x) => (float[1,2] y) {
            y = If (c) <then_branch = t () => (float[1,2] a) { a = f.F (x) },
                        else_branch = e () => (float[1,2] b) { z = Neg (x) b = f.F (z) }> }""",
        14,
        function("axes = Constant <value_ints = [0]> () y = Unsqueeze (x, axes)", 14),
        ir=8,
        f=1,
    )
    converted = onnx_convert.convert(source, to=13)
    assert not any(node.op_type == "F" for node in all_nodes(converted.model))
    assert_same_numbers(source, converted.model)


@pytest.mark.parametrize(
    ("call", "signature", "body", "expected"),
    [
        ("y = f.F (x)", "(x) => (y, z)", "y = Neg (x) z = Abs (x)", "y = Neg (x)"),
        ("nothing, y = f.F (x)", "(x) => (y, z)", "y = Neg (x) z = Abs (x)", "y = Abs (x)"),
        ("y = f.F (x)", "(x, low) => (y)", "y = Clip (x, low)", "y = Identity (x)"),
        ("z, y = f.F (x)", "(x) => (x, y)", "y = Abs (x)", "y = Abs (x)"),
        ("z, y = f.F (x)", "(x) => (y, y)", "y = Abs (x)", "y = Abs (x)"),
    ],
    ids=["last output left out", "first output left out", "input left out", "handed through", "twice"],
)
def test_calls_of_every_shape_are_inlined(call: str, signature: str, body: str, expected: str) -> None:
    function = f'<domain: "f", opset_import: ["" : 14]> F {signature} {{ {body} }}'
    graph = "(float[2] x) => (float[2] y)"
    source = model(f"{graph} {{ {call} }}", 14, function, ir=8, f=1)
    outputs = source.graph.node[0].output
    outputs[:] = [name.replace("nothing", "") for name in outputs]
    converted = onnx_convert.convert(source, to=13).model
    assert not converted.functions
    assert_same_numbers(model(f"{graph} {{ {expected} }}", 13), converted)


def test_an_inlined_function_brings_its_imports() -> None:
    function = '<domain: "f", opset_import: ["" : 14, "com.acme" : 3]> F (x) => (y) { y = com.acme.Op (x) }'
    source = model("(float[2] x) => (float[2] y) { y = f.F (x) }", 14, function, ir=8, f=1)
    converted = onnx_convert.convert(source, to=13).model
    assert operators(converted) == ["Op"]
    assert opset_imports(converted) == {"": 13, "f": 1, "com.acme": 3}


@pytest.mark.parametrize(("version", "refused"), [(2, True), (3, False)])
def test_an_inlined_function_must_agree_on_domains_that_stay(version: int, refused: bool) -> None:
    function = '<domain: "f", opset_import: ["" : 14, "com.acme" : 3]> F (x) => (y) { y = com.acme.Op (x) }'
    graph = "(float[2] x) => (float[2] z) { y = f.F (x) z = com.acme.Op (y) }"
    source = model(graph, 14, function, ir=8, f=1, com_acme=version)
    if refused:
        with pytest.raises(RefusedError, match=f"imports com.acme 3, the model {version}"):
            onnx_convert.convert(source, to=13)
        assert onnx_convert.convert(source, to=13, keep_functions=True).model.functions
    else:
        assert operators(onnx_convert.convert(source, to=13).model) == ["Op", "Op"]
