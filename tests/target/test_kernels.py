# SPDX-License-Identifier: Apache-2.0
"""The tables of kernels: well-formed, and read as they say."""

from __future__ import annotations

import itertools
import re
from importlib import resources

import onnx.defs
import pytest

from onnx_convert.rewrite import kernels as implemented
from onnx_convert.spec import opsets, signatures
from onnx_convert.target import kernels, runtimes

NAMES = sorted(
    {row.kernels[0] for row in runtimes.listed() if row.kernels is not None}
    | {row.provider[1] for row in runtimes.listed() if row.provider is not None}
)
LINE = re.compile(r"(?P<operator>[\w.]+) (\*|\d+)(@\d+(-\d+)?)? (?P<span>[\d.]+(-[\d.]*)?) \S+")
LIMIT = re.compile(r"! [\w.]+(@\d+(-\d+)?)? [\d.]+(-[\d.]*)? \w+(=\w+)?(&\w+(=\w+)?)*")


def text(name: str) -> list[str]:
    """The lines of a table, comments apart."""
    file = resources.files("onnx_convert.target").joinpath("kernel_tables", f"{name}.txt")
    return [line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


def table(runtime: str) -> kernels.Table:
    """The kernels of a runtime that has a table."""
    found = kernels.of_runtime(runtimes.find(runtime))
    assert found is not None
    return found


def taken(runtime: str, operator: str, opset: int, formal: int = 0) -> set[str]:
    """The types that the kernels of an operator take for one of its inputs."""
    signature = implemented.signature_of(table(runtime), operator, opset, "")
    assert signature is not None
    return {kind.removeprefix("tensor(").removesuffix(")") for kind in signature.inputs[formal].types}


@pytest.mark.parametrize("name", NAMES)
def test_lines_are_well_formed(name: str) -> None:
    lines = text(name)
    releases = [line.split(" ")[1] for line in lines if line.startswith("= ")]
    assert all(re.fullmatch(r"= [\d.]+ (measured|documented) \S.+", line) for line in lines if line[0] == "=")
    numbers = [tuple(map(int, release.split("."))) for release in releases]
    assert numbers == sorted(set(numbers))
    for line in lines:
        if line[0] in "=&":
            continue
        pattern = LIMIT if line[0] == "!" else LINE
        assert pattern.fullmatch(line), line
        span = line.split(" ")[2]
        first, _, last = span.partition("-")
        assert first in releases
        assert last in ("", *releases)


@pytest.mark.parametrize("name", NAMES)
def test_lines_are_about_operators_that_exist(name: str) -> None:
    known = {f"{s.domain}.{s.name}".lstrip(".") for s in onnx.defs.get_all_schemas_with_history()}
    versions = {
        (f"{s.domain}.{s.name}".lstrip("."), str(s.since_version)) for s in onnx.defs.get_all_schemas_with_history()
    }
    newest = {"": opsets.latest(), "ai.onnx.ml": opsets.latest(opsets.AI_ONNX_ML)}
    for line in text(name):
        if line[0] in "=!&":
            continue
        operator, version = line.split(" ")[:2]
        domain, version = operator.rpartition(".")[0], version.partition("@")[0]
        if domain in newest and (version == "*" or int(version) <= newest[domain]):
            assert (operator in known) if version == "*" else ((operator, version) in versions), line


@pytest.mark.parametrize("runtime", [str(row).replace(" ", "@") for row in runtimes.listed() if row.name in NAMES])
def test_types_are_types_of_the_schema(runtime: str) -> None:
    """A type that is misspelled, or a variable that the operator does not have, would forbid or allow too much."""
    found = kernels.of_runtime(runtimes.find(runtime))
    if found is None:
        return
    for schema in onnx.defs.get_all_schemas():
        signature = signatures.signature_of(schema.name, schema.since_version, schema.domain)
        assert signature is not None
        formals = (*signature.inputs, *signature.outputs)
        names = {formal.variable: formal.types for formal in formals} | {
            formal.name: formal.types for formal in formals
        }
        for one in found.of(schema.domain, schema.name, schema.since_version) or ():
            assert all(kinds <= names[name] for name, kinds in one.items()), schema.name


def test_a_kernel_with_an_open_end_is_for_its_version_alone() -> None:
    assert [table("onnxruntime@1.15").has("", "Identity", opset) for opset in (16, 18, 19)] == [True, True, False]
    assert [table("onnxruntime@1.16").has("", "Identity", opset) for opset in (16, 18, 19)] == [True, True, True]


def test_types_that_a_function_body_or_casts_bring() -> None:
    """float16 goes between Casts, which 1.15 has no kernel for at opset 19; int64 through the body of Relu."""
    assert taken("onnxruntime@1.15", "Relu", 19) == {"double", "float", "int32", "int8"}
    assert taken("onnxruntime@1.16", "Relu", 19) == {"double", "float", "float16", "int32", "int8"}
    assert taken("onnxruntime@1.15", "LayerNormalization", 17) == {"double", "float", "float16"}
    assert taken("onnxruntime@1.15", "LayerNormalization", 18) == {"double", "float"}


def test_a_body_suits_one_opset_and_not_the_next() -> None:
    assert [table("onnxruntime@1.32").has("", "Swish", opset) for opset in (24, 25, 28)] == [True, False, False]


def test_what_an_onnxruntime_is_inside_of_has_its_kernels() -> None:
    inside = table("triton@23.06")
    assert (inside.runtime, inside.release) == ("triton 23.06", "1.15")
    assert not inside.has("", "Identity", 19)


def test_a_version_that_no_table_has() -> None:
    assert kernels.of_runtime(runtimes.find("onnxruntime@1.2")) is None
    assert kernels.of_runtime(runtimes.find("tensorrt@11")) is None
    assert kernels.of_runtime(runtimes.find("hailo-dfc")) is None


def test_domains() -> None:
    """Of a domain that nobody lists nothing is known, unless it is one of ONNX."""
    here = table("onnxruntime@1.20")
    assert here.of("com.acme", "Gate", 1) is None
    assert here.has("com.acme", "Gate", 1)
    assert here.has("com.microsoft", "FusedMatMul", 1)
    assert not here.has("com.microsoft", "Gate", 1)
    assert not here.has("ai.onnx.preview.training", "Adam", 1)
    assert here.has("ai.onnx.ml", "Binarizer", 1)


@pytest.mark.parametrize(
    ("runtime", "operator", "has"),
    [
        ("tensorrt@8.5", "LayerNormalization", False),
        ("tensorrt@8.6", "LayerNormalization", True),
        ("tensorrt@8.4", "GridSample", False),
        ("tensorrt@8.5", "GridSample", True),
        ("tensorrt@8.4", "Trilu", False),
        ("tensorrt@10.1", "Bernoulli", False),
        ("tensorrt@10.1", "Conv", True),
        ("tensorrt@7.1", "Dropout", True),
        ("tensorrt@10.3", "HannWindow", False),
        ("tensorrt@10.4", "HannWindow", True),
        ("tensorrt@10.4", "STFT", False),
        ("tensorrt@10.6", "STFT", True),
        ("tensorrt@10.15", "Bernoulli", False),
    ],
)
def test_what_tensorrt_says(runtime: str, operator: str, has: bool) -> None:
    assert table(runtime).has("", operator, 17) == has


def test_types_that_tensorrt_has() -> None:
    """Below 10.0 it takes int8 wherever it says so; from there on only to quantize, and uint8 as inputs and outputs."""
    number = {"double", "float", "float16", "int32", "int64"}
    assert taken("tensorrt@8.6", "Add", 17) == {*number, "int8", "uint8"}
    assert taken("tensorrt@10.6", "Add", 20) == {*number, "bfloat16"}
    assert {"uint8", "bool"} <= taken("tensorrt@10.6", "Cast", 20)
    assert taken("tensorrt@10.6", "DequantizeLinear", 21) == {"float8e4m3fn", "int32", "int4", "int8"}


@pytest.mark.parametrize(
    ("runtime", "setting", "fine"),
    [("8.5", "antialias", True), ("8.6", "antialias", False), ("8.5", "cubic", False), ("8.5", "linear", True)],
)
def test_how_tensorrt_does_not_resize(runtime: str, setting: str, fine: bool) -> None:
    settings = {"antialias": 1} if setting == "antialias" else {"mode": setting}
    node = onnx.helper.make_node("Resize", ["x", "", "s"], ["y"], **settings)
    assert (implemented.finding(table(f"tensorrt@{runtime}"), node, None, 17, lambda _: "") is None) == fine


@pytest.mark.parametrize(
    ("runtime", "operator", "opset", "has"),
    [
        ("opencv@4.6", "LayerNormalization", 17, False),
        ("opencv@4.8", "LayerNormalization", 17, True),
        ("opencv@4.12", "NonZero", 11, False),
        ("opencv@4.12", "If", 11, False),
        ("openvino@2026.4", "Det", 11, False),
        ("openvino@2026.4", "Conv", 11, True),
    ],
)
def test_what_importers_know(runtime: str, operator: str, opset: int, has: bool) -> None:
    assert table(runtime).has("", operator, opset) == has


def provider(runtime: str) -> kernels.Table:
    """The kernels of a runtime's provider that has a table."""
    found = kernels.of_provider(runtimes.find(runtime))
    assert found is not None
    return found


def test_what_cuda_has() -> None:
    assert [provider(f"onnxruntime-cuda@{v}").has("", "GridSample", 16) for v in ("1.17", "1.18")] == [False, True]
    assert kernels.of_provider(runtimes.find("onnxruntime-gpu@1.15")) is None
    assert kernels.of_provider(runtimes.find("onnxruntime@1.20")) is None
    assert not provider("onnxruntime-cuda@1.20").has("", "Unique", 11)
    assert table("onnxruntime-cuda@1.20").has("", "Unique", 11)  # on the CPU


def test_a_release_that_a_provider_has_no_list_of_takes_the_one_before() -> None:
    assert (
        provider("onnxruntime-directml@1.24").runtime == "onnxruntime-directml 1.24 on DirectML (by the list of 1.21)"
    )
    assert provider("onnxruntime-directml@1.21").runtime == "onnxruntime-directml 1.21 on DirectML"
    assert kernels.of_provider(runtimes.find("onnxruntime-directml@1.20")) is None


def test_types_go_together() -> None:
    """OneHot has kernels for certain triples, and no others of the same types."""
    signature = implemented.signature_of(table("onnxruntime@1.20"), "OneHot", 11, "")
    assert signature is not None
    node = onnx.helper.make_node("OneHot", ["i", "d", "v"], ["y"])
    found = {
        kinds: implemented.finding(
            table("onnxruntime@1.20"),
            node,
            signature,
            11,
            lambda name, kinds=kinds: {"i": kinds[0], "d": kinds[1], "v": kinds[2], "y": kinds[2]}[name],
        )
        for kinds in itertools.product(("tensor(int32)", "tensor(int64)"), ("tensor(int64)",), ("tensor(int64)",))
    }
    assert [finding is None for finding in found.values()] == [False, True]


@pytest.mark.parametrize(("layout", "fine"), [(0, True), (1, False)])
def test_attributes_with_which_an_operator_does_not_run(layout: int, fine: bool) -> None:
    node = onnx.helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=1, layout=layout)
    found = implemented.finding(table("onnxruntime@1.20"), node, None, 14, lambda _: "")
    assert (found is None) == fine
    assert found is None or found.reason == "onnxruntime 1.20 has no kernel for LSTM with layout=1"


def test_an_attribute_that_is_needed() -> None:
    here = table("onnxruntime@1.23")
    node = onnx.helper.make_node("RotaryEmbedding", ["x", "c", "s"], ["y"], rotary_embedding_dim=2)
    assert implemented.finding(here, node, None, 23, lambda _: "") is not None
    node.attribute.append(onnx.helper.make_attribute("num_heads", 2))
    assert implemented.finding(here, node, None, 23, lambda _: "") is None


def test_the_remedy_names_the_release_that_has_one() -> None:
    told = table("onnxruntime@1.15").remedy("", "ImageDecoder", 20)
    assert told == "--to 20 writes it without asking for kernels"
    assert table("tensorrt@8.5").remedy("", "LayerNormalization", 17) == (
        "tensorrt 8.6 has kernels for LayerNormalization; or --to 17 writes it without asking for kernels"
    )
