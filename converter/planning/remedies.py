# SPDX-License-Identifier: Apache-2.0
"""Follows the remedies of refusals, so that none is announced that leads nowhere.

A remedy that names options is tried by one more planning for each set of options; if the node is refused again, the
remedy goes on with what that refusal says. A remedy that names an opset is tried there, and names the next one if that
does not do. A refusal without a remedy gets the opset at which its boundary is not crossed, or says that there is none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from onnx_convert.errors import OnnxConvertError
from onnx_convert.planning.kernel_opset import planned
from onnx_convert.spec import opsets
from onnx_convert.target import runtimes
from onnx_convert.target.resolve import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onnx_convert.model.source import SourceModel
    from onnx_convert.options import Options
    from onnx_convert.report import Refusal
    from onnx_convert.target.request import Request

NONE: Final = "there is none"
_SHAPES: Final = r"give the model's inputs (fixed )?shapes( if it depends on these)?(, or |$)"
_HERE: Final = "choose an opset on this side of the boundary"
_GO: Final = re.compile(r"go no (lower|higher) than opset (\d+)(?! of)")
_ANY_GO: Final = re.compile(r"go no (?:lower|higher) than opset (\d+)(?: of ([\w.]+))?")
_WITHOUT: Final = "writes it without asking for kernels"
_WITHOUT_KERNELS: Final = re.compile(rf"(?:; or )?--to (?:([\w.]+):)?(\d+) {_WITHOUT}")
_KERNELS: Final = re.compile(
    rf"(?:([\w-]+) ([\d.]+) has kernels for ([\w.]+))?(?:; or )?(?:--to (?:([\w.]+):)?(\d+) {_WITHOUT})?$"
)
_STEPS: Final = 5  # options, or opsets, that one node may ask for, one after the other


def with_remedies(source: SourceModel, request: Request, aim: int, refusals: Sequence[Refusal]) -> list[Refusal]:
    """Returns the refusals at an ai.onnx opset with remedies that hold: followed, they lead to a result or to what they
    announce."""
    trials = _Trials(source, request, aim, refusals)
    followed = [trials.followed(refusal) for refusal in refusals]
    if request.runtime is None:
        return followed
    present = source.imports.shown
    there = [refusal._replace(remedy=trials.with_true_releases(refusal)) for refusal in followed]
    return [refusal._replace(remedy=for_runtime(refusal.remedy, present)) for refusal in there]


def for_runtime(remedy: str, present: Mapping[str, int]) -> str:
    """Returns a remedy for somebody with a runtime: its opset is not chosen, so another runtime is the way to one; and
    opsets that the model has already, `present` by domain, are no way to go."""
    told = _ANY_GO.sub(lambda go: f"take a runtime that runs it at {go[2] or 'opset'} {go[1]}", remedy)
    for way in _WITHOUT_KERNELS.finditer(told):
        if present.get(way[1] or "ai.onnx") == int(way[2]):
            told = told.replace(way[0], "")
    return f"{told}{NONE}" if not told or told.endswith(": ") else told


def options_after(remedy: str, options: Options) -> Options:
    """Returns the options that somebody has who does what a remedy says first."""
    if "leave out --exact" in remedy:
        options = options._replace(exact=False)
    if "leave out --strict" in remedy:
        options = options._replace(strict=False)
    if "--expand all" in remedy:
        options = options._replace(expand_all=True)
    if "--allow conditional" in remedy:
        options = options._replace(conditional=True, exact=False)
    if (types := re.search(r"--types (cast(?:-rounding)?)", remedy)) is not None:
        wider = "cast-rounding" if "cast-rounding" in (types[1], options.types) else "cast"
        options = options._replace(types=wider, exact=options.exact and wider == "cast")
    return options


class _Trials:
    """Plans of one model with other options and at other opsets."""

    def __init__(self, source: SourceModel, request: Request, aim: int, refusals: Sequence[Refusal]) -> None:
        self._source = source
        self._request = request
        self._aim = aim
        self._refusals = refusals
        self._found: dict[tuple[int, Options], Sequence[Refusal]] = {(aim, request.options): refusals}
        self._fixed = _has_fixed_inputs(source)
        self._released: dict[tuple[str, Options], Sequence[Refusal]] = {}
        self._functions = {name for _, name, _ in source.functions}

    def followed(self, refusal: Refusal) -> Refusal:
        """Returns the refusal with a remedy that holds."""
        start = now = self._request.options
        told, chain = refusal, [self._advice(refusal)]
        for _ in range(_STEPS):
            after = options_after(chain[-1], now)
            if after == now:
                break
            again = self._again(refusal, self._aim, after)
            now = after
            if again is None or again.reason == told.reason:
                break
            told = again
            chain.append(self._advice(told))
        remedy = self._with_true_opset(refusal, chain[-1])
        wanted = _options_text(start, now)
        if len(chain) > 1 and not _GO.search(remedy):
            remedy = f"{wanted if len(chain) > 2 else chain[0]}; then {told.reason}: {remedy}"
        if start.exact and not now.exact and "--exact" not in remedy and not _GO.search(remedy):
            remedy = f"leave out --exact; {remedy}"
        return refusal._replace(remedy=remedy)

    def with_true_releases(self, refusal: Refusal) -> str:
        """Returns the remedy of a refusal with the release of a runtime that does take the node, where one is named for
        having kernels for the operator; without the ways on which it is refused too."""
        remedy, options = refusal.remedy, self._request.options
        found = _KERNELS.search(remedy)
        if found is None or not found[0]:
            return remedy
        for part in remedy.split("; then "):
            options = options_after(part, options)
        name, release, operator, domain, opset = found.groups()
        ways = []
        if release and (release := self._release(refusal, name, release, options)):
            ways.append(f"{name} {release} has kernels for {operator}")
        if opset and (domain or self._refused(refusal, self._request.at(int(opset)), options) is None):
            ways.append(f"--to {domain}:{opset} {_WITHOUT}" if domain else f"--to {opset} {_WITHOUT}")
        return remedy[: found.start()] + ("; or ".join(ways) or NONE)

    def _release(self, refusal: Refusal, name: str, release: str, options: Options) -> str:
        """Returns the release of a runtime that takes a node, from one that has kernels for its operator on; "" if none
        does."""
        for _ in range(2 * _STEPS):
            request = self._request._replace(runtime=runtimes.find(f"{name}@{release}"))
            again = self._refused(refusal, request, options)
            if again is None:
                return release
            later = _KERNELS.search(again.remedy)
            if later is None or later[1] != name or later[2] == release:
                return ""
            release = later[2]
        return ""

    def _refused(self, refusal: Refusal, request: Request, options: Options) -> Refusal | None:
        """Returns the refusal of the same node by another request, with other options."""
        key = str(request.runtime or request.to), options
        if key not in self._released:
            wanted = request._replace(options=options)
            try:
                _, outcome = planned(self._source, wanted, resolve(self._source, wanted))
                self._released[key] = outcome.refusals
            except OnnxConvertError:
                self._released[key] = self._refusals
        return next((one for one in self._released[key] if _is_same_node(one, refusal)), None)

    def _advice(self, refusal: Refusal) -> str:
        """Returns what a refusal advises, without what the model has already; else the way around its boundary."""
        remedy = re.sub(_SHAPES, "", refusal.remedy) if self._fixed else refusal.remedy
        call = refusal.operator in self._functions  # whose boundary is that of a node in the function
        return with_way(remedy, way_around(refusal._replace(domain="ai.onnx") if call else refusal))

    def _with_true_opset(self, refusal: Refusal, advice: str) -> str:
        """Returns the advice with an opset, and options if it takes them, at which the node is not refused."""
        go = _GO.search(advice)
        if go is None:
            return advice
        found = self._nearest(refusal, int(go[2]))
        before, rest = advice[: go.start()], advice[go.end() :]
        if found is None:
            return before.rstrip(" ,;").removesuffix("or").rstrip(" ,;") + rest.removeprefix(", or ") or NONE
        opset, options, still = found
        wanted = _options_text(self._request.options, options)
        there = f"; there {still.reason}: {self._advice(still)}" if still is not None else ""
        return f"{before}{wanted}{', and ' if wanted else ''}go no {go[1]} than opset {opset}{there}{rest}"

    def _nearest(self, refusal: Refusal, opset: int) -> tuple[int, Options, Refusal | None] | None:
        """Returns the opset, from one on back to the model's, and the options with which the node is not refused; with
        the refusal if it is, but only for want of a fact."""
        options = self._request.options
        down = refusal.direction == opsets.DOWN
        for _ in range(2 * _STEPS):
            again = self._again(refusal, opset, options)
            if again is None:
                return opset, options, None
            advice = self._advice(again)
            after = options_after(advice, options)
            further = [int(other) for _, other in _GO.findall(advice)]
            if after != options:
                options = after
            elif further and (further[0] > opset if down else further[0] < opset):
                opset = further[0]
            else:
                wants = again.code.startswith("needs-") and again.reason != refusal.reason
                return (opset, options, again) if wants else None
        return None

    def _again(self, refusal: Refusal, opset: int, options: Options) -> Refusal | None:
        """Returns the refusal of the same node at another opset or with other options, or of what it becomes there."""
        key = opset, options
        if key not in self._found:
            request = self._request if opset == self._aim else self._request.at(opset)
            request = request._replace(options=options)
            try:
                _, outcome = planned(self._source, request, resolve(self._source, request))
                self._found[key] = outcome.refusals
            except OnnxConvertError:  # what is refused need not be sound elsewhere
                self._found[key] = self._refusals
        found = self._found[key]
        same = next((one for one in found if _is_same_node(one, refusal)), None)
        return same or next(
            (one for one in found if self._is_made_of(one, refusal) and one not in self._refusals), None
        )

    def _is_made_of(self, one: Refusal, refusal: Refusal) -> bool:
        """Returns whether a node was written in place of a refused one, which its name tells, or is a call whose
        function is inlined now, if the refused one stands in a function."""
        if refusal.path.startswith("function ") and one.operator in self._functions:
            return True
        place, written = f"{refusal.path}/{refusal.node}/", f"{one.path}/{one.node}"
        return written.lstrip("/").startswith(place.lstrip("/")) or one.node.startswith(f"{refusal.node}/")


def _options_text(before: Options, after: Options) -> str:
    """Returns the options that differ, as they are typed."""
    told = [f"--types {after.types}"] if before.types != after.types else []
    told += ["--allow conditional"] if after.conditional and not before.conditional else []
    told += ["--expand all"] if after.expand_all and not before.expand_all else []
    left = ["leave out --exact"] if before.exact and not after.exact else []
    return ", ".join([*([" ".join(told)] if told else []), *left])


def _has_fixed_inputs(source: SourceModel) -> bool:
    """Returns whether no input of the model has a size that depends on the caller."""
    tensors = [value.type.tensor_type for value in source.proto.graph.input if value.type.HasField("tensor_type")]
    return all(t.HasField("shape") and all(dim.HasField("dim_value") for dim in t.shape.dim) for t in tensors)


def _is_same_node(one: Refusal, other: Refusal) -> bool:
    return (one.path, one.node, one.operator, one.domain) == (other.path, other.node, other.operator, other.domain)


def with_way(remedy: str, way: str) -> str:
    """Returns a remedy with the way around the boundary where it leaves room for one, without that room if there is no
    way; the way alone if there is no other remedy."""
    if way == NONE:
        remedy = remedy.replace(f", or {_HERE}", "").replace(f"{_HERE}, or ", "")
    return remedy.replace(_HERE, way) or way


def way_around(refusal: Refusal) -> str:
    """Returns the nearest opset on this side of the boundary that a node cannot cross."""
    if not refusal.boundary or refusal.domain not in ("ai.onnx", opsets.AI_ONNX_ML):
        return NONE
    of = "" if refusal.domain == "ai.onnx" else f" of {refusal.domain}"
    if refusal.direction == opsets.DOWN:
        return f"go no lower than opset {refusal.boundary}{of}"
    return f"go no higher than opset {refusal.boundary - 1}{of}"
