# SPDX-License-Identifier: Apache-2.0
"""The option `--thorough`, the tests that the rows of tables become, and how tests are spread over processes."""

from __future__ import annotations

import signal
from typing import Any

import pytest

pytest.register_assert_rewrite("boundaries.runner", "oracle")

for number in (signal.SIGINT, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])):
    if signal.getsignal(number) == signal.SIG_IGN:  # as a shell leaves it to what runs in the background, and nohup
        signal.signal(number, signal.SIG_DFL)  # what tests start would inherit it


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--thorough",
        action="store_true",
        help="run each row of a table in every variant that applies to it, not only as it stands and in one more; "
        "and the tests that are marked as thorough",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Makes a test of each row and variant for a test that `boundaries.each_of` made."""
    mark = metafunc.definition.get_closest_marker("rows")
    if mark is not None:
        from boundaries.runner import parameters  # after the rewriting of its assertions is asked for

        every = metafunc.config.getoption("--thorough")
        metafunc.parametrize(("row", "variant"), list(parameters(*mark.args, every_variant=every)))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is marked as thorough, unless it is asked for."""
    if not config.getoption("--thorough"):
        left_out = [item for item in items if item.get_closest_marker("thorough")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A process that is done takes tests over from one that waits for a long one."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.fixture
def undecided(monkeypatch: pytest.MonkeyPatch):
    """Softmax has no decision at 13, upwards."""
    from onnx_convert.rewrite import registry
    from onnx_convert.spec.opsets import UP

    assert registry.decision("Softmax", 13, UP) is not None  # asked for, so that the family is there
    monkeypatch.delitem(registry._decisions, ("", "Softmax", 13, UP))
    registry.first_crossing.cache_clear()
    yield
    monkeypatch.undo()
    registry.first_crossing.cache_clear()


@pytest.fixture(autouse=True)
def no_adapter_left_behind():
    """What a test registers is not asked for in the workers of later tests, which do not have it."""
    from onnx_convert.rewrite import registry

    before = registry.guests()
    yield
    for key in registry.guests().keys() - before.keys():
        registry._modules.pop(key, None)
