# SPDX-License-Identifier: Apache-2.0
"""Rewrites that the tables of boundaries cannot hold: what no evaluator runs, what onnx's text form does not spell, and
attributes of functions."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import onnx_convert
from oracle import all_nodes, compare, evaluate, validate


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


# ---- sparse constants


def _sparse(values: np.ndarray, indices: list[object], dims: list[int]) -> onnx.SparseTensorProto:
    places = numpy_helper.from_array(np.array(indices, dtype=np.int64), "indices")
    return helper.make_sparse_tensor(numpy_helper.from_array(values, "values"), places, dims)


SPARSE = [
    (_sparse(np.array([1.5, 2.5], np.float32), [1, 5], [2, 3]), [[0, 1.5, 0], [0, 0, 2.5]]),
    (_sparse(np.array([1.5, 2.5], np.float32), [[0, 1], [1, 2]], [2, 3]), [[0, 1.5, 0], [0, 0, 2.5]]),
    (_sparse(np.array([7], np.int64), [2], [4]), [0, 0, 7, 0]),
    (_sparse(np.array([], np.float32), [], [2]), [0, 0]),
]


@pytest.mark.parametrize(("sparse", "dense"), SPARSE)
@pytest.mark.parametrize("target", [9, 10])
def test_sparse_constant(sparse: onnx.SparseTensorProto, dense: list[object], target: int) -> None:
    node = helper.make_node("Constant", [], ["y"], sparse_value=sparse)
    output = helper.make_tensor_value_info("y", sparse.values.data_type, list(sparse.dims))
    opsets = [helper.make_opsetid("", 13)]
    model = helper.make_model(helper.make_graph([node], "g", [], [output]), opset_imports=opsets, ir_version=7)
    result = onnx_convert.convert(model, to=target).model
    validate(result)
    assert evaluate(result, {}).values[0].tolist() == dense


# ---- attributes of functions

CALLS = [
    # source, target, attributes of the function with their values, its node, its input and output
    (13, 11, {"n": [3, 2]}, "s = Constant<value_ints=@n>() y = Reshape(x, s)", "float[2,3]", "float[3,2]"),
    (12, 11, {"n": 1}, "s = Constant<value_int=@n>() y = Gather(x, s)", "float[2,3]", "float[3]"),
    (10, 13, {"n": [1, 0, 1, 0]}, "y = Pad<pads=@n>(x)", "float[2,3]", "float[4,3]"),
    (10, 11, {"n": [1, 0, 1, 0]}, "y = Pad<pads=@n>(x)", "float[2,3]", "float[4,3]"),
    (10, 13, {"n": 0.5}, "y = Clip<max=@n>(x)", "float[2,3]", "float[2,3]"),
    (19, 18, {"n": "wrap"}, "p = Constant<value_ints=[1,0,1,0]>() y = Pad<mode=@n>(x, p)", "float[2,3]", "float[4,3]"),
    (18, 13, {"n": 1}, "y, z = Split<axis=@n,num_outputs=2>(x)", "float[2,3]", "float[2,2]"),
    (15, 13, {"n": 1}, "y = Shape<start=@n>(x)", "float[2,3]", "int64[1]"),
    (11, 10, {"n": "CRD"}, "y = DepthToSpace<blocksize=2,mode=@n>(x)", "float[1,8,1,1]", "float[1,2,2,2]"),
]


@pytest.mark.parametrize(("source", "target", "attributes", "nodes", "x", "y"), CALLS)
def test_attribute_of_a_function(
    source: int, target: int, attributes: dict[str, object], nodes: str, x: str, y: str
) -> None:
    model = _model(f"({x} x) => ({y} y) {{ y = local.F(x) }}", source)
    body = onnx.parser.parse_graph(f"g (float[?] x) => (float[?] y) {{ {nodes} }}")
    opsets = [helper.make_opsetid("", source)]
    model.functions.append(helper.make_function("local", "F", ["x"], ["y"], body.node, opsets, list(attributes)))
    model.opset_import.append(helper.make_opsetid("local", 1))
    model.ir_version = max(model.ir_version, 8)
    model.graph.node[0].attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    feeds = {"x": np.linspace(-1, 1, int(np.prod(_sizes(x))), dtype=np.float32).reshape(_sizes(x))}
    result = onnx_convert.convert(model, to=target).model
    validate(result)
    assert any(node.op_type != "F" for node in all_nodes(result))
    expected, got = evaluate(model, feeds), evaluate(result, feeds)
    assert compare(expected.values, got.values) is None


def _sizes(spelled: str) -> list[int]:
    return [int(size) for size in spelled.partition("[")[2].rstrip("]").split(",")]


# ---- a dtype that nobody knows


def test_unknown_dtype_is_named() -> None:
    text = """<ir_version: 8, opset_import: ["" : 20, "com.acme" : 1]>
        g (float[2] x) => (float[2] y) { z = com.acme.Foo(x) w = Gelu(z) y = com.acme.Foo(w) }"""
    with pytest.raises(onnx_convert.RefusedError) as refused:
        onnx_convert.convert(onnx.parser.parse_model(text), to=14)
    (refusal,) = refused.value.refusals
    assert refusal.operator == "Gelu"
    assert "dtype of 'z' is not known" in refusal.reason
    assert "type of 'z'" in refusal.remedy


# ---- integers that inference takes for a shape, from opset 14 on


def test_column_less_a_row() -> None:
    graph = """(int64[4] i, int64[3] j, float[3] x) => (int64[4,3] d, float[1] y) <int64[1] a = {1}>
        { c = Unsqueeze(i, a) d = Sub(c, j) y = ReduceMean<axes=[0]>(x) }"""
    converted = onnx_convert.convert(_model(graph, 13), to=21).model
    validate(converted)
    assert [node.op_type for node in all_nodes(converted)] == ["Unsqueeze", "Sub", "ReduceMean"]


# ---- Resize where float rounding hides that a length times its scale is no whole number


def test_a_symmetric_resize_is_not_taken_for_another_because_of_rounding() -> None:
    """0.6 in single precision is a little more, and so is 5 times that, before it is rounded to 3. The middle of the
    output lies in the middle of the input then, and just before it without the symmetry."""
    how = 'coordinate_transformation_mode="half_pixel_symmetric", mode="nearest", nearest_mode="floor"'
    graph = f"(float[1,1,5,1] x) => (float[1,1,3,1] y) <float[4] s = {{1,1,0.6,1}}> {{ y = Resize<{how}>(x, , s) }}"
    source = _model(graph, 19)
    feeds = {"x": np.arange(5, dtype=np.float32).reshape(1, 1, 5, 1)}
    converted = onnx_convert.convert(source, to=18, exact=True).model
    assert "Resize" not in {node.op_type for node in converted.graph.node}
    for made in (source, converted):
        (y,) = ReferenceEvaluator(made).run(None, feeds)
        assert y.ravel().tolist() == [0, 2, 3]
