# SPDX-License-Identifier: Apache-2.0
"""Reads what an adapter says of itself in its source: the forms it may declare, the facts it may ask for, its refusals.

An adapter declares a form when it runs, by the node that it meets. Its source, and that of the helpers it names, tells
which declarations there are. What stands there may hold for some nodes only, so it is said as a possibility.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from onnx_convert.report import CONDITIONAL, EQUIVALENT, EXACT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from onnx.defs import OpSchema

_OURS: Final = "onnx_convert.adapters"
_FACTS: Final = ("rank", "shape", "dtype", "constant")


@dataclass(frozen=True, slots=True)
class Form:
    """A form that a rewrite may have; `why` is what an equivalent or conditional one says of itself, as far as it is
    written out."""

    form: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """The content of an adapter's source. All is empty where there is no source."""

    forms: tuple[Form, ...] = ()
    needs: tuple[str, ...] = ()  # "rank of X", "constant axes"
    refusals: tuple[str, ...] = ()  # the reasons; "..." stands for what only a node tells


def read(function: Callable[..., object], schema: OpSchema | None) -> Found:
    """Reads an adapter; `schema` is that of the node which it takes, and knows the names of inputs."""
    sources = list(_sources(function))
    if not sources:
        return Found()
    forms: dict[Form, None] = {} if _always_declares(sources[0][0]) else {Form(EXACT): None}
    needs: dict[str, None] = {}
    refusals: dict[str, None] = {}
    for tree, names in sources:
        for call in ast.walk(tree):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not call.args:
                continue
            what, first = call.func.attr, call.args[0]
            if what in (EQUIVALENT, CONDITIONAL):
                forms[Form(what, _text(first, names))] = None
            elif what == "refuse" and (reason := _text(first, names)):
                refusals[reason] = None
            elif what in _FACTS and isinstance(call.func.value, ast.Name):
                whose = _input(first, schema)
                needs[f"constant {whose}" if what == "constant" else f"{what} of {whose}"] = None
    return Found(tuple(forms), tuple(needs), tuple(refusals))


def _sources(function: Callable[..., object]) -> Iterator[tuple[ast.FunctionDef, dict[str, Any]]]:
    """Yields the source of a function and of all that it leads to among its neighbours, each with the names that it
    sees."""
    own = function.__module__
    around = _OURS if own.startswith(_OURS) else own.partition(".")[0]
    pending: list[Any] = [function]
    seen: set[FunctionType] = set()
    while pending:
        one = pending.pop()
        if isinstance(one, dict):  # a table of functions
            pending += one.values()
        if isinstance(one, type):
            pending += [member for member in vars(one).values() if isinstance(member, FunctionType)]
        if not isinstance(one, FunctionType) or one in seen or not one.__module__.startswith(around):
            continue
        seen.add(one)
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(one))).body[0]
        except (OSError, SyntaxError):  # what a dataclass makes of itself, a lambda in the midst of a line
            continue
        if isinstance(tree, ast.FunctionDef):
            yield tree, one.__globals__
            pending += _named(tree, one.__globals__)


def _named(tree: ast.AST, names: dict[str, Any]) -> Iterator[Any]:
    """Yields the functions and classes that a source names, also as members of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield names.get(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            home = names.get(node.value.id)
            if isinstance(home, ModuleType):
                yield getattr(home, node.attr, None)


def _always_declares(tree: ast.FunctionDef) -> bool:
    """Returns whether a function declares a form whatever the node is: in a line of its own, before it may return."""
    for line in tree.body:
        call = line.value if isinstance(line, ast.Expr) else None
        called = call.func if isinstance(call, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in (EQUIVALENT, CONDITIONAL):
            return True
        if any(isinstance(node, ast.Return) for node in ast.walk(line)):
            return False
    return False


def _text(node: ast.expr, names: dict[str, Any]) -> str:
    """Returns a text as it is written, "..." for what is filled in; "" where it is made in another way."""
    if isinstance(node, ast.Name) and isinstance(names.get(node.id), str):
        return str(names[node.id])
    if isinstance(node, ast.JoinedStr):
        return "".join(str(one.value) if isinstance(one, ast.Constant) else "..." for one in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _input(node: ast.expr, schema: OpSchema | None) -> str:
    """Returns an input by its name in the schema, if the source says which one it is."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, int):
        return "an input"
    inputs = schema.inputs if schema is not None else []
    return inputs[node.value].name if node.value < len(inputs) else f"input {node.value}"
