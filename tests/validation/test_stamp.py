# SPDX-License-Identifier: Apache-2.0
"""Nodes that are not of the opset that the file is stamped with, and statements about values that are not true."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper
from texts import model

import onnx_convert
from onnx_convert import InvalidModelError
from oracle import opset_of, run


@pytest.mark.parametrize(
    ("graph", "opset", "why"),
    [
        ("(float[2,1] x) => (float[2] y) { y = Squeeze <axes=[1]> (x) }", 16, "all nodes fit opset 1 to 12"),
        ('(float[1,1,2,2] x, float[4] s) => (float[a,b,c,d] y) { y = Upsample <mode="nearest"> (x, s) }', 11,
         "all nodes fit opset 9"),
        ("(float[4] x, int64[2] s) => (float[2] y, float[2] z) { y, z = Split(x, s) }", 11,
         "all nodes fit opset 13 to"),
        ("(int32[2] x) => (int32[2] y) { y = Relu(x) }", 13, "all nodes fit opset 14 to"),
        ("(float[2,1] x) => (float[2] y) <int64[1] i = {1}> { z = Squeeze <axes=[1]> (x) y = Squeeze(x, i) }", 16,
         "there is no opset that all nodes fit"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("target", [17, 9, 21])
def test_nodes_of_another_opset_than_the_stamp(graph: str, opset: int, why: str, target: int) -> None:
    for ask in (lambda m: onnx_convert.convert(m, to=target), onnx_convert.inspect):
        with pytest.raises(InvalidModelError, match=r"not fit ai\.onnx") as caught:
            ask(model(graph, opset))
        assert why in str(caught.value)
        assert caught.value.exit_code == 4
    way = re.search(r"--from (\d+) reads", str(caught.value))
    assert (way is None) == why.startswith("there is no")
    if way is not None:
        source, declared = model(graph, opset), int(way[1])
        report = onnx_convert.plan(source, to=target, source_opset=declared, types="cast")
        assert (report.opsets_before, report.stamped) == ({"ai.onnx": declared}, {"ai.onnx": opset})
        true = model(graph, declared)
        result = onnx_convert.convert(source, to=target, source_opset=declared, types="cast").model
        assert result.graph == convert(true, target).graph
        assert opset_of(source) == opset


def convert(source: ModelProto, target: int) -> ModelProto:
    """Returns the model at the target."""
    result: ModelProto = onnx_convert.convert(source, to=target, types="cast").model
    return result


@pytest.mark.parametrize("target", [1, 5, 7, 9, 13, 17])
def test_constants_of_whole_numbers_are_of_every_opset(target: int) -> None:
    """Reshape takes its shape as an input from 5 on, Constant gives whole numbers by its text from 9 on: what exporters
    wrote between is no wrong stamp."""
    source = model("(float[4,3] x) => (float[2,6] y) { s = Constant<value = int64[2] {2,-1}>() y = Reshape(x, s) }", 6)
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    (y,) = run(convert(source, target), {"x": x})
    assert (y == x.reshape(2, 6)).all()


SQUEEZE = "(float[2,1] x) => (float[2] y) { y = Squeeze <axes=[1]> (x) }"


@pytest.mark.parametrize("target", [9, 11, 12, 13, 16, 17])
def test_a_model_is_read_at_another_opset_than_its_stamp(target: int) -> None:
    conversion = onnx_convert.convert(model(SQUEEZE, 16), to=target, source_opset=11)
    assert conversion.changed
    assert conversion.report.notes[0] == "read as ai.onnx 11 (--from), although stamped 16"
    assert conversion.model.graph == convert(model(SQUEEZE, 11), target).graph
    assert opset_of(conversion.model) == target
    onnx.checker.check_model(conversion.model, full_check=True)


def test_a_model_is_compared_as_it_is_read(tmp_path: Path) -> None:
    onnx.save(model(SQUEEZE, 16), tmp_path / "m.onnx")
    with onnx_convert.convert(tmp_path / "m.onnx", to=13, source_opset=12) as conversion:
        conversion.save(tmp_path / "r.onnx")
    verified = onnx_convert.verify(tmp_path / "m.onnx", tmp_path / "r.onnx", seeds=1, report=conversion.report)
    assert verified.same, verified


def test_a_stamp_that_is_declared_right_changes_nothing() -> None:
    report = onnx_convert.plan(model(SQUEEZE, 11), to=11, source_opset=11)
    assert (report.changed, report.stamped, report.notes) == (False, {}, [])


def test_a_wrong_stamp_is_repaired_without_another_change() -> None:
    source = model(SQUEEZE, 16)
    assert onnx_convert.plan(source, to=12, source_opset=12).changed
    result = onnx_convert.convert(source, to=12, source_opset=12).model
    source.opset_import[0].version = 12
    assert result == source


def test_the_stamps_of_functions_are_declared_too() -> None:
    function = '<domain: "f", opset_import: ["": 14]> Old (a) => (b) { b = Squeeze <axes=[1]> (a) }'
    source = model("(float[2,1] x) => (float[2] y) { y = f.Old(x) }", 16, function, f=1)
    before = source.SerializeToString()
    conversion = onnx_convert.convert(source, to=13, source_opset={"ai.onnx": 12})
    assert conversion.report.notes == ["read as ai.onnx 12 (--from), although stamped 16, function f.Old 14"]
    onnx.checker.check_model(conversion.model, full_check=True)
    assert source.SerializeToString() == before


@pytest.mark.parametrize("ask", [{"to": 11}, {"to": 99}])
def test_a_model_that_changes_in_place_keeps_its_stamp_if_nothing_comes_of_it(ask: dict[str, int]) -> None:
    source = model("(float[2] x) => (float[2] y) { y = Mystery(x) }", 16)
    before = source.SerializeToString()
    with pytest.raises((onnx_convert.RefusedError, onnx_convert.UsageError)):
        onnx_convert.convert(source, **ask, source_opset=13, in_place=True)
    assert source.SerializeToString() == before


def test_stamps_of_two_domains_that_are_both_wrong() -> None:
    graph = """(float[2,1] x) => (float[2] y) { s = Squeeze <axes=[1]> (x)
        y = ai.onnx.ml.TreeEnsembleRegressor <n_targets=1, nodes_values_as_tensor=float[1] {1.0}> (s) }"""
    with pytest.raises(InvalidModelError, match=r"2 nodes do not fit ai\.onnx 16 and ai\.onnx\.ml 2") as caught:
        onnx_convert.inspect(model(graph, 16, ai_onnx_ml=2))
    assert "--from 12 reads the model at 12" in str(caught.value)
    assert "--from ai.onnx.ml:3 reads the model at 3" in str(caught.value)
    told = onnx_convert.inspect(model(graph, 16, ai_onnx_ml=2), source_opset={"ai.onnx": 12, "ai.onnx.ml": 3})
    assert told.stamped == {"ai.onnx": 16, "ai.onnx.ml": 2}


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        (0, "no model has opset 0 of ai.onnx"),
        (99, "no model has opset 99 of ai.onnx"),
        ("11", "'11' is not an opset that a model can have"),
        (True, "True is not an opset"),
        ({"ai.onnx": 11, "": 12}, "ai.onnx is declared at two opsets"),
        ({"com.acme": 2}, "the model does not import com.acme"),
        ({"com.acme": 2**80}, "no model has opset"),
    ],
)
def test_declarations_that_make_no_sense(declared: object, why: str) -> None:
    source = model(SQUEEZE, 16)
    asks = (onnx_convert.convert, onnx_convert.plan, lambda m, **more: onnx_convert.inspect(m, source_opset=declared))
    for ask in asks:
        with pytest.raises(onnx_convert.UsageError, match=why):
            ask(source, to=13, source_opset=declared)


def test_a_description_tells_what_the_stamp_says() -> None:
    told = onnx_convert.inspect(model(SQUEEZE, 21, ir=8), source_opset=12)
    assert (told.opsets, told.stamped, told.lowest) == ({"ai.onnx": 12}, {"ai.onnx": 21}, 1)
    assert told.notes == ["read as ai.onnx 12 (--from), although stamped 21"]
    names = {f"{runtime.name}@{runtime.version}" for runtime in told.runtimes}
    assert "onnxruntime@1.18" in names
    assert "onnxruntime@1.14" not in names  # what it is stamped with is what they look at


def test_all_misfits_are_listed() -> None:
    nodes = " ".join(f"y{i} = Squeeze <axes=[0]> (x{i}) x{i + 1} = Unsqueeze <axes=[0]> (y{i})" for i in range(3))
    with pytest.raises(InvalidModelError, match="6 nodes do not fit") as caught:
        onnx_convert.convert(model(f"(float[1,2] x0) => (float[1,2] x3) {{ {nodes} }}", 15), to=13)
    assert all(f"{name!r}" in str(caught.value) for name in ("y0", "x1", "y1", "x2", "y2", "x3"))


def test_misfits_in_subgraphs_and_functions() -> None:
    inner = "then_branch = t () => (float[2] a) { a = Squeeze <axes=[1]> (x) }, else_branch = e () => (float[2] b)"
    graph = f"(bool c, float[2,1] x) => (float[2] y) {{ y = If (c) <{inner} {{ b = Squeeze <axes=[1]> (x) }}> }}"
    with pytest.raises(InvalidModelError, match=r"2 nodes do not fit ai\.onnx 16"):
        onnx_convert.convert(model(graph, 16), to=17)
    function = '<domain: "f", opset_import: ["": 16]> Old (a) => (b) { b = Squeeze <axes=[1]> (a) }'
    with pytest.raises(InvalidModelError, match=r"1 node does not fit ai\.onnx 16"):
        onnx_convert.convert(model("(float[2,1] x) => (float[2] y) { y = f.Old(x) }", 12, function, f=1), to=11)


def test_a_version_that_was_superseded_fits_its_stamp() -> None:
    source = model(
        "(float[1,4,2] x) => (float[1,4,2] y) <float[2] s = {1.0, 2.0}>"
        " { y = GroupNormalization <num_groups=2> (x, s, s) }", 18,
    )  # fmt: skip
    assert onnx_convert.convert(source, to=21).changed


# ---- claims

RESHAPED = """(float[A,8] x) => (float[P,Q] y) { s = Shape(x) z = Constant <value = int64 {0}> ()
    d = Gather <axis=0> (s, z) u = Unsqueeze <axes=[0]> (d) t = Constant <value = int64[2] {2,4}> ()
    c = Concat <axis=0> (u, t) y = Reshape(x, c) }"""
THROUGH = RESHAPED.replace("y = Reshape(x, c)", "r = Reshape(x, c) y = Relu(r)").replace("P,Q", "P,Q,R")


@pytest.mark.parametrize("target", [9, 11, 13, 14, 15, 21])
@pytest.mark.parametrize("inner", [False, True])
def test_a_false_statement_of_a_rank_is_left_out(target: int, inner: bool) -> None:
    source = model(RESHAPED, 12)
    if inner:
        source = model(
            RESHAPED.replace("y = Reshape(x, c)", "r = Reshape(x, c) y = Relu(r)").replace("P,Q", "P,Q,R"), 12
        )
        source.graph.value_info.append(helper.make_tensor_value_info("r", 1, ["P", "Q"]))
    conversion = onnx_convert.convert(source, to=target)
    name = "r" if inner else "y"
    assert f"the stated type of {name!r} contradicts the model and is left out" in conversion.report.warnings
    result: ModelProto = conversion.model
    onnx.checker.check_model(result, full_check=True)
    stated = {v.name: len(v.type.tensor_type.shape.dim) for v in (*result.graph.value_info, *result.graph.output)}
    assert stated.get(name, 3) == 3


@pytest.mark.parametrize("target", [11, 13, 14, 21])
@pytest.mark.parametrize("inner", [False, True])
def test_a_false_statement_in_a_subgraph_is_left_out(target: int, inner: bool) -> None:
    source = model(
        f"""(bool c, float[2,8] x) => (float[P,Q,R] y) <int64[3] k = {{-1,2,4}}> {{ y = If (c) <
            then_branch = t () => (float[{"P,Q,R" if inner else "P,Q"}] a) {{ r = Reshape(x, k) a = Relu(r) }},
            else_branch = e () => (float[P,Q,R] b) {{ b = Reshape(x, k) }}> }}""", 12,
    )  # fmt: skip
    if inner:
        graph = source.graph.node[0].attribute[0].g
        graph.value_info.append(helper.make_tensor_value_info("r", 1, [5, 6]))
    conversion = onnx_convert.convert(source, to=target)
    onnx.checker.check_model(conversion.model, full_check=True)
    assert any("left out" in warning for warning in conversion.report.warnings)


def test_a_false_statement_about_a_call_is_left_out() -> None:
    function = """<domain: "f", opset_import: ["": 14]> F (x) => (y) { i = Constant <value = int64[1] {0}> ()
        s = Shape(x) b = Gather <axis=0> (s, i) t = Constant <value = int64[2] {2,4}> () c = Concat <axis=0> (b, t)
        y = Reshape(x, c) }"""
    for target in (13, 15, 21):
        source = model("(float[A,8] x) => (float[P,Q] y) { y = f.F(x) }", 14, function, f=1)
        conversion = onnx_convert.convert(source, to=target)
        assert "the stated type of 'y' contradicts the model and is left out" in conversion.report.warnings


@pytest.mark.parametrize("axis", [9, -9])
def test_a_false_statement_does_not_hide_a_fault_of_the_source(axis: int) -> None:
    """Softmax-1 is inferred whatever its axis is."""
    source = model(f"(float[2,3,4] x) => (float y) {{ y = Softmax <axis={axis}> (x) }}", 12)
    with pytest.raises((onnx_convert.RefusedError, InvalidModelError), match=r"axis|check"):
        onnx_convert.convert(source, to=10)


def test_only_the_dimensions_that_contradict_are_left_out() -> None:
    source = model("(float[2,3] x, float[2,3] z) => (float[A,5] y) { w = Softmax(x) y = Add(w, z) }", 13)
    conversion = onnx_convert.convert(source, to=12)
    dims = conversion.model.graph.output[0].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == ["A", 3]


def test_what_is_in_reach_is_what_can_be_converted() -> None:
    source = model(RESHAPED, 12)
    told = onnx_convert.inspect(source)
    assert (told.lowest, told.highest) <= (7, 28)
    for target in (told.lowest, told.highest):
        assert onnx_convert.convert(source, to=target).model
