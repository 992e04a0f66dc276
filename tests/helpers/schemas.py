# SPDX-License-Identifier: Apache-2.0
"""What two versions of an operator differ in, by their schemas; written apart from the product, to check it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from onnx.defs import OpSchema

    Parameters = Sequence[OpSchema.FormalParameter]


def attributes(schema: OpSchema) -> dict[str, tuple[object, ...]]:
    """Returns per attribute: kind, required or not, default as bytes."""
    return {
        name: (attribute.type, attribute.required, attribute.default_value.SerializeToString())
        for name, attribute in schema.attributes.items()
    }


def parameters(formal: Parameters) -> list[tuple[object, ...]]:
    return [(one.name, one.option, one.is_homogeneous, one.min_arity) for one in formal]


def types(schema: OpSchema) -> dict[str, frozenset[str]]:
    """Returns the dtypes of each input and output (from the constraints: the list of the parameter is broken in onnx
    1.20)."""
    allowed = {one.type_param_str: frozenset(one.allowed_type_strs) for one in schema.type_constraints}
    return {one.name: allowed.get(one.type_str, frozenset([one.type_str])) for one in (*schema.inputs, *schema.outputs)}


def arity(schema: OpSchema) -> tuple[int, ...]:
    return schema.min_input, schema.max_input, schema.min_output, schema.max_output


def structural_differences(old: OpSchema, new: OpSchema) -> Iterator[str]:
    """Returns everything but types and wording in which two versions differ, for people."""
    before, after = attributes(old), attributes(new)
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield f"attribute {name}: {before.get(name, 'absent')} -> {after.get(name, 'absent')}"
    for what in ("inputs", "outputs"):
        if parameters(getattr(old, what)) != parameters(getattr(new, what)):
            yield f"{what}: {parameters(getattr(old, what))} -> {parameters(getattr(new, what))}"
    if arity(old) != arity(new):
        yield f"arity: {arity(old)} -> {arity(new)}"
    if old.deprecated != new.deprecated:
        yield f"deprecated: {old.deprecated} -> {new.deprecated}"


def type_differences(old: OpSchema, new: OpSchema) -> Iterator[str]:
    """Returns the dtypes that two versions do not share, for people."""
    before, after = types(old), types(new)
    for name in sorted(before.keys() & after.keys()):
        lost, gained = sorted(before[name] - after[name]), sorted(after[name] - before[name])
        if lost or gained:
            yield f"types of {name}: lost {lost or 'none'}, gained {gained or 'none'}"
