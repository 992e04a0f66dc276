# SPDX-License-Identifier: Apache-2.0
"""The third opinion: what operators mean in numpy, against values that are computed by hand from their texts."""

from __future__ import annotations

from math import e, log, tanh
from typing import Any

import numpy as np
import onnx
import pytest
from exhaust import judging
from exhaust.judging import FAILED, TEXT, Crossing, verdict
from exhaust.texts import evaluator
from onnx import helper

I32, U8, I8, I64 = np.int32, np.uint8, np.int8, np.int64
INF = np.inf
PLANE = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)


def f(*values: Any) -> np.ndarray:
    return np.array(values, np.float32)


def half(x: float) -> float:
    """Returns the sigmoid."""
    return 1 / (1 + e**-x)


def gates(*numbers: float) -> np.ndarray:
    """Returns weights of one direction, a number for each gate."""
    return f(*([number] for number in numbers))[None]


ONE_STEP = f([[1.0]])  # a sequence of one element
Q, K, V = (np.array(x, np.float64).reshape(1, 1, -1, 1) for x in ([1, 1], [0, log(3)], [1, 5]))

# Operator, opset, inputs, attributes, outputs.
CASES: list[tuple[str, int, list[Any], dict[str, Any], list[Any]]] = [
    ("Clip", 11, [f(-INF, 5), None, f(2)[0]], {}, [f(np.finfo(np.float32).min, 2)]),
    ("Clip", 13, [np.array([7, -7], I8), np.array(3, I8), np.array(-3, I8)], {}, [np.array([-3, -3], I8)]),
    ("Clip", 6, [f(-3, 9)], {"min": -1.0}, [f(-1, 9)]),
    ("QuantizeLinear", 13, [f(1, -1, 0.5, 1000), f(1)[0], np.array(1, U8)], {}, [np.array([2, 0, 1, 255], U8)]),
    ("QuantizeLinear", 13, [f([2, 6], [2, 6]), f(1, 4), np.array([0, 1], I8)], {"axis": 0},
     [np.array([[2, 6], [1, 3]], I8)]),
    ("QuantizeLinear", 21, [f(1, 2, 3), f(1, 3), np.array([0, 0], I8)], {"axis": 0, "block_size": 2},
     [np.array([1, 2, 1], I8)]),
    ("QuantizeLinear", 13, [np.array([2**31 - 2], I32), f(0.5)[0]], {}, [np.array([255], U8)]),
    ("Shrink", 9, [np.array([-(2**31), 2**31 - 2, 0], I32)], {}, [np.array([-(2**31), 2**31 - 2, 0], I32)]),
    ("Shrink", 9, [f(-2, -1, 3)], {"bias": 0.5, "lambd": 1.0}, [f(-1.5, 0, 2.5)]),
    ("Resize", 13, [f(0, 2, 4, 6, 8), None, f(0.5)], {"coordinate_transformation_mode": "align_corners",
                                                      "mode": "linear"}, [f(0, 8)]),
    ("Resize", 13, [f(0, 2, 4), None, f(0.34)], {"coordinate_transformation_mode": "pytorch_half_pixel"}, [f(0)]),
    ("Resize", 13, [f(0, 2, 4), f(-0.5, 1), f(1)], {"coordinate_transformation_mode": "tf_crop_and_resize",
                                                    "extrapolation_value": 9.0, "mode": "linear"}, [f(9, 1, 4)]),
    ("Resize", 11, [f(1, 2), f(), f(2)], {"nearest_mode": "ceil"}, [f(1, 2, 2, 2)]),
    ("Resize", 19, [f(0, 1, 2), None, None, np.array([2], I64)], {
        "coordinate_transformation_mode": "half_pixel_symmetric", "mode": "linear"}, [f(0.25, 1.75)]),
    ("Resize", 13, [f(0, 4), None, f(2)], {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1,
                                           "coordinate_transformation_mode": "asymmetric"}, [f(0, 2, 4, 4.5)]),
    ("MatMulInteger", 10, [np.array([[3, 4]], U8), np.array([[1], [2]], I8), np.array(3, U8)], {},
     [np.array([[2]], I32)]),
    ("MatMulInteger", 10, [np.array([[3], [4]], U8), np.array([[1, 2]], I8), np.array([1, 2], U8),
                           np.array([0, 1], I8)], {}, [np.array([[2, 2], [2, 2]], I32)]),
    ("MatMulInteger", 10, [np.zeros((2, 0), U8), np.zeros((0, 1), U8)], {}, [np.zeros((2, 1), I32)]),
    ("QLinearMatMul", 10, [np.array([[5, 1]], U8), f(0.5)[0], np.array(1, U8), np.array([[3], [9]], U8), f(1)[0],
                           np.array(0, U8), f(4)[0], np.array(10, U8)], {}, [np.array([[12]], U8)]),
    ("BatchNormalization", 15, [f([[1, 3]]), f(2), f(1), f(1), f(4)], {"epsilon": 0.0}, [f([[1, 3]])]),
    ("BatchNormalization", 9, [f([[1, 3]]), f(2), f(1), f(1), f(4)], {"epsilon": 0.0, "momentum": 0.5}, [f([[1, 3]])]),
    ("BatchNormalization", 7, [f([[1, 3]]), f(2), f(1), f(1), f(4)], {"epsilon": 0.0}, [f([[1, 3]])]),
    ("BatchNormalization", 15, [f([[1, 3]]), f(1), f(0), f(4), f(5)],
     {"epsilon": 0.0, "training_mode": 1, "momentum": 0.5}, [f([[-1, 1]]), f(3), f(3)]),
    ("MeanVarianceNormalization", 9, [f([[1, 3]])], {"axes": [2]}, [f([[-1, 1]])]),
    ("MeanVarianceNormalization", 9, [f([[1, 3]])], {"axes": [0]}, [f([[0, 0]])]),
    ("LogSoftmax", 13, [f(0, -1e6)], {}, [f(0, -1e6)]),
    ("LogSoftmax", 11, [f([[0, 0]], [[0, 0]])], {"axis": 1}, [np.full((2, 1, 2), -log(2), np.float32)]),
    ("Pow", 15, [np.array([3, -2, 2], I32), np.array([2, 3, 31], I32)], {}, [np.array([9, -8, -(2**31)], I32)]),
    ("ReduceLogSumExp", 18, [f(INF, 1)], {"keepdims": 0}, [np.float32(INF)]),
    ("ReduceLogSumExp", 18, [f(1000, 1000)], {"keepdims": 0}, [np.float32(1000 + log(2))]),
    ("ReduceSumSquare", 18, [np.array([[1, 2], [3, 4]], I32), np.array([-1])], {}, [np.array([[5], [25]], I32)]),
    ("ReduceL1", 11, [f([-1, 2], [3, -4])], {"axes": [0], "keepdims": 0}, [f(4, 6)]),
    ("ReduceL2", 18, [f(-3, 4), np.zeros(0, I64)], {"noop_with_empty_axes": 1}, [f(3, 4)]),
    ("ReduceMean", 18, [f([1, 2], [3, 4])], {}, [f([2.5])]),
    ("ReduceProd", 18, [np.array([2**62, 2], I64)], {"keepdims": 0}, [np.array(-(2**63))]),
    ("ReduceMean", 18, [np.array([-(2**63), -(2**63), 3], I64)], {}, [np.array([-((2**64 - 3) // 3)], I64)]),
    ("QuantizeLinear", 23, [f(2049, 0), f(2)[0]], {"precision": 10}, [np.array([255, 0], U8)]),
    ("Gather", 13, [np.array(["a", "b"], object), np.array([[-1]])], {}, [np.array([["b"]], object)]),
    ("NegativeLogLikelihoodLoss", 13, [f([1, 2], [3, 4]), np.array([1, -1])], {"ignore_index": -1},
     [np.float32(-2)]),
    ("NegativeLogLikelihoodLoss", 13, [f([1, 2], [3, 4]), np.array([1, 0]), f(3, 1)], {}, [np.float32(-11 / 4)]),
    ("NegativeLogLikelihoodLoss", 13, [f([1, 2], [3, 4]), np.array([1, 0]), f(3, 1)], {"reduction": "none"},
     [f(-2, -9)]),
    ("NonZero", 13, [np.array(5)], {}, [np.zeros((0, 1), I64)]),
    ("NonZero", 13, [np.array([[0, 1], [2, 0]])], {}, [np.array([[0, 1], [1, 0]])]),
    ("Slice", 13, [f(1, 2, 3), np.array([-9]), np.array([-9]), np.array([0]), np.array([-1])], {}, [f(1)]),
    ("Slice", 13, [f(1, 2, 3), np.array([2**31 - 1]), np.array([-(2**31)]), None, np.array([-2])], {}, [f(3, 1)]),
    ("Slice", 13, [f([1, 2, 3]), np.array([1]), np.array([2**62]), np.array([-1])], {}, [f([2, 3])]),
    ("Unsqueeze", 13, [f(1, 2), np.array([-1, 0])], {}, [f([[1], [2]])]),
    ("Unsqueeze", 11, [f(1, 2)], {"axes": [-3, -2]}, [f([[1, 2]])]),
    ("ReverseSequence", 10, [f([1, 4], [2, 5], [3, 6]), np.array([3, 2])], {}, [f([3, 5], [2, 4], [1, 6])]),
    ("Unique", 11, [f(2, 1, 1, 3, 4, 3)], {"sorted": 0},
     [f(2, 1, 3, 4), np.array([0, 1, 3, 4]), np.array([0, 1, 1, 2, 3, 2]), np.array([1, 2, 2, 1])]),
    ("Unique", 11, [f([1, 0], [1, 0], [0, 3])], {"axis": 0},
     [f([0, 3], [1, 0]), np.array([2, 0]), np.array([1, 1, 0]), np.array([1, 2])]),
    ("MaxPool", 12, [PLANE], {"kernel_shape": [2, 2], "pads": [0, 1, 0, 0]},
     [f([[[3, 4, 5], [6, 7, 8]]]), np.array([[[[3, 4, 5], [6, 7, 8]]]])]),
    ("MaxPool", 12, [PLANE], {"kernel_shape": [2, 2], "dilations": [2, 2], "storage_order": 1},
     [f([[[8]]]), np.array([[[[8]]]])]),
    ("MaxPool", 12, [PLANE], {"kernel_shape": [2, 1], "storage_order": 1, "strides": [2, 3], "ceil_mode": 1},
     [f([[[3], [6]]]), np.array([[[[1], [2]]]])]),
    ("AveragePool", 19, [PLANE], {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER", "strides": [2, 2]},
     [f([[[2, 3.5], [6.5, 8]]])]),
    ("AveragePool", 19, [PLANE[:, :, :1]], {"kernel_shape": [1, 2], "pads": [0, 1, 0, 0], "count_include_pad": 1},
     [f([[[0, 0.5, 1.5]]])]),
    ("AveragePool", 19, [PLANE[:, :, :1]],
     {"kernel_shape": [1, 2], "strides": [1, 2], "ceil_mode": 1, "count_include_pad": 1},
     [f([[[0.5, 2]]])]),
    ("Col2Im", 18, [f([[1, 2], [3, 4]]), np.array([3]), np.array([2])], {}, [f([[1, 5, 4]])]),
    ("Col2Im", 18, [f([[1, 2], [3, 4]]), np.array([4]), np.array([2])], {"dilations": [2]}, [f([[1, 2, 3, 4]])]),
    ("ConvTranspose", 11, [f([[1, 2]]), f([[3, 4]])], {"strides": [2]}, [f([[3, 4, 6, 8]])]),
    ("ConvTranspose", 11, [f([[1, 2]]), f([[3, 4]]), f(10)], {"output_shape": [2]}, [f([[20, 18]])]),
    ("ConvTranspose", 11, [f([[1, 2]]), f([[3, 4]])], {"auto_pad": "SAME_UPPER"}, [f([[3, 10]])]),
    ("ConvTranspose", 11, [f([[1], [2]]), f([[3]], [[4]])], {"group": 2}, [f([[3], [8]])]),
    ("RoiAlign", 10, [PLANE, f([0, 0, 2, 2]), np.array([0])], {"sampling_ratio": 1}, [f([[[4]]])]),
    ("RoiAlign", 16, [PLANE, f([0, 0, 2, 2]), np.array([0])], {"sampling_ratio": 1}, [f([[[2]]])]),
    ("RoiAlign", 10, [PLANE, f([0, 0, 3, 3]), np.array([0])], {"mode": "max", "sampling_ratio": 1}, [f([[[2]]])]),
    ("RoiAlign", 10, [PLANE, f([9, 9, 11, 11]), np.array([0])], {"sampling_ratio": 2}, [f([[[0]]])]),
    ("RNN", 14, [ONE_STEP[None], gates(2), gates(9)], {"hidden_size": 1}, [f([[[tanh(2)]]]), f([[tanh(2)]])]),
    ("RNN", 14, [f([[1]], [[2]]), gates(1), gates(0), None, np.array([1], I32)],
     {"hidden_size": 1, "direction": "reverse", "clip": 0.5}, [f([[[tanh(0.5)]]], [[[0]]]), f([[tanh(0.5)]])]),
    ("RNN", 14, [f([[1], [2]]), gates(1), gates(0)], {"hidden_size": 1, "layout": 1},
     [f([[[tanh(1)]], [[tanh(2)]]]), f([[tanh(2)]])]),
    ("GRU", 14, [ONE_STEP[None], gates(0, 1, 2), gates(0, 0, 1), f([0, 0, 0, 0, 0, 3]), None, f([[5]])],
     {"hidden_size": 1, "linear_before_reset": 1}, [f([[[0.5 * tanh(2 + half(1) * 8) + 2.5]]])]),
    ("GRU", 14, [ONE_STEP[None], gates(0, 1, 2), gates(0, 0, 1), f([0, 0, 0, 0, 0, 3]), None, f([[5]])],
     {"hidden_size": 1}, [f([[[0.5 * tanh(2 + half(1) * 5 + 3) + 2.5]]])]),
    ("LSTM", 14, [ONE_STEP[None], gates(1, 2, 3, 4), gates(0, 0, 0, 0), None, None, None, f([[2]])], {"hidden_size": 1},
     [f([[[half(2) * tanh(2 * half(3) + half(1) * tanh(4))]]]),
      f([[half(2) * tanh(2 * half(3) + half(1) * tanh(4))]]), f([[2 * half(3) + half(1) * tanh(4)]])]),
    ("LSTM", 14, [ONE_STEP[None], gates(1, 2, 3, 4), gates(0, 0, 0, 0), None, None, None, f([[2]]), f([1, 0, 0])],
     {"hidden_size": 1, "input_forget": 1},
     [f([[[half(2) * tanh(2 * (1 - half(3)) + half(3) * tanh(4))]]])]),
    ("Attention", 23, [Q, K, V], {"scale": 1.0}, [np.array([[[[4.0], [4.0]]]])]),
    ("Attention", 23, [Q, K, V], {"scale": 1.0, "is_causal": 1}, [np.array([[[[1.0], [4.0]]]])]),
    ("Attention", 23, [Q, K, V, np.array([[True, False], [False, False]])], {"scale": 1.0},
     [np.array([[[[1.0], [0.0]]]])]),
    ("Attention", 24, [Q, K, V, np.zeros((2, 1))], {"scale": 1.0}, [np.array([[[[1.0], [1.0]]]])]),
    ("Attention", 24, [Q, K, V, None, None, None, np.array([1])], {"scale": 1.0}, [np.array([[[[1.0], [1.0]]]])]),
    ("Attention", 23, [Q[:, :, :1], K[:, :, 1:], V[:, :, 1:], None, K[:, :, :1], V[:, :, :1]],
     {"scale": 1.0, "is_causal": 1}, [np.array([[[[4.0]]]]), K, V]),
    ("Attention", 23, [Q, K, V], {"softcap": 1.0}, [np.array([[[[1 + 4 * half(tanh(log(3)))]] * 2]])]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("operator", "opset", "inputs", "attributes", "outputs"),
    [pytest.param(*case, id=f"{number} {case[0]}-{case[1]}") for number, case in enumerate(CASES)],
)
def test_an_operator_means_what_its_text_says(
    operator: str, opset: int, inputs: list[Any], attributes: dict[str, Any], outputs: list[Any]
) -> None:
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(inputs)]
    node = helper.make_node(operator, names, [f"y{i}" for i in range(len(outputs))], **attributes)
    feeds = {name: np.asarray(value) for name, value in zip(names, inputs, strict=True) if name}
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in feeds.items()],
        [onnx.ValueInfoProto(name=name) for name in node.output],
    )
    told = evaluator.run(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]), feeds)
    for found, expected in zip(told, outputs, strict=True):
        assert found.dtype == expected.dtype and found.shape == expected.shape, found
        if expected.dtype == object:
            assert found.tolist() == expected.tolist()
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_each_meaning_is_tested() -> None:
    named = {name for name, *_ in CASES} | {"Optional", "OptionalGetElement", "SequenceInsert"}
    assert named == {name for name, *_ in evaluator.MEANINGS}


def test_sequences_and_optionals() -> None:
    text = """<ir_version: 8, opset_import: ["" : 16]> g (float a, float b, int64 at) => (float y, float z) {
        s = SequenceConstruct (a, b)
        t = SequenceInsert (s, b, at)
        zero = Constant <value_int = 0> ()
        y = SequenceAt (t, zero)
        o = Optional (a)
        z = OptionalGetElement (o)
    }"""
    feeds = {"a": np.float32(1), "b": np.float32(2), "at": np.array(-2)}
    assert [float(value) for value in evaluator.run(onnx.parser.parse_model(text), feeds)] == [2, 1]


# ---- how it decides


CROSSING = Crossing("ReverseSequence", "", 10, "down")


def test_the_text_decides_where_evaluators_contradict_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two evaluators that see something else, the text is asked; who agrees with it is right."""
    asked = judging._difference
    monkeypatch.setattr(judging, "_told", lambda *_: None)
    monkeypatch.setattr(judging, "_difference", lambda *values, exact: _other_evaluator(asked, *values, exact=exact))
    assert verdict(CROSSING, []).kind == "disputed"


def _other_evaluator(asked: Any, case: Any, expected: list[Any], got: list[Any], *, exact: bool) -> str | None:
    """Returns a difference for every second comparison."""
    _other_evaluator.calls = getattr(_other_evaluator, "calls", 0) + 1  # type: ignore[attr-defined]
    odd = _other_evaluator.calls % 2  # type: ignore[attr-defined]
    return "something" if odd else asked(case, expected, got, exact=exact)


def test_a_result_that_contradicts_the_text_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "_ran", lambda *_: judging._Run())
    told = [np.zeros(3, np.float32), np.ones(3, np.float32)]
    monkeypatch.setattr(judging, "_told", lambda *_: [told.pop()])
    monkeypatch.setattr(judging, "stated", lambda case: (case.model({}), judging._Run()))
    monkeypatch.setattr(judging, "validate", lambda _: None)
    found = verdict(CROSSING, [])
    assert (found.outcome, found.kind) == (FAILED, "numbers") and TEXT in found.why
