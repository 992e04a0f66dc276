# SPDX-License-Identifier: Apache-2.0
"""Completes the values that a shell is typing an option for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click


def runtimes(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Returns the runtimes that begin like this; their versions, newest first, once an @ is typed."""
    from onnx_convert.target.runtimes import listed

    rows = listed()
    if "@" in begun:
        return [name for row in reversed(rows) if (name := f"{row.name}@{row.version}").startswith(begun)]
    return [name for name in dict.fromkeys(row.name for row in rows) if name.startswith(begun)]
