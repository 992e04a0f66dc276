# SPDX-License-Identifier: Apache-2.0
"""The option `--all-variants`, and the tests that the rows of tables become."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("boundaries.runner", "oracle")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all-variants",
        action="store_true",
        help="run each row of a table in every variant that applies to it, not only as it stands and in one more",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Makes a test of each row and variant for a test that `boundaries.each_of` made."""
    mark = metafunc.definition.get_closest_marker("rows")
    if mark is not None:
        from boundaries.runner import parameters  # after the rewriting of its assertions is asked for

        every = metafunc.config.getoption("--all-variants")
        metafunc.parametrize(("row", "variant"), list(parameters(*mark.args, every_variant=every)))
