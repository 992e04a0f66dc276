# SPDX-License-Identifier: Apache-2.0
"""Does what the README says under "Add an operator version", to the letter, in a copy of the tree.

The operator version is made up: `helpers/sigmoid_20.py` is the release of onnx that brings it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "adapters" / "README.md").read_text(encoding="utf-8")


def shown(name: str) -> str:
    """Returns the block of the README that a comment with this name stands above."""
    found = re.findall(rf"<!-- {re.escape(name)} -->\n```\w*\n(.*?)```", README, re.DOTALL)
    assert len(found) == 1, name
    return str(found[0])


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the packages and of the tests that matter."""
    unwanted = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "converter", tmp_path / "onnx_convert", ignore=unwanted)
    shutil.copytree(ROOT / "adapters", tmp_path / "onnx_convert" / "adapters", ignore=unwanted)
    shutil.copytree(ROOT / "tests" / "helpers", tmp_path / "tests" / "helpers", ignore=unwanted)
    for name in ("pyproject.toml", "tests/conftest.py", "tests/adapters/tables/compatible.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def run(tree: Path, line: str, *more: str) -> subprocess.CompletedProcess[str]:
    """Runs a command of the README in the copy."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "200"}
    command = [sys.executable, *shlex.split(line)[1:], *more]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tree, timeout=300, check=False)


def commands() -> dict[str, str]:
    """Returns the commands of the README that load the release, by what they run: pytest, onnx_convert, and pytest
    -k."""
    found = re.findall(r"`(python tests/helpers/sigmoid_20\.py (\S+)[^`]*)`", README)
    return {program + " -k" * (" -k " in line): line for line, program in found}


def add_line(path: Path, line: str, opset: int) -> None:
    """A line among those of its opset."""
    text = path.read_text(encoding="utf-8")
    later = next(one for one in re.finditer(r"^compatible\([^)]*?at=(\d+)", text, re.MULTILINE) if int(one[1]) > opset)
    path.write_text(text[: later.start()] + line + text[later.start() :], encoding="utf-8")


TABLE = "tests/adapters/sigmoid.py"


def follow(tree: Path, adapter: str) -> None:
    """Writes what the README says, with an adapter as it stands there or a wrong one."""
    package = tree / "onnx_convert" / "adapters"
    add_line(package / "tables" / "compatible.py", shown("line of adapters/tables/compatible.py"), 20)
    (package / "sigmoid.py").write_text(adapter, encoding="utf-8")
    (tree / TABLE).write_text(shown(TABLE), encoding="utf-8")


def test_a_newcomer_adds_an_operator_version(tree: Path) -> None:
    told = commands()
    assert told.keys() == {"pytest", "onnx_convert", "pytest -k"}
    red = run(tree, told["pytest"], "-q", "-k", "not test_row")
    assert red.returncode == 1, red.stdout
    assert "to decide, with an adapter, compatible(...) or impossible(...):" in red.stdout
    for direction in ("up", "down"):
        assert re.search(rf"ai\.onnx\.Sigmoid@20 {direction}\n.*attribute alpha is ", red.stdout), red.stdout
    assert shown("says") in run(tree, told["onnx_convert"]).stdout

    follow(tree, shown("adapters/sigmoid.py"))
    green = run(tree, told["pytest -k"], "-q")
    assert green.returncode == 0, green.stdout
    whole = run(tree, told["pytest"], "-q", "-k", "not undecided and not test_row")
    assert whole.returncode == 0, whole.stdout
    explained = run(tree, told["onnx_convert"])
    assert explained.returncode == 0, explained.stderr
    for line in (
        "`alpha` is a factor of the input; below, it is 1",
        "multiply by alpha: Nothing changes where `alpha` is 1; else the input is multiplied by it.",
        "or equivalent: the operator may round in another order",
        "may ask for: dtype of X",
    ):
        assert line in explained.stdout


def test_a_wrong_adapter_is_found_out(tree: Path) -> None:
    """The rows notice an adapter that forgets the factor."""
    follow(tree, shown("adapters/sigmoid.py").replace("if alpha == 1:", "if alpha:"))
    red = run(tree, f"python tests/helpers/sigmoid_20.py pytest {TABLE}", "-q", "-k", "alpha and plain")
    assert red.returncode == 1, red.stdout
    assert "Sigmoid alpha 0.5 20->19-plain" in red.stdout
    assert "1 passed" in red.stdout  # where alpha is 1 it is right
