# SPDX-License-Identifier: Apache-2.0
"""The table of kernels is what the wheels say, and what `--for` says of models is what the wheels do.

Each minor release that has a wheel for this Python is unpacked for the time of its test, and asked again: first about
every operator and its types, then about the cases that onnx publishes, as they are and converted for it.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import onnx
import pytest
from conformance.corpus import Case, collect
from kernels.generate import LISTS_NONE, NODE, TABLE, WHEELS, Build, asked, lines_of, wheel, write_questions
from kernels.probes import LOWEST
from kernels.table import Kernel, read, rendered

import onnx_convert
from onnx_convert.planning.node_kinds import kinds_of, without_kernel
from onnx_convert.storage.source import open_source
from onnx_convert.target import kernels, runtimes

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        onnx.defs.onnx_opset_version() < max(row.opset or 0 for row in runtimes.listed() if row.name == "onnx"),
        reason="the table is made with the newest onnx",
    ),
]

ALSO = {
    "strnorm": "needs a locale that the machine may not have",
    "flexattention_double_expanded": "an optimisation of onnxruntime puts FusedMatMul there, for a type it has not",
}
"""Parts of names of cases whose outcome has other reasons than a kernel."""

RUN = """
import base64, json, sys
import onnxruntime
onnxruntime.set_default_logger_severity(4)
told = {}
for name, message in json.load(open(sys.argv[1])).items():
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    try:
        onnxruntime.InferenceSession(base64.b64decode(message), options, providers=["CPUExecutionProvider"])
        told[name] = ""
    except Exception as error:
        told[name] = str(error)
print(json.dumps(told))
"""


@pytest.fixture(params=WHEELS)
def build(request: pytest.FixtureRequest) -> Iterator[Build]:
    """An onnxruntime of each minor release, gone after the test."""
    with tempfile.TemporaryDirectory() as home:
        try:
            yield wheel(request.param, Path(home))
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no onnxruntime {request.param} to be had: {error.stderr}")


@lru_cache(maxsize=1)
def cases() -> list[Case]:
    """The cases that onnx publishes, those apart whose outcome has other reasons, and those below opset 7, which
    onnxruntime is not said to load, though it has kernels for some."""
    return [
        case
        for case in collect(wheels=False)
        if (case.domain or case.opset >= LOWEST) and not any(part in case.id for part in ALSO)
    ]


def sessions(build: Build, models: dict[str, bytes], folder: Path) -> dict[str, str]:
    """What comes of loading models, by name: "" or an error."""
    path = folder / "models.json"
    path.write_text(json.dumps({name: base64.b64encode(message).decode() for name, message in models.items()}))
    environment = {**os.environ, **build.environment}
    done = subprocess.run(
        [sys.executable, "-c", RUN, path], env=environment, capture_output=True, text=True, check=True
    )
    told: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return told


def of_table(release: str) -> set[tuple[str, str, str]]:
    """The lines of the table that hold for a release: operator, version and types."""
    releases = [*NODE, *WHEELS]
    place, found = releases.index(release), set()
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line[0] not in "#=!":
            operator, version, span, types = line.split(" ")
            first, dash, last = span.partition("-")
            until = last or (releases[-1] if dash else first)
            if releases.index(first) <= place <= releases.index(until):
                found.add((operator, version, types))
    return found


def test_the_table_is_what_the_wheel_says(build: Build, tmp_path: Path) -> None:
    questions = tmp_path / "questions.json"
    asking = write_questions(questions)
    listing: list[Kernel] = []
    if build.release in LISTS_NONE:
        other = wheel(LISTS_NONE[build.release], tmp_path)
        listing = read(asking, asked(other, questions, tmp_path)).kernels or []
    lines = lines_of(build, asking, questions, tmp_path, listing)
    split = (line.split(" ") for line in rendered([build.release], {build.release: lines}))
    assert {(operator, version, types) for operator, version, _, types in split} == of_table(build.release)


def test_what_is_said_is_what_the_wheel_does(build: Build, tmp_path: Path) -> None:
    row = runtimes.find(f"onnxruntime@{build.release}")
    table = kernels.of_runtime(row)
    assert table is not None
    said = {}
    for case in cases():
        with open_source(case.model, None) as source:
            loads = row.loads(source.imports.shown, source.proto.ir_version)
            said[case.id] = loads and not without_kernel(kinds_of(source), table)
    told = sessions(build, {case.id: case.model for case in cases()}, tmp_path)
    false = {name: told[name] for name, runs in said.items() if runs and told[name]}
    alarms = [name for name, runs in said.items() if not runs and not told[name]]
    assert false == {}
    assert len(alarms) <= len(said) / 100, alarms


def test_what_is_converted_has_kernels(build: Build, tmp_path: Path) -> None:
    models = {}
    for case in cases():
        try:
            conversion = onnx_convert.convert(case.model, runtime=f"onnxruntime@{build.release}", types="cast")
        except onnx_convert.RefusedError:
            continue
        if not any("no kernel" in warning for warning in conversion.report.warnings):
            models[case.id] = conversion.model.SerializeToString()
    assert len(models) > len(cases()) / 2
    told = sessions(build, models, tmp_path)
    assert {name: error for name, error in told.items() if error} == {}
