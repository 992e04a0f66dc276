# SPDX-License-Identifier: Apache-2.0
"""Follows the remedy of one refusal, and says what is wrong with it.

A remedy that names options is followed by setting them, one that names an opset by going there, one that asks for
shapes, types or constants by giving them: the row as it stands has them all. What asks for another model is listed in
MANUAL, so that each such remedy is a decision.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import onnx

import onnx_convert
from onnx_convert import RefusedError
from onnx_convert.planning import remedies
from onnx_convert.report import CODES
from onnx_convert.spec import opsets
from onnx_convert.target.request import requested

if TYPE_CHECKING:
    from onnx import ModelProto

    from onnx_convert import Refusal
    from onnx_convert.options import Options

MANUAL = (
    r"^the model is not valid",
    r"^do this before the model, and feed it the outcome",
    r"^Cast to float around the node$",
    r"^cast it to float or bool$",
    r"^drop the outputs, or is_test$",
    r"^give it an alpha above 0$",
    r"^use mode linear$",
    r"^set sampling_ratio to a number",
    r"^set spatial to 1 if it is meant$",
    r"^reverse the sequences before the model",
    r"^leave the lengths out, or go no lower",
    r"^make the input float",
    r"^make lengths of sequences and places in them constants",
    r"^remove one$",
    r"^pad the output by an operator of its own$",
    r"^the model counts nothing: take the node out$",
    r"^write the normalisation out, or state `axes`$",
    r"^export the model with linear_before_reset=0$",
    r"^set stash_type to 1, float$",
    r"^leave the Identity out$",
    r"^name the axes$",
    r"^use a roi from 0 to 1$",
    r"^compute their two parts apart$",
    r"^no runtime would be served by that; choose smaller sizes$",
    r"^there is none$",
)
"""Remedies that are for people: they change the model, or what is around it."""

FACTS = re.compile(r"shapes|a shape|value_info|the types?\b|make it a constant|make K a constant|the attribute|inline")
OPERATORS = {schema.name for schema in onnx.defs.get_all_schemas_with_history() if not schema.domain}
GO = re.compile(r"go no (lower|higher) than opset (\d+)(?: of ([\w.]+))?")


def refusals_of(source: ModelProto, to: int, **options: Any) -> tuple[Refusal, ...]:
    """Returns the refusals of a model on the way to an opset."""
    try:
        onnx_convert.plan(source, to=to, **options)
    except RefusedError as error:
        return error.refusals
    return ()


def keywords(options: Options) -> dict[str, Any]:
    """Returns the options of the API that mean these."""
    return {
        "types": options.types,
        "exact": options.exact,
        "allow": ("conditional",) if options.conditional else (),
        "strict": options.strict,
        "expand": "all" if options.expand_all else "",
    }


def _left(refusals: tuple[Refusal, ...], refusal: Refusal, before: tuple[Refusal, ...], unmoved: int) -> Refusal | None:
    """Returns what is left of a refusal: that of the same node, or one that nobody spoke of."""
    same = [one for one in refusals if _node(one) == _node(refusal)]
    spoken = {_node(one) for one in before}
    new = [one for one in refusals if _node(one) not in spoken] if len(before) == unmoved else []
    return next(iter([*same, *new]), None)


def _node(refusal: Refusal) -> tuple[str, str, str]:
    return refusal.path, refusal.node, refusal.operator


def dead_end(
    case: ModelProto, known: ModelProto, to: int, refusals: tuple[Refusal, ...], which: int, options: dict[str, Any]
) -> str:
    """Returns what is wrong with the remedy of one of the refusals of a model, "" if it works.

    `known` is the same model with all facts that it can have.
    """
    refusal = refusals[which]
    remedy = refusal.remedy
    if not remedy or refusal.code not in CODES:
        return f"no remedy, or no code: {refusal}"
    advice = re.sub(r"what replaces it needs \w+", "", remedy)  # which is a reason that is announced
    for word in OPERATORS.intersection(re.findall(r"\w+", advice)) - {refusal.operator}:
        if opsets.schema_at(word, to) is None:
            return f"it names {word}, which opset {to} does not have"

    def left(model: ModelProto, aim: int, after: Options) -> Refusal | None:
        return _left(refusals_of(model, aim, **keywords(after)), refusal, refusals, 1)

    before = requested(to, **options).options
    after = before
    for part in remedy.split("; then "):
        after = remedies.options_after(part, after)
    if after != before and ", and go no" not in remedy:
        again = left(case, to, after)
        if again is not None and again.reason not in remedy:
            return f"its options lead to another refusal, which was not announced: {again}"
    start = next(entry.version for entry in case.opset_import if entry.domain in ("", "ai.onnx"))
    for _, opset, domain in GO.findall(remedy.rpartition("; then ")[2]):
        if domain in ("", "ai.onnx"):
            aim = int(opset)
            if not min(start, to) <= aim <= max(start, to):
                return f"it leads out of the way from {start} to {to}"
            again = left(case, aim, after)
            announced = again is not None and f"; there {again.reason}: {again.remedy}" in remedy
            if announced:  # for want of a fact, which the model has where all are known
                again = left(known, aim, after)
            if again is not None:
                return f"at {aim} it is refused, too: {again}"
    last = remedy.rpartition(": " if "; then " in remedy else "\0")[2]
    if FACTS.search(last) and not any(re.search(manual, last) for manual in MANUAL):
        again = next(iter(refusals_of(known, to, **keywords(after))), None)
        if again is not None and again.reason == refusal.reason and not GO.search(remedy):
            return f"with all facts it is refused, too: {again}"
        return ""
    followed = after != before or GO.search(remedy) or any(re.search(manual, last) for manual in MANUAL)
    return "" if followed else "nobody can follow it; if it is for people, list it in MANUAL"


RELEASE = re.compile(r"([\w-]+) ([\d.]+) has kernels for")
WITHOUT_KERNELS = re.compile(r"--to (\d+) writes it without asking for kernels")


def dead_end_of_runtime(model: ModelProto, runtime: str, refusal: Refusal) -> str:
    """Returns what is wrong with the remedy of a refusal of a model that is converted for a runtime: with the options
    that it names, another release or opset has to take the node; "" if all of that works."""
    remedy = refusal.remedy
    if not remedy or GO.search(remedy):
        return f"no remedy, or an opset that {runtime} does not run: {refusal}"
    after = requested(None, runtime).options
    for part in remedy.split("; then "):
        after = remedies.options_after(part, after)
    ways: list[dict[str, Any]] = [{"runtime": f"{name}@{release}"} for name, release in RELEASE.findall(remedy)]
    ways += [{"to": int(opset)} for opset in WITHOUT_KERNELS.findall(remedy)]
    if not ways and after != requested(None, runtime).options and "take a runtime" not in remedy:
        ways = [{"runtime": runtime}]
    for way in ways:
        try:
            onnx_convert.plan(model, **way, **keywords(after))
        except RefusedError as error:
            again = next((one for one in error.refusals if _node(one) == _node(refusal)), None)
            if again is not None and again.reason not in remedy:
                return f"{way} refuses it, too: {again}"
    return ""
