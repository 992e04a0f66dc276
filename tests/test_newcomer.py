# SPDX-License-Identifier: Apache-2.0
"""Does what the README says under "Add an operator version", to the letter, in a copy of the tree.

The operator version is made up: a module that pytest loads first registers it with onnx, and tells the oracle what it
computes, as a release of onnx would.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")

RELEASE = """
import numpy
from onnx import defs, helper
from onnx.defs import OpSchema

import oracle_legacy

sigmoid = OpSchema(
    "Sigmoid",
    "",
    20,
    inputs=[OpSchema.FormalParameter("X", "T")],
    outputs=[OpSchema.FormalParameter("Y", "T")],
    type_constraints=[("T", ["tensor(bfloat16)", "tensor(double)", "tensor(float)", "tensor(float16)"], "")],
    attributes=[OpSchema.Attribute("alpha", helper.make_attribute("alpha", 1.0))],
)
sigmoid.set_type_and_shape_inference_function(lambda context: context.set_output_type(0, context.get_input_type(0)))
defs.register_schema(sigmoid)


def meaning(x, alpha=1.0):
    return (1 / (1 + numpy.exp(-alpha * x))).astype(x.dtype)


oracle_legacy.MEANINGS.append(("Sigmoid", 99, meaning))
"""


def shown(name: str) -> str:
    """The block of the README that a comment with this name stands above."""
    found = re.findall(rf"<!-- {re.escape(name)} -->\n```\w*\n(.*?)```", README, re.DOTALL)
    assert len(found) == 1, name
    return str(found[0])


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the packages and of the tests that matter, and beside it the release of onnx that brings Sigmoid@20."""
    unwanted = shutil.ignore_patterns("__pycache__", "table_*.py")
    shutil.copytree(ROOT / "converter", tmp_path / "onnx_convert", ignore=unwanted)
    shutil.copytree(ROOT / "adapters", tmp_path / "onnx_convert" / "adapters", ignore=unwanted)
    shutil.copytree(ROOT / "tests" / "boundaries", tmp_path / "tests" / "boundaries", ignore=unwanted)
    for name in ("test_compatible.py", "undecided.py", "oracle.py", "oracle_legacy.py"):
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "release.py").write_text(RELEASE, encoding="utf-8")
    return tmp_path


def python(tree: Path, *line: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in the copy."""
    paths = os.pathsep.join(map(str, (tree, tree / "tests")))
    environment = {**os.environ, "PYTHONPATH": paths, "COLUMNS": "200"}
    command = [sys.executable, *line]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tree, timeout=300, check=False)


def run_tests(tree: Path, *line: str) -> subprocess.CompletedProcess[str]:
    return python(tree, "-m", "pytest", "-q", "-p", "release", "-p", "no:cacheprovider", *line)


def explained(tree: Path) -> str:
    start = "import sys, release\nfrom onnx_convert.cli.main import main\nmain(sys.argv[1:])"
    done = python(tree, "-c", start, "--explain", "Sigmoid@20")
    assert done.returncode == 0, done.stderr
    return done.stdout


def add_line(path: Path, line: str, opset: int) -> None:
    """A line among those of its opset."""
    text = path.read_text(encoding="utf-8")
    later = next(one for one in re.finditer(r"^compatible\([^)]*?at=(\d+)", text, re.MULTILINE) if int(one[1]) > opset)
    path.write_text(text[: later.start()] + line + text[later.start() :], encoding="utf-8")


def test_a_newcomer_adds_an_operator_version(tree: Path) -> None:
    red = run_tests(tree, "tests/test_compatible.py")
    assert red.returncode == 1, red.stdout
    assert "to decide, with an adapter, compatible(...) or impossible(...):" in red.stdout
    for direction in ("up", "down"):
        assert re.search(rf"ai\.onnx\.Sigmoid@20 {direction}\n.*attribute alpha is ", red.stdout), red.stdout
    assert shown("says") in explained(tree)

    package = tree / "onnx_convert" / "adapters"
    add_line(package / "tables" / "compatible.py", shown("line of adapters/tables/compatible.py"), 20)
    (package / "sigmoid.py").write_text(shown("adapters/sigmoid.py"), encoding="utf-8")
    table = "tests/boundaries/table_sigmoid.py"
    (tree / table).write_text(shown(table), encoding="utf-8")

    commands = re.findall(r'`pytest (tests/test_compatible\.py tests/boundaries) -k "(.*?)"`', README)
    assert len(commands) == 1
    green = run_tests(tree, *commands[0][0].split(), "-k", commands[0][1])
    assert green.returncode == 0, green.stdout
    whole = run_tests(tree, "tests/test_compatible.py", "-k", "not undecided")
    assert whole.returncode == 0, whole.stdout
    told = explained(tree)
    for line in (
        "`alpha` is a factor of the input; below, it is 1",
        "multiply by alpha: Nothing changes where `alpha` is 1; else the input is multiplied by it.",
        "or equivalent: the operator may round in another order",
        "may ask for: dtype of X",
    ):
        assert line in told


def test_a_wrong_adapter_is_found_out(tree: Path) -> None:
    """The rows notice an adapter that forgets the factor."""
    package = tree / "onnx_convert" / "adapters"
    add_line(package / "tables" / "compatible.py", shown("line of adapters/tables/compatible.py"), 20)
    wrong = shown("adapters/sigmoid.py").replace("if alpha == 1:", "if alpha:")
    (package / "sigmoid.py").write_text(wrong, encoding="utf-8")
    table = "tests/boundaries/table_sigmoid.py"
    (tree / table).write_text(shown(table), encoding="utf-8")
    red = run_tests(tree, "tests/boundaries", "-k", "Sigmoid and alpha and plain")
    assert red.returncode == 1, red.stdout
    assert "Sigmoid alpha 0.5 20->19-plain" in red.stdout
    assert "1 passed" in red.stdout  # where alpha is 1 it is right
