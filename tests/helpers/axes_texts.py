# SPDX-License-Identifier: Apache-2.0
"""Graphs of one operator over axes: in an attribute, in a constant input, in a graph input."""

from __future__ import annotations


def attribute(operator: str, x: str, y: str, axes: str | None = None, more: str = "") -> str:
    """Returns a graph with the axes in an attribute; x and y are the sizes of input and output."""
    attributes = ",".join(filter(None, [f"axes=[{axes}]" if axes is not None else "", more]))
    written = f"<{attributes}>" if attributes else ""
    return f"(float[{x}] x) => (float{_sizes(y)} y) {{ y = {operator}{written}(x) }}"


def constant(operator: str, x: str, y: str, axes: str, more: str = "") -> str:
    """Returns a graph with the axes in a constant input."""
    count, written = len(axes.split(",")) if axes else 0, f"<{more}>" if more else ""
    head = f"(float[{x}] x) => (float{_sizes(y)} y)"
    return f"{head} <int64[{count}] i = {{{axes}}}> {{ y = {operator}{written}(x, i) }}"


def run_time(operator: str, x: str, y: str, count: int | str, more: str = "") -> str:
    """Returns a graph with the axes in a graph input."""
    written = f"<{more}>" if more else ""
    return f"(float[{x}] x, int64[{count}] i) => (float{_sizes(y)} y) {{ y = {operator}{written}(x, i) }}"


def _sizes(sizes: str) -> str:
    return f"[{sizes}]" if sizes else ""
