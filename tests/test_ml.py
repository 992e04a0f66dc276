# SPDX-License-Identifier: Apache-2.0
"""LabelEncoder and the tree ensembles of ai.onnx.ml across their boundaries: the numbers are onnxruntime's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import onnx_convert
from oracle import compare, run

ML = "ai.onnx.ml"
STR, INT, FLT, DBL = TensorProto.STRING, TensorProto.INT64, TensorProto.FLOAT, TensorProto.DOUBLE
I16 = TensorProto.INT16


@dataclass(frozen=True)
class Row:
    """One node, the versions of ai.onnx.ml that it comes from and goes to, and what it is fed."""

    name: str
    source: int
    target: int
    operator: str
    x: np.ndarray
    outputs: tuple[int, ...]
    attributes: Mapping[str, Any]
    because: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.source}->{self.target}"

    def model(self, shape: list[int | str | None] | None = None) -> ModelProto:
        """The model of the row; all ranks are known, and sizes too if no shape is given."""
        node = helper.make_node(self.operator, ["x"], list("yz"[: len(self.outputs)]), name="n", domain=ML)
        node.attribute.extend(helper.make_attribute(k, v) for k, v in self.attributes.items() if v is not None)
        x = helper.np_dtype_to_tensor_dtype(self.x.dtype)
        given = helper.make_tensor_value_info("x", x, list(self.x.shape) if shape is None else shape)
        ranks = (self.x.ndim if self.operator == "LabelEncoder" else 2, 2) if len(self.outputs) == 1 else (1, 2)
        made = [
            helper.make_tensor_value_info(name, dtype, [None] * rank)
            for name, dtype, rank in zip(node.output, self.outputs, ranks, strict=False)
        ]
        opsets = [helper.make_opsetid("", 16), helper.make_opsetid(ML, self.source)]
        graph = helper.make_graph([node], "g", [given], made)
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def tensor(elements: Any, dtype: Any) -> TensorProto:
    return numpy_helper.from_array(np.array(elements, dtype=dtype))


# ---- LabelEncoder

WORDS = np.array([["b", "a", ""], ["c", "d", "a"]], dtype=object)
NUMBERS = np.array([[0, 1, 2], [3, -1, 1]], dtype=np.int64)
REALS = np.array([0.5, -1.0, 7.0, 0.0], dtype=np.float32)


def encoder(name: str, source: int, target: int, x: np.ndarray, y: int, because: str = "", **attributes: Any) -> Row:
    return Row(name, source, target, "LabelEncoder", x, (y,), attributes, because)


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
    encoder("NaN", 2, 1, REALS, FLT, "NaN", keys_floats=[7.0, float("nan")], values_floats=[1.0, 2.0]),
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

# ---- trees

# x0 <= 0.1 ? (x1 < -0.2 ? leaf 3 : leaf 4) : leaf 2, and a tree of one leaf
NODES = {
    "nodes_treeids": [0, 0, 0, 0, 0, 1],
    "nodes_nodeids": [0, 1, 2, 3, 4, 0],
    "nodes_featureids": [0, 1, 0, 0, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "BRANCH_LT", "LEAF", "LEAF", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 3, 0, 0, 0, 0],
    "nodes_falsenodeids": [2, 4, 0, 0, 0, 0],
    "nodes_missing_value_tracks_true": [1, 0, 0, 0, 0, 0],
}
FLOATS = {"nodes_values": [0.1, -0.2, 0.0, 0.0, 0.0, 0.0]}
DOUBLES = {"nodes_values_as_tensor": tensor([0.1, -0.2, 0, 0, 0, 0], np.float64)}


def votes(kind: str, ids: list[int], *, leaves: tuple[int, ...] = (2, 3, 4), double: bool = False) -> dict[str, Any]:
    """One vote for each of the leaves in the first tree, and one in the second."""
    weights = [1.0, 2.5, -4.0, 0.75, 0.3, 0.2, -1.5][: len(ids)]
    return {
        f"{kind}_treeids": [0] * len(leaves) + [1],
        f"{kind}_nodeids": [*leaves, 0],
        f"{kind}_ids": ids,
        **({f"{kind}_weights_as_tensor": tensor(weights, np.float64)} if double else {f"{kind}_weights": weights}),
    }


X = np.random.default_rng(0).standard_normal((40, 2)).astype(np.float32) * np.float32(0.4)
X[0], X[1], X[2] = (0.1, -0.2), (np.nan, -0.2), (np.nextafter(np.float32(0.1), np.float32(1)), np.nan)
ONE, SEVERAL = [0, 0, 0, 0], [0, 1, 1, 0]

DOUBLE_VOTES = {"n_targets": 1, **votes("target", ONE, double=True)}
PROBABLE = {"n_targets": 1, **votes("target", ONE), "target_weights": [0.1, 0.2, 0.3, 0.4]}
BASED = {"base_values": [0.5], "aggregate_function": "MAX"}


def regressor(name: str, source: int, target: int, x: np.ndarray = X, because: str = "", **attributes: Any) -> Row:
    ids = {} if "n_targets" in attributes else {"n_targets": 1, **votes("target", ONE)}
    values = {} if "nodes_values_as_tensor" in attributes else FLOATS
    return Row(
        name, source, target, "TreeEnsembleRegressor", x, (FLT,), {**NODES, **values, **ids, **attributes}, because
    )


TWO = {"n_targets": 2, **votes("target", SEVERAL)}
BOTH = {"n_targets": 2, **votes("target", [0, 1, 1, 1, 0, 1], leaves=(2, 3, 4, 2, 3))}
FULL = {"n_targets": 2, **votes("target", [0, 0, 0, 1, 1, 1, 0], leaves=(2, 3, 4, 2, 3, 4))}
REGRESSORS = [
    regressor("regressor", 1, 5),
    regressor("regressor", 3, 4),
    regressor("regressor", 3, 1),
    regressor("regressor with a base", 3, 5, base_values=[0.5]),
    regressor("regressor with a base for each target", 3, 5, **FULL, base_values=[0.5, -1.0]),
    regressor("regressor, softmax", 3, 5, **FULL, base_values=[0.5, -1.0], post_transform="SOFTMAX"),
    regressor("regressor of two targets, logistic", 3, 5, **FULL, post_transform="LOGISTIC"),
    regressor("regressor with a base for the average", 3, 5, base_values=[0.5], aggregate_function="AVERAGE"),
    regressor("regressor with a base for the maximum", 3, 5, base_values=[0.5], aggregate_function="MAX"),
    regressor("regressor with several votes", 3, 5, **BOTH),
    *(
        regressor(f"regressor by {how} {name}", 3, 5, aggregate_function=how, **given)
        for how in ("AVERAGE", "MIN", "MAX")
        for name, given in (("", {}), ("of two targets", TWO), ("with several votes", BOTH))
    ),
    regressor("regressor, logistic", 3, 5, post_transform="LOGISTIC"),
    regressor("regressor, probit", 3, 5, post_transform="PROBIT", **PROBABLE),
    regressor("regressor, probit of a maximum", 3, 5, X, "PROBIT", post_transform="PROBIT", **BASED),
    regressor("regressor of double", 3, 5, X.astype(np.float64)),
    regressor("regressor in double", 3, 5, X.astype(np.float64), **DOUBLES, **DOUBLE_VOTES),
    regressor("regressor in double", 3, 1, X.astype(np.float64), "threshold", **DOUBLES, **DOUBLE_VOTES),
]


def classifier(
    name: str, source: int, target: int, ids: list[int], because: str = "", x: np.ndarray = X, **attributes: Any
) -> Row:
    words = "classlabels_strings" in attributes
    labels = {} if words else {"classlabels_int64s": [0, 1, 2]}
    given = {**NODES, **FLOATS, **votes("class", ids), **labels, **attributes}
    return Row(name, source, target, "TreeEnsembleClassifier", x, (STR if words else INT, FLT), given, because)


CLASSIFIERS = [
    classifier("classifier", 3, 5, [0, 1, 2, 1]),
    classifier("classifier", 1, 4, [0, 1, 2, 1]),
    classifier("classifier with labels", 3, 5, [0, 1, 2, 1], classlabels_int64s=[7, -1, 5]),
    classifier("classifier with words", 3, 5, [0, 1, 2, 1], classlabels_strings=ABC),
    classifier("classifier with a base", 3, 5, [0, 1, 2, 1], base_values=[0.5, 2.0, 0.0]),
    classifier("classifier, softmax", 3, 5, [0, 1, 2, 1], post_transform="SOFTMAX"),
    classifier("classifier of integers", 3, 5, [0, 1, 2, 1], x=np.array([[0, 1], [1, -1], [-1, 0]], dtype=np.int64)),
    classifier("classifier of two", 3, 5, [0, 1, 1, 0], "convention", classlabels_int64s=[0, 1]),
]


def ensemble(name: str, x: np.ndarray = X, because: str = "", **attributes: Any) -> Row:
    given = {
        "n_targets": 2,
        "tree_roots": [0],
        "nodes_featureids": [0, 1, 1],
        "nodes_modes": tensor([0, 6, 4], np.uint8),
        "nodes_splits": tensor([0.1, 0.0, 2.0], x.dtype),
        "nodes_truenodeids": [1, 0, 1],
        "nodes_trueleafs": [0, 1, 1],
        "nodes_falsenodeids": [2, 1, 2],
        "nodes_falseleafs": [0, 1, 1],
        "leaf_targetids": [0, 1, 0],
        "leaf_weights": tensor([1.0, 2.0, -4.0], x.dtype),
        "membership_values": tensor([1.0, 2.0, 3.0, np.nan], x.dtype),
    }
    dtype = helper.np_dtype_to_tensor_dtype(x.dtype)
    return Row(name, 5, 4, "TreeEnsemble", x, (dtype,), {**given, **attributes}, because)


WHOLE = np.array([[a, b] for a in (0.0, 1.0) for b in (0.0, 1.0, 2.0, 3.0, 4.0)], dtype=np.float32)
ENSEMBLES = [
    ensemble("ensemble", WHOLE),
    ensemble("ensemble of several trees", WHOLE, tree_roots=[0, 1, 2], aggregate_function=0),
    ensemble("ensemble that transforms", WHOLE, post_transform=3),
    ensemble("ensemble of double", WHOLE.astype(np.float64), "double"),
]

ROWS = [*ENCODERS, *REGRESSORS, *CLASSIFIERS, *ENSEMBLES]


@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.parametrize("sizes", ["known", "unknown"])
def test_same_numbers(row: Row, sizes: str) -> None:
    model = row.model(None if sizes == "known" else [None] * row.x.ndim)
    try:
        result = onnx_convert.convert(model, to={ML: row.target}).model
    except onnx_convert.RefusedError as refused:
        assert row.because, refused
        assert row.because in refused.refusals[0].reason
        return
    assert not row.because, [node.op_type for node in result.graph.node]
    assert {o.domain: o.version for o in result.opset_import} == {"": 16, ML: row.target}
    onnx.checker.check_model(result, full_check=True)
    feeds = {"x": row.x}
    difference = compare(run(model, feeds), run(result, feeds))
    assert difference is None, difference


COMPARISONS = {
    "BRANCH_LEQ": np.less_equal,
    "BRANCH_LT": np.less,
    "BRANCH_GTE": np.greater_equal,
    "BRANCH_GT": np.greater,
    "BRANCH_EQ": np.equal,
    "BRANCH_NEQ": np.not_equal,
}


@pytest.mark.parametrize("target", [1, 5])
@pytest.mark.parametrize("mode", COMPARISONS)
def test_floats_fall_on_the_same_side_of_a_threshold_of_double(mode: str, target: int) -> None:
    """No runtime takes such a threshold for an input of float, so the comparison is made here."""
    exact = [0.1, -0.1, 0.5, 1 / 3, -1e-300, 1e300]
    for threshold in exact:
        values = tensor([threshold, -0.2, 0, 0, 0, 0], np.float64)
        row = regressor("", 3, target, nodes_values_as_tensor=values, nodes_modes=[mode, *NODES["nodes_modes"][1:]])
        converted = onnx_convert.convert(row.model(), to={ML: target}).model.graph.node[0]
        attributes = {a.name: helper.get_attribute_value(a) for a in converted.attribute}
        lists = attributes["nodes_values"] if target == 1 else numpy_helper.to_array(attributes["nodes_splits"])
        rounded = np.float32(lists[0])
        with np.errstate(over="ignore"):
            near = np.float32(threshold)
        infinity = np.float32(np.inf)
        floats = np.array([near, np.nextafter(near, infinity), np.nextafter(near, -infinity), 0.0], dtype=np.float32)
        compare_floats = COMPARISONS[mode]
        assert (compare_floats(floats.astype(np.float64), threshold) == compare_floats(floats, rounded)).all()


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
