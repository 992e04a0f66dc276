# SPDX-License-Identifier: Apache-2.0
"""Models that make no sense: one line that says what is wrong, and exit code 4."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner
from onnx import ModelProto, TensorProto
from texts import model

import onnx_convert
from onnx_convert import InvalidModelError
from onnx_convert.cli.main import main

RELU = "(float[2] x) => (float[2] y) { y = Relu (x) }"


def stamped(*versions: tuple[str, int]) -> ModelProto:
    source = model(RELU, 13)
    del source.opset_import[:]
    for domain, version in versions:
        source.opset_import.add(domain=domain, version=version)
    return source


def with_input_twice() -> ModelProto:
    source = model(RELU, 13)
    source.graph.input.append(source.graph.input[0])
    return source


def with_initializer_twice() -> ModelProto:
    source = model("(float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add (x, w) }", 13)
    source.graph.initializer.append(source.graph.initializer[0])
    return source


def spelled_in_latin_1(name: str) -> ModelProto:
    """Returns a model in which a name is no UTF-8."""
    source = model("(float[2,3] a_value) => (float[2,3] y) { y = Softmax <axis = 0> (a_value) }", 13)
    source.graph.name = "a_graph"
    source.graph.node[0].name = "a_node"
    source.opset_import.add(domain="a_domain", version=1)
    return ModelProto.FromString(
        source.SerializeToString().replace(name.encode(), name.replace("a", "ä").encode("latin-1"))
    )


def called(*bodies: str, opset: int = 13) -> ModelProto:
    """Returns a model that calls the first of some functions of the domain f, which import f as well."""
    heads = [f'<domain: "f", opset_import: ["" : {opset}, "f" : 1]> F{i} (x) => (y)' for i in range(len(bodies))]
    functions = [f"{head} {{ {body} }}" for head, body in zip(heads, bodies, strict=True)]
    return model("(float[2] x) => (float[2] y) { y = f.F0 (x) }", opset, *functions, ir=8, f=1)


def with_function_twice() -> ModelProto:
    source = called("y = Neg (x)")
    source.functions.append(source.functions[0])
    return source


def branch(node: str) -> str:
    return f"""(bool c, float[2] x) => (float[2] y) {{
        y = If (c) <then_branch = t () => (float[2] a) {{ {node} }},
                    else_branch = e () => (float[2] b) {{ b = Neg (x) }}> }}"""


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (stamped(("", 0)), "opset 0 of ai.onnx does not exist"),
        (stamped(("", -1)), "opset -1 of ai.onnx does not exist"),
        (stamped(("", 99)), "opset 99 of ai.onnx is newer than the installed onnx"),
        (stamped(("", 13), ("ai.onnx", 14)), "ai.onnx is imported at two opsets"),
        (stamped(("", 13), ("ai.onnx.ml", 99)), "opset 99 of ai.onnx.ml is newer"),
        (stamped(("com.acme", 1)), "Relu 'y': ai.onnx is not imported"),
        (model("(float[2] x) => (float[2] y) { y = com.acme.Op (x) }", 13), "Op 'y': com.acme is not imported"),
        (model(branch("a = com.acme.Op (x)"), 13), "If/Op 'a': com.acme is not imported"),
        (called("y = com.acme.Op (x)"), "function F0/Op 'y': com.acme is not imported"),
        (with_input_twice(), "'x' is an input or initializer twice"),
        (with_initializer_twice(), "'w' is an input or initializer twice"),
        (model("(float[2] x) => (float[2] y) { y = Relu (x) y = Neg (x) }", 13), "'y' is made twice"),
        (model("(float[2] x) => (float[2] x) { x = Relu (x) }", 13), "'x' is made twice"),
        (model("(float[2] x) => (float[2] y) { y, y = Split (x) }", 11), "'y' is made twice"),
        (model(branch("a = Relu (x) a = Neg (x)"), 13), "If/'a' is made twice"),
        (model("(float[2] x) => (float[2] y) { y = Relu (z) }", 13), "'z', an input of Relu 'y', is not made anywhere"),
        (model(branch("a = Relu (z)"), 13), "If/'z', an input of Relu 'a', is not made anywhere"),
        (model("(float[2] x) => (float[2] z) { y = Relu (x) }", 13), "'z', an output, is not made anywhere"),
        (called("y = Relu (z)"), "function F0/'z', an input of Relu 'y', is not made anywhere"),
        (called("z = Relu (x)"), "function F0/'y', an output, is not made anywhere"),
        (model("(float[2] x) => (float[2] y) { y = Add (x, y) }", 13), "cycle through Add 'y'"),
        (
            model("(float[2] x) => (float[2] c) { a = Add (x, c) b = Neg (a) c = Neg (b) }", 13),
            "cycle through Add 'a'",
        ),
        (called("y = f.F0 (x)"), "function F0 calls itself"),
        (called("y = f.F1 (x)", "y = f.F2 (x)", "y = f.F0 (x)"), "function F0 calls itself"),
        (with_function_twice(), "function F0 is defined twice"),
        (spelled_in_latin_1("a_node"), r"the name b'\xe4_node' is not UTF-8"),
        (spelled_in_latin_1("a_graph"), r"the name b'\xe4_gr\xe4ph' is not UTF-8"),
        (spelled_in_latin_1("a_domain"), r"the name b'\xe4_dom\xe4in' is not UTF-8"),
        (spelled_in_latin_1("a_value"), r"the name b'\xe4_v\xe4lue' is not UTF-8"),
    ],
)
@pytest.mark.parametrize("to", [9, 17])
def test_invalid(source: ModelProto, says: str, to: int) -> None:
    before = source.SerializeToString(deterministic=True)
    with pytest.raises(InvalidModelError) as caught:
        onnx_convert.convert(source, to=to, in_place=True)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert source.SerializeToString(deterministic=True) == before


def left_out() -> ModelProto:
    """Returns a model with two nodes whose second output is left out, which old onnx does not read from text."""
    source = model("(float[2] x) => (float[2] y) { z = Dropout (x) y = Dropout (z) }", 13)
    for node in source.graph.node:
        node.output.append("")
    return source


@pytest.mark.parametrize(
    "source",
    [
        model("(float[2] x) => (float[2] y) { y = Neg (z) z = Relu (x) }", 13),  # out of order, but no cycle
        model("(float[2] x) => (float[2] x) { y = Relu (x) }", 13),  # an input handed through
        left_out(),
        stamped(("ai.onnx", 13)),
        called("y = f.F1 (x)", "y = Neg (x)"),
    ],
    ids=["unsorted", "handed through", "left out", "ai.onnx", "call in a call"],
)
def test_odd_but_valid_enough(source: ModelProto) -> None:
    assert onnx_convert.convert(source, to=14).changed


@pytest.mark.parametrize(
    "mode",
    ["wrap", "constant"],  # of the second nothing infers what becomes of it
)
def test_a_stated_type_that_is_wrong_is_left_out(mode: str) -> None:
    graph = f"""(int32[1,N] x) => (int32[N] z) <int64[4] ones = {{1, 1, 1, 1}}, int64[1] axes = {{0}}>
                {{ t = Pad <mode = "{mode}"> (x, ones) z = Squeeze (x, axes) }}"""
    source = model(graph, 21)
    source.graph.value_info.append(onnx.helper.make_tensor_value_info("t", TensorProto.INT32, [5, 3]))
    conversion = onnx_convert.convert(source, to=10, types="cast-rounding", allow={"conditional"})
    assert "the stated type of 't' contradicts the model and is left out" in conversion.report.warnings
    for value in conversion.model.graph.value_info:
        assert value.name != "t" or value.type.tensor_type.shape.dim[0].dim_value == 3


# ---- files


def external(folder: Path, size: int) -> bytes:
    """Returns a model with 8 KiB of external data, of which `size` bytes are there."""
    source = model("(float[2048] x) => (float[2048] y) { y = Add (x, w) }", 13)
    tensor = source.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[2048])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    if size >= 0:
        (folder / "w.bin").write_bytes(bytes(size))
    return source.SerializeToString()


def whole() -> bytes:
    """Returns a model with 8 KiB inside."""
    source = model("(float[2048] x) => (float[2048] y) { y = Add (x, w) }", 13)
    source.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[2048], raw_data=bytes(8192))
    return source.SerializeToString()


FILES = {
    "missing": (lambda folder: None, "No such file"),
    "empty": (lambda folder: b"", "is empty"),
    "a pointer": (lambda folder: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS"),
    "text": (lambda folder: b"<html>not found</html>" * 100, "no ONNX model"),
    "zeros": (lambda folder: bytes(5000), "no ONNX model"),
    "cut in the weights": (lambda folder: whole()[:4000], "no ONNX model, or damaged"),
    "cut in the graph": (lambda folder: whole()[:40], "no ONNX model, or damaged"),
    "cut after the graph": (lambda folder: whole()[: -len(onnx.helper.make_opsetid("", 13).SerializeToString()) - 2],
                            "imports no opset"),
    "no data file": (lambda folder: external(folder, -1), "w.bin"),
    "data file too short": (lambda folder: external(folder, 8191), "8192 bytes needed"),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_unreadable_file(case: str, tmp_path: Path) -> None:
    write, says = FILES[case]
    content = write(tmp_path)
    path = tmp_path / "model.onnx"
    if content is not None:
        path.write_bytes(content)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    result = CliRunner().invoke(main, [str(path), "--to", "14"])
    assert result.exit_code == 4, result.output
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before
