# SPDX-License-Identifier: Apache-2.0
"""Many models in one call: what is found, how each ends, what is left alone, who does the work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import deadly
import numpy as np
import onnx
import pytest
from many import SOFTMAX, Here, converted, opset
from onnx import numpy_helper
from texts import model

import onnx_convert
from onnx_convert import UsageError
from onnx_convert.batch.collection import find
from onnx_convert.batch.job import CRASHED, TIMED_OUT, Job, perform
from onnx_convert.batch.workers import Processes
from onnx_convert.storage import journal

JOIN = "(string[4] x) => (string[4] y) { y = StringConcat (x, x) }"  # there is none below 20


# ---- what is found


def test_models_of_a_folder_are_found_by_name_and_by_content(zoo: Path) -> None:
    assert [found.name for found in find([zoo])] == ["a.onnx", "sub/b c.onnx", "sub/deep/network"]


def test_names_begin_below_the_folder_that_all_share(zoo: Path) -> None:
    named = [zoo / "sub" / "b c.onnx", zoo / "a.onnx", zoo / "a.onnx"]
    assert [found.name for found in find(named)] == ["sub/b c.onnx", "a.onnx"]
    assert [found.name for found in find([zoo / "sub", zoo / "a.onnx"])] == [
        "sub/b c.onnx",
        "sub/deep/network",
        "a.onnx",
    ]
    assert [found.name for found in find([zoo / "sub" / ".." / "a.onnx"])] == ["a.onnx"]


def test_patterns_are_matched_where_no_shell_does(zoo: Path) -> None:
    assert [found.name for found in find([zoo / "**" / "*.onnx"])] == ["a.onnx", "sub/b c.onnx"]
    onnx.save(model(SOFTMAX, 12), zoo / "[x].onnx")
    assert [found.name for found in find([zoo / "[x].onnx"])] == ["[x].onnx"]


def test_results_inside_the_folder_are_no_models_of_it(zoo: Path) -> None:
    assert len(converted(zoo, zoo / "out")) == 3
    assert set(converted(zoo, zoo / "out").values()) == {"up to date"}


def test_a_folder_that_cannot_be_read_is_named(zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the refusal is made up."""
    scan = os.scandir

    def scandir(path: Any) -> Any:
        if Path(path).name == "sub":
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert converted(zoo, tmp_path / "out") == {"a.onnx": "converted", "sub": "failed"}


def test_a_file_that_is_not_there_is_a_model_that_fails(zoo: Path, tmp_path: Path) -> None:
    assert converted([zoo / "a.onnx", zoo / "none.onnx"], tmp_path / "out") == {
        "a.onnx": "converted",
        "none.onnx": "failed",
    }


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "need one of"),
        ({"output": "out", "check": True}, "need one of"),
        ({"output": "zoo/a.onnx"}, "this is a file"),
        ({"output": "zoo"}, "its result would take its place"),
        ({"output": "out", "to": 99}, "there is no opset 99"),
        ({"output": "out", "types": "any"}, "types is"),
        ({"output": "out", "workers": 0}, "do nothing"),
        ({"output": "out", "timeout": -1.0}, "no time limit"),
        ({"output": "out", "timeout": 1.0, "executor": Here()}, "the executor's affair"),
        ({"output": "out", "models": "zoo/*.none"}, "no file has such a name"),
        ({"output": "out", "models": "zoo/.git/.."}, ""),
        ({"output": "out", "models": []}, "no model was named"),
    ],
)
def test_what_makes_no_sense_for_any_model_is_said_at_once(
    zoo: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], said: str
) -> None:
    monkeypatch.chdir(zoo.parent)
    arguments = {"models": "zoo", "to": 13, **more}
    if not said:
        assert len(onnx_convert.convert_many(**arguments)) == 3
        return
    with pytest.raises(UsageError, match=said):
        onnx_convert.convert_many(**arguments)
    assert not Path("out").exists()


def test_a_folder_without_models(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no ONNX model in this folder"):
        onnx_convert.convert_many(tmp_path, to=13, check=True)


# ---- how each ends


def test_the_tree_is_kept_and_every_model_has_an_outcome(zoo: Path, tmp_path: Path) -> None:
    (zoo / "broken.onnx").write_bytes(b"\x08\x07\x3a\xff")
    onnx.save(model(JOIN, 20), zoo / "join.onnx")
    out = tmp_path / "out"
    with onnx_convert.convert_many(zoo, to=10, output=out, executor=Here()) as batch:
        assert len(batch) == 5
        outcomes = {outcome.name: outcome for outcome in batch}
    assert {name: outcome.status for name, outcome in outcomes.items()} == {
        "a.onnx": "converted", "broken.onnx": "failed", "sub/b c.onnx": "converted", "sub/deep/network": "converted",
        "join.onnx": "refused",
    }  # fmt: skip
    assert batch.exit_code == 4 and batch.counts["converted"] == 3 and not outcomes["broken.onnx"].ok
    assert outcomes["broken.onnx"].message.startswith("is no ONNX model")
    report = outcomes["join.onnx"].report
    assert report is not None and report["refusals"][0]["operator"] == "StringConcat" and report["nearest"] is None
    assert opset(out / "sub" / "b c.onnx") == opset(out / "sub" / "deep" / "network") == 10
    assert not (out / "join.onnx").exists() and not (out / "notes.txt").exists()
    assert json.loads(json.dumps(outcomes["a.onnx"].to_dict()))["report"]["opsets_after"] == {"ai.onnx": 10}


def test_a_model_that_is_there_already_is_copied(zoo: Path, tmp_path: Path) -> None:
    assert converted(zoo, tmp_path / "out")["sub/b c.onnx"] == "unchanged"
    assert (tmp_path / "out/sub/b c.onnx").read_bytes() == (zoo / "sub/b c.onnx").read_bytes()


def test_in_place_and_check_write_no_other_files(zoo: Path) -> None:
    before = {path: path.read_bytes() for path in zoo.rglob("*") if path.is_file()}
    with onnx_convert.convert_many(zoo, to=13, check=True, executor=Here()) as batch:
        assert {outcome.status for outcome in batch} == {"checked"}
    assert before == {path: path.read_bytes() for path in zoo.rglob("*") if path.is_file()}
    with onnx_convert.convert_many(zoo, to=13, in_place=True, executor=Here()) as batch:
        assert {outcome.name: outcome.status for outcome in batch}["sub/b c.onnx"] == "unchanged"
    assert opset(zoo / "a.onnx") == 13
    assert before.keys() == {path for path in zoo.rglob("*") if path.is_file()}


def test_a_file_that_is_no_model_is_replaced_only_by_force(zoo: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.onnx").write_text("a poem")
    assert converted(zoo / "a.onnx", out) == {"a.onnx": "failed"}
    assert (out / "a.onnx").read_text() == "a poem"
    assert converted(zoo / "a.onnx", out, force=True) == {"a.onnx": "converted"}


def test_data_that_models_share_are_copied_once(zoo: Path, tmp_path: Path) -> None:
    proto = model("(float[2, 100] x) => (float[2, 100] y) { y = MatMul (x, w) }", 12)
    proto.graph.initializer.append(numpy_helper.from_array(np.ones((100, 100), np.float32), "w"))
    (zoo / "llm").mkdir()
    onnx.save(proto, zoo / "llm" / "encoder.onnx", save_as_external_data=True, location="w.data")
    (zoo / "llm" / "decoder.onnx").write_bytes((zoo / "llm" / "encoder.onnx").read_bytes())
    out = tmp_path / "out"
    with onnx_convert.convert_many(zoo / "llm", to=13, output=out, workers=2) as batch:
        assert {outcome.status for outcome in batch} == {"converted"}, [outcome.message for outcome in batch]
    assert {path.name for path in out.iterdir()} == {"encoder.onnx", "decoder.onnx", "w.data", journal.NAME}
    assert set(converted(zoo / "llm", out).values()) == {"up to date"}
    data = bytearray((zoo / "llm" / "w.data").read_bytes())
    data[0] ^= 1
    (zoo / "llm" / "w.data").write_bytes(data)
    assert set(converted(zoo / "llm", out, overwrite_data=True).values()) == {"converted"}
    assert (out / "w.data").read_bytes() == data


# ---- who does the work


def job(path: Path, name: str = "a.onnx", **more: Any) -> Job:
    return Job(name, str(path), None, {"to": 13, **more})


def test_processes_that_die_or_hang_do_not_stop_the_rest(zoo: Path) -> None:
    """One worker, so that the one that died is replaced."""
    good = zoo / "a.onnx"
    bad = [job(good, "dies", to=deadly.Dies()), job(good, "hangs", to=deadly.Hangs())]
    jobs = [job(good), *bad, job(good)]
    outcomes = sorted(Processes(1, timeout=6.0).outcomes(jobs), key=lambda outcome: outcome.name)
    assert [(outcome.name, outcome.status, outcome.exit_code) for outcome in outcomes] == [
        ("a.onnx", "checked", 0), ("a.onnx", "checked", 0), ("dies", CRASHED, 4), ("hangs", TIMED_OUT, 4),
    ]  # fmt: skip
    assert outcomes[2].message.startswith("the process that converted it did not survive")
    assert outcomes[3].message == "not done after 6 s"


def test_whoever_is_stopped_in_the_middle_leaves_nothing_half_written(zoo: Path, tmp_path: Path) -> None:
    """The time is over while the weights are copied."""
    out = tmp_path / "out"
    out.mkdir()
    slow = Job("a.onnx", str(zoo / "a.onnx"), str(out / "a.onnx"), {"to": 13}, {"progress": deadly.slowly})
    (outcome,) = Processes(1, timeout=4.0).outcomes([slow])
    assert outcome.status == TIMED_OUT and not [*out.iterdir()]


def test_a_pool_that_breaks_is_made_anew(zoo: Path) -> None:
    """A process that dies between two models takes the pool along."""
    good = zoo / "a.onnx"
    jobs = [job(good), job(good, "x", to=deadly.Unpicklable()), job(good)]
    statuses = sorted(outcome.status for outcome in Processes(1).outcomes(jobs))
    assert statuses.count(CRASHED) >= 1 and statuses.count("checked") >= 1 and len(statuses) == 3


def test_an_executor_that_fails_is_no_end_of_the_batch(zoo: Path, tmp_path: Path) -> None:
    class Broken(Executor):
        def submit(self, fn: Any, /, *args: Any, **more: Any) -> Future[Any]:
            future: Future[Any] = Future()
            if args[0].name == "a.onnx":
                future.set_exception(RuntimeError("the node is gone"))
            else:
                future.set_result(fn(*args))
            return future

    with onnx_convert.convert_many(zoo, to=13, output=tmp_path / "out", executor=Broken()) as batch:
        outcomes = {outcome.name: outcome for outcome in batch}
    assert outcomes["a.onnx"].status == CRASHED and "the node is gone" in outcomes["a.onnx"].message
    assert batch.counts["crashed"] == 1 and batch.exit_code == 4


ZAP = """
import onnx, onnx_convert, sys

def register():
    @onnx_convert.downgrade("Zap", at=2, domain="com.zap")
    def weaken(node, op):
        return op.Relu(node.input(0))

{where}

if __name__ == "__main__":
    {here}
    stamp = 'ir_version: 8, opset_import: ["": 17, "com.zap": 2]'
    text = f"<{{stamp}}> g (float[2] x) => (float[2] y) {{{{ y = com.zap.Zap (x) }}}}"
    onnx.save(onnx.parser.parse_model(text), "zap.onnx")
    with onnx_convert.convert_many("zap.onnx", to={{"com.zap": 1}}, output="out", workers=1) as batch:
        for outcome in batch:
            print(outcome.status, outcome.message)
"""


@pytest.mark.parametrize(
    ("where", "here", "said"),
    [
        ("register()", "pass", "converted"),
        ("", "import own", "converted"),
        ("", "register()", "a worker does not have the adapter of Zap@2 from __main__: register it where __main__ is"),
    ],
)
def test_adapters_of_the_calling_process_are_those_of_its_workers(
    tmp_path: Path, where: str, here: str, said: str
) -> None:
    text = ZAP.format(where=where, here=here)
    (tmp_path / "script.py").write_text(text)
    (tmp_path / "own.py").write_text(ZAP.format(where="register()", here="pass"))
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert said in done.stdout, done.stderr


def test_a_time_limit_is_for_the_model_alone(zoo: Path) -> None:
    """What is heavy is imported before the clock runs."""
    (outcome,) = Processes(1).outcomes([job(zoo / "a.onnx", to=deadly.Imported())])
    assert outcome.status == "checked", outcome.message


def test_a_fault_of_our_own_is_told_as_one(zoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnx_convert.api.plan", lambda *_, **__: 1 / 0)
    outcome = perform(job(zoo / "a.onnx"))
    assert outcome.status == "failed" and outcome.exit_code == 70 and "this is a bug of onnx-convert" in outcome.message


def test_a_lack_of_memory_is_no_fault_of_our_own(zoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("onnx_convert.api.plan", fail)
    outcome = perform(job(zoo / "a.onnx"))
    assert (outcome.status, outcome.exit_code, outcome.message) == ("failed", 4, "the memory does not suffice")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
@pytest.mark.slow
def test_killed_at_any_moment_it_ends_in_the_same_result(tmp_path: Path) -> None:
    zoo = tmp_path / "zoo"
    zoo.mkdir()
    for number in range(40):
        onnx.save(model(SOFTMAX, 12), zoo / f"{number}.onnx")
    expected = tmp_path / "expected"
    converted(zoo, expected)
    command = [sys.executable, "-m", "onnx_convert", str(zoo), "--to", "13", "-q", "-o"]
    for round_ in range(12):
        out = tmp_path / f"out{round_}"
        with subprocess.Popen([*command, str(out)], start_new_session=True) as process:
            time.sleep(0.2 + round_ * 0.15)
            os.killpg(process.pid, signal.SIGKILL)
        subprocess.run([*command, str(out)], check=True)
        names = {path.name for path in out.iterdir() if not path.name.startswith(".")}
        assert names == {path.name for path in zoo.iterdir()}
        assert all((out / name).read_bytes() == (expected / name).read_bytes() for name in names)
