# SPDX-License-Identifier: Apache-2.0
"""Finds out what happens to every node of one operator that stands at one opset, once an operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from onnx_convert.rewrite import registry
from onnx_convert.rewrite.kernels import decomposition, is_missing
from onnx_convert.rewrite.kernels import signature_of as kernel_signature_of
from onnx_convert.rewrite.registry import Adapter
from onnx_convert.spec import opsets, signatures

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from onnx_convert.rewrite.kernels import Kernels
    from onnx_convert.rewrite.registry import Crossing
    from onnx_convert.spec.signatures import Signature


class Route(NamedTuple):
    """The way of a node to the target: over the boundary `crossing`, or to be judged by the signature at `stop`.

    `as_written` says that the signature is also that of the opset which the node is written for, `narrower` that it
    takes fewer types. `kernel` is what the runtime's kernels take of it, None if all.
    """

    stop: int | None = None  # the target's opset of the domain, None if nodes of the operator stay at their own
    crossing: Crossing | None = None
    signature: Signature | None = None
    as_written: bool = False
    narrower: bool = False
    may_hold_graphs: bool = False
    infers: bool = True  # whether inference finds the types of its outputs at the target
    is_plain: bool = False  # whether nothing has to be done about a new node but to put it into its graph
    is_unknown: bool = False  # the model's opset has no such operator
    is_undecided: bool = False  # onnx does not define the domain, and no adapter has a word about the operator
    is_judged: bool = False  # whether a node of the source is judged although it crosses nothing
    kernel: Signature | None = None
    has_no_kernel: bool = False  # whether the runtime is known not to implement the operator there
    has_limits: bool = False  # whether there are attributes with which it does not
    stays: bool = False  # whether a node of the source need not even be looked at


class Routes:
    """The routes of one conversion. `functions` are domain and name of each function of the model, `kernels` what the
    runtime implements that has to run the result."""

    def __init__(
        self, target: Mapping[str, int], functions: Collection[tuple[str, str]], kernels: Kernels | None = None
    ) -> None:
        self._target = target
        self._functions = functions
        self._kernels = kernels
        self._found: dict[tuple[str, str, int], Route] = {}
        self._apart: dict[tuple[str, str, int], Route | None] = {}

    def of(self, domain: str, operator: str, opset: int) -> Route:
        """Returns the route of the nodes of an operator that are written for an opset of its domain."""
        key = (domain, operator, opset)
        route = self._found.get(key)
        if route is None:
            route = self._found[key] = self._find(domain, operator, opset)
        return route

    def apart(self, domain: str, operator: str, opset: int) -> Route | None:
        """Returns the route on which the nodes of an operator are taken apart although the target has it: down across
        the opset that brought it. None if there is none."""
        key = (domain, operator, opset)
        if key not in self._apart:
            birth = decomposition(operator, domain)
            last = registry.decision(operator, birth, opsets.DOWN, domain) if birth and opset >= birth else None
            crossing = (
                registry.first_crossing(domain, operator, opset, birth - 1) if isinstance(last, Adapter) else None
            )
            self._apart[key] = (
                None if crossing is None else self.of(domain, operator, opset)._replace(crossing=crossing)
            )
        return self._apart[key]

    def at_target(self, domain: str, operator: str) -> Route:
        """Returns the route of the nodes of an operator that have come to the target."""
        return self.of(domain, operator, self._target.get(domain, 0))

    def _find(self, domain: str, operator: str, opset: int) -> Route:
        stop = self._target.get(domain)
        if stop is None or (domain, operator) in self._functions:
            return Route(may_hold_graphs=True)
        known = opsets.is_known(domain)
        lacks_schema = known and opsets.schema_at(operator, opset, domain) is None
        crossing = registry.first_crossing(domain, operator, opset, stop)
        signature = signatures.signature_of(operator, stop, domain)
        infers = signature is None or signature.infers
        may_hold_graphs = opsets.may_hold_graphs(operator, domain)
        kernel, has_no_kernel, has_limits = None, False, False
        if self._kernels is not None and signature is not None:
            kernel = kernel_signature_of(self._kernels, operator, stop, domain)
            has_no_kernel = is_missing(self._kernels, operator, stop, domain)
            has_limits = bool(self._kernels.limits(domain, operator, stop))
        downhill = stop < opset and bool(registry.crossings(domain, operator, opset, stop))
        route = Route(
            stop=stop,
            crossing=crossing,
            signature=signature,
            as_written=signature is not None and signature == signatures.signature_of(operator, opset, domain),
            narrower=stop < opset and signatures.is_narrower(operator, opset, stop, domain),
            may_hold_graphs=may_hold_graphs,
            infers=infers,
            is_plain=domain == opsets.AI_ONNX and infers and not may_hold_graphs,
            is_unknown=lacks_schema and not registry.is_experimental(operator, domain),
            is_undecided=not known and opset != stop and not registry.has_operator(operator, domain),
            is_judged=downhill and crossing is None and signature is not None,
            kernel=kernel,
            has_no_kernel=has_no_kernel,
            has_limits=has_limits,
        )
        looked_at = (
            crossing
            or route.is_judged
            or kernel
            or has_no_kernel
            or has_limits
            or route.may_hold_graphs
            or route.is_unknown
            or route.is_undecided
        )
        return route._replace(stays=not looked_at)
