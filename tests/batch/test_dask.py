# SPDX-License-Identifier: Apache-2.0
"""Many models on a cluster: two workers on this machine, one of which dies in the middle."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner
from texts import model

from onnx_convert.cli.main import main

SOFTMAX = "(float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax <axis = 1> (x) }"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what distributed warns of, such as ports that are taken, is its own affair
def test_a_worker_that_dies_costs_no_model(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    zoo = tmp_path / "zoo"
    zoo.mkdir()
    for number in range(60):
        onnx.save(model(SOFTMAX, 12), zoo / f"{number}.onnx")
    (zoo / "broken.onnx").write_bytes(b"\x08\x07\x3a\xff")
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        client.submit(os.kill, next(iter(client.run(os.getpid).values())), signal.SIGKILL, pure=False, retries=0)
        line = [str(zoo), "--to", "13", "-o", str(tmp_path / "out"), "--dask", cluster.scheduler_address]
        first = CliRunner().invoke(main, line)
        again = CliRunner().invoke(main, line)
    assert "61 models: 60 converted, 1 failed" in first.output and first.exit_code == 4, first.output
    assert "61 models: 60 up to date, 1 failed" in again.output
    assert len([*(tmp_path / "out").glob("*.onnx")]) == 60


def test_nobody_at_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="needs the extra dask")
    monkeypatch.setattr("onnx_convert.batch.workers._PATIENCE", 0.2)
    onnx.save(model(SOFTMAX, 12), tmp_path / "a.onnx")
    line = [str(tmp_path), "--to", "13", "-o", str(tmp_path / "out"), "--dask", "tcp://127.0.0.1:9"]
    result = CliRunner().invoke(main, line)
    assert result.exit_code == 2 and "no Dask scheduler answers at tcp://127.0.0.1:9" in result.output
