# SPDX-License-Identifier: Apache-2.0
"""The oracle itself: it notices what is wrong, it lets pass what is right, and it knows what the old operators mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import ModelProto, helper

from boundaries.rows import rewrites
from boundaries.variants import VARIANTS, Case
from onnx_convert.verification.legacy import fitted
from oracle import (
    ONNXRUNTIME,
    REFERENCE,
    TOLERANCE,
    all_nodes,
    compare,
    evaluate,
    feeds_for,
    run,
    run_reference,
    validate,
)

NAN, INF = float("nan"), float("inf")


def model_of(opset: int, graph: str, ir_version: int | None = None) -> ModelProto:
    ir_version = ir_version or helper.find_min_ir_version_for([helper.make_opsetid("", opset)])
    return onnx.parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["": {opset}]> g {graph}')


def floats(*values: float, dtype: str = "float32") -> np.ndarray:
    return np.array(values, dtype=dtype)


DIFFERENT = [
    ("a value", floats(1, 2), floats(1, 2.1), "first at (1,)"),
    ("a value beyond the tolerance", floats(1, dtype="float64"), floats(1 + 1e-7, dtype="float64"), "1 of 1"),
    ("a dtype", floats(1), floats(1, dtype="float64"), "dtype float32"),
    ("a rank", floats(1), np.float32(1), "shape (1,)"),
    ("a shape", np.zeros((2, 3)), np.zeros((3, 2)), "shape (2, 3)"),
    ("NaN for a number", floats(1), floats(NAN), "is nan"),
    ("a number for NaN", floats(NAN), floats(1), "nan was expected"),
    ("the sign of an infinity", floats(INF), floats(-INF), "inf was expected"),
    ("infinity for a large number", floats(3e38), floats(INF), "is inf"),
    ("an integer", np.array([2**62]), np.array([2**62 + 1]), "1 of 1"),
    ("a bool", np.array([True, False]), np.array([True, True]), "first at (1,)"),
    ("a string", np.array(["a", "b"], dtype=object), np.array(["a", "c"], dtype=object), "is c"),
    ("one element of a scalar", np.float32(1), np.float32(2), "first at ()"),
    ("an absent result", floats(1), None, "absent"),
    ("a sequence", [floats(1)], floats(1), "sequence"),
    ("an element of a sequence", [floats(1), floats(2)], [floats(1), floats(3)], "result 1"),
]


@pytest.mark.parametrize(("one", "other", "said"), [r[1:] for r in DIFFERENT], ids=[r[0] for r in DIFFERENT])
@pytest.mark.parametrize("exact", [False, True])
def test_difference_is_noticed(one: Any, other: Any, said: str, exact: bool) -> None:
    assert said in (compare([one], [other], exact=exact) or "nothing")


def test_number_of_results_is_noticed() -> None:
    assert compare([floats(1)], []) == "1 results were expected, there are 0"


SAME = [
    ("rounding of float32", floats(1), floats(1 + 1e-6), False),
    ("rounding of float16", floats(1, dtype="float16"), floats(1.001, dtype="float16"), False),
    ("the sign of zero", floats(0.0), floats(-0.0), False),
    ("NaN and infinities", floats(NAN, INF, -INF), floats(NAN, INF, -INF), True),
    ("strings of two numpy kinds", np.array(["a"]), np.array(["a"], dtype=object), True),
    ("nothing", np.zeros((0, 3)), np.zeros((0, 3)), True),
    ("absent results", None, None, True),
]


@pytest.mark.parametrize(("one", "other", "to_the_bit"), [r[1:] for r in SAME], ids=[r[0] for r in SAME])
def test_agreement_passes(one: Any, other: Any, to_the_bit: bool) -> None:
    assert compare([one], [other]) is None
    assert (compare([one], [other], exact=True) is None) == to_the_bit


def test_payload_of_nan_is_no_difference() -> None:
    other = np.array([0x7FC00001], dtype=np.uint32).view(np.float32)
    assert compare([floats(NAN)], [other], exact=True) is None


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_tolerance_has_its_size(dtype: str) -> None:
    kind = helper.tensor_dtype_to_np_dtype(
        {"bfloat16": onnx.TensorProto.BFLOAT16}.get(dtype) or helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    )
    within, beyond = (np.array([1 + factor * TOLERANCE[dtype]]).astype(kind) for factor in (1, 3))
    assert compare([np.ones(1).astype(kind)], [within]) is None
    assert compare([np.ones(1).astype(kind)], [beyond])


# ---- what the old operators mean

A = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)

# The examples of the text of Add-6: B's shape, axis, where B's dimensions end up.
EXAMPLES = [
    ((), None, ()),
    ((1, 1), None, ()),
    ((5,), None, (5,)),
    ((4, 5), None, (4, 5)),
    ((3, 4), 1, (3, 4, 1)),
    ((2,), 0, (2, 1, 1, 1)),
]


@pytest.mark.parametrize("opset", [1, 6])
@pytest.mark.parametrize(("shape", "axis", "aligned"), EXAMPLES)
def test_legacy_broadcasting(shape: tuple[int, ...], axis: int | None, aligned: tuple[int, ...], opset: int) -> None:
    b = np.asarray(feeds_for(model_of(7, "(float[60] b) => (float[60] b) {}"))["b"][: max(1, int(np.prod(shape)))])
    b = b.reshape(shape)
    attributes = "broadcast=1" + (f", axis={axis}" if axis is not None else "")
    sizes = f"[{','.join(map(str, shape))}]" if shape else ""
    model = model_of(
        opset, f"(float[2,3,4,5] a, float{sizes} b) => (float[2,3,4,5] y) {{ y = Sub<{attributes}>(a, b) }}"
    )
    assert compare([A - b.reshape(aligned)], run(model, {"a": A, "b": b}), exact=True) is None


NO_FIT = [
    ((5,), None, 0, "broadcast is not set"),
    ((3, 1), 1, 1, "no contiguous block"),
    ((4,), None, 1, "no contiguous block"),
    ((5,), 1, 1, "no contiguous block"),
    ((1, 1, 1, 1, 1), None, 1, "no contiguous block"),
    ((1, 2, 3, 4, 5), None, 1, "no contiguous block"),
]


@pytest.mark.parametrize(("shape", "axis", "broadcast", "said"), NO_FIT)
def test_legacy_broadcasting_stretches_nothing_else(
    shape: tuple[int, ...], axis: int | None, broadcast: int, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        fitted(A, np.ones(shape, dtype=np.float32), axis, broadcast)


# Graph at an opset, inputs, the output: small enough to be checked by eye.
OLD = [
    (
        "PRelu by channel",
        6,
        "(float[1,2,2] x, float[2] s) => (float[1,2,2] y) { y = PRelu(x, s) }",
        {"x": floats(-1, -1, -1, 1).reshape(1, 2, 2), "s": floats(2, 3)},
        floats(-2, -2, -3, 1).reshape(1, 2, 2),
    ),
    (
        "Gemm with a row",
        6,
        "(float[1,1] a, float[1,2] b, float[2] c) => (float[1,2] y) { y = Gemm<broadcast=1,beta=2.0>(a, b, c) }",
        {"a": floats(3).reshape(1, 1), "b": floats(1, 2).reshape(1, 2), "c": floats(1, 1)},
        floats(5, 8).reshape(1, 2),
    ),
    (
        "Hardmax of a matrix",
        11,
        "(float[1,2,2] x) => (float[1,2,2] y) { y = Hardmax(x) }",
        {"x": floats(1, 2, 4, 3).reshape(1, 2, 2)},
        floats(0, 0, 1, 0).reshape(1, 2, 2),
    ),
    (
        "Mean with consumed_inputs",
        1,
        "(float[2] a, float[2] b) => (float[2] y) { y = Mean<consumed_inputs=[0,0]>(a, b) }",
        {"a": floats(1, 2), "b": floats(3, 6)},
        floats(2, 4),
    ),
    (
        "Relu with consumed_inputs",
        1,
        "(float[2] x) => (float[2] y) { y = Relu<consumed_inputs=[0]>(x) }",
        {"x": floats(-1, 2)},
        floats(0, 2),
    ),
    (
        "Div of integers",
        6,
        "(int32[4] a, int32[4] b) => (int32[4] y) { y = Div(a, b) }",
        {"a": np.array([7, -7, -6, -(2**31)], dtype="int32"), "b": np.array([2, 2, 3, 3], dtype="int32")},
        np.array([3, -3, -2, -715827882], dtype="int32"),
    ),
    (
        "Concat along the old default",
        1,
        "(float[1,1] a, float[1,1] b) => (float[1,2] y) { y = Concat(a, b) }",
        {"a": floats(1).reshape(1, 1), "b": floats(2).reshape(1, 1)},
        floats(1, 2).reshape(1, 2),
    ),
    (
        "Reshape with zeros",
        1,
        "(float[2,3] x) => (float[2,1,3] y) { y = Reshape<shape=[0,1,-1]>(x) }",
        {"x": floats(0, 1, 2, 3, 4, 5).reshape(2, 3)},
        floats(0, 1, 2, 3, 4, 5).reshape(2, 1, 3),
    ),
    (
        "Cast by name",
        1,
        '(float[2] x) => (int32[2] y) { y = Cast<to="INT32">(x) }',
        {"x": floats(1, -2)},
        np.array([1, -2], dtype="int32"),
    ),
    (
        "Tile along one axis",
        1,
        "(float[2] x, float[1] n, float[1] a) => (float[4] y) { y = Tile(x, n, a) }",
        {"x": floats(1, 2), "n": floats(2), "a": floats(0)},
        floats(1, 2, 1, 2),
    ),
    (
        "Selu with the old defaults",
        1,
        "(float[1] x) => (float[1] y) { y = Selu(x) }",
        {"x": floats(1000)},
        floats(1050.7),
    ),
    (
        "Clip without a bound",
        1,
        "(float[2] x) => (float[2] y) { y = Clip<max=1.0>(x) }",
        {"x": floats(-INF, 2)},
        floats(-INF, 1),
    ),
    (
        "AveragePool without its padding",
        1,
        "(float[1,1,2] x) => (float[1,1,3] y) { y = AveragePool<kernel_shape=[2],pads=[1,1]>(x) }",
        {"x": floats(2, 4).reshape(1, 1, 2)},
        floats(2, 3, 4).reshape(1, 1, 3),
    ),
    (
        "BatchNormalization of a batch",
        6,
        "(float[2,1] x, float[1] s) => (float[2,1] y) { y = BatchNormalization<epsilon=0.0>(x, s, s, s, s) }",
        {"x": floats(1, 3).reshape(2, 1), "s": floats(2)},
        floats(0, 4).reshape(2, 1),
    ),
]


@pytest.mark.parametrize(("opset", "graph", "feeds", "expected"), [r[1:] for r in OLD], ids=[r[0] for r in OLD])
def test_old_meaning(opset: int, graph: str, feeds: dict[str, Any], expected: np.ndarray) -> None:
    assert compare([expected], run(model_of(opset, graph), feeds)) is None


@pytest.mark.parametrize("variant", ["branch", "function", "ai.onnx"])
def test_old_meaning_in_inner_scopes(variant: str) -> None:
    row = rewrites("", 6, 7, "(float[2,2] a, float[2] b) => (float[2,2] y) { y = Add<broadcast=1,axis=0>(a, b) }")
    case = VARIANTS[variant](Case(row.model, row.inputs, 6))
    assert case is not None
    expected = row.inputs["a"] + row.inputs["b"][:, None]
    assert compare([expected], run(case.model, case.feeds)[:1], exact=True) is None


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, None])
@pytest.mark.parametrize("opset", [11, 13])
def test_onnxruntime_and_reference_agree(operator: str, axis: int | None, opset: int) -> None:
    attribute = "" if axis is None else f"<axis={axis}>"
    model = model_of(opset, f"(float[2,3,4] x) => (float[2,3,4] y) {{ y = {operator}{attribute}(x) }}")
    feeds = feeds_for(model)
    evaluation = evaluate(model, feeds)
    assert evaluation.evaluator == ONNXRUNTIME
    assert compare(evaluation.values, run_reference(model, feeds)) is None


@pytest.mark.parametrize(
    ("opset", "dtype", "evaluator"),
    [(6, "float", REFERENCE), (7, "float", ONNXRUNTIME), (13, "bfloat16", REFERENCE), (14, "int8", ONNXRUNTIME)],
)
def test_evaluator_is_reported(opset: int, dtype: str, evaluator: str) -> None:
    model = model_of(opset, f"({dtype}[2] a, {dtype}[2] b) => ({dtype}[2] y) {{ y = Add(a, b) }}")
    evaluation = evaluate(model, feeds_for(model))
    assert evaluation.evaluator == evaluator
    assert bool(evaluation.why) == (evaluator == REFERENCE)


# Nodes that an opset number alone would carry across a boundary: the graph, and whether the numbers tell.
UNTOUCHED = [
    ("Softmax axis 1", 12, 13, "(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis=1>(x) }", True),
    ("Hardmax by default", 12, 13, "(float[2,3,4] x) => (float[2,3,4] y) { y = Hardmax(x) }", True),
    ("Softmax of the last axis", 12, 13, "(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis=-1>(x) }", False),
    ("PRelu of a cube", 6, 7, "(float[3,3,3] x, float[3] s) => (float[3,3,3] y) { y = PRelu(x, s) }", True),
    ("PRelu of a matrix", 6, 7, "(float[3,3] x, float[3] s) => (float[3,3] y) { y = PRelu(x, s) }", False),
    ("Selu by default", 5, 6, "(float[9] x) => (float[9] y) { y = Selu(x) }", True),
]


@pytest.mark.parametrize(
    ("source", "target", "graph", "tells"), [r[1:] for r in UNTOUCHED], ids=[r[0] for r in UNTOUCHED]
)
def test_wrong_conversion_is_noticed(source: int, target: int, graph: str, tells: bool) -> None:
    before, after = model_of(source, graph), model_of(target, graph)
    feeds = feeds_for(before)
    assert bool(compare(run(before, feeds), run(after, feeds))) == tells


# ---- legality

LEGAL = "(float[2] x) => (float[2] y) { y = Relu(x) }"
ONE_HOT = "(int64[2] i, int64 n, float[2] v) => (float[2,?] y) { y = OneHot<axis=-1>(i, n, v) }"  # its default
GATHER = "(float[2,3] x, int64[1] i) => (float[2,1] y) { y = Gather<axis=-1>(x, i) }"  # its text allows this from 1 on
ILLEGAL = [
    ("an unknown operator", 13, "(float[2] x) => (float[2] y) { y = Rleu(x) }", "Rleu"),
    ("an operator that came later", 10, "(float[2] x) => (float[2] y) { y = Celu(x) }", "Celu"),
    ("an operator that went", 10, "(float[2,2] x, float[2] s) => (float[2,2] y) { y = Upsample(x, s) }", "deprecated"),
    ("an attribute of old", 6, "(float[2] x) => (float[2] y) { y = Relu<consumed_inputs=[0]>(x) }", "consumed_inputs"),
    ("an attribute that became an input", 13, "(float[1] x) => (float y) { y = Squeeze<axes=[0]>(x) }", "axes"),
    ("the type of an attribute", 13, "(float[2] x) => (float[2] y) { y = Softmax<axis=1.0>(x) }", "axis"),
    ("a missing attribute", 13, "(float[2] x) => (float[2] y) { y = Concat(x) }", "axis"),
    ("too many inputs", 7, "(float[2] x) => (float[2] y) { y = Add(x, x, x) }", "input"),
    ("too few inputs", 10, "(float[2,2] x) => (float[2,2] y) { y = Gemm(x, x) }", "input"),
    ("a dtype that came later", 13, "(int8[2] x) => (int8[2] y) { y = Add(x, x) }", "int8"),
    ("a negative axis", 10, "(float[2] x) => (float[2] y) { y = Softmax<axis=-1>(x) }", "not promised"),
    ("negative axes", 10, "(float[2] x) => (float[1] y) { y = ReduceMax<axes=[-1]>(x) }", "not promised"),
    ("a shape", 7, "(float[2] x, float[3] z) => (float[2] y) { y = Add(x, z) }", "dimension"),
]


@pytest.mark.parametrize(("opset", "graph", "said"), [r[1:] for r in ILLEGAL], ids=[r[0] for r in ILLEGAL])
@pytest.mark.parametrize("variant", ["plain", "branch", "function"])
def test_illegal_model_is_noticed(opset: int, graph: str, said: str, variant: str) -> None:
    model = model_of(opset, graph)
    case = VARIANTS[variant](Case(model, {}, opset))
    assert case is not None
    with pytest.raises((AssertionError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError)) as caught:
        validate(case.model)
    assert said in str(caught.value)


@pytest.mark.parametrize("variant", ["plain", "branch", "function", "ai.onnx"])
def test_legal_model_passes(variant: str) -> None:
    case = VARIANTS[variant](Case(model_of(13, LEGAL), {}, 13))
    assert case is not None
    validate(case.model)
    assert all(node.op_type in ("Relu", "If", "Twice") for node in all_nodes(case.model))


def test_promised_negative_axis_passes() -> None:
    validate(model_of(9, GATHER))
    validate(model_of(9, ONE_HOT))


def test_ir_version_is_checked() -> None:
    with pytest.raises(AssertionError, match="opset 13 came with IR version 7"):
        validate(model_of(13, LEGAL, ir_version=6))
    filled = model_of(6, "(float[2] x) => (float[2] y) <float[2] b = {1,2}> { y = Add(x, b) }")
    with pytest.raises((AssertionError, onnx.checker.ValidationError), match="b"):
        validate(filled)
    called = VARIANTS["function"](Case(model_of(13, LEGAL), {}, 13))
    assert called is not None
    called.model.ir_version = 7
    with pytest.raises((AssertionError, onnx.checker.ValidationError), match=r"functions|local"):
        validate(called.model)


# ---- inputs


def test_feeds_are_deterministic_and_of_the_right_kind() -> None:
    model = model_of(
        14, "(float[N,3] a, int64[N] b, bool[2,?] c, string[2] d, int8 e) => (float[N,3] y) { y = Relu(a) }"
    )
    one, same, other = feeds_for(model), feeds_for(model), feeds_for(model, seed=1)
    assert {k: (v.dtype.name, v.shape) for k, v in one.items()} == {
        "a": ("float32", (2, 3)),
        "b": ("int64", (2,)),
        "c": ("bool", (2, 3)),
        "d": ("object", (2,)),
        "e": ("int8", ()),
    }
    assert compare(list(one.values()), list(same.values()), exact=True) is None
    assert compare(list(one.values()), list(other.values()))
    assert feeds_for(model, dims={"N": 5})["a"].shape == (5, 3)


def test_feeds_divide_by_no_zero_and_hold_zeros_elsewhere() -> None:
    model = model_of(14, "(int64[999] a, int64[999] b) => (int64[999] y) { y = Div(a, b) }")
    feeds = feeds_for(model)
    assert (feeds["a"] == 0).any()
    assert not (feeds["b"] == 0).any()
