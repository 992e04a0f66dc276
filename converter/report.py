# SPDX-License-Identifier: Apache-2.0
"""The account of what happened to a model, as data. Text, tables and JSON are renderings of it and live with whoever
prints."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

EXACT: Final = "exact"
EQUIVALENT: Final = "equivalent"
CONDITIONAL: Final = "conditional"
FORMS: Final = (EXACT, EQUIVALENT, CONDITIONAL)
_UNKNOWN: Final = ("destination", "runtime", "source_bytes", "destination_bytes", "ir_version_after")
"""Fields of a report that are null as plain data where they are empty: nothing is known, or there is none."""


CODES: Final = {
    "conditional-only": "the only form is right under a condition on the data, and --allow conditional is not set",
    "dtype": "the target's operator does not take a dtype, and no wider one stands in for it",
    "dtype-cast": "the target's operator does not take a dtype, and --types does not allow the Cast that helps",
    "dtype-floor": "no operator takes a dtype at the target",
    "function-imports": "a function has to be put in place of its calls, and contradicts the model's imports",
    "function-is-operator": "a function of the model is called like an operator that changes",
    "invalid-model": "the node is wrong at the opset that the model has",
    "needs-attribute": "an attribute is a reference to one of the enclosing function, and its value is needed",
    "needs-constant": "a value is computed at run time where the target wants it fixed",
    "needs-dtype": "the dtype of a value is not known, and the rewrite depends on it",
    "needs-fact": "something else is not known on which the rewrite depends; the reason says what",
    "needs-rank": "the rank of a value is not known, and the rewrite depends on it",
    "needs-shape": "the shape of a value is not known, and the rewrite depends on it",
    "no-form": "nothing at the target does the same",
    "no-kernel": "the runtime does not implement the operator at that opset, or not for these dtypes",
    "not-exact": "the only form is equivalent, and --exact is set",
    "not-legal": "the node has an attribute, an input or an output that the target's operator does not have",
    "runtime-ir-version": "something in the model needs a higher IR version than the runtime loads",
    "too-large": "the replacement is very large; the remedy says whether --expand all helps",
    "undecided": "nobody has decided what becomes of the operator at this boundary",
    "unknown-dtype": "the dtype of a value is not known, and --strict forbids to take it as legal",
    "unknown-operator": "the operator does not exist at the opset that the model has",
}
"""Why nodes are refused, in short."""


class Step(NamedTuple):
    """One kind of rewrite: an operator at a boundary, by which adapter, and what its form promises.

    `form` is "exact" (the two specifications give the same bits), "equivalent" (the same mathematics; `condition`
    says what may differ: float rounding, or what is not specified) or "conditional" (right only if `condition` holds
    for the data).
    """

    operator: str
    domain: str
    boundary: int
    direction: str
    rewrite: str
    form: str = EXACT
    condition: str = ""


class Change(NamedTuple):
    """Nodes of one operator that all became the same.

    `became` lists the operators of the new nodes in order, with the domain unless that is ai.onnx: ("HardSigmoid",
    "Mul"). It is ("initializer",) for a node whose value is an initializer now, and empty for one that went because
    nothing uses it any more.
    `boundaries` are the opsets at which the operator's meaning changed on the way, `nodes` the names.
    """

    operator: str
    domain: str
    became: tuple[str, ...]
    boundaries: tuple[int, ...]
    nodes: tuple[str, ...]


class DrawnNode(NamedTuple):
    """A node of a picture. `operator` has its domain unless that is ai.onnx; attributes are text."""

    operator: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, str]


class DrawnValue(NamedTuple):
    """A value of a picture: its type as ONNX's text form has it, `float[2,N]`, the elements if they are constant and
    few, and whether it is an "input", an "output" or an "initializer" of its graph. Empty where nothing is known."""

    type: str = ""
    constant: str = ""
    role: str = ""


class Scene(NamedTuple):
    """Nodes, and those around them, one hop away; `more` neighbours are left out."""

    nodes: tuple[DrawnNode, ...] = ()
    around: tuple[DrawnNode, ...] = ()
    more: int = 0


class Example(NamedTuple):
    """One place of a kind of rewrite, before and after, and the names of all places of this kind.

    `change` is the place among the report's `changes`, `steps` are those that the nodes took. `path` is the way to the
    graph of the picture through functions and subgraphs ("" for the main graph).
    """

    change: int
    steps: tuple[Step, ...]
    nodes: tuple[str, ...]
    path: str = ""
    before: Scene = Scene()
    after: Scene = Scene()
    values: dict[str, DrawnValue] = {}  # noqa: RUF012 - nobody writes into it

    def to_dict(self) -> dict[str, Any]:
        """Returns the example as plain data, with null where nothing is known."""
        scenes = {
            name: {
                "nodes": [node._asdict() for node in scene.nodes],
                "around": [node._asdict() for node in scene.around],
                "more": scene.more,
            }
            for name, scene in (("before", self.before), ("after", self.after))
        }
        values = {name: {key: text or None for key, text in value._asdict().items()}
                  for name, value in self.values.items()}  # fmt: skip
        steps = [{**step._asdict(), "condition": step.condition or None} for step in self.steps]
        return {**self._asdict(), **scenes, "steps": steps, "values": values, "count": len(self.nodes)}


@dataclass
class Report:
    """Everything that a conversion did, or would do, to a model."""

    source: str = ""
    destination: str = ""
    opsets_before: dict[str, int] = field(default_factory=dict)  # by domain; the default domain is "ai.onnx"
    opsets_after: dict[str, int] = field(default_factory=dict)
    stamped: dict[str, int] = field(default_factory=dict)  # what the stamp says of opsets that were declared otherwise
    ir_version_before: int = 0
    ir_version_after: int = 0
    nodes_before: int = 0  # of the whole model, subgraphs and functions included
    nodes_after: int = 0
    nodes_changed: int = 0  # nodes of the source that are different or gone, by `changes`
    nodes_kept: int = 0  # nodes of the source that are as they were; those of inlined functions are neither
    changes: list[Change] = field(default_factory=list)
    steps: Counter[Step] = field(default_factory=Counter)  # how many of the changed nodes took each step
    inexact: dict[Step, list[str]] = field(default_factory=dict)  # the nodes of steps that are not exact
    inputs_added: list[str] = field(default_factory=list)  # of the main graph
    inputs_removed: list[str] = field(default_factory=list)
    inlined: list[str] = field(default_factory=list)  # functions inlined at their calls, as domain.name
    assumed: list[str] = field(default_factory=list)  # what could not be known and was taken to be fine
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    data_files: list[str] = field(default_factory=list)  # external data written or copied along
    shared_data: list[str] = field(default_factory=list)  # external data left in place and pointed at
    verified: dict[str, Any] | None = None  # how source and result compare, as `Verification.to_dict`; None: not asked
    examples: list[Example] | None = None  # of each kind of rewrite, if they were asked for
    operators_before: dict[str, int] | None = None  # how many nodes of each, if examples were asked for
    operators_after: dict[str, int] | None = None
    touched: bool = False  # whether anything is different besides what the fields above tell, as in a function
    runtime: str = ""  # that has to load the result, if one was named
    source_bytes: int = 0  # of the file, 0 if the model came from memory
    destination_bytes: int = 0  # of the model's own file, external data apart
    replaced: bool = False  # whether the result took the place of another file
    seconds: float = 0.0

    @property
    def changed(self) -> bool:
        """Whether the model's opsets, its IR version or any node is different afterwards; none is of a refused one."""
        return not self.refusals and (
            self.opsets_before | self.stamped != self.opsets_after
            or self.ir_version_before != self.ir_version_after
            or bool(self.steps)
            or bool(self.inlined)
            or self.touched
        )

    @property
    def form(self) -> str:
        """The weakest promise among the rewrites: "exact" if every one is exact, or if there is none."""
        return max((step.form for step in self.steps), key=FORMS.index, default=EXACT)

    def to_dict(self) -> dict[str, Any]:
        """Returns the report as plain data, fit for JSON."""
        plain: dict[str, Any] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        plain["changes"] = [{**change._asdict(), "count": len(change.nodes)} for change in self.changes]
        plain["steps"] = [
            {**step._asdict(), "count": count, "nodes": self.inexact.get(step, [])}
            for step, count in self.steps.items()
        ]
        del plain["inexact"]
        if self.examples is not None:
            plain["examples"] = [example.to_dict() for example in self.examples]
        plain["steps"] = [{**step, "condition": step["condition"] or None} for step in plain["steps"]]
        plain["refusals"] = [refusal.to_dict() for refusal in self.refusals]
        plain |= {name: plain[name] or None for name in _UNKNOWN}
        plain["changed"] = self.changed
        plain["form"] = self.form
        return plain


class Refusal(NamedTuple):
    """The reason why one node cannot be carried to the target, and what can be done about it.

    `boundary` is the opset at which the operator's meaning changes (0: the operator as a whole is the matter),
    `path` the way to the node through functions and subgraphs ("" for the main graph), `code` one of `CODES`.
    """

    operator: str
    domain: str
    node: str
    boundary: int
    direction: str
    reason: str
    remedy: str = ""
    path: str = ""
    code: str = "no-form"

    def to_dict(self) -> dict[str, Any]:
        """Returns the refusal as plain data, with null where nothing is known."""
        return {**self._asdict(), "boundary": self.boundary or None, "remedy": self.remedy or None}

    def __str__(self) -> str:
        where = f"{self.path}/{self.node}" if self.path else self.node
        step = f" at boundary {self.boundary}" if self.boundary else ""
        text = f"{self.operator} {where!r}{step}: {self.reason}"
        return f"{text} ({self.remedy})" if self.remedy else text


def nodes_text(foreign: Mapping[str, Mapping[str, int]], domains: Iterable[str]) -> str:
    """Returns nodes of some domains for people: `3 nodes of com.acme (Gate, Mixer)`."""
    told = []
    for domain in domains:
        count = sum(foreign[domain].values())
        told.append(f"{count} node{'' if count == 1 else 's'} of {domain} ({', '.join(sorted(foreign[domain]))})")
    return " and ".join(told)
