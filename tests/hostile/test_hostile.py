# SPDX-License-Identifier: Apache-2.0
"""Hostile models end in a converted model, a refusal, or one line: a sample of the long run, and what it found once.

python tests/helpers/hostile/fuzz.py --count 100000
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from hostile import fuzz, mutations
from onnx import ModelProto, TensorProto, helper

import onnx_convert
from onnx_convert import InvalidModelError, RefusedError

Edit = Callable[[ModelProto], object]


def text(graph: str, opset: int, more: str = "", ir: int = 8) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: {ir}, opset_import: ["": {opset}{more}]> g {graph}')


def size_of_input(number: int, axis: int = 0, index: int = 0) -> Edit:
    def edit(model: ModelProto) -> None:
        model.graph.input[index].type.tensor_type.shape.dim[axis].dim_value = number

    return edit


def no_type(model: ModelProto) -> None:
    model.graph.input[0].ClearField("type")


SLICE = "(float[2,8] x) => (float[M,K] y) <int64[1] s={0}, int64[1] e={4}, int64[1] a={0}> "
SLICE += "{ z = Slice(x, s, e, a) y = Softmax<axis=0>(z) }"
SOFTMAX = "(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis=1>(x) }"


@pytest.mark.parametrize(
    ("graph", "opset", "target", "edit"),
    [
        pytest.param(SLICE, 12, 13, size_of_input(-1), id="a size of -1 is not known"),
        pytest.param("(float[2,4] x) => (int64[2,1] y) { y = ArgMax<axis=-1, select_last_index=1>(x) }", 13, 11,
                     size_of_input(-1, 1), id="a size of -1 that ArgMax turns around"),
        pytest.param("(float[3,4] x) => (double[3,4] y) { y = EyeLike<dtype=11>(x) }", 22, 21, no_type,
                     id="an input without type, of which onnx asks the type"),
        pytest.param("(float[1000000000] x) => (float[1000000000] y) { y = Gelu(x) }", 20, 19, None,
                     id="a list of 10^9 whose elements are not propagated"),
        pytest.param("(float[100000000,100000000] x) => (float[A,B] y) { y = EyeLike(x) }", 18, 8, None,
                     id="a matrix of 10^16 that is not written down"),
    ],
)  # fmt: skip
def test_converted(graph: str, opset: int, target: int, edit: Edit | None) -> None:
    source = text(graph, opset)
    if edit:
        edit(source)
    onnx_convert.convert(source, to=target)


@pytest.mark.parametrize(
    ("graph", "opset", "target"),
    [
        ("(int64[4] x) => (float[A,B] y) <int64 d={100000000}, float[2] v={0,1}> { y = OneHot(x, d, v) }", 13, 8),
        ('(float[4,4] x) => (float[A,B] y) <int64[4] p={0,0,0,1099511627776}> { y = Pad<mode="wrap">(x, p) }', 19, 18),
    ],
)
def test_refused_as_too_large(graph: str, opset: int, target: int) -> None:
    with pytest.raises(RefusedError, match="too large"):
        onnx_convert.convert(text(graph, opset), to=target)


@pytest.mark.parametrize(
    ("graph", "opset", "target"),
    [
        (("(float[2,4,8] q, float[4,1,4] w, float[2,4,2] s) => (float[A,B,C] y)"
         " { y, p = CausalConvWithState(q, w, , s) }"), 27, 26),
        ('(float[2,3] a, float[3,4] b) => (float[2,4] y) { y = Einsum<equation="ij,jk,kl->il">(a, b) }', 12, 11),
    ],
)  # fmt: skip
def test_what_onnx_finds_in_a_node_that_is_rewritten(graph: str, opset: int, target: int) -> None:
    """Nothing is left of it in the result that onnx could find fault with."""
    with pytest.raises(InvalidModelError):
        onnx_convert.convert(text(graph, opset, ir=10), to=target)


def test_a_claim_about_a_rank_that_follows() -> None:
    """The rank of a reduction by one axis at run time is known; what is stated of it is not so."""
    source = text("(float[3,2,2] x, int64[1] a) => (float[3,2,M] y) { y = ReduceMean<keepdims=0>(x, a) }", 18)
    report = onnx_convert.convert(source, to=11).report
    assert any("contradicts the model" in warning for warning in report.warnings)


def without_type(model: ModelProto) -> None:
    model.graph.node[0].attribute[0].ClearField("type")
    model.graph.node[0].attribute[0].ClearField("i")


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (without_type, "axis has no type"),
        (lambda m: m.graph.initializer.add(name="w", data_type=99), "dtype 99 does not exist"),
        (lambda m: m.graph.initializer.add(name="w", data_type=1, dims=[2**62] * 100_000), "100000 dimensions"),
        (lambda m: m.graph.initializer.add(name="w", data_type=1, dims=[2**40, 2**40]), "more than 2.63 bytes"),
        (lambda m: m.graph.initializer.add(name="w", data_type=1, dims=[-1]), "below 0"),
        (lambda m: m.graph.initializer.add(name="w", data_type=1, dims=[2], raw_data=b"123"), "3 bytes of data"),
        (lambda m: m.graph.node.add(), "no operator"),
    ],
)
def test_damaged(edit: Edit, says: str) -> None:
    source = text(SOFTMAX, 13)
    edit(source)
    with pytest.raises(InvalidModelError, match=says):
        onnx_convert.convert(source, to=9)


@pytest.mark.parametrize("name", [b"Softmax", b"axis"])
def test_names_that_are_no_text(name: bytes) -> None:
    damaged = text(SOFTMAX, 13).SerializeToString().replace(name, b"\xff" + name[1:])
    with pytest.raises(InvalidModelError):
        onnx_convert.convert(damaged, to=9)


def calling(count: int, times: int) -> ModelProto:
    """Functions each of which calls the next one so many times."""
    source = text("(float[2,3] x) => (float[2,3] y) { y = f.F0(x) }", 13, ', "f": 1')
    for number in range(count):
        function = source.functions.add(name=f"F{number}", domain="f", input=["x"], output=["y"])
        function.opset_import.extend([helper.make_opsetid("", 13), helper.make_opsetid("f", 1)])
        last = number == count - 1
        names = ["x", *(f"t{turn}" for turn in range(1, 1 if last else times)), "y"]
        for source_name, made in itertools.pairwise(names):
            operator, domain = ("Softmax", "") if last else (f"F{number + 1}", "f")
            function.node.append(helper.make_node(operator, [source_name], [made], domain=domain))
    return source


def test_a_long_chain_of_functions() -> None:
    assert onnx_convert.convert(calling(1000, 1), to=14).report.changed


def test_functions_that_stand_for_a_million_nodes() -> None:
    with pytest.raises(RefusedError, match="inlined at their calls, are too large"):
        onnx_convert.convert(calling(20, 2), to=12)


def test_zeros_are_told_at_once() -> None:
    with pytest.raises(InvalidModelError, match="a field without a number"):
        onnx_convert.convert(bytes(100_000_000), to=9)


def test_a_data_file_that_changes_its_identity(tmp_path: Path) -> None:
    """A link that is put in place of a data file after it was looked at leads nowhere."""
    source = text("(float[2,3,4] x) => (float[2,3,4] y) { z = Softmax<axis=1>(x) y = Add(z, w) }", 13)
    data = source.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[2, 3, 4], data_location=1)
    data.external_data.add(key="location", value="w.bin")
    model, weights, secret = tmp_path / "m" / "m.onnx", tmp_path / "m" / "w.bin", tmp_path / "secret"
    model.parent.mkdir()
    model.write_bytes(source.SerializeToString())
    weights.write_bytes(bytes(96))
    secret.write_bytes(b"x" * 96)
    with onnx_convert.convert(model, to=9) as conversion:
        weights.unlink()
        weights.symlink_to(secret)
        with pytest.raises(InvalidModelError, match="changed by somebody else"):
            conversion.save(tmp_path / "m" / "out.onnx", external="embed")
    assert not (tmp_path / "m" / "out.onnx").exists()


def test_what_a_killed_process_left_is_swept(tmp_path: Path) -> None:
    left, young = (tmp_path / f".onnx-convert-{digit * 16}" for digit in "01")
    for path in (left, young):
        path.write_bytes(b"")
    os.utime(left, (1, 1))
    onnx_convert.convert(text(SOFTMAX, 13), to=9).save(tmp_path / "out.onnx")
    assert not left.exists()
    assert young.exists(), "its writer may just have made it"


@pytest.mark.skipif(os.name == "nt", reason="names of open files")
@pytest.mark.parametrize("command", ["-o /dev/stdout > out.onnx", "-o out.onnx <&- >&- 2>&-"])
def test_streams(tmp_path: Path, command: str) -> None:
    (tmp_path / "m.onnx").write_bytes(text(SOFTMAX, 13).SerializeToString())
    done = subprocess.run(
        f"'{sys.executable}' -m onnx_convert m.onnx --to 12 {command}", shell=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0
    onnx.checker.check_model(str(tmp_path / "out.onnx"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "out.onnx"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="child processes that may die")
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.thorough if kind == "published" else ()) for kind in mutations.KINDS]
)
def test_sample(kind: str) -> None:
    assert not [told for told in fuzz.run(kind, 1, [*range(40)]) if told.is_failure]


@pytest.mark.parametrize(
    ("graph", "opset", "target", "says"),
    [
        (("(float[2,3,4] x, float[2,3,4,1099511627776] s) => (float[2,3,4] y)"
          " { z = Relu(x) y = LayerNormalization<axis=0>(z, s) }"), 17, 10, "input 1, of shape"),
        ("(float i, float[3] v) => (float[3] y) <int64 d = {3}> { y = OneHot(i, d, v) }", 11, 8, "off and on"),
        ("(float i, float[2] v) => (float[3] y) <int64[2] d = {3,3}> { y = OneHot(i, d, v) }", 11, 8, "single number"),
        ("(int64[9] n) => (float[A] y) { y = HannWindow(n) }", 17, 9, "input 0 is not a single number"),
    ],
)  # fmt: skip
def test_what_only_inference_tells_is_no_bug_of_ours(graph: str, opset: int, target: int, says: str) -> None:
    with pytest.raises(InvalidModelError, match=says):
        onnx_convert.convert(text(graph, opset), to=target)
