# SPDX-License-Identifier: Apache-2.0
"""Nothing that is typed is ignored in silence; names of results tell them apart; what stdin, pipes and data files are
called."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click
import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import numpy_helper
from texts import model

import onnx_convert
from onnx_convert.cli import effects, places
from onnx_convert.cli.main import main
from onnx_convert.report import Report

RELU = "(float[2] x) => (float[2] y) { y = Relu (x) }"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with `m.onnx` at opset 17."""
    monkeypatch.chdir(tmp_path)
    onnx.save(model(RELU, 17), "m.onnx")
    return tmp_path


def run(line: str, **more: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, line.split(), **more)
    return result.exit_code, result.stdout, result.stderr


# ---- options without effect


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--coverage Softmax", "--coverage is about every operator; about one: --explain Softmax."),
        ("--coverage m.onnx", "--coverage is about no model: leave m.onnx out."),
        ("m.onnx --explain Softmax", "--explain is about no model: leave m.onnx out."),
        ("m.onnx --list-runtimes", "--list-runtimes is about no model; what loads one: onnx-convert m.onnx."),
        ("--list-runtimes m.onnx", "--list-runtimes is about no model; what loads one: onnx-convert m.onnx."),
        (
            "--list-runtimes no/such.onnx",
            "--list-runtimes is about no model; what loads one: onnx-convert no/such.onnx.",
        ),
        ("--explain Softmax --to 14", "--to has no effect with --explain: leave it out."),
        ("--list-runtimes --exact", "--exact has no effect with --list-runtimes: leave it out."),
        ("--coverage -v", "--verbose has no effect with --coverage: leave it out."),
        ("--coverage --types refuse", "--types has no effect with --coverage: leave it out."),
        (
            "m.onnx --to 13 --json --output-format github",
            "--json and --output-format github exclude each other.",
        ),
        ("--coverage --output-format github", "--output-format has no effect with --coverage: leave it out."),
        ("--explain Softmax --coverage", "--explain and --coverage exclude each other."),
        ("--explain Softmax --list-runtimes", "--list-runtimes and --explain exclude each other."),
        ("m.onnx --overwrite-data", "Missing option '--to' or '--for': without, --overwrite-data has no effect."),
        ("m.onnx --exit-code", "Missing option '--to' or '--for': without, --exit-code has no effect."),
        ("m.onnx --keep-initializer-inputs", "Missing option '--to' or '--for': without, --keep-initializer-inputs"),
        (
            "m.onnx --external-data-size-threshold 1024",
            "Missing option '--to' or '--for': without, --external-data-size",
        ),
        ("--save-external-data m.onnx", "Missing option '--to' or '--for': without, --save-external-data has no"),
        ("m.onnx --to 13 --in-place -f", "--force has no effect with --in-place: MODEL is replaced anyway."),
        ("m.onnx --to 13 -o - -f", "--force has no effect with -o -: no file is replaced."),
        ("m.onnx --to 13 -o - --overwrite-data", "--overwrite-data has no effect with -o -: no file is replaced."),
        ("m.onnx -q -v", "--quiet and --verbose exclude each other."),
    ],
)
def test_what_has_no_effect_is_refused(folder: Path, line: str, says: str) -> None:
    code, text, errors = run(line)
    assert (code, text, errors.count("\n")) == (2, "", 1)
    assert errors.startswith(f"error: {says}"), errors
    assert [path.name for path in folder.iterdir()] == ["m.onnx"]


@pytest.mark.parametrize("line", ["m.onnx --types cast --expand all", "m.onnx --strict -v", "m.onnx --exact --json"])
def test_a_description_depends_on_what_is_allowed(line: str) -> None:
    assert run(line)[0] == 0


@pytest.mark.parametrize(
    "line",
    [
        "--list-runtimes triton --json",
        "--explain Relu --json",
        "--coverage --json --debug",
        "--explain Relu --output-format json",
        "m.onnx --output-format json",
    ],
)
def test_what_is_known_can_be_had_as_data(line: str) -> None:
    code, text, _ = run(line)
    assert code == 0 and json.loads(text)


def test_only_options_that_exist_are_thought_of() -> None:
    names = {parameter.name for parameter in main.params}
    listed = {*effects.KNOWLEDGE, *effects._ASKED_OF_A_DESCRIPTION, *effects._ASKED_OF_KNOWLEDGE, *effects._TARGETS}
    assert listed <= names


def test_what_was_typed_is_known_by_its_longest_name() -> None:
    with main.make_context("onnx-convert", ["m.onnx", "-q", "--types", "refuse"]) as context:
        assert isinstance(context, click.Context)
        assert effects.given(context) == {"models": "models", "types": "--types", "quiet": "--quiet"}


# ---- a runtime without a version


def test_a_runtime_without_a_version_says_which_one_it_is() -> None:
    code, text, _ = run("m.onnx --for tensorrt --check")
    assert code == 0
    assert "warning:  tensorrt without a version is taken to be the newest listed, 11: --for tensorrt@VERSION" in text
    assert "warning:" not in run("m.onnx --for tensorrt@8.6 --check")[1]
    _, text, _ = run("m.onnx --for onnxruntime --check")
    assert "warning:  onnxruntime without a version is taken to be the one that is installed here, " in text


# ---- names of results


@pytest.mark.parametrize(
    ("before", "after", "ir", "more", "asked", "name"),
    [
        ({"ai.onnx": 17}, {"ai.onnx": 13}, 7, {}, False, "opset13"),
        ({"ai.onnx": 17}, {"ai.onnx": 13}, 8, {}, False, "opset13"),  # functions need it
        ({"ai.onnx": 17}, {"ai.onnx": 13}, 8, {}, True, "opset13.ir8"),
        ({"ai.onnx": 17}, {"ai.onnx": 17}, 8, {"runtime": "triton 22.12"}, False, "opset17"),
        ({"ai.onnx": 17}, {"ai.onnx": 10}, 3, {"runtime": "tensorrt 6.0"}, False, "opset10.ir3"),
        ({"ai.onnx": 17, "ai.onnx.ml": 3}, {"ai.onnx": 13, "ai.onnx.ml": 2}, 7, {}, False, "opset13"),
        ({"ai.onnx": 17, "ai.onnx.ml": 3}, {"ai.onnx": 13, "ai.onnx.ml": 3}, 7, {}, False, "opset13.ml3"),
        ({"ai.onnx": 13, "ai.onnx.ml": 2}, {"ai.onnx": 21, "ai.onnx.ml": 2}, 10, {}, False, "opset21"),
        ({"ai.onnx": 13, "ai.onnx.ml": 2}, {"ai.onnx": 21, "ai.onnx.ml": 5}, 10, {}, False, "opset21.ml5"),
    ],
)
def test_what_tells_a_result_from_others(
    before: dict[str, int], after: dict[str, int], ir: int, more: dict[str, str], asked: bool, name: str
) -> None:
    report = Report(opsets_before=before, opsets_after=after, ir_version_after=ir, **more)
    assert places.stamps_of(report, ir_version=asked) == name


def test_results_for_two_runtimes_do_not_replace_each_other(folder: Path) -> None:
    assert "wrote m.opset11.onnx (" in run("m.onnx --to 11")[1]
    assert "wrote m.opset11.ir4.onnx (" in run("m.onnx --to 11 --ir-version 4")[1]
    assert "wrote m.opset9.ir3.onnx (" in run("m.opset11.ir4.onnx --for tensorrt@5.1")[1]
    assert [onnx.load(f"m.opset11{stamp}.onnx").ir_version for stamp in ("", ".ir4")] == [6, 4]


# ---- stdin and pipes


def test_what_came_through_stdin_is_called_so() -> None:
    assert run("- --to 13", input=b"no model at all\n")[2] == "error: stdin: is a text; that is no ONNX model\n"
    assert run("-", input=b"")[2] == "error: stdin: is empty\n"
    source = model("(uint8[n] x) => (uint8[h, w, 3] y) { y = ImageDecoder (x) }", 20).SerializeToString()
    assert run("- --to 13 -q", input=source)[2].startswith("error: stdin: ImageDecoder")
    assert (
        json.loads(run("- --to 13 --json --check", input=model(RELU, 17).SerializeToString())[1])["source"] == "stdin"
    )


def test_bytes_are_called_so() -> None:
    with pytest.raises(onnx_convert.InvalidModelError, match=r"^<bytes>: is a text"):
        onnx_convert.plan(b"no model at all\n", to=13)
    assert onnx_convert.plan(model(RELU, 17).SerializeToString(), to=13).source == "<bytes>"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe_is_read_as_stdin(folder: Path) -> None:
    os.mkfifo("pipe")
    for line in ("pipe", "pipe --to 13", "/dev/null --to 13"):
        says = "is no file; a model is read from a pipe by onnx-convert -"
        assert run(line) == (4, "", f"error: {line.split()[0]}: {says}\n")


# ---- data files


def external() -> None:
    source = model("(float[n, 64] x) => (float[n, 64] y) { y = MatMul (x, w) }", 17)
    source.graph.initializer.append(numpy_helper.from_array(np.zeros((64, 64), np.float32), "w"))
    onnx.save(source, "e.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)


def test_a_data_file_that_cannot_be_read_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    external()
    whole = run("e.onnx")[1]

    def refuse(path: str, flags: int) -> int:
        if Path(path).name == "w.bin":
            raise PermissionError(13, "Permission denied", path)
        return os.open(path, flags)

    monkeypatch.setattr("onnx_convert.storage.files._open_without_waiting", refuse)
    assert run("e.onnx --to 13") == (
        4,
        "",
        "error: e.onnx: tensor 'w', data file 'w.bin': cannot be read: Permission denied\n",
    )
    assert run("e.onnx") == (0, whole.replace("(16.4 kB)", "(16.4 kB, Permission denied)"), "")


def test_a_data_file_that_is_too_short_says_so() -> None:
    external()
    whole = run("e.onnx")[1]
    Path("w.bin").write_bytes(b"1234")
    assert run("e.onnx")[1] == whole.replace("(16.4 kB)", "(16.4 kB, 16384 bytes needed, 4 present at offset 0)")


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_a_model_that_cannot_be_read_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, flags: int) -> int:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("onnx_convert.storage.files._open_without_waiting", refuse)
    assert run("m.onnx --to 13") == (4, "", "error: m.onnx: cannot be read: Permission denied\n")
