# SPDX-License-Identifier: Apache-2.0
"""Foreign operators, ai.onnx.ml and inputs of IR version 3: who is said to load what, and what stays where it is."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnxruntime
import pytest
from click.testing import CliRunner
from onnx import ModelProto, TensorProto, helper
from texts import assert_same_numbers, model, opset_imports

import onnx_convert
from onnx_convert import RefusedError, UsageError
from onnx_convert.cli.main import main
from onnx_convert.rewrite import registry

RELU = "(float[2] x) => (float[2] y) { y = Relu (x) }"
GATE = "(float[2] x) => (float[2] y) { a = com.acme.Gate (x)  b = com.acme.Gate (a)  y = Relu (b) }"
FUSED = "(float[2, 2] x) => (float[2, 2] y) { y = com.microsoft.FusedMatMul (x, x) }"


def run(*line: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, line)
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# ---- who loads it


def loading(source: ModelProto) -> set[str]:
    return {row.name for row in onnx_convert.inspect(source).runtimes}


def test_operators_of_microsoft_are_loaded_by_what_has_an_onnxruntime_inside() -> None:
    names = loading(model(FUSED, 17, com_microsoft=1))
    assert {"onnxruntime", "triton", "onnxruntime-web", "windows-app-sdk", "vespa", "openvino"} <= names
    assert not {"tensorrt", "onnx", "rknn-toolkit2", "cann"} & names


def test_operators_of_ones_own_are_loaded_by_nobody_who_was_not_taught() -> None:
    source = model(GATE, 17, com_acme=1)
    assert loading(source) == set()
    onnx.save(source, "m.onnx")
    lines = run("m.onnx")[1].splitlines()
    at = next(index for index, line in enumerate(lines) if line.startswith("loaded by"))
    assert lines[at] == "loaded by   none of the listed runtimes as it is"
    assert lines[at + 1].strip().startswith("once it is taught 2 nodes of com.acme (Gate): onnx 1.12 to ")
    assert ", onnxruntime 1.12 to " in lines[at + 1]
    assert onnx_convert.inspect(source).to_dict()["foreign"] == {"com.acme": {"Gate": 2}}


def test_what_is_no_operator_is_loaded_by_nobody() -> None:
    source = model("(float[2] x) => (float[2] y) { y = Relu (x) }", 14)
    source.graph.node[0].op_type = "LayerNormalization"
    told = onnx_convert.inspect(source)
    assert (told.runtimes, told.taught, told.unknown) == ([], [], ["LayerNormalization"])
    onnx.save(source, "m.onnx")
    assert "loaded by   none: LayerNormalization is no operator at the model's opset\n" in run("m.onnx")[1]


def test_functions_of_the_model_need_no_teaching() -> None:
    function = '<domain: "com.acme", opset_import: ["" : 17]> Gate (a) => (b) { b = Sigmoid (a) }'
    told = onnx_convert.inspect(model(GATE, 17, function, com_acme=1))
    assert "onnxruntime" in {row.name for row in told.runtimes}
    assert not told.taught and not told.foreign


@pytest.mark.parametrize(
    ("source", "runtime", "warning"),
    [
        (model(GATE, 17, com_acme=1), "tensorrt@8.6", "tensorrt 8.6 has to be taught 2 nodes of com.acme (Gate)"),
        (
            model(FUSED, 17, com_microsoft=1),
            "tensorrt@8.6",
            "taught 1 node of com.microsoft (FusedMatMul): it does not",
        ),
        (model(FUSED, 17, com_microsoft=1), "onnxruntime@1.14", None),
        (model(FUSED, 17, com_microsoft=1), "triton@22.12", None),
        (model(RELU, 17, com_acme=1), "tensorrt@8.6", None),
    ],
)
def test_a_runtime_is_warned_of(source: ModelProto, runtime: str, warning: str | None) -> None:
    warnings = onnx_convert.plan(source, runtime=runtime).warnings
    assert warning is None or warning in warnings[0]
    assert len(warnings) == (warning is not None)


# ---- imports that no node uses


@pytest.mark.parametrize(
    ("runtime", "version"), [("onnxruntime@1.15", 19), ("triton@23.12", 19), ("onnxruntime@1.18", 20)]
)
def test_an_unused_import_that_the_runtime_refuses_is_lowered(runtime: str, version: int) -> None:
    source = model(RELU, 17, com_ms_internal_nhwc=20, com_microsoft=1)
    assert ("onnxruntime", "1.15") not in {(row.name, row.version) for row in onnx_convert.inspect(source).runtimes}
    conversion = onnx_convert.convert(source, runtime=runtime)
    assert opset_imports(conversion.model) == {"": 17, "com.ms.internal.nhwc": version, "com.microsoft": 1}
    said = [note for note in conversion.report.notes if "com.ms.internal.nhwc" in note]
    name = runtime.replace("@", " ")
    why = f"the import of com.ms.internal.nhwc goes from 20 to {version}: {name} refuses more, no node uses it"
    assert said == ([why] if version < 20 else [])


def test_the_installed_onnxruntime_refuses_what_is_lowered_for_it() -> None:
    source = model(RELU, 13, com_ms_internal_nhwc=60)

    def session(proto: ModelProto) -> None:
        onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])

    with pytest.raises(Exception, match="nhwc"):
        session(source)
    session(onnx_convert.convert(source, runtime="onnxruntime").model)


# ---- versions that nobody registered


def test_a_version_that_nobody_registered_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_decisions", dict(registry.decisions()))
    registry.compatible("Gate", at=2, domain="org.words")
    text = "(float[2] x) => (float[2] y) { y = org.words.Gate (x) }"
    assert (
        opset_imports(onnx_convert.convert(model(text, 17, org_words=1), to={"org.words": 2}).model)["org.words"] == 2
    )
    says = "nothing is registered for org.words 7: what is known of org.words ends at 2"
    for source, to in ((model(text, 17, org_words=1), 7), (model(text, 17, org_words=7), 1)):
        with pytest.raises(UsageError) as caught:
            onnx_convert.convert(source, to={"org.words": to})
        assert str(caught.value) == says
    with pytest.raises(UsageError, match=r"no adapter is registered for domain 'org.nobody'"):
        onnx_convert.convert(model(RELU, 17, org_nobody=1), to={"org.nobody": 2})


# ---- ai.onnx.ml


def test_ai_onnx_ml_stays_on_the_way_up_unless_it_is_asked_for() -> None:
    graph = "(float[2] x) => (float[2] y) { y = ai.onnx.ml.Binarizer <threshold = 0.5> (x) }"
    source = model(graph, 15, ai_onnx_ml=1)
    assert opset_imports(onnx_convert.convert(source, to=21).model) == {"": 21, "ai.onnx.ml": 1}
    both = {"ai.onnx": 21, "ai.onnx.ml": 3}
    assert opset_imports(onnx_convert.convert(source, to=both).model) == {"": 21, "ai.onnx.ml": 3}
    assert opset_imports(onnx_convert.convert(model(graph, 21, ai_onnx_ml=5), to=19).model) == {"": 19, "ai.onnx.ml": 3}


def test_the_help_and_its_page_say_so() -> None:
    assert "ai.onnx.ml goes down with ai.onnx, and up only by a --to of its own." in run("--help")[1]
    page = (Path(__file__).parents[2] / "converter" / "cli" / "README.md").read_text(encoding="utf-8")
    assert "ai.onnx.ml goes down with ai.onnx, and up only by a `--to` of its own" in page


def trees() -> ModelProto:
    """A TreeEnsemble of double leaves, which older operators of ai.onnx.ml cannot hold."""
    double = TensorProto.DOUBLE
    node = helper.make_node(
        "TreeEnsemble",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        n_targets=1,
        tree_roots=[0],
        nodes_featureids=[0],
        nodes_modes=helper.make_tensor("modes", TensorProto.UINT8, [1], [0]),
        nodes_splits=helper.make_tensor("splits", double, [1], [0.5]),
        nodes_truenodeids=[0],
        nodes_trueleafs=[1],
        nodes_falsenodeids=[1],
        nodes_falseleafs=[1],
        leaf_targetids=[0, 0],
        leaf_weights=helper.make_tensor("weights", double, [2], [1.0, 2.0]),
    )
    value = helper.make_tensor_value_info
    graph = helper.make_graph([node], "g", [value("x", double, [3, 1])], [value("y", double, [3, 1])])
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 5)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def test_going_down_a_refusal_names_the_version_that_keeps_it() -> None:
    source = trees()
    with pytest.raises(RefusedError) as caught:
        onnx_convert.convert(source, to=19)
    (refusal,) = caught.value.refusals
    assert refusal.remedy.endswith("--to ai.onnx.ml:5 keeps ai.onnx.ml where it is")
    kept = onnx_convert.convert(source, to={"ai.onnx": 19, "ai.onnx.ml": 5})
    assert opset_imports(kept.model) == {"": 19, "ai.onnx.ml": 5}
    onnx.save(source, "t.onnx")
    code, _, errors = run("t.onnx", "--to", "19")
    assert code == 1
    assert "No opset on the way is within reach" not in errors
    assert errors.splitlines()[-1] == "Within reach: --to 19 --to ai.onnx.ml:5"
    assert run("t.onnx", "--to", "19", "--to", "ai.onnx.ml:5")[0] == 0


# ---- IR version 3


WEIGHTED = "(float[2, 3] x, float[3] w) => (float[2, 3] y) <float[3] w = {1.0, 2.0, 3.0}> { y = Mul (x, w) }"


def test_initializers_leave_the_inputs_of_ir_version_3() -> None:
    source = model(WEIGHTED, 8, ir=3)
    conversion = onnx_convert.convert(source, to=13)
    assert [value.name for value in conversion.model.graph.input] == ["x"]
    said = (
        "1 initializer is no longer an input: IR version 3 made them inputs, and runtimes do not fold what is one "
        "(--keep-initializer-inputs leaves them)"
    )
    assert conversion.report.notes == [said]
    assert_same_numbers(source, conversion.model)


def test_an_option_keeps_them() -> None:
    source = model(WEIGHTED, 8, ir=3)
    onnx.save(source, "m.onnx")
    code, text, _ = run("m.onnx", "--to", "13", "--keep-initializer-inputs")
    assert code == 0 and "inputs" not in text
    assert [value.name for value in onnx.load("m.opset13.onnx").graph.input] == ["x", "w"]
    code, text, _ = run("m.onnx", "--to", "13")
    assert "inputs removed  w" in text and "--keep-initializer-inputs" in text


@pytest.mark.parametrize(("opset", "ir", "to"), [(13, 7, 17), (8, 3, 7), (13, 7, 8)])
def test_elsewhere_inputs_stay(opset: int, ir: int, to: int) -> None:
    converted = onnx_convert.convert(model(WEIGHTED, opset, ir=ir), to=to).model
    assert [value.name for value in converted.graph.input] == ["x", "w"]


def test_the_ir_version_alone_does_it_too() -> None:
    converted = onnx_convert.convert(model(WEIGHTED, 8, ir=3), ir_version=4).model
    assert [value.name for value in converted.graph.input] == ["x"]


def test_large_ones_leave_as_well(tmp_path: Path) -> None:
    source = model("(float[2, 512] x, float[512] w) => (float[2, 512] y) { y = Mul (x, w) }", 8, ir=3)
    source.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[512], raw_data=bytes(2048))
    onnx.save(source, "big.onnx")
    with onnx_convert.convert("big.onnx", to=21) as conversion:
        conversion.save("out.onnx")
    converted = onnx.load("out.onnx")
    onnx.checker.check_model(converted, full_check=True)
    assert [value.name for value in converted.graph.input] == ["x"]
    assert converted.graph.initializer[0].raw_data == bytes(2048)
