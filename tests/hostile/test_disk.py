# SPDX-License-Identifier: Apache-2.0
"""Whatever happens on the way, the input is untouched and the output whole or absent: full disks, signals at any
moment, links, two at once."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from texts import model

import onnx_convert

fcntl = pytest.importorskip("fcntl", reason="locks and signals of POSIX")
resource = pytest.importorskip("resource", reason="limits of POSIX")

SIZE = 4 << 20
COMMAND = [sys.executable, "-m", "onnx_convert", "m.onnx", "--to", "12", "-o", "out.onnx"]
OLD = model("(float[2] x) => (float[2] y) { y = Neg(x) }", 13).SerializeToString()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a model of some size, and a link count of one."""
    source = model("(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis=1>(x) }", 13)
    source.graph.initializer.append(helper.make_tensor("w", TensorProto.UINT8, [SIZE], bytes(SIZE), raw=True))
    (tmp_path / "m.onnx").write_bytes(source.SerializeToString())
    return tmp_path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def run(folder: Path, limit: Callable[[], None] | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(COMMAND, cwd=folder, capture_output=True, check=False, preexec_fn=limit)


def is_whole(path: Path) -> bool:
    """Whether a file is the converted model; raises if it is neither that nor what was there before."""
    if path.read_bytes() == OLD:
        return False
    onnx.checker.check_model(onnx.load(path))
    assert len(onnx.load(path).graph.initializer[0].raw_data) == SIZE
    return True


def no_large_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (SIZE // 2, SIZE // 2))


@pytest.mark.parametrize("there", [True, False], ids=["replaces", "new"])
def test_a_disk_that_is_full(folder: Path, *, there: bool) -> None:
    before = digest(folder / "m.onnx")
    if there:
        (folder / "out.onnx").write_bytes(OLD)
    done = run(folder, no_large_files)
    assert (done.returncode, done.stderr) == (4, b"error: out.onnx: cannot be written: File too large\n")
    assert listing(folder) == (["m.onnx", "out.onnx"] if there else ["m.onnx"])
    assert digest(folder / "m.onnx") == before
    assert not there or (folder / "out.onnx").read_bytes() == OLD


def test_a_small_file_system(folder: Path) -> None:
    """A real one, where a user may have a file system of their own."""
    script = (
        f"mount -t tmpfs -o size=1m none small && cd small && {' '.join(COMMAND[:3])} ../m.onnx --to 12 -o out.onnx; "
    )
    (folder / "small").mkdir()
    shell = ["unshare", "-rm", "sh", "-c", f"{script} code=$?; ls -A; exit $code"]
    try:
        subprocess.run(
            ["unshare", "-rm", "mount", "-t", "tmpfs", "none", folder / "small"], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("nobody but root may mount here")
    done = subprocess.run(shell, cwd=folder, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (4, b"")
    assert done.stderr == b"error: out.onnx: cannot be written: No space left on device\n"


@pytest.mark.parametrize("times", [5, pytest.param(200, marks=pytest.mark.slow)])
def test_killed_at_any_moment(folder: Path, times: int) -> None:
    luck = random.Random(times)
    out, before = folder / "out.onnx", digest(folder / "m.onnx")
    started = time.monotonic()
    assert run(folder).returncode == 0
    usual = time.monotonic() - started
    for _ in range(times):
        out.write_bytes(OLD)
        with subprocess.Popen(COMMAND, cwd=folder, stdout=subprocess.DEVNULL) as process:
            time.sleep(luck.uniform(0, usual * 1.1))
            process.kill()
        is_whole(out)
        assert digest(folder / "m.onnx") == before
    left = [path for path in folder.iterdir() if path.name not in ("m.onnx", "out.onnx")]
    assert all(path.name.startswith(".onnx-convert-") for path in left)
    for path in left:
        os.utime(path, (1, 1))
    assert run(folder).returncode == 0
    assert listing(folder) == ["m.onnx", "out.onnx"]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("times", [3, pytest.param(60, marks=pytest.mark.slow)])
def test_ended_at_any_moment(folder: Path, times: int, name: str) -> None:
    number = getattr(signal, name)
    luck = random.Random(f"{name} {times}")
    before = digest(folder / "m.onnx")
    started = time.monotonic()
    assert run(folder).returncode == 0
    usual = time.monotonic() - started
    for _ in range(times):
        (folder / "out.onnx").write_bytes(OLD)
        with subprocess.Popen(COMMAND, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            time.sleep(luck.uniform(0, usual * 1.1))
            process.send_signal(number)
            _, said = process.communicate()
        # The interpreter takes a while until it listens to us, and prints a traceback of its own before.
        assert process.returncode in (0, 128 + number, -number, 1), said
        is_whole(folder / "out.onnx")
        assert listing(folder) == ["m.onnx", "out.onnx"]
        assert digest(folder / "m.onnx") == before


INTERRUPTED = """
import os, signal, sys; MODULE = sys.argv[1]

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == MODULE:
            del sys.meta_path[0]
            os.kill(os.getpid(), signal.SIGINT)
            print("held back")

sys.meta_path.insert(0, Interrupting())
from onnx_convert.__main__ import run
sys.argv[:] = ["onnx-convert", "m.onnx", "--to", "12"]
run()
"""


@pytest.mark.parametrize("module", ["onnx_convert.cli.main", "click", "onnx_convert.cli.tables", "onnx", "numpy"])
def test_interrupted_while_it_starts(folder: Path, module: str) -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, module], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 130
    assert b"Traceback" not in done.stderr
    assert (b"held back" in done.stdout) == (module in ("onnx", "numpy")), "compiled code does not survive it"
    assert listing(folder) == ["m.onnx"]


def test_an_output_that_is_a_link(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The link is replaced, what it points to stays; so does another name of the same file."""
    outside = tmp_path_factory.mktemp("outside")
    for name in "link", "hard":
        (outside / name).write_bytes(OLD)
    (folder / "out.onnx").symlink_to(outside / "link")
    assert run(folder).returncode == 0
    assert is_whole(folder / "out.onnx") and not (folder / "out.onnx").is_symlink()
    (folder / "out.onnx").unlink()
    os.link(outside / "hard", folder / "out.onnx")
    assert run(folder).returncode == 0
    assert is_whole(folder / "out.onnx")
    assert (outside / "link").read_bytes() == (outside / "hard").read_bytes() == OLD


def test_a_folder_of_the_output_that_is_a_link(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (folder / "there").symlink_to(elsewhere)
    done = subprocess.run([*COMMAND[:-1], "there/out.onnx"], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0
    assert is_whole(elsewhere / "out.onnx") and listing(elsewhere) == ["out.onnx"]


def test_two_at_once_on_one_output(folder: Path) -> None:
    both = [subprocess.Popen(COMMAND, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(2)]
    said = [process.communicate()[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert is_whole(folder / "out.onnx")
    assert listing(folder) == ["m.onnx", "out.onnx"]


def test_a_temporary_file_in_use_is_not_swept(folder: Path) -> None:
    used, left = (folder / f".onnx-convert-{digit * 16}" for digit in "ab")
    for path in (used, left):
        path.write_bytes(b"")
        os.utime(path, (1, 1))
    with used.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with onnx_convert.convert(folder / "m.onnx", to=12) as conversion:
            conversion.save(folder / "out.onnx")
    assert used.exists() and not left.exists()
