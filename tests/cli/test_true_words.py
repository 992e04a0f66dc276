# SPDX-License-Identifier: Apache-2.0
"""What is said of a runtime is true of that runtime, and what has no effect is told."""

from __future__ import annotations

import json
import re
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner
from texts import model

from onnx_convert.cli.main import main
from onnx_convert.cli.page.data import remedied

WORDS = "(string[n] a, string[n] b) => (string[n] y) { y = StringConcat (a, b) }"
RELU = "(float[2] x) => (float[2] y) { y = Relu (x) }"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working folder, with `words.onnx` at opset 22 and `m.onnx` at 17."""
    monkeypatch.chdir(tmp_path)
    onnx.save(model(WORDS, 22), "words.onnx")
    onnx.save(model(RELU, 17), "m.onnx")


def run(line: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, line.split())
    return result.exit_code, result.stdout, result.stderr


def test_a_runtime_does_not_load_what_is_within_reach() -> None:
    code, _, errors = run("words.onnx --for triton@22.12")
    assert code == 1
    assert "feed it the outcome, or take a runtime that runs it at opset 20\n" in errors
    assert errors.endswith("The nearest opset within reach, though not for triton 22.12: --to 20\n")
    assert run("words.onnx --to 20")[0] == 0
    code, _, errors = run("words.onnx --to 17")
    assert "feed it the outcome, or go no lower than opset 20\n" in errors
    assert errors.endswith("The nearest opset within reach: --to 20\n")


def test_an_opset_of_a_domain_that_the_model_does_not_import_changes_nothing_and_that_is_said() -> None:
    note = "note:  the model does not import ai.onnx.ml: its opset is nothing to change\n"
    assert run("m.onnx --to ai.onnx.ml:3")[1].startswith(note)
    assert note in run("m.onnx --to 13 --to ai.onnx.ml:3 --check")[1]
    assert "import" not in run("m.onnx --to 13 --check")[1]


def test_a_version_that_is_not_listed_is_told_in_the_list_too() -> None:
    told = run("--list-runtimes tensorrt@9.9")[1]
    assert told.endswith("note: tensorrt 9.9 is not listed: taken to be like tensorrt 9.0, the nearest older one\n")
    assert "note" not in run("--list-runtimes tensorrt@9.0")[1]


def test_a_version_without_its_last_number_is_the_oldest_of_it() -> None:
    told = run("--list-runtimes tensorrt@8")[1]
    assert "tensorrt@8.0" in told
    assert told.endswith("note: tensorrt 8 is taken to be tensorrt 8.0, the oldest of it\n")
    assert "note:  tensorrt 8 is taken to be tensorrt 8.0" in run("m.onnx --for tensorrt@8 --check")[1]


def test_what_a_model_is_declared_to_be_is_not_called_its_stamp() -> None:
    onnx.save(
        model("(float[2, 3] x) => (float[2] y) <int64[1] a = {1}> { y = ReduceMean <keepdims = 0> (x, a) }", 19),
        "r.onnx",
    )
    told = (
        "r.onnx: 1 node does not fit ai.onnx 12, as it is declared to be: ReduceMean 'y' (2 inputs where opset 12 takes"
    )
    code, _, errors = run("r.onnx --from 12 --to 13")
    assert code == 4 and told in errors
    assert re.search(r"all nodes fit opset 18 to \d+: --from 18 reads the model at 18\n", errors)
    assert run("r.onnx --from 18 --to 13")[0] == 0


@pytest.mark.parametrize("option", ["--allow conditional", "--types cast-rounding"])
def test_exact_excludes_what_is_not(option: str) -> None:
    assert run(f"m.onnx --to 13 --exact {option}")[2] == f"error: --exact excludes {option}. (try --help)\n"


def test_no_data_file_is_no_silence() -> None:
    note = "note:  no weights have 1024 bytes or more: all stay inside, there is no data file\n"
    assert note in run("m.onnx --to 13 --save-external-data=w.bin -o o.onnx")[1]
    assert not Path("w.bin").exists()


def test_the_report_of_a_refusal_says_how_long_it_took() -> None:
    code, told, _ = run("words.onnx --to 17 --json")
    assert code == 1 and json.loads(told)["seconds"] > 0


def test_an_operator_of_another_opset_is_read_at_that_one() -> None:
    onnx.save(model("(float[2] x) => (float[2] y) { y = HardSwish (x) }", 13), "h.onnx")
    code, _, errors = run("h.onnx --to 12")
    assert code == 1
    assert "the model is not valid; if its stamp is wrong, --from 14 reads it at 14, which has HardSwish\n" in errors
    assert run("h.onnx --to 12 --from 14")[0] == 0
    assert remedied(["onnx-convert", "h.onnx", "--to", "12"], "if its stamp is wrong, --from 14 reads it at 14") == (
        "onnx-convert h.onnx --to 12 --from 14"
    )
    onnx.save(model("(float[2] x) => (float[2] y) { y = Nope (x) }", 13), "n.onnx")
    assert (
        "the model is not valid: stamp it with the opset that its nodes were written for\n" in run("n.onnx --to 12")[2]
    )


def test_an_opset_of_another_domain_is_told_with_its_domain() -> None:
    graph = """(string[2] x) => (int64[2] y) {
      y = ai.onnx.ml.LabelEncoder <keys_strings = ["a", "b"], values_int64s = [1, 2], default_int64 = -1> (x) }"""
    onnx.save(model(graph, 15, ai_onnx_ml=2), "label.onnx")
    _, _, errors = run("label.onnx --for tensorrt@8.6")
    assert "tensorrt 8.6 has no kernel for LabelEncoder at opset 2 of ai.onnx.ml\n" in errors
    assert "remedy: there is none\n" in errors


def test_a_release_that_has_kernels_for_the_operator_has_one_for_the_node() -> None:
    """TensorRT 9.0 has kernels for Cast, as 8.6, but none for int16 either."""
    onnx.save(model("(int16[2] x) => (int16[2] y) { y = BitwiseNot (x) }", 18), "not.onnx")
    code, _, errors = run("not.onnx --for tensorrt@8.6")
    assert code == 1 and "has kernels for Cast" not in errors
    assert "remedy: --to 17 writes it without asking for kernels\n" in errors
    assert run("not.onnx --to 17 --check")[0] == 0
