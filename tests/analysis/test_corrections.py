# SPDX-License-Identifier: Apache-2.0
"""Where onnx's inference says what is not so: each case shows its fault, and that ours is true of what a runtime makes.

When onnx mends one, its test fails at "onnx is right now", and the entry in `corrections` can go for that onnx.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import GraphProto, ModelProto, TensorProto, helper
from texts import model

import onnx_convert
from onnx_convert.analysis import claims, corrections, inference, propagation, settling
from onnx_convert.spec import opsets
from oracle import evaluate, feeds_for

Shape = list[int | str | None] | None


def shape_of(graph: GraphProto, name: str) -> Shape:
    value = next(v for v in (*graph.output, *graph.value_info) if v.name == name)
    dims = propagation.dims_of(value.type)
    return None if dims is None else [None if isinstance(d, str) and d.startswith("unk__") else d for d in dims]


def raw(source: ModelProto) -> GraphProto:
    return onnx.shape_inference.infer_shapes(source, strict_mode=True, data_prop=True).graph


def ours(source: ModelProto) -> settling.Settled:
    data = source.SerializeToString()
    found = inference._attempt(inference.strictly, data)
    return settling.settle(ModelProto.FromString(data), found, inference.strictly)


class Fault(NamedTuple):
    """A model, what onnx says of the dimensions of one of its values, and what is true."""

    name: str
    opsets: tuple[int, ...]
    graph: str
    onnx_says: Shape
    true: Shape
    value: str = "y"
    feeds: dict[str, Any] = {}  # noqa: RUF012 - never changed
    mended: int = 99  # the newest opset of the first onnx that is right


CEIL = "<kernel_shape=[2,2], strides=[2,2], pads=[1,1,1,1], ceil_mode=1>"
POOL = f"(float[1,1,7,7] x) => (float[a,b,c,d] y) {{{{ y = {{}} {CEIL} (x) }}}}"
HEADS = "<q_num_heads=2, kv_num_heads=2>"
FAULTS = [
    *(
        Fault(f"{operator} with ceil_mode", versions, POOL.format(operator), [1, 1, 5, 5], [1, 1, 4, 4])
        for operator, versions in {"MaxPool": (10, 11, 12), "AveragePool": (10, 11, 19), "LpPool": (18,)}.items()
    ),
    Fault(
        "STFT without onesided", (17,),
        "(float[1,128,1] x) => (float[] y) <int64 s = {8}, int64 n = {16}> { y = STFT(x, s, , n) }",
        [1, 15, 16, 2], [1, 15, 9, 2], mended=29,
    ),
    Fault(
        "Attention of unknown hidden sizes", (23, 24),
        f"(float[1,S,H] q, float[1,T,H] k, float[1,T,H] v) => (float[] y) {{ y = Attention {HEADS} (q, k, v) }}",
        [1, "S", 0], [1, "S", None], feeds={name: np.zeros((1, 3, 4), np.float32) for name in "qkv"},
    ),
    Fault(
        "Slice of a symbol", (10,),
        "(float[N,M] x) => (float[] y) <int64[1] a = {0}, int64[1] b = {1}> { y = Slice(x, a, b, a) }",
        ["N", "M"], [None, "M"],
    ),
    Fault(
        "Slice by axes of unknown rank", (11, 13),
        "(float[4,1] x, int64[] a) => (float[] y) <int64[2] b = {1,0}, int64[2] e = {3,2}> { y = Slice(x, b, e, a) }",
        [2, 1], [None, None], feeds={"x": np.zeros((4, 1), np.float32), "a": np.array([1, 0])},
    ),
    Fault(
        "DFT of a computed length", (20,),
        "(float[1,N,1] x, int64 n) => (float[] y) { y = DFT(x, n) }",
        [1, "N", 2], [1, None, 2], feeds={"x": np.zeros((1, 5, 1), np.float32), "n": np.array(3)},
    ),
    Fault("a pool larger than its input", (22,),
          "(float[1,1,4,1] x) => (float[] y) { y = MaxPool <kernel_shape=[3,3], strides=[2,2], ceil_mode=1> (x) }",
          [1, 1, 2, 1], [1, 1, 2, 0]),
    Fault("a negative axis of Squeeze", (9,), "(float[2,1] x) => (float[] y) { y = Squeeze <axes=[-1]> (x) }",
          [2, 1], [2]),
    Fault("a negative axis of Unsqueeze", (9,), "(float[2,3] x) => (float[] y) { y = Unsqueeze <axes=[-1]> (x) }",
          [2, 3], [2, 3, 1]),
    Fault("ConvTranspose to less than there is", (10, 11),
          "(float[1,2,4] x, float[2,3,1] w) => (float[] y) { y = ConvTranspose <output_shape=[3]> (x, w) }",
          [1, 3], [1, 3, 3]),
    Fault(
        "Einsum that stretches its first operand", (12,),
        '(float[1,3] a, float[2,3] b) => (float[] y) { y = Einsum <equation="ij,ij->ij"> (a, b) }',
        [1, 3], [2, 3],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "opset"), [pytest.param(f, o, id=f"{f.name} {o}") for f in FAULTS for o in f.opsets])
def test_inference_is_wrong_and_corrected(fault: Fault, opset: int) -> None:
    if opset > opsets.latest():
        pytest.skip("this onnx ends before it")
    source = model(fault.graph, opset)
    found = ours(source).graph
    assert shape_of(found, fault.value) == fault.true
    if opsets.latest() >= fault.mended:
        assert shape_of(raw(source), fault.value) == fault.true
    elif fault.onnx_says is not None:
        assert shape_of(raw(source), fault.value) == fault.onnx_says, "onnx is right now: the entry can go"
    made = evaluate(source, fault.feeds or feeds_for(source)).values
    place = [value.name for value in source.graph.output].index(fault.value)
    if fault.true is not None:
        for one, size in zip(fault.true, made[place].shape, strict=True):
            assert not isinstance(one, int) or one == size


def test_the_products_of_an_attention_of_unknown_rank_are_no_scalar() -> None:
    node = helper.make_node("Attention", ["q", "k", "v"], ["y", "", "", "s"])
    kind = helper.make_tensor_type_proto(1, None)
    types = dict.fromkeys("qkv", kind)
    found = inference.of_node(node, 23, types, {}, {"": 23})
    assert propagation.dims_of(found["s"]) == [None] * 4
    assert not found["y"].tensor_type.HasField("shape")


VALID = [  # by their texts; onnx's inference fails on them
    ("(float[2,3,4,5] x) => (float[] y) { y = MeanVarianceNormalization(x) }", 13, [2, 3, 4, 5]),
    ("(float[A,3] x) => (float[] y) <int64[2] p = {1,2}, int32[1] a = {-1}> { y = Pad(x, p, , a) }", 18, ["A", 6]),
    ("(int64 i, float[2] v) => (float[] y) <int64 d = {3}> { y = OneHot(i, d, v) }", 9, [3]),
    ("(float[2] v) => (float[] y) <int64[2] i = {-1,1}, int64 d = {3}> { y = OneHot <axis=0> (i, d, v) }", 9, [3, 2]),
    (
        "(float[A,1,3] x, float[1,2,3] w) => (float[] y) { y = ConvTranspose<output_shape=[1,2,8],strides=[3]>(x, w) }",
        8,
        ["A", 2, 8],
    ),
    ("(float[A,3] x, int64[?] s) => (float[] y) { y = Resize(x, , , s) }", 13, [None, None]),
    ("(float[A,3] x, int64[?] s) => (float[] y) { y = Resize <axes=[1]> (x, , , s) }", 18, [None, None]),
    ("(float[A,3] x) => (float[] y, int64[] i) { y, i = TopK <k=0> (x) }", 9, ["A", 0]),
    ("(float[A,3] x) => (float[] y, int64[] i) { y, i = TopK <k=0, axis=0> (x) }", 1, [0, 3]),
    ("(int64 unused) => (double[] y) <int64 n = {0}> { y = HannWindow <output_datatype=11> (n) }", 17, [0]),
]


@pytest.mark.parametrize(("graph", "opset", "shape"), VALID)
def test_what_inference_fails_on_is_valid(graph: str, opset: int, shape: Shape) -> None:
    source = model(graph, opset)
    with pytest.raises(onnx.shape_inference.InferenceError):  # onnx is wrong
        raw(source)
    assert shape_of(ours(source).graph, "y") == shape
    stated = model(graph.replace("[] ", f"[{','.join('?' * len(shape or ()))}] "), opset)  # the checker wants ranks
    for target in (opset + 1, 17 if opset > 17 else 20):
        assert not onnx_convert.convert(stated, to=target).report.warnings


def test_what_inference_fails_on_is_valid_in_functions_too() -> None:
    body = "Last (i, v) => (y) { d = Constant <value_int=3> () y = OneHot(i, d, v) }"
    function = f'<domain: "f", opset_import: ["": 13]> {body}'
    source = model("(int64 i, float[2] v) => (float[3] y) { y = f.Last(i, v) }", 13, function, f=1)
    for target in (14, 10):
        converted = onnx_convert.convert(source, to=target)
        assert not converted.report.warnings
        feeds = {"i": np.array(1), "v": np.array([0, 5], np.float32)}
        assert evaluate(converted.model, feeds).values[0].tolist() == [0, 5, 0]


def test_the_scale_gives_a_root_mean_square_normalization_its_dtype() -> None:
    graph = "(float[A,3] x, double[3] s) => (double[] y) { h = RMSNormalization <axis=-1> (x, s) y = Neg(h) }"
    if opsets.latest() < 23:
        pytest.skip("this onnx ends before it")
    source = model(graph.replace("double[] y", "float[] y").replace("Neg(h)", "Cast <to=1> (h)"), 23)
    (wrong,) = (value for value in raw(source).value_info if value.name == "h")
    assert wrong.type.tensor_type.elem_type == TensorProto.FLOAT, "onnx is right now: the entry can go"
    (true,) = (value for value in ours(source).graph.value_info if value.name == "h")
    assert true.type.tensor_type.elem_type == TensorProto.DOUBLE and shape_of(ours(source).graph, "h") == ["A", 3]
    for target in (24, 22):
        assert not onnx_convert.convert(model(graph.replace("[] y", "[?,?] y"), 23), to=target).report.warnings


def test_what_follows_from_a_wrong_type_is_corrected_too() -> None:
    """A chain of pools, each of which depends on the one before, in and out of a subgraph."""
    pool = "MaxPool <kernel_shape=[2,2], strides=[2,2], pads=[1,1,1,1], ceil_mode=1>"
    chain = "".join(f" p{i + 1} = {pool} (p{i}) r{i} = Shape(p{i + 1})" for i in range(3))
    source = model(f"(float[1,1,63,63] p0) => (float[] y) {{ {chain} y = ConstantOfShape(r2) }}", 12)
    settled = ours(source)
    sizes = [shape_of(settled.graph, f"p{i}")[2] for i in (1, 2, 3)]  # type: ignore[index]
    assert sizes == [32, 17, 9]
    assert shape_of(settled.graph, "y") == [1, 1, 9, 9]
    assert settled.cut == {"p1", "p2", "p3"}
    then, other = (f"() => (float[] {name}) {{ {name} = {pool} (x) }}" for name in "ab")
    inner = f"then_branch = t {then}, else_branch = e {other}"
    nested = model(f"(bool c, float[1,1,7,7] x) => (float[] y) {{ y = If (c) <{inner}> }}", 12)
    assert shape_of(ours(nested).graph, "y") == [1, 1, 4, 4]


def test_more_wrong_types_in_a_row_than_there_are_rounds_are_unknown_not_wrong() -> None:
    pool = "MaxPool <kernel_shape=[2,2], strides=[1,2], pads=[0,1,1,1], ceil_mode=1>"
    count = 2 * settling._ROUNDS
    chain = "".join(f" p{i + 1} = {pool} (p{i}) q{i} = Concat <axis=3> (p{i + 1}, p{i + 1})" for i in range(count))
    source = model(f"(float[1,1,7,7] p0) => (float[] p{count}) {{ {chain} }}", 12)
    made = evaluate(source, feeds_for(source)).values[0]
    found = shape_of(ours(source).graph, f"p{count}")
    assert found is None or all(size in (None, true) for size, true in zip(found, made.shape, strict=True))


def test_a_function_says_nothing_of_what_may_be_wrong() -> None:
    source = model(
        "(float[1,1,7,7] x) => (float[] y) { y = f.Pool(x) }", 13,
        '<domain: "f", opset_import: ["": 13]> Pool (a) => (b)'
        " { b = MaxPool <kernel_shape=[2,2], strides=[2,2], pads=[1,1,1,1], ceil_mode=1> (a) }",
        f=1,
    )  # fmt: skip
    assert shape_of(raw(source), "y") == [1, 1, 5, 5]
    assert shape_of(settling.settle(source, None, claims.leniently).graph, "y") is None


@pytest.mark.parametrize(
    ("graph", "opset", "shape"),
    [
        ("(float[A,B,C] x, int64[2] t) => (float[] y) { y = Reshape(x, t) }", 13, [None, None]),
        (("(float[A,B,C] x) => (float[] y) <int64[1] i = {0}, int64[1] k = {-1}>"
         " { s = Shape(x) b = Gather <axis=0> (s, i) t = Concat <axis=0> (b, k) y = Reshape(x, t) }"), 12, ["A", None]),
        (("(float[A,4,6] x) => (float[] y) <int64[1] i = {0}, int64[1] k = {-1}>"
         " { s = Shape(x) b = Gather <axis=0> (s, i) t = Concat <axis=0> (b, k) y = Reshape(x, t) }"), 12, ["A", 24]),
        ("(float[2,3,4] x, int64[K] t) => (float[] y) { r = Reshape(x, t) y = Transpose <perm=[2,0,1]> (r) }", 12,
         [None, None, None]),
        ("(float[2,3] x, int64[3] t) => (float[] y) { y = Expand(x, t) }", 8, [None, 2, 3]),
        ("(float[A,3] x, int64[2] i) => (float[] y) { y = Unsqueeze(x, i) }", 13, [None] * 4),
        ("(float[1,A,1] x, int64[2] i) => (float[] y) { y = Squeeze(x, i) }", 13, [None]),
        ("(float[2,3] x, int64[1] i) => (float[] y) { y = ReduceSum <keepdims=0> (x, i) }", 13, [None]),
        ("(float[2,3] x, int64[2] n) => (float[] y) { y = Tile(x, n) }", 13, [None, None]),
        ("(int64[3] n) => (float[] y) { y = ConstantOfShape(n) }", 9, [None] * 3),
        ("(float[A,B] x, int64[2] s, int64[2] e) => (float[] y) { y = Slice(x, s, e) }", 11, [None, None]),
    ],
)  # fmt: skip
def test_ranks_follow_where_inference_is_silent(graph: str, opset: int, shape: Shape) -> None:
    assert shape_of(ours(model(graph, opset)).graph, "y") == shape


def test_no_entry_is_looked_up_for_other_models() -> None:
    operators = {("", "Conv"), ("", "Relu"), ("", "Gemm"), ("", "MatMul")}
    assert settling.concern(operators, {"": 13}) is settling.Concern.NOTHING
    assert settling.concern({*operators, ("", "MaxPool")}, {"": 13}) is settling.Concern.TYPES
    assert settling.concern({*operators, ("", "LpPool")}, {"": 11}) is settling.Concern.NOTHING
    assert corrections.entry_of("Slice", "", 10) is not corrections.entry_of("Slice", "", 11)


CASTS = (
    "(float[2,N] x) => (float[] y) {{ s = Shape(x) b = Cast <to={}> (s) i = Cast <to=7> (b) y = ConstantOfShape(i) }}"
)


@pytest.mark.parametrize("opset", [13, 19, 21])
def test_elements_do_not_stay_through_a_cast_to_booleans(opset: int) -> None:
    source = model(CASTS.format(9), opset)
    assert shape_of(raw(source), "y") == [2, "N"], "onnx is right now: the entry can go"
    assert shape_of(ours(source).graph, "y") == [None, None]
    assert evaluate(source, {"x": np.zeros((2, 3), np.float32)}).values[0].shape == (1, 1)
    assert shape_of(ours(model(CASTS.format(1), opset)).graph, "y") == [2, "N"]


# ---- what inference does not look for


def test_a_dtype_follows_from_the_other_values_of_its_type_variable() -> None:
    source = model(
        "(float[n,2] x) => (float[n,2] y) <float[2] s = {1.0, 2.0}>"
        " { m = com.microsoft.BiasGelu(x, s) a = Add(m, m) y = LayerNormalization(a, s) }", 17, com_microsoft=1,
    )  # fmt: skip
    graph = ours(source).graph
    assert {v.name: v.type.tensor_type.elem_type for v in graph.value_info}.items() >= {"m": 1, "a": 1}.items()


def test_two_dtypes_of_one_variable_tell_nothing() -> None:
    source = model(
        "(float[2] x, double[2] z) => (float[] a, double[] b) { m = f.F(x) a = Add(m, x) b = Add(m, z) }", 13, f=1
    )
    graph = settling.settle(source, None, claims.leniently).graph
    assert not [v for v in graph.value_info if v.name == "m"]


def test_types_follow_in_a_body_that_a_foreign_operator_holds() -> None:
    body = helper.make_graph(
        [helper.make_node("Relu", ["i"], ["j"]), helper.make_node("MatMul", ["j", "w"], ["k"])],
        "body",
        [helper.make_tensor_value_info("i", 1, [2, 3])],
        [helper.make_value_info("k", helper.make_tensor_type_proto(1, None))],
    )
    node = helper.make_node("BeamSearch", ["x"], ["y"], domain="com.microsoft", decoder=body)
    source = model("(float[2] x, float[3,4] w) => (float[] y) { y = com.microsoft.BeamSearch(x) }", 13, com_microsoft=1)
    source.graph.node[0].CopyFrom(node)
    found = ours(source).graph.node[0].attribute[0].g
    assert [shape_of(found, name) for name in "jk"] == [[2, 3], [2, 4]]


# ---- the conversion


def test_a_correct_statement_is_believed_against_a_wrong_inference() -> None:
    source = model(POOL.format("MaxPool").replace("y =", "p =").replace("}", " y = Relu(p) }"), 12)
    source.graph.value_info.append(helper.make_tensor_value_info("p", 1, [1, 1, 4, 4]))
    report = onnx_convert.convert(source, to=11).report
    assert not report.warnings


def test_true_types_that_onnx_does_not_believe_are_not_written_down() -> None:
    source = model(POOL.format("MaxPool").replace("y =", "p =").replace("}", " y = Softmax(p) }"), 12)
    result = onnx_convert.convert(source, to=13).model
    onnx.checker.check_model(result, full_check=True)
