# SPDX-License-Identifier: Apache-2.0
"""Facts about opsets, read from the installed onnx: which versions an operator has, which boundaries lie between two
opsets, which release brought what. Nothing is listed by hand, so a newer onnx is known as soon as it is installed.

A *boundary* is named by the opset that opens it: Softmax@13 lies between opset 12 and opset 13.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import onnx.defs
import onnx.helper

if TYPE_CHECKING:
    from collections.abc import Mapping

AI_ONNX: Final = ""
AI_ONNX_ML: Final = "ai.onnx.ml"

Imports = dict[str, int]
"""The opset of each domain, "" for ai.onnx."""

INPUTS_ONLY: Final = 3
"""The IR version up to which every initializer is also a graph input."""

UP: Final = "up"
DOWN: Final = "down"


def canonical_domain(domain: str) -> str:
    """Returns the one spelling used inside: the default operator set is "" and never "ai.onnx"."""
    return AI_ONNX if domain == "ai.onnx" else domain


def shown(domain: str) -> str:
    """Returns the spelling for people: the default operator set is "ai.onnx"."""
    return domain or "ai.onnx"


def named(opset: int, domain: str = AI_ONNX) -> str:
    """Returns an opset for people: "opset 13", "opset 3 of ai.onnx.ml"."""
    return f"opset {opset}" if domain == AI_ONNX else f"opset {opset} of {domain}"


@lru_cache(maxsize=1)
def _releases() -> tuple[tuple[int, int, int], ...]:
    """Returns (IR version, ai.onnx opset, ai.onnx.ml opset) of every ONNX release, oldest first."""
    return tuple((row[1], row[2], row[3]) for row in onnx.helper.VERSION_TABLE)


@lru_cache(maxsize=None)
def _newest(domain: str) -> int:
    """Returns the newest opset, 0 for a domain that the installed onnx does not define.

    Going through all schemas takes its time.
    """
    if domain == AI_ONNX:
        return int(onnx.defs.onnx_opset_version())
    if domain == AI_ONNX_ML:
        return int(onnx.defs.onnx_ml_opset_version())
    return max((schema.since_version for schema in onnx.defs.get_all_schemas() if schema.domain == domain), default=0)


def is_known(domain: str) -> bool:
    """Returns whether the installed onnx defines operators of this domain."""
    return _newest(domain) > 0


def latest(domain: str = AI_ONNX) -> int:
    """Returns the newest opset of a domain that the installed onnx knows."""
    return _newest(domain)


@lru_cache(maxsize=None)
def schema_at(operator: str, opset: int, domain: str = AI_ONNX) -> onnx.defs.OpSchema | None:
    """Returns the schema of an operator as it stands at an opset; None where the operator does not exist there."""
    try:
        return onnx.defs.get_schema(operator, opset, domain)
    except onnx.defs.SchemaError:
        return None


@lru_cache(maxsize=None)
def history(operator: str, domain: str = AI_ONNX) -> tuple[int, ...]:
    """Returns every opset at which the operator was introduced or changed, ascending; empty for an unknown operator."""
    versions: list[int] = []
    ceiling = latest(domain)
    while ceiling and (schema := schema_at(operator, ceiling, domain)) is not None:
        versions.append(schema.since_version)
        ceiling = schema.since_version - 1
    return tuple(reversed(versions))


def crossings(operator: str, start: int, stop: int, domain: str = AI_ONNX) -> list[tuple[int, str]]:
    """Returns the boundaries of one operator between two opsets, in the order in which they are crossed.

    >>> crossings("Softmax", 9, 14)
    [(11, 'up'), (13, 'up')]
    """
    versions = history(operator, domain)
    if start <= stop:
        return [(version, UP) for version in versions if start < version <= stop]
    return [(version, DOWN) for version in reversed(versions) if stop < version <= start]


def ir_version_of(opset: int) -> int:
    """Returns the IR version of the first ONNX release that had this ai.onnx opset; opsets 1 to 8 have IR version 3."""
    return min((ir for ir, release, _ in _releases() if release >= opset), default=_releases()[-1][0])


def ml_opset_of(opset: int) -> int:
    """Returns the ai.onnx.ml opset of the first ONNX release that had this ai.onnx opset."""
    return next((ml for _, release, ml in _releases() if release >= opset), _releases()[-1][2])


def opset_of_ml(ml_opset: int) -> int:
    """Returns the ai.onnx opset of the first ONNX release (from 1.4 on) that had this ai.onnx.ml opset."""
    return max(9, next((release for _, release, ml in _releases() if ml >= ml_opset), latest()))


@lru_cache(maxsize=1)
def newest_ir_version() -> int:
    """Returns the newest IR version that the installed onnx can write."""
    return int(onnx.IR_VERSION)


@lru_cache(maxsize=None)
def may_hold_graphs(operator: str, domain: str = AI_ONNX) -> bool:
    """Returns whether nodes of this operator can have subgraphs; true for what the installed onnx does not define."""
    versions = history(operator, domain)
    schema = schema_at(operator, versions[-1], domain) if versions else None
    if schema is None:
        return True
    kinds = (onnx.defs.OpSchema.AttrType.GRAPH, onnx.defs.OpSchema.AttrType.GRAPHS)
    return any(attribute.type in kinds for attribute in schema.attributes.values())


@lru_cache(maxsize=None)
def is_simple(operator: str, domain: str) -> bool:
    """Returns whether a node can be copied without a look into it: it has no subgraph, holds no tensor that may be
    large, and spells its domain in the one way that inference and checker know."""
    return operator != "Constant" and domain != "ai.onnx" and not may_hold_graphs(operator, domain)


@lru_cache(maxsize=None)
def attributes_of(operator: str, opset: int, domain: str = AI_ONNX) -> Mapping[str, onnx.defs.OpSchema.Attribute]:
    """Returns the formal attributes of an operator at an opset, by name; empty if it does not exist there."""
    schema = schema_at(operator, opset, domain)
    return schema.attributes if schema is not None else {}
