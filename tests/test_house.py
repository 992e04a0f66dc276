# SPDX-License-Identifier: Apache-2.0
"""The house keeps its order: names of packages, arrows between rooms, who opens files, who prints."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import onnx_convert.adapters  # noqa: F401 - fills the registry
from onnx_convert import opsets, registry
from onnx_convert.registry import Adapter

ROOT = Path(__file__).parent.parent
FOLDERS = {"converter": "onnx_convert", "adapters": "onnx_convert.adapters"}
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
PYTHON = sorted(path for folder in (*FOLDERS, "tests", "examples") for path in (ROOT / folder).rglob("*.py"))


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_of(path: Path) -> str:
    """The import name of a source file."""
    folder, *parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join([FOLDERS[folder], *(part for part in parts if part != "__init__")])


def imports(tree: ast.AST, *, at_run_time: bool = False) -> Iterator[str]:
    """The full names of what a module imports; without what stands under `if TYPE_CHECKING` if only run time counts."""
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
    """The names of what is called: `open`, `Path.open` as `open`, `os.replace` as `replace`."""
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


@pytest.mark.parametrize("path", SOURCES, ids=shown)
def test_size(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 450


# ---- rooms

# From the door inwards. A room may know those of its own row and of the rows below it.
ROWS = (
    ("__main__",),
    ("cli",),
    ("render", "render_explain"),
    ("api",),
    ("describe", "reach", "explain"),
    ("planner", "checks", "conversion", "judgement"),
    ("engine", "leftovers", "targets", "structure", "irversion"),
    ("plugins",),
    ("carrier",),
    ("sandwich",),
    ("emitter",),
    ("inline", "casts"),
    ("scope",),
    ("inference",),
    ("claims",),
    ("settling", "stretches"),
    ("view", "corrections", "bindings"),
    ("operator_shapes",),
    ("propagation",),
    ("legality", "edits", "constants", "recipes", "calls", "session", "written"),
    ("folding",),
    ("facts", "site", "attributes"),
    ("modelfile", "files", "layout", "wire"),
    ("registry",),
    ("types", "opsets", "report", "runtimes", "differences", "sources"),
    ("errors",),
)
ROW_OF = {f"onnx_convert.{room}": number for number, row in enumerate(ROWS) for room in row}


def rooms_of(name: str) -> str | None:
    """The room behind an imported name: `onnx_convert.site.Node` is of onnx_convert.site."""
    parts = name.split(".")
    if parts[0] != "onnx_convert" or len(parts) == 1:
        return None
    return ".".join(parts[:2])


@pytest.mark.parametrize("path", [p for p in SOURCES if p.parent.name == "converter"], ids=shown)
def test_arrows_point_one_way(path: Path) -> None:
    room = module_of(path)
    if room == "onnx_convert":
        assert not [name for name in imports(parsed(path), at_run_time=True) if name.startswith("onnx")]
        return
    assert room in ROW_OF, "a new room: give it a place in ROWS"
    for name in imports(parsed(path), at_run_time=True):
        known = rooms_of(name)
        if known == "onnx_convert.adapters":
            assert room in ("onnx_convert.api", "onnx_convert.explain"), f"{name}: who calls the adapters in is known"
        elif known is not None:
            assert known in ROW_OF, "a new room: give it a place in ROWS"
            assert ROW_OF[known] >= ROW_OF[room], f"{name} lies further out"


ADAPTERS_KNOW = {"registry", "site", "types", "emitter", "casts", "opsets", "adapters", "constants"}


@pytest.mark.parametrize("path", [p for p in SOURCES if "adapters" in p.relative_to(ROOT).parts[:1]], ids=shown)
def test_adapters_know_little(path: Path) -> None:
    excused = "# noqa: TID251  (" in path.read_text(encoding="utf-8")  # with the reason why it needs messages
    for name in imports(parsed(path)):
        top = name.partition(".")[0]
        assert top not in ("google", "click", "rich"), name
        assert top != "onnx" or excused, name
        room = rooms_of(name)
        assert room is None or room.partition(".")[2] in ADAPTERS_KNOW, name


OPENERS = {"open", "read_bytes", "write_bytes", "read_text", "write_text", "load_model", "save_model", "fdopen", "mmap",
           "mkstemp", "NamedTemporaryFile", "TemporaryDirectory"}  # fmt: skip


@pytest.mark.parametrize("path", SOURCES, ids=shown)
def test_only_the_file_rooms_open_files(path: Path) -> None:
    may = ("modelfile", "files", "wire", "layout", "runtimes", "adapters", "adapters.decompose.compiled")
    if module_of(path).partition(".")[2] not in may:
        assert not OPENERS & set(calls(parsed(path)))


@pytest.mark.parametrize("path", SOURCES, ids=shown)
def test_only_the_command_line_prints_and_exits(path: Path) -> None:
    if module_of(path) != "onnx_convert.cli":
        assert not {"print", "echo", "secho", "exit", "_exit", "print_exception"} & set(calls(parsed(path)))


# ---- adapters

ADAPTERS = [decision for _, decision in registry.decisions() if isinstance(decision, Adapter)]
FAMILIES = [path for path in (ROOT / "adapters").rglob("[!_]*.py") if path.parent.name != "scripts"]
OURS = [a for a in ADAPTERS if a.function.__module__.startswith("onnx_convert.adapters")]


def crossing(adapter: Adapter) -> str:
    return f"{opsets.shown(adapter.domain)}.{adapter.operator}@{adapter.boundary} {adapter.direction}"


@pytest.mark.parametrize("adapter", OURS, ids=crossing)
def test_an_adapter_says_what_it_does(adapter: Adapter) -> None:
    assert adapter.summary, "an adapter has a docstring"
    assert adapter.name.islower()


@pytest.mark.parametrize("path", FAMILIES, ids=shown)
def test_a_family_names_what_it_decides_in_quotes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By that it is found when somebody asks about an operator. The two tables are imported in any case."""
    monkeypatch.setattr(registry, "_decisions", {})
    text = path.read_text(encoding="utf-8")
    exec(compile(text, path, "exec"), {"__name__": module_of(path)})
    missing = {operator for _, operator, _, _ in registry._decisions if f'"{operator}"' not in text}
    assert not missing or path.stem in ("compatible", "dtypes")


def test_no_adapter_file_is_left_out() -> None:
    """What lies in the folder is imported by the package; but for the sources of what is compiled."""
    paths = [path for path in SOURCES if path.is_relative_to(ROOT / "adapters") and path.stat().st_size]
    scripts = {module_of(path) for path in paths if path.parent.name == "scripts"}
    assert {module_of(path) for path in paths} - scripts <= set(sys.modules)
    assert scripts
    assert not scripts & set(sys.modules)


@pytest.mark.parametrize("path", [p for p in SOURCES if "adapters" in p.relative_to(ROOT).parts[:1]], ids=shown)
def test_adapters_ask_through_the_site(path: Path) -> None:
    """Not the scope behind it, which is the engine's."""
    assert not [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Attribute) and node.attr == "scope"]
