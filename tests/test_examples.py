# SPDX-License-Identifier: Apache-2.0
"""The examples run, and the README shows what is there."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib import util
from pathlib import Path

import numpy as np
import onnx
import pytest
import texts

from oracle import compare, run

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
ACME = EXAMPLES / "custom_domain"


def python(*arguments: str | Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a Python of its own, with a folder more on its path if one is given."""
    extra = {"PYTHONPATH": str(path)} if path else {}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | extra
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("export_pipeline.py", "opset 18 -> 12, rewrites: exact"),
        ("custom_domain/main.py", "the decomposition computes the same"),
        ("olive_pass.py", "opset: opset 14\n"),
        ("ir_pass.py", "opset 12: Transpose, Softmax, Transpose"),
        ("in_asyncio.py", "opset 14\nb.onnx: "),
        ("in_asyncio.py", "cancelled\nthere is a.onnx\n"),
        ("model_folder.py", "encoder_model.onnx: converted, verified: same\n"),
        ("model_folder.py", "\ndecoder_model.onnx, encoder_model.onnx, model.onnx_data\n"),
    ],
)
def test_example_runs(script: str, says: str) -> None:
    done = python(EXAMPLES / script)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout


@pytest.mark.real
@pytest.mark.parametrize(
    ("script", "package", "says"),
    [
        ("from_torch.py", "torch", "opset 18 -> 12, rewrites: equivalent\nverified: same\n"),
        ("from_sklearn.py", "skl2onnx", "ai.onnx 18 -> 12\nverified: same\n"),
    ],
)
def test_example_with_an_exporter_runs(script: str, package: str, says: str) -> None:
    if util.find_spec(package) is None:
        pytest.skip(f'{package} is not installed: pip install -e ".[exports]"')
    done = python(EXAMPLES / script)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout


def test_the_first_command_of_the_readme(tmp_path: Path) -> None:
    made = python(EXAMPLES / "make_legacy_add.py", tmp_path / "legacy_add.onnx")
    assert made.returncode == 0, made.stderr
    done = python("-m", "onnx_convert", tmp_path / "legacy_add.onnx", "--to", "14")
    assert done.returncode == 0, done.stderr
    before, after = (onnx.load(tmp_path / name) for name in ("legacy_add.onnx", "legacy_add.opset14.onnx"))
    assert {entry.domain: entry.version for entry in after.opset_import} == {"": 14}
    feeds = {"image": np.random.default_rng(1).normal(size=(2, 3, 5, 7)).astype(np.float32)}
    weights = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in before.graph.initializer}
    assert not compare(run(before, feeds | weights), run(after, feeds))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with models, one of which onnxruntime 1.14 does not load and which cannot be moved there."""
    (tmp_path / "models" / "sub").mkdir(parents=True)
    onnx.save(texts.model("(float[2] x) => (float[2] y) { y = Relu (x) }", 17), tmp_path / "models" / "good.onnx")
    join = "(string[4] x) => (string[4] y) { y = StringConcat (x, x) }"  # there is none below 20
    onnx.save(texts.model(join, 20), tmp_path / "models" / "sub" / "bad.onnx")
    return tmp_path


def typed(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a line of `onnx-convert`, where it is on nobody's path."""
    words = shlex.split(command)
    assert words[0] == "onnx-convert"
    words[0:1] = [sys.executable, "-m", "onnx_convert"]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def command_in(file: str) -> str:
    """Returns the line of a recipe that runs `onnx-convert`."""
    lines = (EXAMPLES / "ci" / file).read_text(encoding="utf-8").splitlines()
    (line,) = [line.partition("- ")[2].removeprefix("run: ") for line in lines if "- run: onnx-convert " in line
               or "- onnx-convert " in line]  # fmt: skip
    return line


def test_the_recipe_for_github(checkout: Path) -> None:
    done = typed(command_in("github.yml"), checkout)
    assert done.returncode == 1, done.stderr
    (shown,) = [line for line in done.stdout.splitlines() if line.startswith("::")]
    assert shown.startswith("::error file=models/sub/bad.onnx,title=onnx-convert%3A no-form::StringConcat ")
    (checkout / "models" / "sub" / "bad.onnx").unlink()
    done = typed(command_in("github.yml"), checkout)
    assert done.returncode == 0 and "::" not in done.stdout


def test_the_recipe_for_gitlab(checkout: Path) -> None:
    command, _, kept = command_in("gitlab.yml").partition(" > ")
    done = typed(command, checkout)
    assert done.returncode == 1 and kept == "models.jsonl"
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line.get("name"): line["status"] for line in told} == {
        "good.onnx": "checked", "sub/bad.onnx": "refused", None: "done",
    }  # fmt: skip


def test_the_hook_for_pre_commit(checkout: Path) -> None:
    """What pre-commit does: the entry, the arguments of the configuration, and the names of changed files."""
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    hook = dict(line.strip(" -").split(": ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert hook["language"] == "python" and re.search(hook["files"], "models/good.onnx")
    assert typed(f"{hook['entry']} --for onnxruntime@1.14 models/good.onnx", checkout).returncode == 0
    for names in ("models/sub/bad.onnx", "models/good.onnx models/sub/bad.onnx"):
        done = typed(f"{hook['entry']} --for onnxruntime@1.14 {names}", checkout)
        assert done.returncode == 1 and "StringConcat" in done.stderr


def test_the_test_that_the_readme_shows(tmp_path: Path) -> None:
    shown = (ROOT / "README.md").read_text(encoding="utf-8").partition("As a test of your own:\n\n```python\n")[2]
    (tmp_path / "test_models.py").write_text("import onnx_convert\n\n" + shown.partition("```")[0], encoding="utf-8")
    (tmp_path / "models").mkdir()
    onnx.save(
        texts.model("(float[2, 3] x) => (float[2, 3] y) { y = Softmax (x) }", 17), tmp_path / "models" / "net.onnx"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_models.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout


def test_adapters_of_an_installed_distribution_are_found(tmp_path: Path) -> None:
    """What pip leaves of a distribution: its module, and its entry points in a folder beside it."""
    shutil.copy(ACME / "acme_adapters.py", tmp_path)
    info = tmp_path / "acme_adapters-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-adapters\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[onnx_convert.adapters]\nacme = acme_adapters\n")
    source = tmp_path / "gates.onnx"
    make = "import onnx, main, sys; onnx.save(main.make(1.0, 1.702), sys.argv[1])"
    made = python("-c", make, source, path=ACME)
    assert made.returncode == 0, made.stderr

    refused = python("-m", "onnx_convert", source, "--to", "com.acme:1")
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: no adapter is registered for domain 'com.acme': without --to com.acme:")
    done = python("-m", "onnx_convert", source, "--to", "com.acme:1", path=tmp_path)
    assert done.returncode == 0, done.stderr
    converted = onnx.load(tmp_path / "gates.opset17.onnx")
    assert [node.op_type for node in converted.graph.node] == ["Gate", "Mul", "Sigmoid", "Mul"]


def test_the_example_publishes_in_the_group_that_is_scanned() -> None:
    from onnx_convert.rewrite import plugins

    assert f'[project.entry-points."{plugins.GROUP}"]' in (ACME / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("path", "functions"), [("adapters/softmax.py", 2), ("adapters/decompose/scripts/activations.py", 1)]
)
def test_the_readme_shows_adapters_as_they_are(path: str, functions: int) -> None:
    """The code of "An adapter in ten minutes" is code of the tree, function by function."""
    readme = (ROOT / "adapters" / "README.md").read_text(encoding="utf-8")
    shown = readme.partition(f"<!-- {path} -->\n```python\n")[2].partition("```")[0]
    source = (ROOT / path).read_text(encoding="utf-8")
    parts = [part.strip() for part in shown.split("\n\n\n")]
    assert len(parts) == functions
    for part in parts:
        assert f"\n\n\n{part}\n" in source


PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "converter/README.md",
    "converter/cli/README.md",
    "converter/target/README.md",
    "converter/verification/README.md",
    "examples/README.md",
    "adapters/README.md",
)


@pytest.mark.parametrize("page", PAGES)
def test_the_files_that_a_page_names_exist(page: str) -> None:
    path = ROOT / page
    links = [part.partition(")")[0] for part in path.read_text(encoding="utf-8").split("](")[1:]]
    local = [link.partition("#")[0] for link in links if "://" not in link and not link.startswith("#")]
    assert local
    for link in local:
        assert (path.parent / link).exists(), link
