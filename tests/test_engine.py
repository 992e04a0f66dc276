# SPDX-License-Identifier: Apache-2.0
"""The engine: which boundaries a node crosses, where nodes stand, what a rewrite leaves alone, and how it refuses.

Operators of the domain `org.engine` are made up here, so that each situation can be had at will.
"""

from __future__ import annotations

import weakref
from collections import Counter
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, ModelProto, TensorProto, helper, numpy_helper
from texts import assert_same_numbers, defined_names, model, node_named, operators, opset_imports, with_names

import onnx_convert
import onnx_convert.adapters
from onnx_convert import InternalError, RefusedError
from onnx_convert.analysis.facts import Facts
from onnx_convert.planning import check
from onnx_convert.rewrite import registry
from onnx_convert.rewrite.legalizer import Legalizer
from onnx_convert.rewrite.written import WrittenNodes
from onnx_convert.spec import opsets
from oracle import all_nodes, run

DOWN, UP = opsets.DOWN, opsets.UP
OWN = "org.engine"


# ---- made-up operators


@registry.upgrade("Walker", at=2, domain=OWN)
@registry.upgrade("Walker", at=3, domain=OWN)
def step_up(node, op):
    """Writes down where it has been."""
    return op.same(path=[*(node.attr("path") or []), node.opset])


@registry.downgrade("Walker", at=3, domain=OWN)
@registry.downgrade("Walker", at=2, domain=OWN)
def step_down(node, op):
    """Writes down where it has been."""
    return op.same(path=[*(node.attr("path") or []), node.opset])


@registry.upgrade("Turning", at=2, domain=OWN)
def back_again(node, op):
    """Writes itself for the opset that it came from."""
    return op.node("Turning", *node.inputs, at=1, domain=OWN)[0]


@registry.upgrade("Broken", at=2, domain=OWN)
def divide(node, op):
    """Has a bug."""
    return op.same(path=[1 // 0])


@registry.upgrade("Wrong", at=2, domain=OWN)
def change_the_rank(node, op):
    """Has a bug that only inference notices."""
    return op.at(13).Unsqueeze(node.input(0), op.const([0]))


@registry.upgrade("Rounded", at=2, domain=OWN)
def round_otherwise(node, op):
    """The same mathematics."""
    op.equivalent("the sum is taken in another order")
    return op.same()


@registry.upgrade("Guessed", at=2, domain=OWN)
def hope(node, op):
    """Right if all goes well."""
    op.conditional("no element is negative")
    return op.same()


registry.impossible("Stuck", at=2, direction="up", domain=OWN, reason="nobody knows how", remedy="stay at version 1")


def own(operator: str, version: int = 1, graph: str = "") -> ModelProto:
    graph = graph or f"(float[2] x) => (float[2] y) {{ y = org.engine.{operator} (x) }}"
    return with_names(model(graph, 17, org_engine=version))


def steps(report: onnx_convert.Report) -> list[tuple[str, int, str]]:
    return [(step.operator, step.boundary, step.direction) for step in report.steps]


# ---- traversal


@pytest.mark.parametrize(
    ("operator", "start", "stop", "crossed"),
    [
        ("Softmax", 9, 14, [(11, UP), (13, UP)]),
        ("Softmax", 14, 9, [(13, DOWN), (11, DOWN)]),
        ("Softmax", 13, 28, []),
        ("Softmax", 13, 13, []),
        ("Softmax", 12, 13, [(13, UP)]),
        ("Softmax", 13, 12, [(13, DOWN)]),
        ("Relu", 15, 17, []),
        ("GridSample", 17, 15, [(16, DOWN)]),  # introduced at 16: below it does not exist
        ("Upsample", 7, 11, [(9, UP), (10, UP)]),
        ("NoSuchOperator", 1, 20, []),
    ],
)
def test_crossings(operator: str, start: int, stop: int, crossed: list[tuple[int, str]]) -> None:
    assert opsets.crossings(operator, start, stop) == crossed


@pytest.mark.parametrize(
    ("start", "stop", "path"), [(1, 3, [1, 2]), (1, 2, [1]), (2, 3, [2]), (3, 1, [3, 2]), (3, 2, [3]), (2, 1, [2])]
)
def test_every_boundary_on_the_way_is_crossed_in_order(start: int, stop: int, path: list[int]) -> None:
    converted = onnx_convert.convert(own("Walker", start), to={OWN: stop})
    (node,) = converted.model.graph.node
    assert helper.get_node_attr_value(node, "path") == path
    assert opset_imports(converted.model) == {"": 17, OWN: stop}
    assert len(converted.report.steps) == len(path)


def test_only_the_boundaries_of_the_own_operator_are_crossed() -> None:
    source = model("(float[2,3] x) => (float[2,3] z) { y = Relu(x) z = Softmax <axis = 1> (y) }", 11)
    report = onnx_convert.convert(source, to=16).report
    assert steps(report) == [("Softmax", 13, UP)]


def test_up_and_down_again_is_where_it_began() -> None:
    source = model("(float[2,3] x) => (float[1,2,3] y) { y = Unsqueeze <axes = [0]> (x) }", 12)
    there = onnx_convert.convert(source, to=17).model
    back = onnx_convert.convert(there, to=12).model
    assert back.SerializeToString(deterministic=True) == source.SerializeToString(deterministic=True)


def test_a_rewrite_that_leads_to_itself_is_a_bug() -> None:
    with pytest.raises(InternalError, match="Turning@2 leads to itself"):
        onnx_convert.convert(own("Turning"), to={OWN: 2})


@pytest.mark.parametrize(
    ("operator", "adapter", "text"),
    [("Broken", "divide", "ZeroDivisionError"), ("Wrong", "change_the_rank", "rank")],
)
def test_a_bug_of_an_adapter_names_adapter_and_node(operator: str, adapter: str, text: str) -> None:
    with pytest.raises(InternalError, match=text) as caught:
        onnx_convert.convert(own(operator), to={OWN: 2})
    assert (caught.value.adapter, caught.value.node) == (adapter, f"{operator}_0")


# ---- promises


@pytest.mark.parametrize(
    ("operator", "options", "form"),
    [
        ("Walker", {}, "exact"),
        ("Walker", {"exact": True}, "exact"),
        ("Rounded", {}, "equivalent"),
        ("Rounded", {"exact": True}, "--exact"),
        ("Guessed", {}, "--allow conditional"),
        ("Guessed", {"allow": ["conditional"]}, "conditional"),
    ],
)
def test_forms(operator: str, options: dict, form: str) -> None:
    if form.startswith("--"):
        with pytest.raises(RefusedError) as caught:
            onnx_convert.convert(own(operator), to={OWN: 2}, **options)
        assert form in caught.value.refusals[0].remedy
    else:
        assert onnx_convert.convert(own(operator), to={OWN: 2}, **options).report.form == form


# ---- where nodes stand

UNSQUEEZE = "Unsqueeze <axes = [0]>"


@pytest.mark.parametrize(
    "graph",
    [
        f"""(bool c, float[2] x) => (float[1,2] y) {{
            y = If (c) <then_branch = t () => (float[1,2] a) {{ a = {UNSQUEEZE} (x) }},
                        else_branch = e () => (float[1,2] b) {{ z = Neg (x) b = {UNSQUEEZE} (z) }}> }}""",
        f"""(bool c, float[2] x) => (float[1,2] y) {{
            y = If (c) <
                then_branch = t () => (float[1,2] a) {{
                    a = If (c) <then_branch = tt () => (float[1,2] aa) {{ aa = {UNSQUEEZE} (x) }},
                                else_branch = te () => (float[1,2] ab) {{ ab = {UNSQUEEZE} (x) }}> }},
                else_branch = e () => (float[1,2] b) {{ z = Neg (x) b = {UNSQUEEZE} (z) }}> }}""",
        f"""(int64 n, bool c, float[2] x) => (float[1,2] y) <float[1,2] start = {{0, 0}}> {{
            y = Loop (n, c, start) <body = b (int64 i, bool d, float[1,2] sum) => (bool e, float[1,2] next) {{
                e = Identity (d) w = {UNSQUEEZE} (x) next = Add (sum, w) }}> }}""",
        f"""(float[3,2] x) => (float[3,1,2] y) {{
            y = Scan <num_scan_inputs = 1, body = b (float[2] r) => (float[1,2] out) {{ out = {UNSQUEEZE} (r) }}> (x)
        }}""",
    ],
    ids=["If", "If in If", "Loop", "Scan"],
)
def test_subgraphs(graph: str) -> None:
    source = model(graph, 12)
    count = sum(node.op_type == "Unsqueeze" for node in all_nodes(source))
    converted = onnx_convert.convert(source, to=13)
    assert sum(converted.report.steps.values()) == count
    for node in all_nodes(converted.model):
        if node.op_type == "Unsqueeze":
            assert len(node.input) == 2
    assert_same_numbers(source, converted.model)


def test_a_branch_without_rewrites_is_equal_as_a_message() -> None:
    source = model(
        f"""(bool c, float[2] x) => (float[1,2] y, float[2] q) {{
            q = If (c) <then_branch = t () => (float[2] a) {{ a = Neg (x) }},
                        else_branch = e () => (float[2] b) {{ b = Abs (x) }}>
            y = {UNSQUEEZE} (x) }}""",
        12,
    )
    converted = onnx_convert.convert(source, to=13).model
    assert converted.graph.node[0] == source.graph.node[0]


def test_refusals_say_where_in_nested_graphs() -> None:
    source = own(
        "",
        graph="""(bool c, float[2] x) => (float[2] y) {
            y = If (c) <then_branch = t () => (float[2] a) { a = org.engine.Stuck (x) },
                                else_branch = e () => (float[2] b) { b = org.engine.Stuck (x) }> }""",
    )
    with pytest.raises(RefusedError) as caught:
        onnx_convert.convert(source, to={OWN: 2})
    places = [(refusal.path, refusal.node) for refusal in caught.value.refusals]
    assert places == [("If_0.then_branch", "Stuck_1"), ("If_0.else_branch", "Stuck_2")]


def test_training_information_is_converted_with_the_graph() -> None:
    source = model(f"(float[2] x) => (float[1,2] y) {{ y = {UNSQUEEZE} (x) }}", 12)
    training = source.training_info.add()
    training.algorithm.CopyFrom(onnx.parser.parse_graph(f"a () => (float[1,1,2] z) {{ z = {UNSQUEEZE} (y) }}"))
    converted = onnx_convert.convert(source, to=13).model
    assert len(converted.training_info[0].algorithm.node[0].input) == 2


# ---- functions


def function(body: str, opset: int = 12, name: str = "F", attributes: str = "", calls: str = "") -> str:
    imports = f'"" : {opset}' + (f', "{calls}" : 1' if calls else "")
    return f'<domain: "f", opset_import: [{imports}]> {name} {attributes} (x) => (y) {{ {body} }}'


CALL = "(float[2] x) => (float[1,2] y) { y = f.F (x) }"


def body_of(model: ModelProto, name: str = "F") -> onnx.FunctionProto:
    (found,) = [function for function in model.functions if function.name == name]
    return found


@pytest.mark.parametrize(
    ("written_for", "start", "stop", "inputs"),
    [
        (12, 12, 13, 2),  # at the model's opset
        (11, 12, 13, 2),  # older than the model
        (13, 12, 13, 2),  # at the target already
        (17, 13, 15, 2),  # newer than the model and the target
        (12, 15, 15, 2),  # the model is at the target already, the function is not
        (12, 13, 17, 2),
    ],
)
def test_a_function_is_converted_where_it_stands(written_for: int, start: int, stop: int, inputs: int) -> None:
    node = f"y = {UNSQUEEZE} (x)"
    if written_for >= 13:
        node = "axes = Constant <value_ints = [0]> () y = Unsqueeze (x, axes)"
    source = model(CALL, start, function(node, written_for), ir=8, f=1)
    converted = onnx_convert.convert(source, to=stop, keep_functions=True)
    body = body_of(converted.model)
    assert [len(node.input) for node in body.node if node.op_type == "Unsqueeze"] == [inputs]
    assert {entry.version for entry in body.opset_import if not entry.domain} == {stop}
    assert converted.model.graph.node[0] == source.graph.node[0]
    assert_same_numbers(source, converted.model)


def test_a_function_that_stays_keeps_its_constants_in_its_body() -> None:
    source = model(CALL, 12, function(f"y = {UNSQUEEZE} (x)"), ir=8, f=1)
    converted = onnx_convert.convert(source, to=13).model
    assert not converted.graph.initializer
    assert [node.op_type for node in body_of(converted).node] == ["Constant", "Unsqueeze"]


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


def test_a_reference_to_an_attribute_stays_one_where_a_constant_can_hold_it() -> None:
    source = model(
        "(float[2] x) => (float[1,2] y, float[2,1] z) { y = f.F <axes = [0]> (x) z = f.F <axes = [1]> (x) }",
        12,
        function("y = Unsqueeze <axes: ints = @axes> (x)", attributes="<axes>"),
        ir=8,
        f=1,
    )
    converted = onnx_convert.convert(source, to=13)
    constant, unsqueeze = body_of(converted.model).node
    assert constant.attribute[0].ref_attr_name == "axes"
    assert unsqueeze.input[1] == constant.output[0]
    assert not converted.report.inlined
    assert_same_numbers(source, converted.model)


def test_a_reference_where_a_fact_is_needed_is_resolved_at_the_calls() -> None:
    source = model(
        "(float[2,3,4] x) => (float[2,3,4] y, float[2,3,4] z) { y = f.F <axis = 1> (x) z = f.F <axis = 2> (x) }",
        12,
        function("y = Softmax <axis: int = @axis> (x)", attributes="<axis>"),
        ir=8,
        f=1,
    )
    converted = onnx_convert.convert(source, to=13)
    assert converted.report.inlined == ["f.F"]
    assert not converted.model.functions
    assert operators(converted.model).count("Softmax") == 2
    assert_same_numbers(source, converted.model)


def test_a_default_of_an_attribute_is_used_where_the_call_leaves_it_out() -> None:
    source = model(
        "(float[2,3,4] x) => (float[2,3,4] y) { y = f.F (x) }",
        12,
        function("y = Softmax <axis: int = @axis> (x)", attributes="<axis: int = 1>"),
        ir=9,
        f=1,
    )
    converted = onnx_convert.convert(source, to=13)
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


def test_a_function_that_nobody_calls_is_converted_too() -> None:
    graph = "(float[2] x) => (float[2] y) { y = Neg (x) }"
    source = model(graph, 12, function(f"y = {UNSQUEEZE} (x)"), ir=8, f=1)
    converted = onnx_convert.convert(source, to=13).model
    assert len(body_of(converted).node[-1].input) == 2


def test_a_function_named_like_an_operator_is_the_function() -> None:
    """A model-local function goes before an operator of the same domain and name."""
    source = model(
        "(float[2] x) => (float[2] y) { y = org.engine.Stuck (x) }",
        17,
        '<domain: "org.engine", opset_import: ["" : 17]> Stuck (x) => (y) { y = Neg (x) }',
        org_engine=1,
    )
    converted = onnx_convert.convert(source, to={OWN: 2}).model
    assert list(converted.graph.node) == list(source.graph.node)


# ---- what stays as it was


def test_nothing_but_the_rewritten_node_changes() -> None:
    source = model(
        f"""(float[2,3] x) => (float[1,2,3] z) <float[3] unused = {{1, 2, 3}}, float[3] bias = {{1, 2, 3}}>
            {{ y = Add (x, bias) z = {UNSQUEEZE} (y) w = Neg (y) }}""",
        12,
    )
    with_names(source, "add", "up", "aside")
    source.doc_string, source.producer_name, source.domain, source.model_version = "d", "p", "org.m", 3
    source.metadata_props.add(key="k", value="v")
    source.graph.doc_string = "of the graph"
    source.graph.value_info.add(name="dangling", doc_string="describes nothing")
    source.graph.value_info.add(name="y").type.tensor_type.elem_type = 1
    for node in source.graph.node:
        node.doc_string = f"of {node.name}"
    converted = onnx_convert.convert(source, to=13).model

    add, up, aside = converted.graph.node
    assert (add, aside) == (source.graph.node[0], source.graph.node[2])
    assert (up.name, up.doc_string, up.output) == ("up", "of up", ["z"])
    expected = ModelProto()
    expected.CopyFrom(source)
    expected.opset_import[0].version = 13
    expected.graph.node[1].CopyFrom(up)
    expected.graph.initializer.append(converted.graph.initializer[-1])
    assert converted == expected


def test_unknown_fields_are_kept() -> None:
    """A field number that this onnx does not know, as a newer one may write."""
    extra = b"\xf2\x7d\x03new"  # field 2014, three bytes
    source = model(f"(float[2] x) => (float[1,2] z) {{ y = Neg (x) z = {UNSQUEEZE} (y) }}", 12)
    for message in (source.graph.node[0], source.graph.node[1], source.graph, source):
        message.MergeFromString(extra)
    converted = onnx_convert.convert(source, to=13).model
    assert converted.graph.node[0].SerializeToString() == source.graph.node[0].SerializeToString()
    assert converted.graph.node[1].SerializeToString().endswith(extra)
    assert converted.SerializeToString().count(extra) == 4


def test_a_helper_is_named_after_the_node_and_the_node_keeps_its_name() -> None:
    source = model("(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax <axis = 1> (x) }", 12)
    with_names(source, "attention")
    source.graph.node[0].doc_string = "normalises"
    converted = onnx_convert.convert(source, to=13).model
    names = {node.name: node.op_type for node in converted.graph.node}
    assert names["attention"] == "Softmax"
    assert node_named(converted, "attention").doc_string == "normalises"
    assert all(name.startswith("attention") for name in names)
    assert converted.graph.node[-1].output == ["y"]


def test_nodes_without_names_get_none() -> None:
    source = model("(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax <axis = 1> (x) }", 12)
    converted = onnx_convert.convert(source, to=13).model
    assert {node.name for node in converted.graph.node} == {""}


def test_new_names_are_new_in_every_scope() -> None:
    """Each name that a rewrite would take is taken already, in a branch, by an input, or by a function."""
    graph = """(bool c, float[2,3,4] x) => (float[2,3,4] y, float[2,3,4] z) {
        y = Softmax <axis = 1> (x)
        z = If (c) <then_branch = t () => (float[2,3,4] a) { a = Softmax <axis = 1> (x) },
                    else_branch = e () => (float[2,3,4] b) { b = Neg (x) }> }"""
    source = with_names(model(graph, 12), "n", "if", "n", "neg")
    plain = onnx_convert.convert(source, to=13).model
    fresh = sorted(set(defined_names(plain)) - set(defined_names(source)))
    assert fresh
    branch = source.graph.node[1].attribute[1].g
    for name in fresh:
        branch.node.add(op_type="Neg", input=["x"], output=[name])
    converted = onnx_convert.convert(source, to=13).model
    twice = [name for name, count in Counter(defined_names(converted)).items() if count > 1]
    assert not twice
    assert_same_numbers(source, converted)


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_both_spellings_of_the_default_domain(domain: str) -> None:
    source = model(f"(float[2] x) => (float[1,2] z) {{ y = Neg (x) z = {UNSQUEEZE} (y) }}", 12)
    source.opset_import[0].domain = domain
    for node in source.graph.node:
        node.domain = domain
    converted = onnx_convert.convert(source, to=13).model
    assert opset_imports(converted) == {domain: 13}
    assert [len(node.input) for node in converted.graph.node] == [1, 2]
    assert converted.graph.node[0] == source.graph.node[0]


@pytest.mark.parametrize(("start", "stop"), [(12, 13), (13, 12)])
def test_operators_of_other_domains_pass(start: int, stop: int) -> None:
    shape = UNSQUEEZE + " (x)" if start == 12 else "Unsqueeze (x, axes)"
    inits = "" if start == 12 else "<int64[1] axes = {0}>"
    graph = f"(float[2] x) => (float[1,2] z) {inits} {{ y = {shape} z = com.microsoft.Gelu (y) }}"
    source = model(graph, start, com_microsoft=1)
    converted = onnx_convert.convert(source, to=stop).model
    assert converted.graph.node[-1] == source.graph.node[-1]
    assert opset_imports(converted) == {"": stop, "com.microsoft": 1}


def test_what_inference_loses_behind_a_foreign_operator_is_written_down() -> None:
    """A rank that value_info told must still be known of the value."""
    source = model("(float[2,3] x) => (float y) { a = com.microsoft.Gelu (x) b = Softmax(a) y = ReduceSum(b) }", 12,
                   com_microsoft=1)  # fmt: skip
    source.graph.value_info.append(helper.make_tensor_value_info("a", 1, [2, 3]))
    converted = onnx_convert.convert(source, to=13).model
    inferred = onnx.shape_inference.infer_shapes(converted)
    known = {value.name: len(value.type.tensor_type.shape.dim) for value in inferred.graph.value_info}
    assert known["b"] == 2


def test_what_is_stated_of_an_output_stays() -> None:
    """Inference refines it, and keeps what is stated of the same value elsewhere."""
    source = model("(float[2,3,4] x) => (float[K,L,M] y) <float[P,Q,R] y> { y = Softmax <axis = 1> (x) }", 12)
    converted = onnx_convert.convert(source, to=13).model
    assert converted.graph.output == source.graph.output
    assert converted.graph.value_info == source.graph.value_info


def test_what_inference_found_of_the_source_is_let_go_before_the_result_is_inferred(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of the two costs several times the model, and nodes that were rewritten are all that is compared."""
    held: list[weakref.ref[Facts]] = []
    alive: list[bool] = []
    make, find = Facts.__init__, check.find

    def made(facts: Facts, *given: Any) -> None:
        make(facts, *given)
        held.append(weakref.ref(facts))

    def found(view: bytes) -> Any:
        alive.extend(reference() is not None and reference().asked for reference in held)
        return find(view)

    monkeypatch.setattr(Facts, "__init__", made)
    monkeypatch.setattr(check, "find", found)
    source = model("(float[2,3,4] x) => (float[2,3,4] z) { y = Relu (x) z = Softmax <axis = 1> (y) }", 12)
    assert onnx_convert.convert(source, to=13).changed
    assert alive and not any(alive)


# ---- constants


def test_equal_constants_are_one() -> None:
    source = model(f"(float[2] x) => (float[1,2] y, float[1,2] z) {{ y = {UNSQUEEZE} (x) z = {UNSQUEEZE} (x) }}", 12)
    converted = onnx_convert.convert(source, to=13).model
    assert len(converted.graph.initializer) == 1
    assert {node.input[1] for node in converted.graph.node} == {converted.graph.initializer[0].name}


@pytest.mark.parametrize(
    ("graph", "left"),
    [
        ("(float[2] x) => (float[1,2] y) <int64[1] a = {0}> { y = Unsqueeze (x, a) }", set()),
        ("(float[2] x) => (float[1,2] y) <int64[1] a = {0}, int64[1] b = {0}> { y = Unsqueeze (x, a) }", {"b"}),
        ("(float[2] x) => (float[1,2] y, int64[1] z) <int64[1] a = {0}> { y = Unsqueeze (x, a) z = Neg (a) }", {"a"}),
        ("(float[2] x) => (float[1,2] y, int64[1] a) <int64[1] a = {0}> { y = Unsqueeze (x, a) }", {"a"}),
        ("(float[2] x) => (float[1,2] y) { a = Constant <value_ints = [0]> () y = Unsqueeze (x, a) }", set()),
        (
            """(float[2] x) => (float[1,2] y) <int64[1] one = {1}, int64[1] two = {1}>
               { a = Sub (one, two) y = Unsqueeze (x, a) }""",
            set(),
        ),
        (
            """(float[2] x) => (float[2,1] y) <int64[1] a = {0}> {
                y = Scan <num_scan_inputs = 1, body = b (float r) => (float[1] q) { q = Unsqueeze (r, a) }> (x) }""",
            set(),
        ),
        (
            """(int64[2] x) => (int64[1,2] y, int64[2,1] z) <int64[1] a = {0}> {
                y = Unsqueeze (x, a)
                z = Scan <num_scan_inputs = 1, body = b (int64 r) => (int64[1] q) { q = Add (r, a) }> (x) }""",
            {"a"},
        ),
    ],
    ids=["initializer", "unused of its own", "used elsewhere", "an output", "Constant", "computed", "captured",
         "captured elsewhere"],
)  # fmt: skip
def test_a_constant_goes_with_its_last_use(graph: str, left: set[str]) -> None:
    source = model(graph, 13)
    converted = onnx_convert.convert(source, to=12).model
    assert {tensor.name for tensor in converted.graph.initializer} == left
    assert not [node for node in converted.graph.node if node.op_type in ("Constant", "Sub")]
    assert_same_numbers(source, converted)


def test_an_initializer_that_is_an_input_is_no_constant_from_ir_version_4_on() -> None:
    """Whoever runs the model may give another value for it."""
    graph = "(float[2] x, int64[1] a) => (float[N,M] y) <int64[1] a = {0}> { y = Unsqueeze (x, a) }"
    source = model(graph, 13)
    converted = onnx_convert.convert(source, to=12).model
    for axis, shape in ((0, (1, 2)), (1, (2, 1))):
        feeds = {"x": np.zeros(2, np.float32), "a": np.array([axis])}
        assert [value.shape for value in run(converted, feeds)] == [shape]


def test_an_initializer_that_is_an_input_is_a_constant_at_ir_version_3() -> None:
    graph = "(float[2] x, int64[1] a) => (float[1,2] y) <int64[1] a = {0}> { y = Unsqueeze (x, a) }"
    converted = onnx_convert.convert(model(graph, 13, ir=3), to=12)
    assert operators(converted.model) == ["Unsqueeze"]
    assert any("IR version 3" in note for note in converted.report.notes)


@pytest.mark.parametrize(("start", "stop"), [(13, 12), (12, 13)])
@pytest.mark.parametrize("named", [True, False])
def test_nodes_that_look_alike_are_each_rewritten_for_what_they_are(start: int, stop: int, named: bool) -> None:
    """The same Softmax on values of several ranks, named and not, in the graph, in a Scan and in functions."""
    again = " ".join(f"{out} = Softmax <axis = 1> ({of})" for out, of in (("s{0}", "{1}"), ("u{0}", "s{0}")))
    source = model(
        f"""(float[3,4] x, float[3,4,2] y, float[3,4,2,2] z)
            => (float[3,4] u0, float[3,4,2] u1, float[3,4,2,2] u2,
                float[3,4,2] v, float[3,4,2,2] w, float[3,4] f, float[3,4,2] g) {{
            {again.format(0, "x")} {again.format(1, "y")} {again.format(2, "z")}
            v = Scan <num_scan_inputs = 1, body = p (float[4,2] q) => (float[4,2] u3) {{ {again.format(3, "q")} }}> (y)
            w = Scan <num_scan_inputs = 1, body = r (float[4,2,2] o) => (float[4,2,2] u4) {{
                {again.format(4, "o")} }}> (z)
            f = f.F (x) g = f.G (y) }}""",
        start,
        function(again.format(0, "x").replace("u0", "y"), start),
        function(again.format(0, "x").replace("u0", "y"), start, "G"),
        ir=8,
        f=1,
    )
    if named:
        with_names(source)
    converted = onnx_convert.convert(source, to=stop, keep_functions=True).model
    assert_same_numbers(source, converted)


def test_nodes_alike_cost_one_visit_to_an_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    """However they are called, whatever is noted on them; and each keeps what is its own, fields of the future too."""
    source = model(
        "(float[2,3,4] v0) => (float[2,3,4] v40) {"
        + "".join(f"v{number + 1} = Softmax <axis = 1> (v{number}) " for number in range(40))
        + "}",
        12,
    )
    future = b"\xfa\x3f\x01?"  # field 1023
    for number, node in enumerate(source.graph.node):
        node.name = f"ünïcode {number}" if number % 2 else "x" * 200 + str(number)
        if number % 3:
            node.doc_string = f"line {number}"
            node.metadata_props.add(key="stack", value=str(number)).MergeFromString(future)
        node.MergeFromString(future)
    crossed = []
    cross = Legalizer._cross
    monkeypatch.setattr(Legalizer, "_cross", lambda *given: crossed.append(given) or cross(*given))
    converted = onnx_convert.convert(source, to=13).model
    assert len(crossed) == 1
    bearers = [node for node in converted.graph.node if node.op_type == "Softmax"]
    assert len(bearers) == 40 and len(converted.graph.node) == 120
    for before, after in zip(source.graph.node, bearers, strict=True):
        assert (after.name, after.doc_string, after.metadata_props) == (
            before.name,
            before.doc_string,
            before.metadata_props,
        )
        assert after.SerializeToString().endswith(future)
    assert_same_numbers(source, converted)


def test_nodes_alike_forget_alike() -> None:
    """What nobody makes any more has no type either, whether an adapter was asked or not."""
    names = [f"{letter}{number}" for number in range(3) for letter in "ym"]
    nodes = " ".join(f"y{n}, m{n} = LayerNormalization <axis = -1> (x, s)" for n in range(3))
    outputs = ", ".join(f"float[2,3] {name}" for name in names[::2])
    stated = ", ".join(f"float[2,1] {name}" for name in names[1::2])
    source = model(f"(float[2,3] x, float[3] s) => ({outputs}) <{stated}> {{ {nodes} }}", 17)
    converted = onnx_convert.convert(source, to=16).model
    assert not {value.name for value in converted.graph.value_info} & set(names)
    assert_same_numbers(source, converted)


def test_questions_about_values_of_its_own_making_keep_nobody_from_following(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Reshape asks who made its shape. Nor is what followed parsed because the next one is asked about."""
    crossed, parsed = [], []
    cross, parse = Legalizer._cross, WrittenNodes._open
    monkeypatch.setattr(Legalizer, "_cross", lambda *given: crossed.append(given) or cross(*given))
    monkeypatch.setattr(WrittenNodes, "_open", lambda *given: parsed.append(given) or parse(*given))
    visits = []
    for count in (1, 20):
        nodes = "".join(f"v{number + 1} = Softmax <axis = 1> (v{number}) " for number in range(count))
        source = model(f"(float x) => (float y) {{ v0 = Relu (x) {nodes} y = Relu (v{count}) }}", 13)
        for value in (source.graph.input[0], source.graph.output[0]):
            value.type.tensor_type.ClearField("shape")
        crossed.clear()
        converted = onnx_convert.convert(source, to=12).model
        visits.append(len(crossed))
    assert visits[0] == visits[1] > 1
    assert not parsed
    x = np.random.default_rng(0).standard_normal((2, 3, 0, 4)).astype(np.float32)
    for feed in (x, np.ones((2, 3, 4), np.float32) * np.arange(3, dtype=np.float32)[:, None]):
        for before, after in zip(run(source, {"x": feed}), run(converted, {"x": feed}), strict=True):
            np.testing.assert_allclose(before, after, rtol=1e-5)


def test_rare_kinds_do_not_drive_out_the_common_one(monkeypatch: pytest.MonkeyPatch) -> None:
    crossed = []
    cross = Legalizer._cross
    monkeypatch.setattr(Legalizer, "_cross", lambda *given: crossed.append(given) or cross(*given))
    inputs = ", ".join(f"float[2,3,{number + 1}] x{number}" for number in range(40))
    outputs = ", ".join(f"float[2,3,{number + 1}] y{number}" for number in range(40))
    nodes = " ".join(f"y{number} = Softmax <axis = 1> (x{number})" for number in range(40))
    again = " ".join(f"z{number} = Softmax <axis = 1> (x0)" for number in range(40))
    onnx_convert.convert(model(f"({inputs}) => ({outputs}) {{ {nodes} {again} }}", 12), to=13)
    assert len(crossed) == 41


def test_doc_strings_may_be_any_bytes() -> None:
    text = "(float[2,3,4] x) => (float[2,3,4] z) { y = Softmax <axis = 1> (x) z = Softmax <axis = 1> (y) }"
    for start, stop in ((12, 13), (13, 12)):
        source = model(text, start)
        for node in source.graph.node:
            node.doc_string = "Straesse"
        source = ModelProto.FromString(source.SerializeToString().replace(b"ae", b"\xe4\xe4"))
        converted = onnx_convert.convert(source, to=stop).model
        assert converted.SerializeToString().count(b"Str\xe4\xe4sse") == 2


# ---- refusals


@pytest.fixture
def undecided(monkeypatch: pytest.MonkeyPatch):
    """Softmax has no decision at 13, upwards."""
    assert registry.decision("Softmax", 13, UP) is not None  # asked for, so that the family is there
    monkeypatch.delitem(registry._decisions, ("", "Softmax", 13, UP))
    registry.route.cache_clear()
    yield
    monkeypatch.undo()
    registry.route.cache_clear()


@pytest.mark.usefixtures("undecided")
def test_what_is_not_decided_is_refused() -> None:
    source = model("(float[2,3] x) => (float[2,3] y) { y = Softmax <axis = 1> (x) }", 12)
    with pytest.raises(RefusedError) as caught:
        onnx_convert.convert(source, to=17)
    (refusal,) = caught.value.refusals
    assert (refusal.operator, refusal.node, refusal.boundary, refusal.direction) == ("Softmax", "y", 13, UP)
    assert "not decided" in refusal.reason


@pytest.mark.usefixtures("undecided")
def test_the_nearest_opset_is_named() -> None:
    source = model("(float[2,3] x) => (float[2,3] y) { y = Softmax <axis = 1> (x) }", 9)
    with pytest.raises(RefusedError) as caught:
        onnx_convert.convert(source, to=17)
    assert caught.value.nearest == 12


@pytest.mark.usefixtures("undecided")
def test_no_opset_on_the_way_is_within_reach() -> None:
    source = model("(float[2,3] x) => (float[2,3] y) { y = Softmax <axis = 1> (x) }", 12)
    with pytest.raises(RefusedError) as caught:
        onnx_convert.convert(source, to=17)
    assert caught.value.nearest is None


def test_the_nearest_opset_is_found_by_trying_where_no_boundary_of_ai_onnx_is_to_blame() -> None:
    """A key that is NaN needs LabelEncoder@4, of the release that has opset 20."""
    keys, values = (numpy_helper.from_array(np.array([1.0, other]), "t") for other in (np.nan, 2.0))
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_tensor=keys, values_tensor=values)
    value = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, [2]) for name in "xy"]
    imports = [helper.make_opsetid("", 22), helper.make_opsetid("ai.onnx.ml", 5)]
    graph = helper.make_graph([node], "g", value[:1], value[1:])
    with pytest.raises(RefusedError) as caught:
        onnx_convert.convert(helper.make_model(graph, opset_imports=imports, ir_version=10), to=13)
    assert caught.value.nearest == 20


def test_all_refusals_come_at_once_and_nothing_is_changed() -> None:
    source = own(
        "",
        graph="""(float[2] x) => (float[2] z) {
            w = org.engine.Stuck (x) y = org.engine.Walker (w) z = org.engine.Stuck (y) }""",
    )
    before = source.SerializeToString(deterministic=True)
    with pytest.raises(RefusedError) as caught:
        onnx_convert.convert(source, to={OWN: 2}, in_place=True)
    refusals = caught.value.refusals
    assert [refusal.node for refusal in refusals] == ["Stuck_0", "Stuck_2"]
    assert {(refusal.reason, refusal.remedy) for refusal in refusals} == {("nobody knows how", "stay at version 1")}
    assert source.SerializeToString(deterministic=True) == before


@pytest.mark.parametrize(
    ("node", "says"),
    [("y = NoSuchOperator (x)", "not an operator of ai.onnx at opset 12"),
     ("y = GridSample (x, x)", "not an operator of ai.onnx at opset 12")],
)  # fmt: skip
def test_an_operator_that_the_model_may_not_have_is_refused(node: str, says: str) -> None:
    with pytest.raises(RefusedError, match=says):
        onnx_convert.convert(model(f"(float[1,1,2,2] x) => (float[1,1,2,2] y) {{ {node} }}", 12), to=13)


@pytest.mark.parametrize(
    ("options", "outcome"),
    [({}, "--types cast"), ({"types": "cast"}, ["Cast", "Cast", "Where", "Cast"]), ({"types": "cast-rounding"}, None)],
)
def test_a_dtype_that_the_target_lacks(options: dict, outcome: list[str] | str | None) -> None:
    graph = "(bool[2] c, bfloat16[2] a, bfloat16[2] b) => (bfloat16[2] y) { y = Where (c, a, b) }"
    source = with_names(model(graph, 16), "n")
    if isinstance(outcome, str):
        with pytest.raises(RefusedError) as caught:
            onnx_convert.convert(source, to=15, **options)
        assert outcome in caught.value.refusals[0].remedy
        return
    converted = onnx_convert.convert(source, to=15, **options).model
    assert operators(converted) == (outcome or ["Cast", "Cast", "Where", "Cast"])
    assert node_named(converted, "n").op_type == "Where"


@pytest.mark.parametrize(("strict", "works"), [(False, True), (True, False)])
def test_a_dtype_that_cannot_be_known_is_assumed(strict: bool, works: bool) -> None:
    nodes = "a = com.acme.Thing (x) b = Where (c, a, a) y = com.acme.Thing (b)"
    graph = f"(bool[2] c, float[2] x) => (float[2] y) {{ {nodes} }}"
    source = model(graph, 16, com_acme=1)
    if works:
        assert len(onnx_convert.convert(source, to=15, strict=strict).report.assumed) >= 1
    else:
        with pytest.raises(RefusedError, match="not known"):
            onnx_convert.convert(source, to=15, strict=strict)


def test_attributes_that_are_references_are_messages_of_the_function() -> None:
    """An attribute reference outside a function is kept, and not looked into."""
    source = model("(float[2] x) => (float[2] y) { y = Elu <alpha = 0.5> (x) }", 13)
    reference = AttributeProto(name="alpha", type=AttributeProto.FLOAT, ref_attr_name="nowhere")
    source.graph.node[0].attribute[0].CopyFrom(reference)
    converted = onnx_convert.convert(source, to=15).model
    assert converted.graph.node[0] == source.graph.node[0]
