# SPDX-License-Identifier: Apache-2.0
"""Makes lines of a table from a list of kernels that a runtime gives, without asking it about models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import onnx.defs
from onnx.defs import OpSchema

from kernels.probes import variables
from kernels.table import Box, Kernel, Line, text_of_boxes
from onnx_convert.spec import opsets


def lines(kernels: Sequence[Kernel], others: Sequence[Kernel], opset: int, ml: int) -> Iterator[Line]:
    """Yields the lines of one release, for its `kernels` of a provider. An operator with a function body counts as
    implemented where neither this provider nor the `others` have a kernel for it: the body takes its place."""
    own, theirs = _by_operator(kernels), _by_operator(others)
    for schema in sorted(onnx.defs.get_all_schemas_with_history(), key=lambda s: (s.domain, s.name, s.since_version)):
        if schema.domain not in ("", "ai.onnx.ml") or schema.deprecated:
            continue
        if schema.since_version > (ml if schema.domain else opset):
            continue
        place = schema.domain, schema.name, schema.since_version
        mine = [kernel for kernel in own[place[:2]] if kernel.is_for(schema.since_version)]
        if schema.name == "Constant":
            yield Line(*place, 0, 0, "*")
        elif mine:
            if taken := boxes(schema, mine):
                yield Line(*place, 0, 0, text_of_boxes(variables(schema), taken))
        elif (schema.has_function or schema.has_context_dependent_function) and not any(
            kernel.is_for(schema.since_version) for kernel in theirs[place[:2]]
        ):
            yield Line(*place, 0, 0, "?")
    foreign = {(k.domain, k.operator, k.first) for k in kernels if not opsets.is_known(k.domain)}
    yield from (Line(domain, operator, first, 0, 0, "?") for domain, operator, first in sorted(foreign))


def boxes(schema: OpSchema, kernels: Sequence[Kernel]) -> list[Box]:
    """Returns the types that kernels of an operator take, those that differ in one variable put together."""
    types = variables(schema)
    found = list(dict.fromkeys(_box(schema, types, kernel) for kernel in kernels))
    merged = True
    while merged:
        merged = False
        for one in found:
            other = next((box for box in found if box != one and _differ(one, box) == 1), None)
            if other is not None:
                found = [box for box in found if box not in (one, other)]
                found.append(tuple(a | b for a, b in zip(one, other, strict=True)))
                merged = True
                break
    return [box for box in found if all(box)]


def _box(schema: OpSchema, types: Mapping[str, Sequence[str]], kernel: Kernel) -> Box:
    """Returns the types that a kernel takes of each variable; a kernel may name an input or output instead."""
    named = {formal.name: formal.type_str for formal in (*schema.inputs, *schema.outputs)}
    taken = {
        named.get(name, name) if name not in types else name: frozenset(kinds) for name, kinds in kernel.types.items()
    }
    return tuple(taken.get(name, frozenset(allowed)) & frozenset(allowed) for name, allowed in types.items())


def _differ(one: Box, other: Box) -> int:
    return sum(a != b for a, b in zip(one, other, strict=True))


def _by_operator(kernels: Sequence[Kernel]) -> dict[tuple[str, str], list[Kernel]]:
    found: dict[tuple[str, str], list[Kernel]] = defaultdict(list)
    for kernel in kernels:
        found[kernel.domain, kernel.operator].append(kernel)
    return found
