# SPDX-License-Identifier: Apache-2.0
"""Worker processes: how they begin, which model they did not survive, what an interrupt leaves of them."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing import resource_tracker
from pathlib import Path

import deadly
import onnx
import pytest
from many import SOFTMAX
from texts import model

from onnx_convert.batch import pool, processes
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


def eventually(fact: Callable[[], bool]) -> None:
    """Waits until a fact is so; fails if it does not become so."""
    for _ in range(300):
        if fact():
            return
        time.sleep(0.1)
    raise AssertionError("it did not come to that")


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
    assert outcome.status == "crashed" and outcome.message.startswith("its options cannot be handed to a process (")


def test_processes_that_cannot_be_started_are_no_loop(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "context", lambda: multiprocessing.get_context("spawn"))  # whatever is warm already
    resource_tracker.ensure_running()  # which is a process as well
    monkeypatch.setenv("PYTHONHOME", str(folder))
    (outcome,) = Processes(1).outcomes([job("a", 13, folder)])
    assert outcome.status == "crashed" and outcome.message.startswith("no process for it can be started (")


def test_a_hang_is_ended_in_time_while_the_caller_is_busy(folder: Path) -> None:
    """And those behind it are done: when the caller comes back, all has ended."""
    jobs = [job("first", 13, folder), job("hangs", deadly.Hangs(), folder), job("last", 13, folder)]
    outcomes = Processes(1, timeout=0.5).outcomes(jobs)
    assert next(outcomes).name == "first"
    eventually(lambda: not multiprocessing.active_children())
    assert [(outcome.name, outcome.status) for outcome in outcomes] == [("hangs", "timed out"), ("last", "checked")]


def test_what_hears_no_signal_is_killed_and_holds_nobody_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_PATIENCE", 600.0)
    jobs = [job("deaf", deadly.Deaf(), folder), *(job(str(number), 13, folder) for number in range(4))]
    all_of_them = pool.Pool(jobs, 1, 0.5)
    with contextlib.closing(all_of_them.outcomes()) as outcomes:
        assert next(outcomes).status == "timed out"
        last = [next(outcomes) for _ in range(4)]
        assert {outcome.status for outcome in last} == {"checked"}
        deaf = all_of_them._leaving[0]
        assert deaf.process.is_alive(), "the others had to wait until it was killed"
        deaf.until = 0.0
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("leave", ["closes", "forgets", "breaks"])
def test_whoever_leaves_early_leaves_no_processes(folder: Path, leave: str) -> None:
    outcomes = Processes(2).outcomes(job(str(number), 13, folder) for number in range(50))
    if leave == "breaks":
        for outcome in outcomes:
            assert outcome.ok
            break
    else:
        assert next(outcomes).ok
    if leave == "closes":
        outcomes.close()
    else:
        del outcomes
        gc.collect()
    assert not multiprocessing.active_children()
    assert not [thread for thread in threading.enumerate() if thread.name == "onnx-convert"]


def test_whoever_comes_late_finds_few_outcomes(folder: Path) -> None:
    """Reports are large: workers do not run far ahead of a caller who is slow."""
    all_of_them = pool.Pool((job(str(number), 13, folder) for number in range(60)), 1, None)
    outcomes = all_of_them.outcomes()
    next(outcomes)
    eventually(lambda: all_of_them._is_full)
    assert len(all_of_them._waiting) > 40
    assert len([*outcomes]) == 59


def test_a_program_that_ends_in_the_middle_ends(folder: Path) -> None:
    """Although it keeps the batch, and one of its workers hears no signal."""
    (folder / "script.py").write_text(
        f"import sys\nsys.path.insert(0, {str(Path(deadly.__file__).parent)!r})\nimport deadly\n"
        "from onnx_convert.batch.job import Job\nfrom onnx_convert.batch.workers import Processes\n"
        'if __name__ == "__main__":\n'
        '    jobs = [Job(str(n), "zoo/0.onnx", None, {"to": to}) for n, to in enumerate([13, deadly.Deaf(), 13])]\n'
        "    kept = Processes(2).outcomes(jobs)\n"
        "    print(next(kept).status)\n"
    )
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "checked\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="what holds the interpreter is ended by Linux alone")
@pytest.mark.parametrize("warm", [False, True])
def test_no_worker_outlives_a_parent_that_is_killed(folder: Path, warm: bool) -> None:
    """Although it is in native code that lets no other thread run; begun anew, or by the server."""
    (folder / "script.py").write_text(
        f"import sys\nsys.path.insert(0, {str(Path(deadly.__file__).parent)!r})\nimport deadly\n"
        "from onnx_convert.batch import processes\n"
        "from onnx_convert.batch.job import Job\nfrom onnx_convert.batch.workers import Processes\n"
        'if __name__ == "__main__":\n'
        f"    {'processes.warm_up()' if warm else 'pass'}\n"
        '    [*Processes(1).outcomes([Job("a", "zoo/0.onnx", None, {"to": deadly.Holds("begun")})])]\n'
    )
    begun = folder / "begun"
    with subprocess.Popen([sys.executable, "script.py"], cwd=folder, start_new_session=True) as process:
        try:
            eventually(lambda: begun.exists() and begun.read_text() != "")
        finally:
            process.kill()
    worker = int(begun.read_text())
    try:
        eventually(lambda: has_ended(worker))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)


def has_ended(number: int) -> bool:
    """Returns whether a process is gone, or waits for nothing but its burial."""
    try:
        status = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return True
    return status.rpartition(")")[2].split()[0] in "ZX"


def test_a_worker_ends_with_its_parent_where_the_system_does_not_see_to_it(folder: Path) -> None:
    (folder / "script.py").write_text(
        "import multiprocessing, os, signal, sys, time\n"
        "from onnx_convert.batch import processes\n"
        "def work(pipe):\n"
        '    sys.platform = "other"\n'
        "    processes.end_with_parent()\n"
        "    pipe.send(os.getpid())\n"
        "    time.sleep(600)\n"
        'if __name__ == "__main__":\n'
        '    context = multiprocessing.get_context("spawn")\n'
        "    mine, theirs = context.Pipe()\n"
        "    context.Process(target=work, args=(theirs,)).start()\n"
        "    print(mine.recv(), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    command = [sys.executable, "script.py"]
    # what the worker inherits stays open until it has ended too, and so long this waits
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.strip().isdigit(), done.stderr


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
