# SPDX-License-Identifier: Apache-2.0
"""What is said to people with the habits of onnxsim, onnxslim, polygraphy, ruff and git, and to slips of the hand."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner
from texts import model

from onnx_convert.cli.main import main

RELU = "(float[2] x) => (float[2] y) { y = Relu (x) }"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with two models and a folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("m.onnx", "my model.onnx"):
        onnx.save(model(RELU, 17), name)
    Path("sub").mkdir()
    return tmp_path


HINTS = {
    "my model.onnx --to 13": 'A file name with blanks needs quotes: "my model.onnx".',
    "check m.onnx --to 13": "There is no command check: onnx-convert m.onnx --to N, or what --help lists.",
    "inspect model m.onnx": "There is no command inspect: onnx-convert m.onnx --to N, or",
    "help": "There is no command help: onnx-convert MODEL --to N, or what --help lists.",
    "m.onnx --ir_version 8": "No such option: --ir_version. It is spelled --ir-version.",
    "m.onnx --input-shapes x:1": "No such option: --input-shapes. The opset is all that is changed",
    "m.onnx --skip-optimization": "No such option: --skip-optimization. The opset is all that is changed",
    "m.onnx o.onnx --dtype fp16": "No such option: --dtype. The opset is all that is changed",
    "m.onnx --onnxrt": "No such option: --onnxrt. --verify runs source and result",
    "m.onnx --to 13 --fix": "No such option: --fix. --in-place replaces the model itself.",
    "m.onnx --to 13 --porcelain": "No such option: --porcelain. The report as data is --json.",
    "m.onnx --to 13 -y": "No such option: -y. Nothing is asked: leave it out.",
    "m.onnx --to 13 -n": "No such option: -n. --check plans and writes nothing.",
    "m.onnx --to 13 --recursive": "No such option: --recursive. Folders and patterns are gone through without",
    "m.onnx --to opset13": "Invalid value for '--to': 'opset13' is not an opset; write --to 13.",
    "m.onnx --to 13.0": "Invalid value for '--to': '13.0' is not an opset; write --to 13.",
    "m.onnx --to trt@8.6": "Invalid value for '--to': 'trt@8.6' is not an opset; a runtime is given by --for",
    "m.onnx --to x": "Invalid value for '--to': 'x' is not an opset; give a number from 1 on, latest, or DOMAIN",
    "m.onnx --to 0": "Invalid value for '--to': '0' is not an opset; give a number from 1 on, latest, or DOMAIN",
    "m.onnx --to=-1": "Invalid value for '--to': '-1' is not an opset; give a number from 1 on, latest,",
    "--to m.onnx": "Invalid value for '--to': 'm.onnx' is not an opset; it stands before the model: --to N m.onnx.",
    "m.onnx --to newest": "Invalid value for '--to': 'newest' is not an opset; write --to latest.",
    "m.onnx --to LATEST": "Invalid value for '--to': 'LATEST' is not an opset; write --to latest.",
    "m.onnx --to ai.onnx.ml": "Invalid value for '--to': 'ai.onnx.ml' is not an opset; its opset follows a colon: --to",
    "m.onnx --to 3:ai.onnx.ml": "Invalid value for '--to': '3:ai.onnx.ml' is not an opset; write --to ai.onnx.ml:3.",
    "m.onnx --to 12,13": "Invalid value for '--to': '12,13' is not an opset; a model has one: run once for each.",
    "m.onnx --to 1.14": "Invalid value for '--to': '1.14' is not an opset; a version is that of a runtime: --for NAME@",
    "m.onnx --to 13 --to 14": "--to names a domain twice: ai.onnx at 13 and 14\n",
    "--to 13": "Missing argument 'MODEL': onnx-convert MODEL tells what one is, MODEL --to N moves it; - is stdin.",
    "--explain Softmax 13": "Unexpected 13. A boundary follows an @: --explain Softmax@13.",
    "--explain m.onnx": "no operator 'm.onnx' is known: a model is described by onnx-convert m.onnx\n",
    "m.onnx o.onnx --diff": "Unexpected o.onnx: there is no such file. The output is given by -o o.onnx.",
    "m.onnx m.onnx --diff": "Missing option '--to' or '--for', or a second model: onnx-convert m.onnx --diff m.onnx.",
    "m.onnx --diff": "Missing option '--to' or '--for', or a second model: onnx-convert m.onnx --diff MODEL.",
    "m.onnx --for 13": "'13' is no runtime: an opset is given by --to 13\n",
    "m.onnx --for triton-22.12": "no runtime 'triton-22.12' is listed: a version follows an @, triton@22.12\n",
    "m.onnx --for tensorrt8.6": "no runtime 'tensorrt8.6' is listed: a version follows an @, tensorrt@8.6\n",
    "m.onnx --for triton@2.29": "triton 2.29 is older than all that is listed, which begins with triton 19.12 ("
    "versions are those of the containers, 22.12 for one)\n",
    "m.onnx --for onnxruntime 1.14": "Unexpected 1.14. A version follows an @, as in --for onnxruntime@1.14.",
    "m.onnx --to com.acme:2": "no adapter is registered for domain 'com.acme': without --to com.acme:...",
    "m.onnx --to ml:2": "no adapter is registered for domain 'ml': ai.onnx.ml is one that is\n",
}


@pytest.mark.parametrize("line", HINTS)
def test_a_hint_says_what_to_type(folder: Path, line: str) -> None:
    result = CliRunner().invoke(main, line.split())
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert result.stderr.startswith(f"error: {HINTS[line]}"), result.stderr
    assert {path.name for path in folder.iterdir()} == {"m.onnx", "my model.onnx", "sub"}


def test_the_weights_of_a_model_are_no_model() -> None:
    Path("m.onnx_data").write_bytes(bytes(100))
    result = CliRunner().invoke(main, ["m.onnx_data", "--to", "13"])
    assert result.exit_code == 4
    assert result.stderr.startswith("error: m.onnx_data: is no ONNX model, or damaged: ")
    assert result.stderr.endswith("; perhaps it holds the weights of m.onnx\n")
