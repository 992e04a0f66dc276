# SPDX-License-Identifier: Apache-2.0
"""The driver: nodes are rewritten wherever they stand, and what stays is equal as a message."""

from __future__ import annotations

import onnx
import pytest
from made_up import OWN, own
from onnx import ModelProto
from texts import assert_same_numbers, model, opset_imports, with_names

import onnx_convert
import onnx_convert.adapters
from onnx_convert import RefusedError
from oracle import all_nodes

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
