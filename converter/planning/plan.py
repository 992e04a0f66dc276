# SPDX-License-Identifier: Apache-2.0
"""The plan for one model, as data: what changes, and what is to be said about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from onnx import NodeProto, TypeProto, ValueInfoProto

    from onnx_convert.model.patch import ModelPatch, Rewrite
    from onnx_convert.report import Refusal, Step


class Findings(NamedTuple):
    """The outcome of checking a plan: warnings, and how the statements of the main graph have to change.

    `stale` are values whose stated types are left out, `value_info` the types of inner values and `refined` those of
    outputs that have to be stated, as inference no longer finds them. `bare` says that no statement about an inner
    value of the source is kept. `types` are those of values that somebody wants to know.
    """

    warnings: Sequence[str] = ()
    stale: frozenset[str] = frozenset()
    value_info: Sequence[ValueInfoProto] = ()
    refined: Sequence[ValueInfoProto] = ()
    bare: bool = False
    types: Mapping[str, TypeProto] = {}

    def applied(self, patch: ModelPatch) -> ModelPatch:
        """Returns a patch with what was found to be added."""
        return patch.restated(self.stale, self.value_info, self.refined, bare=self.bare)


class Plan(NamedTuple):
    """The account of what converting a model would do. Nothing is changed before `model.patch.apply` is given the
    patch.

    `rewrites` tells who wrote which node, `known` what inference found in the source of the values that rewritten nodes
    made (serialised types by name; None if no rewrite had to ask), `operators` those of new nodes, by domain and name;
    `false` are values of which the source states what is not so; `doubtful` says that onnx's inference found fault with
    the source.
    """

    patch: ModelPatch
    steps: Counter[Step]
    refusals: Sequence[Refusal] = ()
    inlined: Sequence[str] = ()  # functions inlined at their calls, as domain.name
    assumed: Sequence[str] = ()
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    rewrites: Sequence[Rewrite] = ()
    folded: Sequence[NodeProto] = ()  # nodes whose value is an initializer now
    removed: Sequence[NodeProto] = ()  # nodes that nothing uses any more, ours among them
    known: Mapping[str, bytes] | None = None
    operators: AbstractSet[tuple[str, str]] = frozenset()
    false: AbstractSet[str] = frozenset()
    doubtful: bool = False

    def completed(self, findings: Findings) -> Plan:
        """Returns the plan with what its check found to be added."""
        return self._replace(patch=findings.applied(self.patch), warnings=[*self.warnings, *findings.warnings])
