# SPDX-License-Identifier: Apache-2.0
"""The words of the API: its version, what is plain data, what a model may be, how the progress of a copy is told."""

from __future__ import annotations

import ast
import json
import re
import sys
from importlib.metadata import version
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto
from texts import model

import onnx_convert
from onnx_convert import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SOFTMAX = "(float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax <axis = 1> (x) }"


def test_the_version() -> None:
    assert onnx_convert.__version__ == version("onnx-convert")
    assert "__version__" in dir(onnx_convert)


def test_reports_and_descriptions_are_plain_data() -> None:
    for told in (onnx_convert.plan(model(SOFTMAX, 13), to=12), onnx_convert.inspect(model(SOFTMAX, 13))):
        assert json.loads(json.dumps(told.to_dict()))
    assert onnx_convert.plan(model(SOFTMAX, 13), to=12).to_dict()["changes"][0]["operator"] == "Softmax"


class ONNXProgram:
    """What torch.onnx.export gives back, as far as a conversion looks at it."""

    def __init__(self, proto: ModelProto, *, anew: bool) -> None:
        self._proto = proto
        self._anew = anew

    @property
    def model_proto(self) -> ModelProto:
        if not self._anew:
            return self._proto
        copy = ModelProto()
        copy.CopyFrom(self._proto)
        return copy


@pytest.mark.parametrize("anew", [True, False])
def test_a_program_of_torch_is_a_model(anew: bool) -> None:
    source = model(SOFTMAX, 13)
    before = source.SerializeToString()
    conversion = onnx_convert.convert(ONNXProgram(source, anew=anew), to=12)
    assert isinstance(conversion.model, ModelProto) and conversion.model.opset_import[0].version == 12
    assert conversion.report.source == "<ONNXProgram>"
    assert source.SerializeToString() == before


def test_what_is_no_model() -> None:
    with pytest.raises(UsageError) as caught:
        onnx_convert.convert(object(), to=12)
    assert str(caught.value) == (
        "a model is a path, bytes, a ModelProto, an onnx_ir.Model or an ONNXProgram of torch, not object"
    )


def test_progress_is_told_in_bytes(tmp_path: Path) -> None:
    onnx.save(model(SOFTMAX, 13), tmp_path / "m.onnx")
    calls: list[tuple[int, int, str]] = []
    with onnx_convert.convert(tmp_path / "m.onnx", to=12) as conversion:
        conversion.save(tmp_path / "o.onnx", progress=lambda done, total, name: calls.append((done, total, name)))
    size = (tmp_path / "o.onnx").stat().st_size
    assert calls[-1] == (size, size, "o.onnx")


def test_the_readme_documents_them() -> None:
    for word in ("onnx_convert.__version__", ".to_dict()", "progress=", "torch.onnx.export"):
        assert word in README, word


def imported(script: Path) -> set[str]:
    """The top-level packages that a script imports, those of the standard library apart."""
    names = set()
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names)


EXPORTING = {"from_torch.py", "from_sklearn.py"}  # as examples/README.md says of them


@pytest.mark.parametrize("script", sorted((ROOT / "examples").rglob("*.py")), ids=lambda path: path.name)
def test_examples_run_after_the_installation_that_is_named(script: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {"base": project["dependencies"], **project["optional-dependencies"]}
    needed = ["base"] if script.name == "make_legacy_add.py" else ["base", "examples"]
    needed += ["exports"] if script.name in EXPORTING else []
    assert 'pip install ".[examples]"' in README
    assert 'pip install ".[exports,examples]"' in (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    installed = {re.split(r"[\[<>=~!; ]", requirement)[0] for extra in needed for requirement in extras[extra]}
    beside = {path.stem for path in script.parent.glob("*.py")}
    installed |= {"onnx_convert"} | ({"sklearn"} if "scikit-learn" in installed else set())
    assert imported(script) - beside <= installed
