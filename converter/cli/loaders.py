# SPDX-License-Identifier: Apache-2.0
"""Tells which runtimes load a model as it is, which of its nodes they have no kernel for, and what runs on the CPU."""

from __future__ import annotations

from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from onnx_convert.report import nodes_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from onnx_convert.reference.model_summary import Description
    from onnx_convert.target.runtimes import Runtime

_FEW: Final = 3


def _runtimes(
    rows: Iterable[Runtime],
    kernels: Mapping[str, Sequence[str]] = MappingProxyType({}),
    on_cpu: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Iterator[str]:
    """Yields one line for each runtime: its versions from the first to the last, and whether that is uncertain; one for
    each run of versions that have no kernels for the same nodes."""
    groups = groupby(rows, key=lambda row: (row.name, kernels.get(str(row)), on_cpu.get(str(row))))
    for (name, lacking, left), group in groups:
        members = [*group]
        first, last = members[0].version, members[-1].version
        versions = first if first == last else f"{first} to {last}"
        line = f"{name} {versions}".rstrip() + (f" ({members[-1].certainty})" if members[-1].doubt else "")
        if lacking:
            line += f", without a kernel for {_listed(lacking)}"
        elif lacking == [] and (left is None or members[0].provider is None):
            line += ", with a kernel for each node"
        if left is not None and members[0].provider is not None:
            provider = members[0].provider[0]
            line += f", with a {provider} kernel for each node" if not left else f", on the CPU for {_listed(left)}"
        yield line


def _listed(reasons: Sequence[str]) -> str:
    """Returns what has no kernel, little of it."""
    return "; ".join(reasons[:_FEW]) + (f" and {len(reasons) - _FEW} more" if len(reasons) > _FEW else "")


def loaded_by(told: Description) -> Iterator[str]:
    """Yields the runtimes that load the model as it is, one in a line, and those that do once they are taught what they
    lack, in a line for each kind of lack."""
    if told.unknown:
        names = ", ".join(told.unknown)
        yield f"none: {names} {'is no operator' if len(told.unknown) == 1 else 'are no operators'} at the model's opset"
        return
    lines = [*_runtimes(told.runtimes, told.kernels, told.on_cpu)]
    yield from lines or ["none of the listed runtimes as it is"]
    groups: dict[tuple[str, ...], list[Runtime]] = {}
    for row in told.taught:
        groups.setdefault(tuple(row.lacks(told.foreign)), []).append(row)
    for domains, rows in groups.items():
        yield f"once it is taught {nodes_text(told.foreign, domains)}: {', '.join(_runtimes(rows))}"
