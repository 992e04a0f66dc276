# SPDX-License-Identifier: Apache-2.0
"""What runtimes print is read, and what is advised works: each row as it stands, retold, and followed."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner
from messages_page import PAGE, page
from texts import model

from onnx_convert import UsageError
from onnx_convert.cli.main import main
from onnx_convert.target import messages

RELU = "(float[2] x) => (float[2] y) { y = Relu (x) }"
ROWS = messages._rows()


def run(*line: str, **more: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, line, **more)
    return result.exit_code, result.stdout, result.stderr


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python tests/helpers/messages_page.py writes it"


def test_each_row_is_complete() -> None:
    assert len(messages.all_of_them()) == len(ROWS) > 18
    for row in ROWS:
        assert set(row) <= {"text", "by", "pattern", "why", "type", "or", "note"} and row["by"] and row["why"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["text"][:40])
def test_each_row_is_read_by_its_own_pattern_alone(row: dict[str, str]) -> None:
    text = row["text"]
    for retold in (
        text,
        text.lower(),
        text.upper(),
        text.replace(" ", "\n   "),
        f'Traceback (most recent call last):\n  File "x.py", line 3\n2026-01-01 E: {text} [code 1]\nbye',
        f"hi, I get `{text}` what now??",
    ):
        assert [advice.text for advice in messages.advice_on(retold)] == [text], retold


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("Unsupported model IR version: 12, max supported IR version: 8", ("--ir-version 8", "--for onnxruntime@1.14")),
        ("unsupported IR version 10 (maximum 7)", ("--ir-version 7", "--for onnxruntime@1.8")),
        ("support for domain ai.onnx is till opset 17", ("--to 17", "--for onnxruntime@1.13")),
        ("support for domain ai.onnx.ml is till opset 2.", ("--to ai.onnx.ml:2", "--for onnxruntime@1.10")),
        ("domain com.ms.internal.nhwc is till opset 21", ("--for onnxruntime@1.20",)),
        ("Could not find an implementation for the node Relu(1)", ("--to 7",)),
        ("Could not find an implementation for Cast(19) node with name 'c'", ("--to 18", "--for onnxruntime@1.15")),
        ("Your model ir_version 11 is higher than the checker\u2019s (8)", ("--ir-version 8", "--for onnx@1.13")),
        ("Unsupported onnx opset 19, need <= 12", ("--to 12", "--for rknn-toolkit2@1.5.2")),
        ("please re-export the onnx model with opset 12", ("--to 12",)),
        (
            "[TRT] No importer registered for op: GridSample. Attempting to import as plugin.",
            ("--to 15", "--for tensorrt@8.5"),
        ),
        ("No importer registered for op: NMSRotated", ()),
        ("Squeeze version 13 is not implemented", ("--to 12", "--for onnx-tensorflow@1.7")),
        ("(OperationDescription(domain='', operation_type='NonZero', version=9)) Converter is not implemented", None),
        (
            "Converter is not implemented (OperationDescription(domain='', operation_type='Slice', version=1))",
            ("--to 13",),
        ),
        ("what(): Attribute not found: axes\nAborted (core dumped)", ("--to 12", "--for tensorrt@7.1")),
    ],
)
def test_numbers_and_operators_are_taken_from_the_message(message: str, options: tuple[str, ...] | None) -> None:
    if options is None:
        with pytest.raises(UsageError, match="nothing like"):
            messages.advice_on(message)
        return
    (advice,) = messages.advice_on(message)
    assert advice.options == tuple(f"MODEL {option}" for option in options)


@pytest.mark.parametrize("advice", messages.all_of_them(), ids=lambda advice: advice.text[:40])
def test_what_is_advised_can_be_typed(advice: messages.Advice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The options exist and are taken, for a model of which the message is true or nearly so."""
    monkeypatch.chdir(tmp_path)
    assert advice.options
    for option in advice.options:
        old = "--to 7" in option or ("--to 16" in option and "older" in advice.why)
        onnx.save(model(RELU, 6 if old else 22, ir=3 if old else 10, ai_onnx_ml=5), "MODEL")
        code, text, errors = run(*shlex.split(option.replace(" N", " 13")))
        assert code == 0, errors
        assert text


def test_advice_leads_to_what_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(model(RELU, 17, ir=10), "MODEL")
    (advice,) = messages.advice_on(ROWS[0]["text"])
    for option in advice.options:
        code, text, _ = run(*option.split())
        assert code == 0 and "IR version 10 -> 9" in text


# ---- the command line


def test_the_command_says_what_to_type() -> None:
    assert run("--message", "E: Unsupport onnx opset 17, need <= 12!")[1] == (
        "printed by  RKNN-Toolkit, RKNN-Toolkit2\n"
        "because     the model's opset is newer than it loads\n"
        "type        onnx-convert MODEL --to 12\n"
        "            or onnx-convert MODEL --for rknn-toolkit2@1.5.2\n"
        "note        behind the @ goes the version that you have\n"
    )


def test_a_log_comes_through_stdin() -> None:
    log = (
        "one line\nNo importer registered for op: LayerNormalization. Attempting\nanother\nAttribute not found: axes\n"
    )
    code, text, _ = run("--message", "-", input=log)
    assert code == 0
    assert [line.split()[-1] for line in text.splitlines() if "--to" in line] == ["12", "16"]
    assert run("--message", "-", input=b"\xff\xfe Unknown model file format version.\n")[0] == 0


def test_what_is_not_known_says_how_to_go_on() -> None:
    code, text, errors = run("--message", "segmentation fault")
    assert (code, text) == (2, "")
    assert errors == (
        "error: nothing like 'segmentation fault' is known: --message alone lists what is; "
        "onnx-convert MODEL tells who loads a model\n"
    )
    assert run("--message", "-", input="")[2].startswith("error: nothing like an empty message is known")
    assert "nothing: onnx-convert cannot help" in run("--message", "No importer registered for op: NMSRotated")[1]


def test_all_are_listed() -> None:
    code, text, _ = run("--message")
    assert code == 0
    assert [line.partition("  ")[2].strip() for line in text.splitlines() if line.startswith("message")] == [
        row["text"].strip() for row in ROWS
    ]
    told = json.loads(run("--message", "--json")[1])
    assert told[0]["options"] == ["onnx-convert MODEL --ir-version 9", "onnx-convert MODEL --for onnxruntime@1.17"]
