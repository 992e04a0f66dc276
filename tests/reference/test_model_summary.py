# SPDX-License-Identifier: Apache-2.0
"""What a file is: its description as data, as text and as JSON, and how far it can go."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper
from texts import model

import onnx_convert
from onnx_convert import InvalidModelError, Refusal
from onnx_convert.cli import tables
from onnx_convert.cli.main import main
from onnx_convert.model.source import SourceModel
from onnx_convert.planning.reach import Reach
from onnx_convert.spec import opsets
from onnx_convert.target.request import requested

NEWEST = opsets.latest()
RELU = "(float[2] x) => (float[2] y) { y = Relu (x) }"
IMAGE = "(uint8[n] x) => (uint8[h, w, 3] y) { y = ImageDecoder (x) }"  # nothing can stand in for it
HOLDER = """(bool c, float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
    a = Add (x, w)
    b = f.Twice (a)
    y = If (c) <then_branch = t () => (float[2] p) { k = Constant <value = int64[1] {0}> ()  p = Relu (b) },
                else_branch = e () => (float[2] q) { q = Relu (a) }> }"""
TWICE = '<domain: "f", opset_import: ["" : 17]> Twice (a) => (b) { b = Add (a, a) }'


def holder() -> ModelProto:
    """Returns a model with a bit of everything."""
    source = model(HOLDER, 17, TWICE, ir=8, f=1, com_microsoft=1)
    source.producer_name, source.producer_version = "pytorch", "2.5"
    return source


def test_what_is_in_a_model() -> None:
    told = onnx_convert.inspect(holder())
    assert (told.producer, told.ir_version, told.nodes, told.subgraphs) == ("pytorch 2.5", 8, 7, 2)
    assert told.opsets == {"ai.onnx": 17, "f": 1, "com.microsoft": 1}
    assert told.operators == {"Add": 2, "Relu": 2, "If": 1, "f.Twice": 1, "Constant": 1}
    assert told.functions == ["f.Twice"]
    assert (told.weights, told.weight_bytes, told.data_files) == (2, 16, {})
    assert told.dtypes == {"float": 3, "bool": 1, "int64": 1}
    assert (told.lowest <= 17 <= told.highest, told.seconds > 0) == (True, True)


def test_nothing_is_changed() -> None:
    source, before = holder(), holder()
    onnx_convert.inspect(source)
    assert source == before


@pytest.mark.parametrize(
    ("graph", "opset", "lowest", "highest"),
    [
        (RELU, 17, 1, NEWEST),
        (RELU, 1, 1, NEWEST),
        (RELU, NEWEST, 1, NEWEST),
        (IMAGE, 20, 20, NEWEST),
        (IMAGE, NEWEST, 20, NEWEST),
    ],
)
def test_reach(graph: str, opset: int, lowest: int, highest: int) -> None:
    source = model(graph, opset)
    told = onnx_convert.inspect(source)
    assert (told.lowest, told.highest) == (lowest, highest)
    for limit, beyond, blocked in (
        (told.lowest, told.lowest - 1, told.below),
        (told.highest, told.highest + 1, told.above),
    ):
        assert onnx_convert.plan(source, to=limit)
        assert bool(blocked) is (1 <= beyond <= NEWEST)
        if blocked:
            with pytest.raises(onnx_convert.RefusedError) as caught:
                onnx_convert.plan(source, to=beyond)
            assert caught.value.refusals == tuple(blocked)


def test_options_extend_the_reach() -> None:
    """What a dtype blocks, `types` may unblock."""
    source = model("(int32[2] x) => (int32[2] y) { y = Relu (x) }", 14)
    assert onnx_convert.inspect(source).lowest == 14
    assert onnx_convert.inspect(source, types="cast-rounding").lowest < 14


class Walk(Reach):
    """A reach without a model: the refusals at each opset are given, and it counts the plans."""

    def __init__(self, start: int, refused: dict[int, int]) -> None:
        super().__init__(
            SourceModel(helper.make_model(GraphProto(), opset_imports=[helper.make_opsetid("", start)]), "model"),
            requested("latest"),
        )
        self.refused = refused
        self.plans: list[int] = []

    def refusals_at(self, opset: int) -> list[Refusal]:
        self.plans.append(opset)
        boundary = self.refused.get(opset)
        return [] if boundary is None else [Refusal("Op", "ai.onnx", "n", boundary, "down", "no")]


def blocked(first: int, last: int, boundary: int) -> dict[int, int]:
    return dict.fromkeys(range(first, last + 1), boundary)


@pytest.mark.parametrize(
    ("start", "aim", "refused", "limit", "plans"),
    [
        (17, 1, {}, 1, [1]),
        (17, 17, blocked(1, 17, 0), 17, []),
        (17, 1, blocked(1, 12, 13), 13, [1, 13, 12]),
        (17, 1, blocked(1, 15, 16) | blocked(1, 10, 11), 16, [1, 11, 16, 15]),
        (17, 1, blocked(1, 16, 17), 17, [1, 16]),
        (17, 1, blocked(1, 12, 0), 13, [1, 9, 13, 11, 12]),
        (9, 21, blocked(14, 21, 14), 13, [21, 13, 14]),
        (9, 21, blocked(10, 21, 10), 9, [21, 10]),
        (9, 21, blocked(14, 21, 0), 13, [21, 15, 12, 13, 14]),
        (9, 10, blocked(10, 10, 0), 9, [10]),
        (17, 1, blocked(1, 9, 15), 10, [1, 15, 14, 13, 12, 11, 10, 9]),
    ],
)
def test_the_limit_takes_few_plans(start: int, aim: int, refused: dict, limit: int, plans: list[int]) -> None:
    walk = Walk(start, refused)
    found, beyond = walk.limit(aim)
    assert (found, walk.plans) == (limit, plans)
    assert beyond == ([] if limit == aim else walk.refusals_at(limit + (1 if aim > start else -1)))


@pytest.mark.parametrize(
    ("opset", "ir", "loading", "not_loading"),
    [
        (17, 8, {"onnx 1.12", "onnxruntime 1.12", "triton 22.12", "tensorrt 8.6"}, {"onnx 1.11", "onnxruntime 1.11"}),
        (17, 10, {"onnx 1.16", "onnxruntime 1.18", "openvino 2026.4"}, {"triton 22.12", "onnxruntime 1.17"}),
        (9, 3, {"tensorrt 5.1", "rknn-toolkit2 1.5.2"}, {"tensorrt 5.0", "rknn-toolkit2 1.6"}),
    ],
)
def test_who_loads_it(opset: int, ir: int, loading: set[str], not_loading: set[str]) -> None:
    names = {str(row) for row in onnx_convert.inspect(model(RELU, opset, ir=ir)).runtimes}
    assert loading <= names
    assert not not_loading & names


def huge(folder: Path) -> Path:
    """Returns a file whose data file claims 70 GB, all of it a hole."""
    source = model("(float[n, 131072] x) => (float[n, 131072] y) { y = MatMul (x, w) }", 17)
    weight = source.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[131072, 131072])
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="w.bin")
    onnx.save(source, folder / "huge.onnx")
    with open(folder / "w.bin", "wb") as stream:
        os.truncate(stream.fileno(), 4 * 131072**2)
    return folder / "huge.onnx"


def test_weights_are_not_read(tmp_path: Path) -> None:
    try:
        path = huge(tmp_path)
    except OSError as error:
        pytest.skip(f"the file system has no sparse files of 70 GB: {error}")
    started = time.perf_counter()
    told = onnx_convert.inspect(path)
    assert time.perf_counter() - started < 5
    assert told.weight_bytes == 4 * 131072**2
    assert told.data_files == {"w.bin": 4 * 131072**2}


def test_embedded_weights_are_no_external_data(tmp_path: Path) -> None:
    source = model("(float[n, 64] x) => (float[n, 64] y) { y = MatMul (x, w) }", 17)
    source.graph.initializer.append(numpy_helper.from_array(np.zeros((64, 64), np.float32), "w"))
    onnx.save(source, tmp_path / "m.onnx")
    told = onnx_convert.inspect(tmp_path / "m.onnx")
    assert (told.weights, told.weight_bytes, told.data_files) == (1, 4 * 64 * 64, {})


def test_a_model_without_ai_onnx_has_no_reach() -> None:
    source = model("(float[2] x) => (float[2] y) { y = ai.onnx.ml.Binarizer (x) }", 17, ai_onnx_ml=3)
    del source.opset_import[0]
    told = onnx_convert.inspect(source)
    assert (told.opsets, told.lowest, told.highest) == ({"ai.onnx.ml": 3}, 0, 0)


def run(*line: str, **more: bytes) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, line, **more)
    return result.exit_code, result.stdout, result.stderr


def test_the_command_line_tells(tmp_path: Path) -> None:
    onnx.save(holder(), tmp_path / "m.onnx")
    code, text, errors = run(str(tmp_path / "m.onnx"))
    assert (code, errors) == (0, "")
    for line in (
        "producer       pytorch 2.5",
        "opset          17",
        "IR version     8",
        "nodes          7, 2 subgraphs",
        "operators      Add 2, Relu 2, Constant 1, If 1, f.Twice 1",
        "functions      f.Twice",
        "weights        2 tensors, 16 bytes",
        "dtypes         float 3, bool 1, int64 1",
    ):
        assert line.replace("       ", "   ", 1).split() in [shown.split() for shown in text.splitlines()]
    assert "onnxruntime 1.12 to" in text
    assert {path.name for path in tmp_path.iterdir()} == {"m.onnx"}


def test_the_command_line_tells_what_blocks(tmp_path: Path) -> None:
    onnx.save(model(IMAGE, 20), tmp_path / "m.onnx")
    _, text, _ = run(str(tmp_path / "m.onnx"))
    assert f"opset 20 to {NEWEST}" in text
    assert [line for line in text.splitlines() if line.startswith("Refused at 19")]
    assert "ImageDecoder@20" in text and "Refused at" not in text.replace("Refused at 19", "")


def test_json_and_stdin() -> None:
    code, text, _ = run("-", "--json", input=holder().SerializeToString())
    told = json.loads(text)
    assert (code, told["status"], told["source"]) == (0, "described", "stdin")
    assert told["operators"]["f.Twice"] == 1
    assert {"name": "onnxruntime", "version": "1.12"}.items() <= next(
        row for row in told["runtimes"] if row["name"] == "onnxruntime"
    ).items()


def test_quiet_says_nothing() -> None:
    assert run("-", "-q", input=holder().SerializeToString()) == (0, "", "")


def test_what_cannot_be_read() -> None:
    code, _, errors = run("-", input=b"")
    assert code == 4 and errors.count("\n") == 1
    with pytest.raises(InvalidModelError):
        onnx_convert.inspect(b"")


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (2_500_000, "2.5 MB"), (7e10, "70.0 GB")],
)
def test_sizes(count: float, shown: str) -> None:
    assert tables.size_text(count) == shown
