"""Checks of the source tree that no compiler makes: layers, confined headers, headers that stand alone, file lengths,
phrases, stray files.

Run by CTest with the repository's root; prints one line for each fault and exits 1 when there is one.
"""

import collections
import pathlib
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatchcase as fnmatch

# The boxes, from the lowest to the highest, and which others each may include. The longest folder that a file is in is its
# box. `tests` may include everything.
CORE = {
    "base": set(),
    "topology": {"base"},
    "topology/inventory": {"base", "topology"},
    "collectives/schedule": {"base", "topology"},
    "collectives/runtime": {"base", "topology", "collectives/schedule"},
    "collectives/cuda": {"base", "topology", "collectives/schedule", "collectives/runtime"},
    "collectives/library/topology": {"base", "topology", "topology/inventory", "collectives/schedule", "collectives/runtime", "simulation"},
    "collectives/library": {"collectives/library/topology", "base", "topology", "collectives/schedule", "collectives/runtime", "collectives/cuda"},
    "models": {"base", "topology"},
    "simulation": {"base", "topology", "collectives/schedule", "models"},
    "reports": {"base"},
    "reports/import": {"base", "reports"},
}
BENCH = {
    "bench/cli": set(),
    "bench/session": {"bench/cli"},
    "bench/record": {"bench/cli", "bench/session"},
    "bench/plans": {"bench/cli", "bench/session", "bench/record"},
    "bench/contenders": {"bench/cli", "bench/session", "bench/plans"},
    "bench/measure": {"bench/cli", "bench/session", "bench/record", "bench/plans", "bench/contenders"},
    "bench/predict": {"bench/cli", "bench/record"},
    "bench/accept": {"bench/cli", "bench/session", "bench/record", "bench/plans", "bench/contenders", "bench/measure",
                     "bench/predict"},
    "bench/launch": {"bench/cli", "bench/record"},
    "bench/micro": {"bench/measure"},
}
COMMANDS = {"bench/commands": set(BENCH), "bench": {"bench/cli", "bench/commands", "bench/contenders", "bench/record"}}
ALLOWED = CORE | {box: below | set(CORE) for box, below in (BENCH | COMMANDS).items()}

# What one box may include of another, if not all of it.
FACES = {("collectives/library", "collectives/cuda"): {"collectives/cuda/gpu.hpp"},
         ("collectives/library", "collectives/library/topology"): {"collectives/library/topology/topology.hpp"}}

# Which files may include the headers of a library; patterns as a shell has them.
CONFINED = {
    "CLI/*": {"bench/cli/*.cpp"},
    "cuda/*": {"collectives/cuda/flags.hpp"},
    "cuda*.h": {"collectives/cuda/*", "bench/micro/gpu_*"},
    "dlfcn.h": {"topology/inventory/probe/nvml_calls.hpp", "base/module.cpp", "collectives/cuda/nccl_library.cpp", "collectives/cuda/cublas.cpp"},
    "gloo/*": {"bench/contenders/gloo*"},
    "hwloc.h": {"topology/inventory/probe/hwloc_*"},
    "hwloc/*.h": {"topology/inventory/probe/hwloc_*"},
    "mpi.h": {"collectives/runtime/mpi/*", "bench/contenders/mpi*", "collectives/runtime/transports/mpi*", "collectives/library/mpi/*", "collectives/library/ddl/*"},
    "nccl.h": {"collectives/cuda/nccl*"},
    "nvml.h": set(),
    "pugixml.hpp": {"reports/verdict_files.cpp", "topology/inventory/formats/nccl_xml*"},
    "simgrid/*": {"tests/simulation/oracle/*"},
    "toml++/*": {"bench/accept/spec.cpp", "topology/inventory/formats/machine_toml.cpp"},
}

MAX_LINES = 500
LONGER = set()  # files that may have more lines

# Phrases that make readers read twice, and where there are none of them any more: add each folder as it is done.
PHRASES = re.compile(r"\bbut for\b|, of which\b|\bas (?:[\w'-]+ ){1,4}(?:has|have) (?:it|them)\b|(?<!hosts\.)\balike\b", re.IGNORECASE)
WORDS_OF_THEIR_OWN = ("tests/layering/", "tests/golden/", "tests/fuzz/seeds/")  # that name the phrases, or are recorded

CPP = {".cpp", ".hpp"}
COUNTED = CPP | {".py", ".cmake", ".sh"}
FOLDERS = [*dict.fromkeys(box.split("/")[0] for box in ALLOWED), "tests", "scripts"]

# What is at the top, beside the boxes; and what may be other than text.
TOP = {*FOLDERS, "docs", ".ci", ".clang-format", ".clang-tidy", ".dockerignore", ".gitignore", "CMakeLists.txt", "CMakePresets.json", "CONTRIBUTING.md",
       "LICENSE", "README.md"}
BINARY = ("docs/images/*.png", "tests/fuzz/seeds/*")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

TYPES = re.compile(r"^(?:struct|class|enum class) (\w+)(?: final)?(?: :[^;{]*)? ?\{", re.MULTILINE)


def includes(path):
    """The (line number, quote, header) of each #include of a file."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if found := INCLUDE.match(line):
            yield number, found[1], found[2]


def box_of(path):
    """The box that a file is in, or None."""
    folders = path.split("/")[:-1]
    above = ("/".join(folders[:depth]) for depth in range(len(folders), 0, -1))
    return next((folder for folder in above if folder in ALLOWED), None)


def layer_fault(relative, header):
    """What is wrong with including a header of the project in a file, or None."""
    if relative.startswith("tests/"):
        return None
    box, target = box_of(relative), box_of(header)
    if box is None:
        return f"is in no box: name its folder in {pathlib.Path(__file__).name}"
    if target is None:
        return f'"{header}" is not given from the repository\'s root, or is in no box'
    if header not in FACES.get((box, target), {header}):
        return f'{box}/ may include only {", ".join(FACES[box, target])} of {target}/, not "{header}"'
    if target == box or target in ALLOWED[box]:
        return None
    return f'{box}/ must not know "{header}"'


def confinement_fault(relative, header):
    """What is wrong with including a library's header in a file, or None."""
    for pattern, places in CONFINED.items():
        if fnmatch(header, pattern) and not any(fnmatch(relative, place) for place in places):
            return f"<{header}> belongs only into {', '.join(sorted(places)) or 'no file yet'}"
    return None


def include_faults(root, path):
    relative = path.relative_to(root).as_posix()
    for number, quote, header in includes(path):
        fault = layer_fault(relative, header) if quote == '"' else None
        if not relative.startswith("tests/"):
            fault = fault or confinement_fault(relative, header)
        if fault:
            yield f"{relative}:{number}: {fault}"


def alone_fault(root, path):
    """What keeps a header from compiling alone, and twice, as far as its text shows; or None.

    A source that includes its own header before all others is the compiler's proof of the first.
    """
    relative = path.relative_to(root).as_posix()
    if path.suffix == ".hpp":
        pragma = "#pragma once" in path.read_text(encoding="utf-8").splitlines()
        return None if pragma else f"{relative}: has no #pragma once"
    own = path.with_suffix(".hpp").relative_to(root).as_posix()
    if not (root / own).exists() or next(includes(path), (0, "", ""))[2] == own:
        return None
    return f'{relative}: must include its own "{own}" first'


def name_faults(root):
    """Types of the same name in two headers: a program that links both may take one for the other.

    No compiler and no linker tells. Tests are programs of their own.
    """
    places = collections.defaultdict(list)
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.hpp")):
            if folder != "tests":
                for name in TYPES.findall(path.read_text(encoding="utf-8")):
                    places[name].append(path.relative_to(root).as_posix())
    for name, files in places.items():
        if len(files) > 1:
            yield f"{files[-1]}: {name} is also defined in {files[0]}: give it another name"


def length_fault(root, path):
    relative = path.relative_to(root).as_posix()
    lines = len(path.read_text(encoding="utf-8").splitlines())
    if lines > MAX_LINES and relative not in LONGER:
        return f"{relative}: {lines} lines, more than {MAX_LINES}: split it"
    return None


def phrase_faults(root, path):
    relative = path.relative_to(root).as_posix()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if found := PHRASES.search(line):
            yield f'{relative}:{number}: "{found[0]}" is hard to read: write it another way'


def tracked(root):
    """The files that git keeps; none where this tree is not git's, or another user's, which git does not read."""
    if not (root / ".git").exists() or not shutil.which("git"):
        return []
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, text=True, check=False)
    return listed.stdout.split("\0")[:-1]


def stray_faults(root):
    """Files that somebody has added by mistake."""
    for relative in tracked(root):
        path = root / relative
        if relative.split("/")[0] not in TOP:
            yield f"{relative}: nothing of that name belongs at the top"
        elif path.is_file() and not any(fnmatch(relative, pattern) for pattern in BINARY):
            try:
                path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                yield f"{relative}: is not text"


def faults(root):
    """All faults of the tree under `root`, as lines of text."""
    found = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in CPP:
                found.extend(include_faults(root, path))
                found.append(alone_fault(root, path))
            if path.suffix in COUNTED:
                found.append(length_fault(root, path))
    for place in (*FOLDERS, "docs", "README.md", "CONTRIBUTING.md"):
        for path in [root / place, *sorted((root / place).rglob("*"))]:
            plain = not path.relative_to(root).as_posix().startswith(WORDS_OF_THEIR_OWN)
            if plain and path.is_file() and path.suffix in COUNTED | {".md", ".txt", ""}:
                found.extend(phrase_faults(root, path))
    found.extend(name_faults(root))
    found.extend(stray_faults(root))
    return [fault for fault in found if fault]


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    found = faults(root)
    print(*found, sep="\n")
    print(f"{len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
