# SPDX-License-Identifier: Apache-2.0
"""Decompositions that are written in ONNX Script: what is shipped is what they compile to, each computes what its
operator does, and a conversion needs no onnxscript.

`python tests/helpers/compile_scripts.py` compiles them anew, after a source has changed.
"""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import onnx
import pytest
from compile_scripts import DECOMPOSE, FAMILIES, SCRIPTS, compiled, shipped, source, spelled
from onnx import numpy_helper, parser
from texts import model, operators

import onnx_convert
from onnx_convert.adapters.lib.script import Compiled
from onnx_convert.rewrite import registry
from oracle import run, run_reference

# ---- what is shipped


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_shipped_is_what_the_source_says(family: str) -> None:
    """If not: `python tests/helpers/compile_scripts.py`."""
    assert spelled(shipped(family).functions) == spelled(compiled(family).functions)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_shipped_is_sound_and_used(family: str) -> None:
    functions = shipped(family).functions
    onnx.checker.check_model(shipped(family), full_check=True)
    used = re.findall(r"\bcompiled\.(\w+)", (DECOMPOSE / f"{family}.py").read_text(encoding="utf-8"))
    assert {function.name for function in functions} == set(used)
    assert {path.stem for path in SCRIPTS.glob("*.onnxtxt")} == set(FAMILIES)


def test_a_function_that_is_not_there_is_an_attribute_that_is_not_there() -> None:
    family = Compiled(FAMILIES[0])
    assert not hasattr(family, "nothing")
    assert family.functions


# ---- what it computes

NUMPY = {"float": np.float32, "double": np.float64, "float16": np.float16}
ERROR = {"float": 1e-6, "double": 1e-14, "float16": 2e-3}
FINITE = {"float": 1e38, "double": 1e300, "float16": 6e4}
TINY = {"float": 1e-38, "double": 1e-300, "float16": 1e-7}
ANY, IN_FLOAT = ("float", "double", "float16"), ("float", "double")  # float16 is computed in float

ELEMENTWISE = [
    ("activations", "gelu", "Gelu", 20, {}, ANY),
    # the schema's own function has a constant in float: test_decompose_elementwise has the numbers for double
    ("activations", "gelu_by_tanh", 'Gelu<approximate="tanh">', 20, {}, ("float", "float16")),
    ("activations", "hard_swish", "HardSwish", 14, {}, ANY),
    ("activations", "mish", "Mish", 18, {}, ANY),
    ("activations", "thresholded_relu", "ThresholdedRelu<alpha=0.3>", 10, {"alpha": 0.3}, ANY),
    ("activations", "thresholded_relu", "ThresholdedRelu<alpha=-2.0>", 10, {"alpha": -2.0}, ANY),
    ("hyperbolic", "cosh", "Cosh", 9, {}, IN_FLOAT),
    ("hyperbolic", "sinh", "Sinh", 9, {}, IN_FLOAT),
    ("hyperbolic", "acosh", "Acosh", 9, {}, IN_FLOAT),
    ("hyperbolic", "asinh", "Asinh", 9, {}, IN_FLOAT),
    ("hyperbolic", "atanh", "Atanh", 9, {}, IN_FLOAT),
]


def eager(family: str, function: str, *inputs: np.ndarray, **attributes: float) -> np.ndarray:
    """Returns what a function of the source computes, operator by operator."""
    script = getattr(source(family), function)
    from onnxscript import evaluator

    with evaluator.default_as(evaluator.OnnxReferenceRuntimeEvaluator()), np.errstate(all="ignore"):
        return np.asarray(script(*inputs, **attributes))


@pytest.mark.parametrize(
    ("family", "function", "call", "opset", "attributes", "dtype"),
    [pytest.param(*row, dtype, id=f"{row[2]} {dtype}") for *row, dtypes in ELEMENTWISE for dtype in dtypes],
)
def test_a_script_computes_what_its_operator_does(
    family: str, function: str, call: str, opset: int, attributes: dict[str, float], dtype: str
) -> None:
    ordinary = [*np.linspace(-4, 4, 41), *np.linspace(1, 80 if dtype != "float16" else 10, 33)]
    far = [0.0, -0.0, TINY[dtype], -TINY[dtype], FINITE[dtype], -FINITE[dtype], np.inf, -np.inf, np.nan]
    x = np.array([*ordinary, *far]).astype(NUMPY[dtype])
    graph = f"({dtype}[N] x) => ({dtype}[N] y) {{ y = {call}(x) }}"
    with np.errstate(all="ignore"):
        (expected,) = run_reference(model(graph, opset), {"x": x})
    got = eager(family, function, x, **attributes)
    assert got.dtype == NUMPY[dtype]
    np.testing.assert_allclose(got, expected, rtol=ERROR[dtype], atol=ERROR[dtype])


# ---- what a conversion makes of it

COUNTS = [
    ("Gelu", 20, 19, ["Mul", "Mul", "Erf", "Add", "Mul"]),
    ('Gelu<approximate="tanh">', 20, 9, ["Mul", "Mul", "Mul", "Add", "Mul", "Tanh", "Add", "Mul"]),
    ("HardSwish", 14, 13, ["HardSigmoid", "Mul"]),
    ("Mish", 18, 13, ["Softplus", "Tanh", "Mul"]),
    ("ThresholdedRelu", 10, 9, ["Greater", "Where"]),
    ("Cosh", 9, 8, ["Mul", "Exp", "Reciprocal", "Mul", "Mul", "Mul", "Mul", "Add"]),
]


@pytest.mark.parametrize(("call", "opset", "target", "nodes"), COUNTS)
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_constants_cost_no_nodes(call: str, opset: int, target: int, nodes: list[str], dtype: str) -> None:
    graph = f"({dtype}[N] x) => ({dtype}[N] y) {{ y = {call}(x) }}"
    result = onnx_convert.convert(model(graph, opset), to=target).model
    assert sorted(operators(result)) == sorted(nodes)
    arrays = [numpy_helper.to_array(tensor) for tensor in result.graph.initializer]
    assert all(array.dtype == NUMPY[dtype] for array in arrays)


BRANCHES = """(x) => (y) {
    c = Constant <value: tensor = double {0.1}> () h = CastLike (c, x) k = Constant <value_int: int = K> ()
    s = ReduceSum <keepdims: int = 0> (x) t = CastLike (k, s) b = Greater (s, t)
    z = If (b) <then_branch: graph = yes () => (float[N] u) { u = Mul (x, h) },
                else_branch: graph = no () => (float[N] v) { d = Cast <to: int = 1> (c) v = Add (x, d) }>
    y = Mul (z, h) }"""
BODIES = {
    "(x) => (y) { c = Constant <value: tensor = double {0.1}> () h = CastLike (c, x) y = Mul (x, h) }": [0.1, 0.4],
    "(x) => (y) { c = Constant <value: tensor = double[2] {0.1, 0.2}> () y = CastLike (c, x) }": [0.1, 0.2],
    "(x) => (y) { a = Constant <value: tensor = float[2] {2, 5}> () y = Mul (x, a) }": [2, 20],
    "(x) => (y) { y = Constant <value: tensor = float[2] {2, 5}> () }": [2, 5],
    BRANCHES.replace("K", "6"): [0.11, 0.41],
    BRANCHES.replace("K", "0"): [0.01, 0.04],
}


@pytest.mark.parametrize("body", BODIES)
def test_constants_of_a_function(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever one is used: by a node, by a subgraph, as the output."""
    function = parser.parse_function(f'<domain: "acme", opset_import: ["": 18]> Own {body}')
    adapter = registry.Adapter("acme", "Own", 2, "down", lambda node, op: op.call(function, node.input(0)))
    monkeypatch.setitem(registry._decisions, ("acme", "Own", 2, "down"), adapter)
    registry.first_crossing.cache_clear()
    source = model("(float[2] x) => (float[?] y) { y = acme.Own(x) }", 18, acme=2)
    result = onnx_convert.convert(source, to={"acme": 1}).model
    (got,) = run(result, {"x": np.array([1, 4], np.float32)})
    np.testing.assert_allclose(got, BODIES[body], rtol=1e-6)


def test_constants_in_bfloat16() -> None:
    """Which older onnx has to cast."""
    result = onnx_convert.convert(model("(bfloat16[N] x) => (bfloat16[N] y) { y = Gelu(x) }", 20), to=13).model
    assert [name for name in operators(result) if name != "Cast"] == ["Mul", "Mul", "Erf", "Add", "Mul"]


def test_a_dtype_that_is_not_known_is_found_at_run_time() -> None:
    """Below an operator that nobody knows; CastLike is there from opset 15."""
    graph = "(float[N] x) => (float[N] y) { z = com.acme.Own(x) g = Gelu(z) y = Cast<to = 1>(g) }"
    source = parser.parse_model(f'<ir_version: 9, opset_import: ["": 20, "com.acme": 1]> g {graph}')
    assert operators(onnx_convert.convert(source, to=15).model).count("CastLike") == 3
    with pytest.raises(onnx_convert.RefusedError, match="dtype"):
        onnx_convert.convert(source, to=14)


def test_a_conversion_imports_no_onnxscript() -> None:
    """Even one that uses functions of every family."""
    program = """
import sys
import onnx.parser
import onnx_convert
from onnx_convert.adapters.lib.script import Compiled
nodes = "y = Cosh(x) z = ThresholdedRelu(x) w = MelWeightMatrix(a, a, a, d, d)"
graph = f"g (float[N] x, int64 a, float d) => (float[N] y, float[N] z, float[?,?] w) {{ {nodes} }}"
source = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 17]>' + graph)
print(len(onnx_convert.convert(source, to=8).report.steps) > 3)
print(sorted({name.partition(".")[0] for name in sys.modules} & {"onnxscript", "onnx_ir", "onnxruntime"}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout.split(), done.stderr) == (["True", "[]"], "")
