# SPDX-License-Identifier: Apache-2.0
"""Dropout: 7: `is_test` goes; 10: the mask is boolean; 12: `ratio` is an input, and `training_mode` comes."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, helper

import onnx_convert
from boundaries import Row, each_of, keeps, refuses, rewrites
from oracle import run, validate


def attribute(attributes: str = "", mask: str = "") -> str:
    """Returns a graph with the ratio in an attribute, and with a mask of the given dtype."""
    more, second = (f", {mask}[2,3] z", ", z") if mask else ("", "")
    return f"(float[2,3] x) => (float[2,3] y{more}) {{ y{second} = Dropout{attributes}(x) }}"


def constant(ratio: str = "", training: str = "", attributes: str = "", mask: bool = False) -> str:
    """Returns a graph with constants for the inputs."""
    initializers = ", ".join(
        filter(None, [ratio and f"float r = {{{ratio}}}", training and f"bool t = {{{training}}}"])
    )
    inputs = "x" + (", r" if ratio else ', ""' if training else "") + (", t" if training else "")
    more, second = (", bool[2,3] z", ", z") if mask else ("", "")
    head = f"(float[2,3] x) => (float[2,3] y{more})" + (f" <{initializers}>" if initializers else "")
    return f"{head} {{ y{second} = Dropout{attributes}({inputs}) }}"


D = "Dropout"
CONDITIONAL = {"allow": {"conditional"}}
EXACT = {"exact": True}

ROWS: list[Row] = [
    rewrites("Dropout in test", 6, 7, attribute("<is_test=1,ratio=0.3>"), into=[D]),
    rewrites("Dropout in test", 1, 22, attribute("<is_test=1>"), into=[D]),
    rewrites("Dropout", 7, 6, attribute("<ratio=0.3>"), into=[D]),
    refuses("Dropout that is random", 6, 7, attribute(), because="only the distribution"),
    keeps("Dropout", 7, 10, attribute("<ratio=0.3>")),
    keeps("Dropout", 10, 7, attribute("<ratio=0.3>")),
    rewrites("Dropout with a mask", 7, 10, attribute("", "float"), into=[D, "Cast"]),
    rewrites("Dropout with a mask", 10, 7, attribute("", "bool"), into=[D, "Cast"]),
    keeps("Dropout of the default ratio", 10, 12, attribute()),
    *(
        refuses(f"Dropout{more} with a mask", 11, 12, attribute(more, "bool"), because="not specified", options=EXACT)
        for more in ("<ratio=0.3>", "")
    ),
    rewrites("Dropout", 10, 12, attribute("<ratio=0.3>"), into=[D]),
    rewrites("Dropout", 10, 22, attribute("<ratio=0.3>"), into=[D]),
    rewrites("Dropout", 12, 10, constant("0.3"), into=[D]),
    keeps("Dropout without ratio", 12, 10, constant()),
    rewrites("Dropout with a seed", 12, 10, constant("", "", "<seed=7>"), into=[D]),
    rewrites("Dropout that does not train", 13, 11, constant("0.3", "0"), into=[D]),
    rewrites("Dropout that does not train, of no ratio", 13, 11, constant("", "0"), into=[D]),
    rewrites(
        "Dropout with a ratio at run time", 13, 11, "(float[2,3] x, float r) => (float[2,3] y) { y = Dropout(x, r) }"
    ),
    rewrites("Dropout with a mask", 12, 11, constant("0.3", mask=True)),
    rewrites("Dropout of a scalar with a mask", 12, 11, "(float x) => (float y, bool z) { y, z = Dropout(x) }"),
    rewrites(
        "Dropout of nothing with a mask", 12, 11, "(float[0,2] x) => (float[0,2] y, bool[0,2] z) { y, z = Dropout(x) }"
    ),
    rewrites("Dropout with a mask", 22, 8, constant("0.3", mask=True)),
    rewrites("Dropout that trains and drops nothing", 12, 10, constant("0.0", "1", mask=True), options=EXACT),
    rewrites(
        "Dropout that might train",
        12,
        11,
        '(float[2,3] x, bool t) => (float[2,3] y, bool[2,3] z) { y, z = Dropout(x, "", t) }',
        feeds={"t": False},
        options=CONDITIONAL,
    ),
    refuses("Dropout that trains", 12, 11, constant("0.3", "1"), because="only the distribution"),
]


test_rows = each_of(ROWS)


X = np.random.default_rng(0).standard_normal((100, 100)).astype(np.float32) + np.float32(5)


def model(opset: int, node: str, mask: str = "bool", more: str = "", dtype: str = "float") -> ModelProto:
    head = f"({dtype}[100,100] x{more}) => ({dtype}[100,100] y, {mask}[100,100] z)"
    initializers = "<float r = {0.25}, bool t = {1}>" if "r, t" in node else ""
    graph = onnx.parser.parse_graph(f"g {head} {initializers} {{ y, z = {node} }}")
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets))


@pytest.mark.parametrize("dtype", ["float", "float16"])
@pytest.mark.parametrize("target", [11, 9])
def test_training_is_written_out(target: int, dtype: str) -> None:
    source = model(12, "Dropout<seed=7>(x, r, t)", dtype=dtype)
    with pytest.raises(onnx_convert.RefusedError, match="distribution"):
        onnx_convert.convert(source, to=target)
    result = onnx_convert.convert(source, to=target, allow={"conditional"}).model
    validate(result)
    x = X.astype(np.float16 if dtype == "float16" else np.float32)
    y, kept = run(result, {"x": x})
    assert kept.dtype == bool
    assert abs(kept.mean() - 0.75) < 0.03
    np.testing.assert_allclose(y, np.where(kept, x.astype(np.float64) / 0.75, 0), rtol=2e-3)


def test_training_at_run_time() -> None:
    source = model(12, "Dropout(x, r, t)", more=", float r, bool t").SerializeToString()
    source = onnx.ModelProto.FromString(source)
    del source.graph.initializer[:]
    result = onnx_convert.convert(source, to=11, allow={"conditional"}).model
    y, kept = run(result, {"x": X, "r": np.array(0.5, dtype=np.float32), "t": np.array(True)})
    assert abs(kept.mean() - 0.5) < 0.03
    np.testing.assert_allclose(y, np.where(kept, X * 2, 0), rtol=1e-5)


def test_the_absence_of_is_test_means_training() -> None:
    result = onnx_convert.convert(model(6, "Dropout<ratio=0.25>(x)", mask="float"), to=13).model
    validate(result)
    y, kept = run(result, {"x": X})
    assert kept.dtype == np.float32
    assert abs(kept.mean() - 0.75) < 0.03
    np.testing.assert_allclose(y, X / np.float32(0.75) * kept, rtol=1e-5)


def test_a_mask_that_is_not_specified_becomes_one_that_is() -> None:
    """Below 12 onnxruntime says false, onnx's own evaluator true; from 12 on the text does, and all do as it says."""
    conversion = onnx_convert.convert(model(11, "Dropout<ratio=0.25>(x)"), to=12)
    y, kept = run(conversion.model, {"x": X})
    assert kept.all()
    np.testing.assert_array_equal(y, X)
    assert conversion.report.form == "equivalent"
