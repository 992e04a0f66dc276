# SPDX-License-Identifier: Apache-2.0
"""What is told of operators without a model, and that it is true of what conversions do."""

from __future__ import annotations

import json
from functools import lru_cache

import onnx
import pytest
from click.testing import CliRunner
from readme_coverage import BEGIN, END, README, documented, up_to_date
from schemas import structural_differences, type_differences
from undecided import every_crossing

import onnx_convert
from boundaries.tables import rows
from onnx_convert.cli import operator_tables, tables
from onnx_convert.cli.main import main
from onnx_convert.errors import UsageError
from onnx_convert.reference.adapter_source import Form, read
from onnx_convert.reference.operators import Boundary, Explanation, Way, coverage, decided, explain
from onnx_convert.rewrite import registry
from onnx_convert.spec import opsets
from onnx_convert.spec.opsets import DOWN, UP
from onnx_convert.spec.schema_diff import differences
from oracle import released

NEWEST = opsets.latest()


@lru_cache(maxsize=None)
def told(operator: str, domain: str = "ai.onnx") -> Explanation:
    return explain(f"{domain}.{operator}")


def boundary(operator: str, opset: int) -> Boundary:
    return next(one for one in told(operator).boundaries if one.opset == opset)


def text(name: str) -> str:
    return tables.plain(operator_tables.tables(explain(name)))


# ---- an operator


SOFTMAX = """\
Softmax exists from opset 1 of ai.onnx on.

Softmax@11

changed  `axis` may be negative
up       stays as it is
down     flatten at positive axis: A negative axis counts from the end of a known rank; of an unknown one, \
all before it becomes one axis.
         exact
         may ask for: rank of input

Softmax@13

changed  below, the input is flattened to 2-D at `axis` (default 1) and normalised over all that follows; from 13 on \
`axis` (default -1) alone is
         attribute axis: default -1, was 1
         input, output: also bfloat16
up       normalise one axis: One axis is what was flattened if it is the last; otherwise flatten, normalise, and \
restore the shape.
         exact
down     normalise trailing axes: The last axis needs nothing; another one is moved there by a Transpose, and back.
         exact
         of a dtype that the target does not take: refused, or cast where --types allows it"""


def test_softmax_as_text() -> None:
    assert text("Softmax") == SOFTMAX


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Softmax@13", "attribute axis: default -1, was 1"),
        ("ai.onnx.Softmax", "Softmax@11"),
        ("LabelEncoder", "ai.onnx.ml.LabelEncoder exists from opset 1 of ai.onnx.ml on."),
        ("ai.onnx.ml.LabelEncoder@2", "attribute classes_strings is gone"),
        ("Abs@6", "stays as it is: `consumed_inputs` was a hint about memory and could be absent"),
        ("StringConcat", "refused: no operator below opset 20 looks into strings or puts them together"),
        ("StringConcat", "remedy: do this before the model"),
        ("Trilu", "changed  the operator is new"),
        ("Mish@18", "equivalent: the operator may round in another order"),
        ("Shrink", "or conditional: every integer is at most 2**53 in magnitude"),
        ("MaxUnpool@9", "may refuse: the shape of X is not known"),
        ("Flatten@9", "input, output: also bool, complex128, complex64, int16"),
        ("Gemm@11", "input C is optional"),
        ("LpNormalization", "LpNormalization@22"),
        ("ai.onnx.ml.Scaler", "It has not changed: no boundary to cross."),
        # what a family tells is told of those that it names, or of all if it names none
        ("LogSoftmax@13", "below, the input is flattened to 2-D"),
        ("BatchNormalization@9", "(C x D1 x ... x Dn)"),
        ("Clip@6", "without `min` and `max` nothing was clipped; from 6 on the largest finite floats are the default"),
        ("ReduceSum@13", "`axes` is an input, below an attribute"),
        ("ReduceMean@18", "`axes` is an input, below an attribute"),
    ],
)
def test_explains(name: str, says: str) -> None:
    assert says in text(name)


@pytest.mark.parametrize(
    ("operator", "opset", "hides"),
    [
        ("Mod", 13, "Erf"),  # of the same family
        ("Abs", 6, "Clip"),
        ("Selu", 6, "clipped"),
        ("ReduceMean", 13, "an attribute"),
        ("Squeeze", 11, "Unsqueeze"),
    ],
)
def test_does_not_tell_of_others(operator: str, opset: int, hides: str) -> None:
    assert hides not in " ".join(boundary(operator, opset).told)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Sofmax", "no operator 'Sofmax' is known; did you mean Softmax, LogSoftmax"),
        ("softmax", "did you mean Softmax,"),
        ("ai.onnx.ml.Labelencoder", "did you mean ai.onnx.ml.LabelEncoder"),
        ("ai.onnx.ml.Softmax", "did you mean Softmax"),
        ("com.example.Softmax", "did you mean Softmax"),
        ("qqqqqqqqqqqq", "no operator 'qqqqqqqqqqqq' is known"),
        ("Softmax@12", "Softmax has no boundary 12: its boundaries are 11, 13"),
        ("ai.onnx.ml.Scaler@2", "Scaler has no boundary 2: it has none"),
        ("Softmax@x", "'x' is not an opset"),
    ],
)
def test_an_unknown_name_is_a_usage_error(name: str, says: str) -> None:
    with pytest.raises(UsageError, match=says.replace("(", "\\(")):
        explain(name)


def test_an_operator_of_another_domain_is_told_by_its_adapters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_decisions", dict(registry.decisions()))
    monkeypatch.setattr(registry, "_modules", registry.guests())  # or workers of later tests would ask for it
    registry.compatible("Gate", at=2, domain="com.example", direction="up", because="`alpha` defaults to 1")
    registry.first_crossing.cache_clear()
    assert explain("com.example.Gate").boundaries == (
        Boundary(2, (), (), Way("compatible", text="`alpha` defaults to 1"), Way("undecided")),
    )
    assert text("com.example.Gate@2").startswith("com.example.Gate, not of onnx.\n")


def test_every_operator_can_be_told() -> None:
    for one in coverage().operators:
        explanation = told(one.operator, one.domain)
        assert [one.opset for one in explanation.boundaries] == [opset for opset, _, _ in one.crossings]
        assert operator_tables.tables(explanation)
        json.dumps(explanation.to_dict())


# ---- what differs


def test_a_difference_of_schemas_is_told_and_no_other() -> None:
    """Against the comparison that guards the table of what is compatible."""
    for domain, operator, opset, direction in sorted(every_crossing()):
        old, new = (opsets.schema_at(operator, at, domain) for at in (opset - 1, opset))
        if direction == DOWN or old is None or new is None:
            continue
        found = list(differences(old, new))
        expected = [*structural_differences(old, new), *type_differences(old, new)]
        shown = [one for one in found if "dtype" not in one]  # which ones are bound to each other is our own finding
        arity = all(one.startswith("arity") for one in expected)
        assert bool(shown) == bool(expected) or arity, f"{operator}@{opset}: {found} for {expected}"


# ---- what an adapter says of itself


@pytest.mark.thorough
def test_forms_are_those_that_conversions_declare() -> None:
    """Every step of every row of the tables: what it declared stands in the explanation."""
    seen: set[tuple[str, str]] = set()
    for row in rows():
        if max(row.source, row.target) > NEWEST:
            continue
        try:
            report = onnx_convert.plan(row.model, to=row.target, **{"allow": "conditional", **row.options})
        except onnx_convert.OnnxConvertError:
            continue
        for step in report.steps:
            found = next(one for one in told(step.operator, step.domain).boundaries if one.opset == step.boundary)
            way = found.up if step.direction == UP else found.down
            if way is None or way.rewrite != step.rewrite:
                continue  # a Cast sandwich
            assert step.form in [form.form for form in way.forms], f"{row}: {step}"
            seen.add((step.rewrite, step.form))
    assert len(seen) > 100
    assert {form for _, form in seen} == {"exact", "equivalent", "conditional"}


def always(node, op):
    op.equivalent("it rounds")
    return op.same(node.rank(1))


def sometimes(node, op):
    if node.attr("axis") is None:
        return op.same()
    return helper(node, op)


def helper(node, op):
    index = node.attr("index")
    node.constant(index)
    if index > 3:
        node.refuse(f"{index} is too large", "make it smaller")
    op.conditional(REASON)
    return always(node, op)


REASON = "it fits"


def test_an_adapter_is_read_with_its_helpers() -> None:
    add = opsets.schema_at("Add", 7)
    one = read(always, add)
    assert (one.forms, one.needs, one.refusals) == ((Form("equivalent", "it rounds"),), ("rank of B",), ())
    other = read(sometimes, add)
    assert other.forms == (Form("exact"), Form("conditional", "it fits"), Form("equivalent", "it rounds"))
    assert other.needs == ("constant an input", "rank of B")
    assert other.refusals == ("... is too large",)


def test_what_has_no_source_is_not_known() -> None:
    names: dict[str, object] = {"__name__": "elsewhere"}
    exec("def adapter(node, op): return op.same()", names)
    assert read(names["adapter"], None).forms == ()


# ---- all operators


def test_coverage_counts_every_crossing() -> None:
    found = {
        ("" if one.domain == "ai.onnx" else one.domain, one.operator, opset, direction): way
        for one in coverage().operators
        for opset, *ways in one.crossings
        for direction, way in zip((UP, DOWN), ways, strict=True)
        if way is not None
    }
    assert found.keys() == every_crossing()
    for (domain, operator, opset, direction), way in found.items():
        assert way == decided(registry.decision(operator, opset, direction, domain))
    told = coverage()
    assert told.count(UP).total() + told.count(DOWN).total() == len(found)


def test_marks() -> None:
    crossings = ((6, None, "refused"), (11, "compatible", "adapted"), (13, "adapted", "undecided"))
    assert operator_tables.marks(crossings) == "6-x 11=~ 13~?"


@pytest.mark.skipif(documented() > NEWEST, reason="the README tells of a newer onnx than is installed")
@pytest.mark.skipif(not released(NEWEST), reason="the README tells of opsets that are released")
def test_the_readme_tells_the_coverage() -> None:
    readme = README.read_text(encoding="utf-8")
    assert readme.count(BEGIN) == readme.count(END) == 1
    assert readme == up_to_date(readme), "run `python tests/helpers/readme_coverage.py` with the newest onnx"


# ---- the command line


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--explain Softmax", "down     normalise trailing axes"),
        ("--explain ai.onnx.ml.LabelEncoder", "ai.onnx.ml.LabelEncoder@4"),
        ("--coverage", "Softmax                            11=~ 13~~"),
    ],
)
def test_told_on_the_command_line(line: str, says: str) -> None:
    done = CliRunner().invoke(main, line.split())
    assert (done.exit_code, done.stderr) == (0, "")
    assert says in done.stdout


def test_told_as_json() -> None:
    one = json.loads(CliRunner().invoke(main, ["--explain", "Softmax@13", "--json"]).stdout)
    assert one["boundaries"][0]["down"]["rewrite"] == "normalise_trailing_axes"
    every = json.loads(CliRunner().invoke(main, ["--coverage", "--json"]).stdout)
    assert every["newest"]["ai.onnx"] == onnx.defs.onnx_opset_version()
    assert every["totals"]["up"] == dict(coverage().count(UP))


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_an_unknown_operator_ends_with_2(more: list[str]) -> None:
    done = CliRunner().invoke(main, ["--explain", "Sofmax", *more])
    assert done.exit_code == 2
    assert done.stderr.startswith("error: no operator 'Sofmax' is known; did you mean Softmax")
    assert done.stderr.count("\n") == 1
    assert done.stdout == "" or json.loads(done.stdout)["status"] == "error"
