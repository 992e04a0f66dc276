# SPDX-License-Identifier: Apache-2.0
"""Many models that are verified: where results go, how it is told, and what is done again."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner
from many import SOFTMAX, Here, converted, opset
from texts import model

import onnx_convert
from onnx_convert.batch.job import Outcome
from onnx_convert.cli import main
from onnx_convert.errors import UsageError
from onnx_convert.verification import evaluators, subjects


@pytest.fixture
def _spoilt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has results run whose Softmax is over another axis than was written."""
    whole = subjects.Subject._serialised

    def on_onnxruntime(self: subjects.Subject, more: list[str]) -> evaluators.OnnxRuntime:
        changed = onnx.ModelProto.FromString(whole(self))
        for node in changed.graph.node:
            if node.op_type == "Softmax" and changed.opset_import[0].version == 13:
                node.attribute[0].i = 0
        return evaluators.OnnxRuntime(changed.SerializeToString() + subjects._outputs(more))

    monkeypatch.setattr(subjects.Subject, "_on_onnxruntime", on_onnxruntime)


def outcomes(models: Path, **more: object) -> tuple[dict[str, Outcome], int]:
    with onnx_convert.convert_many(models, to=13, executor=Here(), verify=True, **more) as batch:  # type: ignore[arg-type]
        return {outcome.name: outcome for outcome in batch}, batch.exit_code


def test_results_that_compute_the_same(zoo: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found, code = outcomes(zoo, output=out)
    assert code == 0
    assert {name: outcome.status for name, outcome in found.items()} == {
        "a.onnx": "converted", "sub/b c.onnx": "unchanged", "sub/deep/network": "converted",
    }  # fmt: skip
    for outcome in found.values():
        assert outcome.report is not None and outcome.report["verified"]["identical"] is True
    assert {path.name for path in out.rglob("*") if path.is_file()} == {
        "a.onnx", "b c.onnx", "network", ".onnx-convert.jsonl",
    }  # fmt: skip


def test_what_was_not_verified_is_done_again(zoo: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    converted(zoo, out)
    assert set(converted(zoo, out, verify=True).values()) == {"converted", "unchanged"}
    assert set(converted(zoo, out, verify=True).values()) == {"up to date"}


@pytest.mark.usefixtures("_spoilt")
def test_a_result_that_differs_is_kept_aside_each_time(zoo: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found, code = outcomes(zoo / "a.onnx", output=out)
    outcome = found["a.onnx"]
    assert (code, outcome.exit_code, outcome.status, outcome.ok) == (3, 3, "mismatch", False)
    assert outcome.message.startswith("computes something else: output 'y', random 0: ")
    assert outcome.message.endswith(f"; the result is kept as {out / 'a.mismatch.onnx'}")
    assert outcome.report is not None and outcome.report["verified"]["verdict"] == "different"
    assert {path.name for path in out.iterdir()} == {"a.mismatch.onnx", "a.mismatch-report"}
    assert outcomes(zoo / "a.onnx", output=out)[0]["a.onnx"].status == "mismatch", "not up to date"


@pytest.mark.usefixtures("_spoilt")
def test_in_place_the_source_outlives_a_result_that_differs(zoo: Path) -> None:
    found, code = outcomes(zoo, in_place=True)
    assert code == 3
    assert {name: outcome.status for name, outcome in found.items()} == {
        "a.onnx": "mismatch", "sub/b c.onnx": "unchanged", "sub/deep/network": "mismatch",
    }  # fmt: skip
    assert opset(zoo / "a.onnx") == 12 and opset(zoo / "a.mismatch.onnx") == 13
    unchanged = found["sub/b c.onnx"].report
    assert unchanged is not None and "nothing was changed, so there is nothing to verify" in unchanged["notes"]


def test_what_runs_on_nothing_that_can_be_made_is_not_counted_as_verified(
    zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: evaluators.OnnxRuntime, feeds: object) -> None:
        raise evaluators.RunError("no such luck")

    monkeypatch.setattr(evaluators.OnnxRuntime, "run", fails)
    monkeypatch.setattr(subjects, "EVALUATORS", (evaluators.ONNXRUNTIME,))
    monkeypatch.setattr("onnx_convert.verification.run.EVALUATORS", (evaluators.ONNXRUNTIME,))
    found, code = outcomes(zoo / "a.onnx", output=tmp_path / "out")
    outcome = found["a.onnx"]
    assert (code, outcome.status) == (3, "unverified")
    assert outcome.message.startswith("not verified: ") and "no such luck" in outcome.message
    assert opset(tmp_path / "out" / "a.onnx") == 13, "it goes to its place, as one model does"


def test_weights_of_their_own_file(zoo: Path, tmp_path: Path) -> None:
    found, code = outcomes(zoo / "a.onnx", output=tmp_path / "out", external="save", size_threshold=0)
    assert code == 0 and found["a.onnx"].files_written[0] == str(tmp_path / "out" / "a.onnx")


def test_a_check_makes_nothing_to_verify(zoo: Path) -> None:
    with pytest.raises(UsageError, match="check makes no results"):
        onnx_convert.convert_many(zoo, to=13, check=True, verify=True)


def test_as_one_model_at_another_opset_than_its_stamp(tmp_path: Path) -> None:
    onnx.save(model(SOFTMAX, 12), tmp_path / "m.onnx")
    found, code = outcomes(tmp_path / "m.onnx", output=tmp_path / "out", source_opset=11)
    assert (code, found["m.onnx"].status) == (0, "converted")


KILLED = """
import os, sys
import onnx_convert.verification.run as run
run.verify = lambda *given: os._exit(9)
from click.testing import CliRunner
from onnx_convert.cli import main
main.main(sys.argv[1:])
"""


def test_what_is_left_of_a_killed_verification_goes_with_the_next(tmp_path: Path) -> None:
    onnx.save(model(SOFTMAX, 11), tmp_path / "a.onnx")
    line = [str(tmp_path / "a.onnx"), "--to", "13", "--verify"]
    done = subprocess.run([sys.executable, "-c", KILLED, *line], check=False, capture_output=True)
    assert done.returncode == 9
    (left,) = {path.name for path in tmp_path.iterdir()} - {"a.onnx"}
    assert left.startswith(".onnx-convert-"), "under no name that could be taken for a result"
    long_ago = time.time() - 600
    os.utime(tmp_path / left, (long_ago, long_ago))
    assert CliRunner().invoke(main.main, line).exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"a.onnx", "a.opset13.onnx"}
