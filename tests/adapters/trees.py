# SPDX-License-Identifier: Apache-2.0
"""The tree ensembles of ai.onnx.ml across their boundaries: the numbers are onnxruntime's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ml_cases import FLT, INT, ML, STR, MlCase, check, tensor
from onnx import helper, numpy_helper

import onnx_convert

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


def regressor(name: str, source: int, target: int, x: np.ndarray = X, because: str = "", **attributes: Any) -> MlCase:
    ids = {} if "n_targets" in attributes else {"n_targets": 1, **votes("target", ONE)}
    values = {} if "nodes_values_as_tensor" in attributes else FLOATS
    return MlCase(
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
) -> MlCase:
    words = "classlabels_strings" in attributes
    labels = {} if words else {"classlabels_int64s": [0, 1, 2]}
    given = {**NODES, **FLOATS, **votes("class", ids), **labels, **attributes}
    return MlCase(name, source, target, "TreeEnsembleClassifier", x, (STR if words else INT, FLT), given, because)


CLASSIFIERS = [
    classifier("classifier", 3, 5, [0, 1, 2, 1]),
    classifier("classifier", 1, 4, [0, 1, 2, 1]),
    classifier("classifier with labels", 3, 5, [0, 1, 2, 1], classlabels_int64s=[7, -1, 5]),
    classifier("classifier with words", 3, 5, [0, 1, 2, 1], classlabels_strings=["a", "b", "c"]),
    classifier("classifier with a base", 3, 5, [0, 1, 2, 1], base_values=[0.5, 2.0, 0.0]),
    classifier("classifier, softmax", 3, 5, [0, 1, 2, 1], post_transform="SOFTMAX"),
    classifier("classifier of integers", 3, 5, [0, 1, 2, 1], x=np.array([[0, 1], [1, -1], [-1, 0]], dtype=np.int64)),
    classifier("classifier of two", 3, 5, [0, 1, 1, 0], "convention", classlabels_int64s=[0, 1]),
]


def ensemble(name: str, x: np.ndarray = X, because: str = "", **attributes: Any) -> MlCase:
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
    return MlCase(name, 5, 4, "TreeEnsemble", x, (dtype,), {**given, **attributes}, because)


WHOLE = np.array([[a, b] for a in (0.0, 1.0) for b in (0.0, 1.0, 2.0, 3.0, 4.0)], dtype=np.float32)
ENSEMBLES = [
    ensemble("ensemble", WHOLE),
    ensemble("ensemble of several trees", WHOLE, tree_roots=[0, 1, 2], aggregate_function=0),
    ensemble("ensemble that transforms", WHOLE, post_transform=3),
    ensemble("ensemble of double", WHOLE.astype(np.float64), "double"),
]


CASES = [*REGRESSORS, *CLASSIFIERS, *ENSEMBLES]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("sizes", ["known", "unknown"])
def test_same_numbers(case: MlCase, sizes: str) -> None:
    check(case, sizes)


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


@pytest.mark.parametrize("case", [c for c in CLASSIFIERS if c.target == 5 and not c.because], ids=str)
def test_what_a_runtime_decides_is_not_exact(case: MlCase) -> None:
    """SOFTMAX and LOGISTIC may round differently; a class without a vote may win over negative scores, or not."""
    softer = {**case.attributes, "post_transform": "LOGISTIC"}
    with pytest.raises(onnx_convert.RefusedError):
        onnx_convert.convert(replace(case, attributes=softer).model(), to={ML: 5}, exact=True)
    with pytest.raises(onnx_convert.RefusedError):
        onnx_convert.convert(case.model(), to={ML: 5}, exact=True)


@pytest.mark.parametrize("how", ["MIN", "MAX"])
def test_whether_the_extremum_of_no_vote_gets_a_base_value_is_a_condition(how: str) -> None:
    """Such a score stays 0 in onnxruntime, while the text adds the base value to every one."""
    based = {"base_values": [0.5, -0.25], "aggregate_function": how}
    with pytest.raises(onnx_convert.RefusedError, match="each target has a vote"):
        onnx_convert.convert(regressor("", 3, 5, **TWO, **based).model(), to={ML: 5})
    converted = onnx_convert.convert(regressor("", 3, 5, **TWO, **based).model(), to={ML: 5}, allow="conditional")
    assert converted.report.form == "conditional"
    full = regressor("", 3, 5, **FULL, **based).model()
    assert onnx_convert.convert(full, to={ML: 5}, exact=True).report.form == "exact"


def test_positive_votes_are_exact() -> None:
    case = classifier("", 3, 5, [0, 1, 2, 1], class_weights=[1.0, 2.5, 4.0, 0.75])
    assert onnx_convert.convert(case.model(), to={ML: 5}, exact=True).report.form == "exact"


@pytest.mark.parametrize(
    "broken",
    [
        {"nodes_modes": tensor([0, 9, 4], np.uint8)},
        {"aggregate_function": 4},
        {"post_transform": -1},
        {"nodes_truenodeids": [7, 0, 1]},
        {"nodes_featureids": [0, 1]},
    ],
    ids=["mode", "aggregate", "transform", "node", "length"],
)
def test_invalid_tables_are_no_fault_of_ours(broken: dict[str, Any]) -> None:
    with pytest.raises((onnx_convert.RefusedError, onnx_convert.InvalidModelError)):
        onnx_convert.convert(ensemble("", WHOLE, **broken).model(), to={ML: 4})


def test_a_threshold_that_is_no_number() -> None:
    """NaN is a float, too."""
    values = tensor([0.5, np.nan, 0, 0, 0, 0], np.float64)
    case = regressor("", 3, 1, X.astype(np.float64), nodes_values_as_tensor=values)
    assert onnx_convert.convert(case.model(), to={ML: 1}).report.form == "exact"
