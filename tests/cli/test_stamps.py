# SPDX-License-Identifier: Apache-2.0
"""--from: a model is read at another opset than its stamp says."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner
from texts import model

from onnx_convert.cli import main as cli

RELU = "(float[2] x) => (float[2] y) { y = Relu (x) }"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with `m.onnx` at opset 17."""
    monkeypatch.chdir(tmp_path)
    onnx.save(model(RELU, 17), "m.onnx")
    return tmp_path


def run(line: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli.main, line.split())
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("m.onnx --from x", "Invalid value for '--from': 'x' is not an opset that a model has; give a number"),
        ("m.onnx --from latest", "Invalid value for '--from': 'latest' is not an opset that a model has"),
        ("m.onnx --from 0 --to 13", "Invalid value for '--from': '0' is not an opset"),
        ("m.onnx --from 99", "no model has opset 99 of ai.onnx"),
        ("m.onnx --from 11 --from ai.onnx:12", "--from names a domain twice"),
        ("m.onnx --from com.acme:2 --to 13", "the model does not import com.acme"),
    ],
)
def test_declarations_that_make_no_sense(folder: Path, line: str, says: str) -> None:
    code, text, errors = run(line)
    assert (code, text, errors.count("\n")) == (2, "", 1)
    assert errors.startswith(f"error: {says}"), errors


def test_the_way_out_of_a_wrong_stamp_leads_out(folder: Path) -> None:
    onnx.save(model("(float[2,1] x) => (float[2] y) { y = Squeeze <axes=[1]> (x) }", 16), "s.onnx")
    code, _, errors = run("s.onnx --to 13")
    assert code == 4 and "if the stamp is wrong, --from 12 reads the model at 12" in errors
    code, text, _ = run("s.onnx --from 12")
    assert code == 0 and "opset       12 (stamped 16)" in text
    assert "note:       read as ai.onnx 12 (--from), although stamped 16" in text
    code, text, _ = run("s.onnx --from 12 --to 13")
    assert code == 0 and text.startswith("s.onnx   opset 12 (stamped 16) -> 13   ")
    assert "note:  read as ai.onnx 12 (--from), although stamped 16" in text
    code, text, _ = run("s.onnx --from 12 --to 12 --json")
    assert code == 0 and json.loads(text)["stamped"] == {"ai.onnx": 16}
    assert onnx.load("s.opset12.onnx").opset_import[0].version == 12
    code, _, errors = run("m.onnx --from 17 --to 13 --check --exit-code")
    assert (code, errors) == (5, "")
