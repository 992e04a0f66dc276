# SPDX-License-Identifier: Apache-2.0
"""LabelEncoder of ai.onnx.ml across its boundaries: the numbers are onnxruntime's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_cases import DBL, FLT, I16, INT, ML, STR, MlCase, check, tensor

import onnx_convert
from oracle import compare, run

WORDS = np.array([["b", "a", ""], ["c", "d", "a"]], dtype=object)
NUMBERS = np.array([[0, 1, 2], [3, -1, 1]], dtype=np.int64)
REALS = np.array([0.5, -1.0, 7.0, 0.0], dtype=np.float32)


def encoder(name: str, source: int, target: int, x: np.ndarray, y: int, because: str = "", **attributes: Any) -> MlCase:
    return MlCase(name, source, target, "LabelEncoder", x, (y,), attributes, because)


NAN = float("nan")
ABC, CAB = ["a", "b", "c"], ["c", "a", "b"]
ENCODERS = [
    encoder("words", 1, 2, WORDS, INT, classes_strings=ABC, default_int64=-7),
    encoder("words", 1, 4, WORDS, INT, classes_strings=ABC),
    encoder("repeated words", 1, 2, WORDS, INT, classes_strings=["a", "b", "a"]),
    encoder("indices", 1, 2, NUMBERS, STR, classes_strings=ABC, default_string="?"),
    encoder("indices of repeated words", 1, 4, NUMBERS, STR, classes_strings=["a", "b", "a"]),
    encoder("words", 2, 1, WORDS, INT, keys_strings=CAB, values_int64s=[2, 0, 1], default_int64=-7),
    encoder("indices", 2, 1, NUMBERS, STR, keys_int64s=[2, 0, 1], values_strings=CAB, default_string="?"),
    encoder("words to numbers", 2, 1, WORDS, INT, keys_strings=CAB, values_int64s=[5, 5, -1]),
    encoder("words to reals", 2, 1, WORDS, FLT, keys_strings=CAB, values_floats=[0.5, 2.0, -1.0]),
    encoder("words to words", 2, 1, WORDS, STR, keys_strings=CAB, values_strings=["x", "y", "y"]),
    encoder("numbers to words", 2, 1, NUMBERS, STR, keys_int64s=[3, -1], values_strings=["three", "minus"]),
    encoder("numbers to numbers", 2, 1, NUMBERS, INT, keys_int64s=[3, -1], values_int64s=[10, 20], default_int64=9),
    encoder("reals to words", 2, 1, REALS, STR, keys_floats=[7.0, 0.5], values_strings=["seven", "half"]),
    encoder("reals to reals", 2, 1, REALS, FLT, keys_floats=[7.0, 0.5], values_floats=[1.0, 2.0]),
    encoder("a scalar", 2, 1, np.array(0.5, dtype=np.float32), FLT, keys_floats=[7.0, 0.5], values_floats=[1.0, 2.0]),
    encoder("no elements", 2, 1, REALS[:0], FLT, keys_floats=[7.0, 0.5], values_floats=[1.0, 2.0]),
    encoder("NaN", 2, 1, REALS, FLT, keys_floats=[7.0, NAN], values_floats=[1.0, 2.0]),
    encoder(
        "NaN", 4, 1, np.append(REALS, np.float32(NAN)), FLT, keys_floats=[7.0, NAN, NAN],
        values_floats=[NAN, 2.0, 2.0], default_float=-0.0,
    ),
    encoder("NaN for a key twice", 2, 1, REALS, FLT, keys_floats=[7.0, 0.5, 7.0], values_floats=[NAN, 2.0, NAN]),
    encoder("repeated keys", 2, 1, WORDS, INT, "repeated", keys_strings=["a", "a"], values_int64s=[0, 1]),
    encoder("lists", 4, 2, WORDS, INT, keys_strings=CAB, values_int64s=[5, 5, -1]),
    encoder(
        "tensors", 4, 2, WORDS, FLT, keys_tensor=tensor(CAB, object), values_tensor=tensor([1, 2, 3], np.float32),
        default_tensor=tensor([9], np.float32),
    ),
    encoder(
        "int32 to int64", 4, 2, NUMBERS.astype(np.int32), INT, keys_tensor=tensor([3, -1], np.int32),
        values_int64s=[1, 2],
    ),
    encoder("words to int16", 4, 1, WORDS, I16, keys_strings=CAB, values_tensor=tensor([1, 2, 3], np.int16)),
    encoder(
        "double to double", 4, 2, REALS.astype(np.float64), DBL, keys_tensor=tensor([7, 0.5], np.float64),
        values_tensor=tensor([0.1, 0.2], np.float64), default_tensor=tensor([0.3], np.float64),
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", ENCODERS, ids=str)
@pytest.mark.parametrize("sizes", ["known", "unknown"])
def test_same_numbers(case: MlCase, sizes: str) -> None:
    check(case, sizes)


def test_two_nodes_alike() -> None:
    row = encoder("", 2, 1, WORDS, FLT, keys_strings=CAB, values_floats=[0.5, 2.0, -1.0])
    model = row.model()
    again = model.graph.node.add()
    again.CopyFrom(model.graph.node[0])
    again.name, again.output[0] = "again", "y_again"
    model.graph.output.add(name="y_again", type=model.graph.output[0].type)
    result = onnx_convert.convert(model, to={ML: 1}).model
    assert [(n.op_type, n.domain) for n in result.graph.node] == [("LabelEncoder", ML), ("Gather", "")] * 2
    assert compare(run(model, {"x": WORDS}), run(result, {"x": WORDS})) is None
