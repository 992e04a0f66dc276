# SPDX-License-Identifier: Apache-2.0
"""What shells offer while a line is typed: bash itself is asked, of zsh and fish the script and what it calls."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from onnx_convert.target.runtimes import listed


def script(shell: str) -> str:
    return asked(f"{shell}_source")


def asked(instruction: str, **words: str) -> str:
    """Returns what the program answers to a shell."""
    call = "from onnx_convert.cli.main import main; main(prog_name='onnx-convert')"
    environment = {**os.environ, **words, "_ONNX_CONVERT_COMPLETE": instruction}
    done = subprocess.run([sys.executable, "-c", call], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == "", done.stderr
    return done.stdout


def in_bash(folder: Path, *words: str) -> list[str]:
    """Returns what bash offers for the last of the words."""
    program = folder / "onnx-convert"
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m onnx_convert \"$@\"\n")
    program.chmod(0o755)
    (folder / "completion").write_text(script("bash"))
    line = (
        f"source completion; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; "
        '_onnx_convert_completion onnx-convert; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["onnx-convert", "--verify-"], "--verify-against"),
        (["onnx-convert", "m.onnx", "--for", "onnxruntime-d"], "onnxruntime-directml"),
        (["onnx-convert", "m.onnx", "--for", "tensorrt@8."], "tensorrt@8.6"),
        (["onnx-convert", "m.onnx", "--output-format", "gi"], "github"),
    ],
)
def test_bash(tmp_path: Path, words: list[str], offered: str) -> None:
    assert offered in in_bash(tmp_path, *words)


@pytest.mark.parametrize(("shell", "sign"), [("zsh", "#compdef onnx-convert"), ("fish", "complete --no-files")])
def test_the_scripts_of_others_call_what_answers(shell: str, sign: str) -> None:
    text = script(shell)
    assert sign in text and f"_ONNX_CONVERT_COMPLETE={shell}_complete" in text
    line = "onnx-convert m.onnx --for tens" if shell == "zsh" else "onnx-convert;m.onnx;--for"
    typed = {"COMP_WORDS": line.replace(";", " "), "COMP_CWORD": "3" if shell == "zsh" else "tens"}
    assert "tensorrt" in asked(f"{shell}_complete", **typed)


def test_each_version_that_is_offered_is_listed() -> None:
    names = {f"{row.name}@{row.version}" for row in listed()}
    offered = asked("zsh_complete", COMP_WORDS="onnx-convert --for onnxruntime@", COMP_CWORD="2").split("\n")
    found = [name for name in offered if "@" in name]
    assert found and {*found} <= names
    assert (
        found[0] == [name for row in listed() if (name := f"{row.name}@{row.version}").startswith("onnxruntime@")][-1]
    )
