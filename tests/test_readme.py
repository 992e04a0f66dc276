# SPDX-License-Identifier: Apache-2.0
"""A walk through the README and the pages on the command line and on runtimes: their commands run, and what they show
is what is printed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from texts import model

from onnx_convert.cli.main import main
from onnx_convert.report import CODES

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [README, *((ROOT / "converter" / room / "README.md").read_text(encoding="utf-8") for room in ("cli", "target"))]
BLOCKS = [block for page in PAGES for block in re.findall(r"```\n(.*?)```", page, re.DOTALL)]
THREE = "(float[2] x) => (float[2] y) { a = Relu (x)  b = Relu (a)  y = Relu (b) }"


def run(*line: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, line)
    return result.exit_code, result.stdout, result.stderr


def timeless(text: str) -> str:
    """The text without what differs from run to run: seconds, and bytes, which differ with the release of onnx."""
    return re.sub(r"\(\d+ bytes\) in [\d.]+ s", "(N bytes) in T s", text).strip()


def printed(first: str) -> str:
    """The block that begins with a line like this."""
    (block,) = [block for block in BLOCKS if block.startswith(first)]
    return timeless(block)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_first_conversion() -> None:
    Path("examples").mkdir()
    scope: dict[str, object] = {"__name__": "example"}
    exec(compile((ROOT / "examples" / "make_legacy_add.py").read_text(encoding="utf-8"), "make", "exec"), scope)
    onnx.save(scope["make"](), "examples/legacy_add.onnx")
    command = "onnx-convert examples/legacy_add.onnx --to 14"
    assert command in README
    code, text, _ = run(*command.split()[1:])
    assert code == 0
    assert timeless(text) == printed("examples/legacy_add.onnx")


def test_the_conversion_for_a_runtime() -> None:
    onnx.save(model(THREE, 17, ir=10), "net.onnx")
    code, text, _ = run("net.onnx", "--for", "triton@22.12")
    assert code == 0
    assert timeless(text) == printed("net.onnx")


def test_the_verification() -> None:
    graph = "(float[N,3,4] x) => (float[N,3,4] y) { y = Softmax <axis = 1> (x) }"
    onnx.save(model(graph, 13), "net.onnx")
    code, text, _ = run("net.onnx", "--to", "12", "--verify")
    assert code == 0
    assert versionless(printed("Output")) in versionless(text)


def versionless(text: str) -> str:
    return re.sub(r"onnxruntime [\d.]+", "onnxruntime", text)


def commands() -> list[str]:
    lines = [line.partition(" #")[0].strip() for block in BLOCKS for line in block.splitlines()]
    return sorted(
        {line for line in lines if line.startswith("onnx-convert ") and "<" not in line and "examples/" not in line}
    )


def test_there_are_commands() -> None:
    assert len(commands()) > 15


@pytest.mark.parametrize("command", commands())
def test_every_command_runs(command: str) -> None:
    Path("zoo").mkdir()
    for name in ("MODEL", "zoo/a.onnx"):
        onnx.save(model("(float[2] x) => (float[2] y) { y = Relu (x) }", 15, ai_onnx_ml=2), name)
    onnx.save(model("(float[2] x) => (float[2] y) { y = Relu (x) }", 13), "RESULT")
    np.savez("INPUTS.npz", x=np.ones(2, np.float32))
    line = shlex.split(command.replace("FOLDER/", "folder/"))[1:]
    code, text, errors = run(*line)
    assert code == (5 if "--exit-code" in line else 0), errors
    assert text and not errors


def test_the_codes_of_refusals_are_listed() -> None:
    told = (ROOT / "converter" / "README.md").read_text(encoding="utf-8").partition("## Codes of refusals")[2]
    assert dict(re.findall(r"^\| `([\w-]+)` \| (.*) \|$", told, re.MULTILINE)) == CODES


def test_the_codes_of_refusals_are_complete() -> None:
    """What the code says is listed, and what is listed is said somewhere."""
    said = set()
    for path in [*(ROOT / "converter").rglob("*.py"), *(ROOT / "adapters").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        if path.name != "report.py":
            said |= {code for code in CODES if f'"{code}"' in text}
            assert set(re.findall(r'code="([\w-]+)"', text)) <= set(CODES), path
    assert set(CODES) - said <= {"needs-dtype", "needs-rank", "needs-shape"}  # which are put together
