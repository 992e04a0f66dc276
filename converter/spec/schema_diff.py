# SPDX-License-Identifier: Apache-2.0
"""Describes how two versions of an operator differ by their schemas, in words for people. Wording is no difference
here."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import combinations
from typing import TYPE_CHECKING

import onnx.helper
from onnx import AttributeProto

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onnx.defs import OpSchema


def differences(old: OpSchema, new: OpSchema) -> Iterator[str]:
    """Yields what attributes, inputs, outputs and dtypes the newer version gained, lost or changed, one fact a line."""
    yield from _attributes(old, new)
    renamed: dict[str, str] = {}
    for what in ("input", "output"):
        yield from _parameters(what, getattr(old, f"{what}s"), getattr(new, f"{what}s"), renamed)
    yield from _types(old, new, renamed)
    if new.deprecated and not old.deprecated:
        yield "the operator is deprecated"


def lost_types(departure: OpSchema, arrival: OpSchema) -> bool:
    """Returns whether an input or output takes fewer dtypes on the side of arrival."""
    before, after = _allowed(departure), _allowed(arrival)
    return any(before[name] - after[name] for name in before.keys() & after.keys())


def _attributes(old: OpSchema, new: OpSchema) -> Iterator[str]:
    for name in sorted(old.attributes.keys() | new.attributes.keys()):
        before, after = old.attributes.get(name), new.attributes.get(name)
        if after is None:
            yield f"attribute {name} is gone"
        elif before is None:
            yield f"attribute {name} is new, {'required' if after.required else f'default {_default(after)}'}"
        else:
            if before.type != after.type:
                yield f"attribute {name} is of type {_member(after.type)}, was {_member(before.type)}"
            if before.required != after.required:
                yield f"attribute {name} is {'required' if after.required else 'optional'}"
            if _default(before) != _default(after):
                yield f"attribute {name}: default {_default(after)}, was {_default(before)}"


def _default(attribute: OpSchema.Attribute) -> str:
    """Returns the default as people write it; "none" where there is none."""
    if attribute.default_value.type == AttributeProto.UNDEFINED:
        return "none"
    value = onnx.helper.get_attribute_value(attribute.default_value)
    if isinstance(value, bytes):
        return repr(value.decode())
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _parameters(
    what: str, old: list[OpSchema.FormalParameter], new: list[OpSchema.FormalParameter], renamed: dict[str, str]
) -> Iterator[str]:
    """Notes in `renamed` what is only called otherwise: one that stands where another stood."""
    before, after = {one.name: one for one in old}, {one.name: one for one in new}
    for one, other in zip(old, new, strict=False):
        if one.name not in after and other.name not in before:
            renamed[one.name] = other.name
            yield f"{what} {one.name} is called {other.name}"
    for name in before:
        if renamed.get(name, name) not in after:
            yield f"{what} {name} is gone"
    for name, one in after.items():
        if name not in before and name not in renamed.values():
            yield f"{what} {name} is new, {_option(one)}"
    for name, one in before.items():
        there = after.get(renamed.get(name, name))
        if there is None:
            continue
        if one.option != there.option:
            yield f"{what} {there.name} is {_option(there)}"
        if one.is_homogeneous != there.is_homogeneous:
            yield f"{what} {there.name} is of {'one dtype' if there.is_homogeneous else 'any dtypes'}"
        if one.min_arity != there.min_arity:
            yield f"{what} {there.name}: {there.min_arity} at least, was {one.min_arity}"


def _option(parameter: OpSchema.FormalParameter) -> str:
    option = _member(parameter.option).lower()
    return "required" if option == "single" else option


def _member(value: object) -> str:
    """Returns the name of a member of an enumeration of onnx, whose type hints know none."""
    return str(value).rpartition(".")[2]


def _types(old: OpSchema, new: OpSchema, renamed: dict[str, str]) -> Iterator[str]:
    before, after = _allowed(old), _allowed(new)
    pairs = [(name, there) for name in before if (there := renamed.get(name, name)) in after]
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = defaultdict(list)
    for name, there in pairs:
        gained, orphaned = (tuple(sorted(one)) for one in (after[there] - before[name], before[name] - after[there]))
        groups[gained, orphaned].append(there)
    for (gained, orphaned), names in groups.items():
        if gained:
            yield f"{', '.join(names)}: also {', '.join(gained)}"
        if orphaned:
            yield f"{', '.join(names)}: no longer {', '.join(orphaned)}"
    here, there_ = _variables(old), _variables(new)
    for (one, one_there), (other, other_there) in combinations(pairs, 2):
        if here[one] == here[other] and there_[one_there] != there_[other_there]:
            yield f"{one_there} and {other_there} may differ in dtype"
        elif here[one] != here[other] and there_[one_there] == there_[other_there] and len(after[one_there]) > 1:
            yield f"{one_there} and {other_there} have one dtype"


def _variables(schema: OpSchema) -> dict[str, str]:
    """Returns the type variable, or the type, of each input and output."""
    return {one.name: one.type_str for one in (*schema.inputs, *schema.outputs)}


def _allowed(schema: OpSchema) -> dict[str, frozenset[str]]:
    """Returns the types of each input and output (by the constraints: the list of the parameter is broken in onnx
    1.20)."""
    allowed = {one.type_param_str: one.allowed_type_strs for one in schema.type_constraints}
    return {name: frozenset(map(_short, allowed.get(kind, [kind]))) for name, kind in _variables(schema).items()}


def _short(kind: str) -> str:
    """Returns `float` for `tensor(float)`, `seq(float)` for `seq(tensor(float))`."""
    return re.sub(r"tensor\((\w+)\)", r"\1", kind)
