# SPDX-License-Identifier: Apache-2.0
"""Makes libraries that stand in for those of a graphics card, so that an onnxruntime with CUDA can be loaded on a
machine without one and lists its kernels. Nothing can be computed with them: each function does nothing and says that
it went well.

Needs gcc and binutils.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Final

SYSTEM: Final = ("libdl", "librt", "libpthread", "libstdc++", "libm.", "libgcc_s", "libc.so", "ld-linux", "libz.")
COMPILERS: Final = ("GLIBC", "CXXABI", "GCC_")

SPECIAL: Final = (
    ("cudaGetDeviceProperties", "int {}(char *p, int device) {{ memset(p, 0, 700); return 0; }}"),
    ("(cudaMalloc|cudaHostAlloc)", "int {}(void **p, size_t size) {{ *p = malloc(size + 1); return 0; }}"),
    ("cudaMemGetInfo", "int {}(size_t *free, size_t *all) {{ *free = *all = 1ul << 33; return 0; }}"),
    ("cudaGetDeviceCount", "int {}(int *count) {{ *count = 1; return 0; }}"),
    ("cudaGetDevice", "int {}(int *device) {{ *device = 0; return 0; }}"),
    (r"\w+(StreamCreate|EventCreate)|\w+Create(_v2)?$", "int {}(void **p) {{ *p = calloc(1, 4096); return 0; }}"),
    (r"\w+GetError(String|Name)", 'const char *{}(int error) {{ return ""; }}'),
    ("__cudaRegisterFatBinary$", "void *{}(void *binary) {{ static void *handle; return &handle; }}"),
    ("(createInfer|createNv|getPlugin)", "void *{}(void) {{ return object; }}"),
    ("", "long {}(void) {{ return 0; }}"),
)
"""What a function does, by the beginning of its name; the first that fits."""

HEAD: Final = """
#include <stdlib.h>
#include <string.h>
static void *methods[400], *object[400];
static void *method(void) { return object; }
__attribute__((constructor)) static void begin(void) {
    for (int i = 0; i < 400; i++) methods[i] = method;
    object[0] = methods;
}
"""


def made(libraries: list[Path], folder: Path) -> None:
    """Writes to a folder a library for each that these need and the system does not have, with the functions that they
    take from it, and that of the driver."""
    functions: dict[str, set[str]] = defaultdict(set)
    bare: set[str] = set()
    needed: set[str] = set()
    names: set[str] = set()
    for library in libraries:
        needed |= set(re.findall(r"NEEDED.*\[(.*?)\]", _output("readelf", "-dW", library)))
        for line in _output("nm", "-D", "--undefined-only", library).splitlines():
            name, _, version = line.split()[-1].partition("@")
            if version and not version.startswith(COMPILERS):
                functions[version].add(name)
            elif re.match("(__)?(cu|nv|create|get|init)[A-Za-z]", name):
                bare.add(name)
        names |= set(re.findall(r"^cu[A-Z]\w+$", _output("strings", "-n", "5", library), re.MULTILINE))
    folder.mkdir(exist_ok=True)
    for library_name in sorted(name for name in needed if not name.startswith(SYSTEM)):
        own = functions.get(library_name, set())
        _compile(folder / library_name, own | (bare if library_name.startswith(("libcudart", "libnv")) else set()), own)
    _compile(folder / "libcuda.so.1", names, set())


def _compile(path: Path, functions: set[str], versioned: set[str]) -> None:
    """Compiles a library with these functions; `versioned` ones bear its name as their version."""
    lines = [next(text for start, text in SPECIAL if re.match(start, name)).format(name) for name in sorted(functions)]
    source, versions = path.with_suffix(".c"), path.with_suffix(".map")
    source.write_text("\n".join([HEAD, *lines, ""]))
    versions.write_text(f"{path.name} {{ global: *; }};\n")
    script = [f"-Wl,--version-script={versions}"] if versioned else []
    command = ["gcc", "-w", "-shared", "-fPIC", "-o", path, source, f"-Wl,-soname,{path.name}", *script]
    subprocess.run(command, check=True)


def _output(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, errors="replace").stdout
