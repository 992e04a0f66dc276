# SPDX-License-Identifier: Apache-2.0
"""Split: sizes as an attribute (2) or as an input (13), parts that are not equal (18), and negative axes (11)."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper
from texts import model as model_of

import onnx_convert
from boundaries import Row, each_of, keeps, rewrites
from oracle import evaluate, validate

# ---- Split


def attribute(x: str, parts: tuple[str, ...], attributes: str, dtype: str = "float") -> str:
    """Sizes, if any, as the attribute."""
    outputs = ", ".join(f"{dtype}[{sizes}] y{i}" for i, sizes in enumerate(parts))
    names = ", ".join(f"y{i}" for i in range(len(parts)))
    return f"({dtype}[{x}] x) => ({outputs}) {{ {names} = Split<{attributes}>(x) }}"


def given(x: str, parts: tuple[str, ...], sizes: str, axis: int = 0, dtype: str = "float", split: str = "int64") -> str:
    """Sizes as a constant input; without any, as a computed one."""
    outputs = ", ".join(f"{dtype}[{part}] y{i}" for i, part in enumerate(parts))
    names = ", ".join(f"y{i}" for i in range(len(parts)))
    made = f"<{split}[{len(parts)}] s = {{{sizes}}}>" if sizes else ""
    more = "" if sizes else f", {split}[{len(parts)}] s"
    return f"({dtype}[{x}] x{more}) => ({outputs}) {made} {{ {names} = Split<axis={axis}>(x, s) }}"


AT_13: list[Row] = [
    rewrites("Split by sizes", 11, 13, attribute("2,4", ("2,1", "2,3"), "axis=1,split=[1,3]"), into=["Split"]),
    rewrites("Split by sizes", 6, 25, attribute("2,4", ("2,1", "2,3"), "axis=1,split=[1,3]"), into=["Split"]),
    keeps("Split equally", 11, 13, attribute("2,4", ("2,2", "2,2"), "axis=1")),
    rewrites("Split by sizes", 13, 11, given("2,4", ("2,1", "2,3"), "1,3", 1), into=["Split"]),
    rewrites("Split by sizes", 25, 6, given("2,4", ("2,1", "2,3"), "1,3", 1), into=["Split"]),
    rewrites("Split by sizes, one of them 0", 13, 11, given("2,4", ("2,0", "2,4"), "0,4", 1), into=["Split"]),
    rewrites("Split by sizes along the end", 13, 10, given("2,4", ("2,1", "2,3"), "1,3", -1)),
    rewrites(
        "Split at run time",
        13,
        11,
        given("2,6", ("2,?", "2,?", "2,?"), "", 1),
        feeds={"s": [2, 0, 4]},
        nodes=8,
    ),
    rewrites("Split at run time", 13, 10, given("2,6", ("2,?", "2,?"), "", -1), feeds={"s": [2, 4]}),
    rewrites("Split at run time", 18, 9, given("2,6", ("2,?", "2,?"), "", 1), feeds={"s": [2, 4]}),
    rewrites("Split of integers at run time", 13, 11, given("6", ("?", "?"), "", 0, "int32"), feeds={"s": [5, 1]}),
    rewrites("Split into one at run time", 13, 11, given("6", ("?",), "", 0), feeds={"s": [6]}),
]

UNEVEN = "(float[{x}] x) => (float[{a}] y0, float[{a}] y1, float[{b}] y2) {{ y0, y1, y2 = Split<{w}>(x) }}"
TWO_TWO_ONE = UNEVEN.format(x="5,2", a="2,2", b="1,2", w="num_outputs=3")

AT_18: list[Row] = [
    rewrites("Split equally", 13, 18, attribute("2,4", ("2,2", "2,2"), "axis=1"), into=["Split"]),
    rewrites("Split equally along the end", 13, 18, attribute("2,4", ("2,2", "2,2"), "axis=-1"), into=["Split"]),
    keeps("Split by sizes", 13, 18, given("2,4", ("2,1", "2,3"), "1,3", 1)),
    keeps("Split by sizes", 18, 13, given("2,4", ("2,1", "2,3"), "1,3", 1)),
    rewrites("Split equally", 18, 13, attribute("2,4", ("2,2", "2,2"), "axis=1,num_outputs=2"), into=["Split"]),
    rewrites("Split equally", 25, 11, attribute("2,4", ("2,2", "2,2"), "axis=1,num_outputs=2")),
    rewrites("Split into one", 18, 13, attribute("N,4", ("N,4",), "num_outputs=1"), into=["Split"]),
    rewrites("Split unequally", 18, 13, TWO_TWO_ONE, into=["Split"]),
    rewrites("Split unequally", 18, 11, TWO_TWO_ONE),
    rewrites("Split unequally, a part empty", 18, 13, UNEVEN.format(x="4", a="2", b="0", w="num_outputs=3")),
    *(
        rewrites(
            "Split into more parts than there are, where it does not run",
            18,
            target,
            "(float[5] x, bool c) => (float[?] y) { y = If (c) <"
            "then_branch = t () => (float[?] p) { p = Split<num_outputs=1>(x) }, "
            "else_branch = e () => (float[?] q) { q, r, s, t = Split<num_outputs=4>(x) }> }",
            feeds={"c": True},
            may_refuse={"function": "more parts"},
        )
        for target in (17, 13, 12, 9)
    ),
    rewrites("Split of nothing", 18, 13, UNEVEN.format(x="0", a="0", b="0", w="num_outputs=3"), into=["Split"]),
    rewrites(
        "Split of an unknown size",
        18,
        13,
        UNEVEN.format(x="2,N", a="2,?", b="2,?", w="axis=-1,num_outputs=3"),
        dims={"N": 7},
        nodes=8,
    ),
]


def _split(attributes: str, p: str, q: str) -> str:
    return f"(float[2,3,4] x) => (float[{p}] p, float[{q}] q) {{ p, q = Split<{attributes}>(x) }}"


AT_11: list[Row] = [
    keeps("Split", 11, 5, _split("axis=2", "2,3,2", "2,3,2")),
    rewrites("Split at the end", 11, 10, _split("axis=-1", "2,3,2", "2,3,2"), into=["Split"]),
    rewrites("Split in the middle", 11, 9, _split("axis=-2, split=[1,2]", "2,1,4", "2,2,4"), into=["Split"]),
    rewrites("Split into one", 11, 9, "(float[2,3] x) => (float[2,3] p) { p = Split<axis=-1>(x) }", into=["Split"]),
]


ROWS = [*AT_11, *AT_13, *AT_18]

test_rows = each_of(ROWS)


def _model(graph: str, opset: int) -> ModelProto:
    made = onnx.parser.parse_graph(f"g {graph}")
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(made, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets))


def _attributes(node: NodeProto) -> dict[str, object]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


# ---- Split of opset 1, which no evaluator knows

SPLITS = [
    # source, target, attributes before, attributes after
    (1, 5, "split=[1,3]", {"split": [1, 3]}),
    (1, 5, "axis=1,split=[1,3]", {"axis": 1, "split": [1, 3]}),
    (1, 11, "axis=1", {"axis": 1}),
    (1, 18, "axis=1", {"axis": 1, "num_outputs": 2}),
    (5, 1, "split=[1,3]", {"split": [1, 3], "axis": 0}),
    (5, 1, "axis=1,split=[1,3]", {"axis": 1, "split": [1, 3]}),
    (18, 1, "num_outputs=2", {"axis": 0}),
]


@pytest.mark.parametrize(("source", "target", "before", "after"), SPLITS)
def test_split_of_opset_1(source: int, target: int, before: str, after: dict[str, object]) -> None:
    model = _model(f"(float[4,4] x) => (float[?,?] y, float[?,?] z) {{ y, z = Split<{before}>(x) }}", source)
    result = onnx_convert.convert(model, to=target).model
    validate(result)
    (node,) = result.graph.node
    assert (node.op_type, list(node.input), _attributes(node)) == ("Split", ["x"], after)


def test_sizes_of_opset_1_are_floats() -> None:
    graph = "(float[4] x) => (float[?] y, float[?] z) <float[2] s = {1,3}> { y, z = Split(x, s) }"
    model = _model(graph, 1)
    model.graph.input.append(helper.make_tensor_value_info("s", TensorProto.FLOAT, [2]))
    result = onnx_convert.convert(model, to=11).model
    validate(result)
    assert [_attributes(node) for node in result.graph.node] == [{"split": [1, 3]}]


def test_computed_sizes_of_opset_1_become_integers() -> None:
    model = _model("(float[4] x, float[2] s) => (float[?] y, float[?] z) { y, z = Split(x, s) }", 1)
    result = onnx_convert.convert(model, to=13).model
    validate(result)
    assert [node.op_type for node in result.graph.node] == ["Cast", "Split"]
    got = evaluate(result, {"x": np.arange(4, dtype=np.float32), "s": np.array([3, 1], dtype=np.float32)})
    assert [part.tolist() for part in got.values] == [[0, 1, 2], [3]]


def test_split_into_too_many_parts_where_nobody_goes() -> None:
    """An error only if the branch is taken, as in the published expansion of AffineGrid."""
    graph = """(float[5] x, bool c) => (float[?] y) { y = If(c)
        <then_branch = a () => (float[?] p) { p, q, r, s = Split<num_outputs=4>(x) },
         else_branch = b () => (float[?] t) { t, u = Split<num_outputs=2>(x) }> }"""
    result = onnx_convert.convert(_model(graph, 18), to=13).model
    feeds = {"x": np.arange(5, dtype=np.float32), "c": np.array(False)}
    assert evaluate(result, feeds).values[0].tolist() == [0, 1, 2]


def test_more_parts_than_there_are_are_refused() -> None:
    """Slices would give parts of other sizes than the model states; the node fails at every run anyway."""
    graph = "(float[1] x) => (float[?] p, float[?] q, float[?] r) { p, q, r = Split<num_outputs=3>(x) }"
    with pytest.raises(onnx_convert.RefusedError, match="more parts"):
        onnx_convert.convert(model_of(graph, 18), to=12)
