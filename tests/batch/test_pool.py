# SPDX-License-Identifier: Apache-2.0
"""Worker processes: how they begin, which model they did not survive, what an interrupt leaves of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import deadly
import onnx
import pytest
from many import SOFTMAX
from texts import model

from onnx_convert.batch.job import Job
from onnx_convert.batch.workers import Processes

SCRIPT = """
import onnx_convert

def main():
    with onnx_convert.convert_many("zoo", to=13, output="out", workers=2) as batch:
        print("begun", flush=True)
        for outcome in batch:
            print(outcome.status)

"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "zoo").mkdir()
    for number in range(5):
        onnx.save(model(SOFTMAX, 12), tmp_path / "zoo" / f"{number}.onnx")
    return tmp_path


def job(name: str, to: object, folder: Path) -> Job:
    return Job(name, str(folder / "zoo" / "0.onnx"), None, {"to": to})


def test_the_model_that_was_not_survived_is_the_one_that_is_named(folder: Path) -> None:
    """Although the next ones were in the hands of the same worker."""
    kinds = [13, deadly.Dies(), 13, deadly.Unpicklable(), 13, 13, 13, 13]
    outcomes = {
        outcome.name: outcome
        for outcome in Processes(1).outcomes(job(str(place), to, folder) for place, to in enumerate(kinds))
    }
    crashed = {name: outcome.message for name, outcome in outcomes.items() if not outcome.ok}
    assert len(outcomes) == len(kinds)
    assert crashed == dict.fromkeys("13", "the process that converted it did not survive (exit code 11)")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_the_signal_is_named(folder: Path) -> None:
    (outcome,) = Processes(1).outcomes([job("a", deadly.Killed(), folder)])
    assert outcome.message == "the process that converted it did not survive (signal 9)"


def test_options_that_do_not_travel_are_said_of_each_model(folder: Path) -> None:
    (outcome,) = Processes(1).outcomes([job("a", lambda: 13, folder)])
    assert outcome.status == "crashed" and "pickle" in outcome.message


def test_processes_that_cannot_be_started_are_no_loop(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHOME", str(folder))
    (outcome,) = Processes(1).outcomes([job("a", 13, folder)])
    assert outcome.status == "crashed" and outcome.message.startswith("no process for it can be started (")


def test_a_script_that_does_not_ask_whether_it_is_the_main_one_is_told_so(folder: Path) -> None:
    (folder / "script.py").write_text(f"{SCRIPT}main()\n")
    done = subprocess.run([sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.count("Traceback") == 1
    assert done.stderr.endswith('import this script again: call it under if __name__ == "__main__":\n'), done.stderr


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="no groups of processes here")
@pytest.mark.parametrize("seconds", [0.0, 0.3, 1.0])
def test_an_interrupt_is_the_affair_of_the_caller_alone(folder: Path, seconds: float) -> None:
    """Also while its workers import; what is not done yet is not done."""
    guarded = f'{SCRIPT}if __name__ == "__main__":\n    main()\n'
    (folder / "script.py").write_text(guarded.replace("in batch:", "in batch:\n            import time; time.sleep(9)"))
    with subprocess.Popen(
        [sys.executable, "script.py"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert said.count("Traceback") == 1 and said.endswith("KeyboardInterrupt\n"), said
    assert not [*(folder / "out").glob(".onnx-convert-*")]
