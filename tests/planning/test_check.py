# SPDX-License-Identifier: Apache-2.0
"""The check of the result: what is wrong is found, and what was known is not lost."""

from __future__ import annotations

import re
import weakref
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper
from texts import model

import onnx_convert
import onnx_convert.adapters
from onnx_convert import InvalidModelError, RefusedError
from onnx_convert.analysis.facts import Facts
from onnx_convert.planning import check
from oracle import all_nodes, evaluate, validate


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
    make, judge = Facts.__init__, check.judge

    def made(facts: Facts, *given: Any) -> None:
        make(facts, *given)
        held.append(weakref.ref(facts))

    def judged(*given: Any) -> Any:
        alive.extend(reference() is not None and reference().asked for reference in held)
        return judge(*given)

    monkeypatch.setattr(Facts, "__init__", made)
    monkeypatch.setattr(check, "judge", judged)
    source = model("(float[2,3,4] x) => (float[2,3,4] z) { y = Relu (x) z = Softmax <axis = 1> (y) }", 12)
    assert onnx_convert.convert(source, to=13).changed
    assert alive and not any(alive)


def _model(graph: str, opset: int) -> ModelProto:
    made = onnx.parser.parse_graph(f"g {graph}")
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(made, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets))


# ---- integers that inference takes for a shape, from opset 14 on


def test_column_less_a_row() -> None:
    graph = """(int64[4] i, int64[3] j, float[3] x) => (int64[4,3] d, float[1] y) <int64[1] a = {1}>
        { c = Unsqueeze(i, a) d = Sub(c, j) y = ReduceMean<axes=[0]>(x) }"""
    converted = onnx_convert.convert(_model(graph, 13), to=21).model
    validate(converted)
    assert [node.op_type for node in all_nodes(converted)] == ["Unsqueeze", "Sub", "ReduceMean"]


@pytest.mark.parametrize(
    ("graph", "start", "stop"),
    [
        ("(float[4] x) => (float[4] y) { y = Trilu (x) }", 17, 13),
        ("(float[4] x) => (float[2] y, float[2] z) { y, z = Split <axis = 1, num_outputs = 2> (x) }", 18, 13),
        ("(float[4] x) => (float[k] y) <int64[1] k = {2}> { y, i = TopK <axis = 1> (x, k) }", 17, 9),
        ("(float[4] x, int64[1] i) => (float[1] y) { y = Gather <axis = -3> (x, i) }", 13, 10),
    ],
)
def test_what_an_adapter_stumbles_over(graph: str, start: int, stop: int) -> None:
    """Where the model is not valid, that is what is said, and not that we have a bug."""
    with pytest.raises((InvalidModelError, RefusedError), match=r"check|not valid|axis"):
        onnx_convert.convert(model(graph, start), to=stop)


# ---- what would fail if it ran

NEVER_RUN = (
    "y = If (c) <then_branch = t () => (float[?] p) { p = Identity(x) }, else_branch = e () => (float[?] q) { EXPR }>"
)
FAILING = [
    # opset, an expression that fails if it runs, the constants that it takes, and targets
    (13, "q, r = Split(x, k)", "int64[2] k = {1,9}", (12, 9)),
    (11, "q, i = TopK <axis=0> (x, k)", "int64[1] k = {-1}", (9,)),
    (13, "q = Squeeze(x, k)", "int64[1] k = {0}", (12, 9)),
    (18, "q = ReduceMax(x, k)", "int64[1] k = {9}", (14, 9)),
    (9, "q = ConstantOfShape(k)", "int64[1] k = {-1}", (8,)),
    (13, "q = GatherND(x, k)", "int64[1] k = {9}", (11, 10, 9)),  # which makes a scalar
    (16, 'q = ScatterND <reduction="add"> (x, k, u)', "int64[1,1] k = {9}, float[1] u = {1.0}", (13, 8)),
    (11, "q = ScatterElements(x, k, u)", "int64[1] k = {9}, float[1] u = {1.0}", (9, 8)),
    (18, "q, r, s, t = Split <num_outputs=4> (x)", "int64[1] k = {0}", (13, 9)),
    (22, "z = Reshape(x, k) q = MaxPool <kernel_shape=[9]> (z)", "int64[3] k = {1,1,5}", (11, 8)),
]


@pytest.mark.parametrize("called", [False, True])
@pytest.mark.parametrize(("opset", "expression", "constants", "targets"), FAILING)
def test_what_never_runs_is_no_bug_of_ours(
    opset: int, expression: str, constants: str, targets: tuple[int, ...], called: bool
) -> None:
    """Where onnx does not see that a branch would fail, as in a function, the model is converted, or is to blame."""
    inner = NEVER_RUN.replace("EXPR", expression)
    names = ", ".join(["x", "c", *re.findall(r" (\w) =", constants)])
    function = f'<domain: "f", opset_import: ["": {opset}]> F ({names}) => (y) {{ {inner} }}'
    inputs = f"(float[5] x, bool c) => (float[?] y) <{constants}>"
    source = (
        model(f"{inputs} {{ y = f.F({names}) }}", opset, function, f=1)
        if called
        else model(f"{inputs} {{ {inner} }}", opset)
    )
    for target in targets:
        try:
            result = onnx_convert.convert(source, to=target, expand="all").model
        except (onnx_convert.InvalidModelError, onnx_convert.RefusedError):
            continue
        feeds = {"x": np.arange(5, dtype=np.float32), "c": np.array(True)}
        assert evaluate(result, feeds).values[0].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("made", ["h = Identity(x)", "h = com.acme.Strange(x)"])
def test_what_a_fragile_operator_captures_keeps_its_type(made: str) -> None:
    """EyeLike of a value of unknown type ends onnx's inference, so that such a value is stated to have an empty one."""
    inner = "then_branch = t () => (float[?,?] p) { p = EyeLike <dtype=1> (h) }"
    source = model(
        f"""(float[3,3] x, bool c) => (float[?,?] y, float[3,3] z) {{
            {made} z = MeanVarianceNormalization <axes=[0]> (x)
            y = If (c) <{inner}, else_branch = e () => (float[?,?] q) {{ q = EyeLike <dtype=1> (h) }}> }}""",
        12, com_acme=1,
    )  # fmt: skip
    result = onnx_convert.convert(source, to=13).model
    assert [node.op_type for node in result.graph.node][1:] == ["MeanVarianceNormalization", "If"]


def test_a_captured_value_is_not_hidden() -> None:
    branch = "{v} = MeanVarianceNormalization(m) {w} = EyeLike(x)"
    graph = f"""(int64[3,1] x, float[2,2,5,5] m, bool c) => (float[2,2,5,5] v, int64[3,1] w) {{ v, w = If (c) <
        then_branch = t () => (float[2,2,5,5] a, int64[3,1] b) {{ {branch.format(v="a", w="b")} }},
        else_branch = e () => (float[2,2,5,5] d, int64[3,1] f) {{ {branch.format(v="d", w="f")} }}> }}"""
    assert len(onnx_convert.convert(model(graph, 12), to=13).model.graph.node) == 1
