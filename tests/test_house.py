# SPDX-License-Identifier: Apache-2.0
"""The house keeps its order: names of packages, arrows between rooms, who opens files, who prints."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

import onnx_convert.adapters  # noqa: F401 - fills the registry
from onnx_convert.model.patch import GraphPatch, ModelPatch
from onnx_convert.rewrite import registry
from onnx_convert.rewrite.registry import Adapter
from onnx_convert.spec import opsets

ROOT = Path(__file__).parent.parent
FOLDERS = {"converter": "onnx_convert", "adapters": "onnx_convert.adapters"}
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
PYTHON = sorted(path for folder in (*FOLDERS, "tests", "examples") for path in (ROOT / folder).rglob("*.py"))


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_of(path: Path) -> str:
    """Returns the import name of a source file."""
    folder, *parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join([FOLDERS[folder], *(part for part in parts if part != "__init__")])


def imports(tree: ast.AST, *, at_run_time: bool = False) -> Iterator[str]:
    """Returns the full names of what a module imports; without what stands under `if TYPE_CHECKING` if only run time
    counts."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif not (at_run_time and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            yield from imports(node, at_run_time=at_run_time)


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def calls(tree: ast.AST) -> Iterator[str]:
    """Returns the names of what is called: `open`, `Path.open` as `open`, `os.replace` as `replace`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name):
                yield called.id
            elif isinstance(called, ast.Attribute):
                yield called.attr


@pytest.mark.parametrize("path", PYTHON, ids=shown)
def test_file(path: Path) -> None:
    """License line, docstring, and the package's own name in imports."""
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# SPDX-License-Identifier: Apache-2.0\n")
    tree = parsed(path)
    assert ast.get_docstring(tree), "a module says what it is for"
    tops = {name.partition(".")[0] for name in imports(tree)}
    assert not tops & set(FOLDERS), "code imports onnx_convert, never the folder names"


@pytest.mark.parametrize("path", PYTHON, ids=shown)
def test_size(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 450


# What ends in an s like a verb of the third person, and has begun sentences that were none.
NO_VERBS = {"Always", "As", "Indices", "Integers", "Its", "Keys", "Plus", "This", "Values"}


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """Returns the functions and methods that do something: a property is a noun, and the docstring of an adapter, or
    of a script that is compiled, tells the rule that is written, in the words that `--explain` shows."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            marks = {ast.unparse(mark).partition("(")[0].rpartition(".")[2] for mark in node.decorator_list}
            if not marks & {"property", "cached_property", "setter", "upgrade", "downgrade", "script"}:
                yield node


@pytest.mark.parametrize("path", SOURCES, ids=shown)
def test_docstrings_of_functions_begin_with_a_verb(path: Path) -> None:
    """Third person: `Returns the rank`, not `The rank`."""
    told = [(node.name, text) for node in functions(parsed(path)) if (text := ast.get_docstring(node))]
    verbs = [re.match(r"[A-Z][a-z]+s\b", text) for _, text in told]
    assert [name for (name, _), verb in zip(told, verbs, strict=True) if not verb or verb[0] in NO_VERBS] == []


# ---- storeys

# From the door down. A room may know those of its own storey and of the storeys below it; what stands beside each other
# in a row knows nothing of each other.
STOREYS = (
    ("__main__",),
    ("cli",),
    ("batch", "ir_passes"),
    ("api",),
    ("conversion", "reference", "verification"),
    ("planning",),
    ("target", "validation"),
    ("adapters",),
    ("adapter",),
    ("rewrite",),
    ("analysis", "storage"),
    ("model",),
    ("spec",),
    ("errors", "options"),
    ("report",),
)
STOREY_OF = {name: number for number, row in enumerate(STOREYS) for name in row}


def room_of(name: str) -> str:
    """Returns the module behind an imported name, without the package: `onnx_convert.rewrite.node.Node` is of
    rewrite.node."""
    parts = name.split(".")
    while parts and ".".join(parts) not in ROOMS:
        parts.pop()
    return ".".join(parts[1:])


ROOMS = {module_of(path) for path in SOURCES}
ARROWS = {
    room: {known for name in imports(parsed(path)) if name.startswith("onnx_convert.") and (known := room_of(name))}
    for path in SOURCES
    if (room := module_of(path).partition(".")[2]) and room.partition(".")[0] != "adapters"
}


@pytest.mark.parametrize("room", ARROWS)
def test_imports_go_down(room: str) -> None:
    """Imports for types alone count as well."""
    storey = room.partition(".")[0]
    for known in ARROWS[room]:
        other = known.partition(".")[0]
        assert other == storey or STOREY_OF[other] > STOREY_OF[storey], f"{room} knows {known}"


def test_no_circles() -> None:
    """Rooms that know each other, directly or by a chain, are one room."""
    ahead = {room: known - {room} for room, known in ARROWS.items()}
    while free := [room for room, known in ahead.items() if not known & ahead.keys()]:
        for room in free:
            del ahead[room]
    assert not ahead, "a circle"


def test_the_door_imports_nothing() -> None:
    tree = parsed(ROOT / "converter" / "__init__.py")
    assert not [name for name in imports(tree, at_run_time=True) if name.startswith("onnx")]


def test_every_room_opens_by_its_path() -> None:
    """Each module can be the first that is imported; the sources of ONNX Script are compiled, not imported."""
    rooms = sorted(room for room in ROOMS if ".scripts" not in room and not room.endswith("__main__"))
    code = (
        "import importlib, os, sys, onnx\n"
        "for room in sys.argv[1:]:\n"
        "    if not os.fork():\n"
        "        importlib.import_module(room)\n"
        "        os._exit(0)\n"
        "    assert os.wait()[1] == 0, room\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *rooms], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", [p for p in SOURCES if "adapters" in p.relative_to(ROOT).parts[:1]], ids=shown)
def test_adapters_know_little(path: Path) -> None:
    """Graphs are messages, and compiled scripts ONNX's own text: only the library knows that."""
    excused = module_of(path) in ("onnx_convert.adapters.lib.bodies", "onnx_convert.adapters.lib.script")
    for name in imports(parsed(path)):
        top = name.partition(".")[0]
        assert top not in ("google", "click", "rich"), name
        assert top != "onnx" or excused, name
        if top == "onnx_convert" and module_of(path) != "onnx_convert.adapters":
            assert name.startswith(("onnx_convert.adapter.", "onnx_convert.adapters")), name


OPENERS = {"open", "read_bytes", "write_bytes", "read_text", "write_text", "load_model", "save_model", "fdopen", "mmap",
           "mkstemp", "NamedTemporaryFile", "TemporaryDirectory"}  # fmt: skip


@pytest.mark.parametrize("path", SOURCES, ids=shown)
def test_only_storage_opens_files(path: Path) -> None:
    """Storage opens models; besides, tables, compiled scripts and the style of pages, all of the packages themselves,
    are read, and standard streams that are closed are opened."""
    room = module_of(path).partition(".")[2]
    if not room.startswith("storage.") and room not in (
        "target.kernels",
        "target.messages",
        "target.runtimes",
        "reference.samples",
        "cli.page.document",
        "cli.streams",
        "adapters",
        "adapters.lib.script",
    ):
        assert not OPENERS & set(calls(parsed(path)))


@pytest.mark.parametrize("path", SOURCES, ids=shown)
def test_only_the_command_line_prints_and_exits(path: Path) -> None:
    if path.parent.name != "cli":
        assert not {"print", "echo", "secho", "exit", "_exit", "print_exception"} & set(calls(parsed(path)))


# ---- patches and nodes

PATCHES = {field.name for patch in (GraphPatch, ModelPatch) for field in fields(patch)}
MUTATORS = {"add", "append", "clear", "difference_update", "discard", "extend", "insert", "keep", "leave_out", "pop",
            "put_first", "remove", "replace", "reverse", "setdefault", "sort", "update"}  # fmt: skip


def written_to(tree: ast.AST) -> Iterator[ast.expr]:
    """What is assigned to, deleted, or called to change itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.Delete):
            yield from node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            yield node.target
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
            yield node.func.value


def of_patches(expression: ast.expr) -> bool:
    """Whether it is an attribute of a patch, or of one in a patch: `work.patch.inputs`, `patch.graph.dropped["x"]`."""
    while isinstance(expression, ast.Subscript):
        expression = expression.value
    holder = ast.unparse(expression.value) if isinstance(expression, ast.Attribute) else ""
    return isinstance(expression, ast.Attribute) and expression.attr in PATCHES and "patch" in holder


@pytest.mark.parametrize("path", SOURCES, ids=shown)
def test_a_patch_is_written_by_rewrites_and_dead_constants_alone(path: Path) -> None:
    """Whoever else wants another patch makes one."""
    room = module_of(path).partition(".")[2]
    found = [ast.unparse(expression) for expression in written_to(parsed(path)) if of_patches(expression)]
    if not room.startswith("rewrite.") and room not in ("planning.dead_constants", "model.patch"):
        assert not found
    assert found or room != "rewrite.scope", "this is how it is found"


@pytest.mark.parametrize("path", [p for p in SOURCES if p.parent.name == "rewrite"], ids=shown)
def test_rewrites_know_nothing_of_serialised_nodes(path: Path) -> None:
    assert not {"SerializeToString", "FromString", "MergeFromString", "ParseFromString"} & set(calls(parsed(path)))


# ---- adapters

ADAPTERS = [decision for _, decision in registry.decisions() if isinstance(decision, Adapter)]
FAMILIES = [p for p in (ROOT / "adapters").rglob("[!_]*.py") if p.parent.name in ("adapters", "decompose", "tables")]
LIBRARY = sorted((ROOT / "adapters" / "lib").glob("*.py"))
OURS = [a for a in ADAPTERS if a.function.__module__.startswith("onnx_convert.adapters")]


def crossing(adapter: Adapter) -> str:
    return f"{opsets.shown(adapter.domain)}.{adapter.operator}@{adapter.boundary} {adapter.direction}"


@pytest.mark.parametrize("adapter", OURS, ids=crossing)
def test_an_adapter_says_what_it_does(adapter: Adapter) -> None:
    assert adapter.summary, "an adapter has a docstring"
    assert adapter.name.islower()


@pytest.mark.parametrize("path", FAMILIES, ids=shown)
def test_a_family_names_what_it_decides_in_quotes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By that it is found when somebody asks about an operator. The tables are imported in any case."""
    monkeypatch.setattr(registry, "_decisions", {})
    text = path.read_text(encoding="utf-8")
    exec(compile(text, path, "exec"), {"__name__": module_of(path)})
    missing = {operator for _, operator, _, _ in registry._decisions if f'"{operator}"' not in text}
    assert not missing or path.parent.name == "tables"
    assert registry._decisions or path.stem == "promotable"  # which has its own kind of entries


def test_an_operator_is_told_in_one_family() -> None:
    """Its whole history stands in one file; only what replaces it where it is missing lies in decompose."""
    families: dict[tuple[str, str], set[str]] = {}
    for adapter in OURS:
        module = adapter.function.__module__.removeprefix("onnx_convert.adapters.")
        if not module.startswith("decompose."):
            families.setdefault((adapter.domain, adapter.operator), set()).add(module)
    assert {operator: told for operator, told in families.items() if len(told) > 1} == {}


@pytest.mark.parametrize("path", LIBRARY, ids=shown)
def test_what_families_share_registers_nothing(path: Path) -> None:
    registering = {"upgrade", "downgrade", "compatible", "impossible", "promotable"}
    assert not registering & {name.rpartition(".")[2] for name in imports(parsed(path))}


def test_no_adapter_file_is_left_out() -> None:
    """What lies in the folder is imported by the package; but for the sources of what is compiled."""
    paths = [path for path in SOURCES if path.is_relative_to(ROOT / "adapters") and path.stat().st_size]
    scripts = {module_of(path) for path in paths if path.parent.name == "scripts"}
    assert {module_of(path) for path in paths} - scripts <= set(sys.modules)
    assert scripts
    assert not scripts & set(sys.modules)


@pytest.mark.parametrize("path", [p for p in SOURCES if "adapters" in p.relative_to(ROOT).parts[:1]], ids=shown)
def test_adapters_ask_the_node(path: Path) -> None:
    """Not the draft behind it, which is the engine's."""
    assert not [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Attribute) and node.attr == "draft"]


def test_the_readme_names_every_room() -> None:
    told = (ROOT / "converter" / "README.md").read_text(encoding="utf-8")
    rooms = {path.stem for path in SOURCES if path.parts[-3:-2] == ("converter",)} - {"__init__"}
    assert not [room for room in sorted(rooms) if f"`{room}`" not in told]
