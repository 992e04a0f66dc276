# SPDX-License-Identifier: Apache-2.0
"""What pages and Markdown say of a report in words; none of it is escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onnx_convert.cli.tables import counted_nodes, operator_at, opsets_text, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Plain = Mapping[str, Any]

ENDINGS: Final = {
    "converted": "Converted",
    "unchanged": "Nothing to do",
    "checked": "Planned, nothing was written",
    "refused": "Refused, nothing was written",
    "unverified": "Converted, not verified",
    "different": "Computes something else, kept aside",
    "mismatch": "Computes something else, kept aside",
}
_FORMS: Final = {
    "exact": "Every rewrite is exact: the two specifications give the same bits.",
    "equivalent": "Every rewrite is exact or equivalent: the same mathematics, float rounding may differ.",
    "conditional": "Some rewrites are right only under a condition on the data, which is stated with them.",
}
_LISTS: Final = (
    ("Inlined", "inlined"),
    ("Inputs added", "inputs_added"),
    ("Inputs removed", "inputs_removed"),
    ("Data written", "data_files"),
    ("Data shared", "shared_data"),
)
_MANY: Final = 20


class Refused(NamedTuple):
    """Nodes that are refused for the same reason."""

    operator: str
    code: str
    reason: str
    remedy: str
    command: str
    nodes: list[str]


def name_of(data: Plain) -> str:
    """Returns the name of the model's file."""
    return short(str(data["source"])) or "model"


def short(path: str) -> str:
    """Returns the last part of a path."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]


def way(data: Plain) -> str:
    """Returns from where to where, in short."""
    before, after = data["opsets_before"], data["opsets_after"]
    one, other = before.get("ai.onnx"), after.get("ai.onnx")
    if one != other:
        return f"opset {one} → {other}"
    changed = [f"{domain} {before.get(domain, 'none')} → {version}" for domain, version in after.items()
               if before.get(domain) != version]  # fmt: skip
    if changed:
        return ", ".join(changed)
    ir_before, ir_after = data["ir_version_before"], data["ir_version_after"]
    return f"IR version {ir_before} → {ir_after}" if ir_after and ir_before != ir_after else f"opset {other}"


def lead(data: Plain) -> str:
    """Returns what came of it, in a sentence or two."""
    if data["status"] == "refused":
        count = len(data["refusals"])
        return f"{counted_nodes(count)} cannot be moved. What stands in the way, and what helps, is below."
    changed, kept = data["nodes_changed"], data["nodes_kept"]
    if not changed:
        return "No node had to change." if data["changed"] else "The model is there already; nothing had to change."
    done = "would be" if data["status"] == "checked" else "was" if changed == 1 else "were"
    return f"{changed:,} of {counted_nodes(changed + kept)} {done} rewritten. {_FORMS[data['form']]}"


def facts(data: Plain) -> Iterator[tuple[str, str, str]]:
    """Yields what comes first: a label, what it is, and what more there is to say."""
    refused = data["status"] == "refused"
    yield "From", opsets_text(data["opsets_before"]), f"IR version {data['ir_version_before']}"
    after = f"IR version {data['ir_version_after']}" if data["ir_version_after"] else ""
    yield "Wanted" if refused else "To", opsets_text(data["opsets_after"]), after
    if data["runtime"]:
        yield "Runtime", data["runtime"], ""
    if not refused:
        yield "Promise", data["form"], ""
        yield "Nodes", f"{data['nodes_before']:,} → {data['nodes_after']:,}", ""
        yield "Verified", *_verified(data)
    sizes = [size_text(size) for size in (data["source_bytes"], data["destination_bytes"]) if size]
    if sizes:
        yield "Size", " → ".join(sizes), ""
    yield "Time", f"{data['seconds']:.2f} s", ""
    if data["destination"]:
        yield "Written to", "stdout" if data["destination"] == "-" else short(data["destination"]), ""


def _verified(data: Plain) -> tuple[str, str]:
    """Returns how the result was verified: always by inference and onnx's checker, by numbers if that was asked for."""
    told = data.get("verified")
    if not told:
        return "types and shapes", "numbers were not compared"
    count = len(told["runs"])
    wrong = sum(not run["agrees"] for run in told["runs"])
    sets = f"{count} {'set' if count == 1 else 'sets'} of inputs"
    return (
        f"numbers: {told['verdict']}",
        f"on {wrong} of {sets}" if wrong else f"on {sets}" if count else "not compared",
    )


def _first(told: Plain) -> str:
    """Returns which node is the first whose value differs, and what it became."""
    first = told["first"]
    if not first:
        return ""
    by = f" (adapter {first['adapter']})" if first["adapter"] else ""
    became = f"became {', '.join(first['became'])}{by}" if first["became"] else "is as it was"
    folder = f"; {first['folder']} holds the nodes around it" if first["folder"] else ""
    return f"; first at {first['operator']} {first['node']}, which {became}{folder}"


def refusal_groups(data: Plain) -> list[Refused]:
    """Returns the refusals, equal ones together."""
    groups: dict[tuple[str, str, str, str, str], Refused] = {}
    for one in data["refusals"]:
        operator = operator_at(one["domain"], one["operator"], one["boundary"] or 0)
        key = operator, one["code"], one["reason"].rstrip("."), one["remedy"] or "", one.get("command") or ""
        name = one["node"] or "(unnamed)"
        groups.setdefault(key, Refused(*key, [])).nodes.append(f"{one['path']}/{name}" if one["path"] else name)
    return [*groups.values()]


def remarks(data: Plain) -> list[tuple[str, str, bool]]:
    """Returns what deserves attention, and notes: a label, the text, and whether it is a warning."""
    told = [("Warning", text, True) for text in data["warnings"]]
    told += [("Condition", f"{operator_at(step['domain'], step['operator'], 0)}: {step['condition']}", True)
             for step in data["steps"] if step["form"] == "conditional"]  # fmt: skip
    if (numbers := data.get("verified")) and numbers["reason"]:
        told.append(("Verified", f"{numbers['reason']}{_first(numbers)}", True))
    told += [("Verified", text, False) for text in numbers["notes"]] if numbers else []
    told += [("Assumed", text, False) for text in data["assumed"]]
    told += [("Note", text, False) for text in data["notes"]]
    for label, key in _LISTS:
        if data[key]:
            rest = f" and {len(data[key]) - _MANY:,} more" if len(data[key]) > _MANY else ""
            told.append((label, ", ".join(data[key][:_MANY]) + rest, False))
    return told


def promises(example: Plain, words: Mapping[str, str]) -> str:
    """Returns what the forms of an example promise, with their conditions."""
    forms = [step["form"] for step in example["steps"]]
    worst = max(forms, key=[*words].index, default="exact")
    conditions = dict.fromkeys(step["condition"] for step in example["steps"] if step["condition"])
    return " ".join([words[worst], "; ".join(conditions)]).strip()
