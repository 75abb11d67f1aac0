"""Checks of the source tree that no compiler makes: layers, confined headers, headers that stand alone, file lengths.

Run by CTest with the repository's root; prints one line for each fault and exits 1 when there is one.
"""

import pathlib
import re
import sys
from fnmatch import fnmatchcase as fnmatch

# Which folders a folder may include, beside itself. `tests` may include everything.
ALLOWED = {
    "topology": set(),
    "collectives": {"topology"},
    "simulation": {"topology", "collectives"},
    "models": {"topology"},
    "reports": set(),
    "bench": {"topology", "collectives", "simulation", "models", "reports"},
}

# Single headers that a folder may include although it may not include their folder.
ALLOWED_HEADERS = {
    "reports": {"topology/units.hpp", "topology/error.hpp", "topology/children.hpp", "topology/printable.hpp"},
}

# Which files may include the headers of a library; patterns as a shell has them.
CONFINED = {
    "CLI/*": {"bench/cli/*.cpp"},
    "dlfcn.h": {"topology/probe/nvml_library.cpp"},
    "gloo/*": {"collectives/baselines/gloo*"},
    "hwloc.h": {"topology/probe/hwloc_*"},
    "hwloc/*.h": {"topology/probe/hwloc_*"},
    "mpi.h": {"collectives/mpi/*", "collectives/baselines/mpi*", "collectives/transports/mpi*"},
    "nccl.h": set(),
    "nvml.h": set(),
    "pugixml.hpp": {"topology/formats/nccl_xml*"},
    "simgrid/*": {"tests/simulation/oracle/*"},
}

MAX_LINES = 500
LONGER = set()  # files that may have more lines

CPP = {".cpp", ".hpp"}
COUNTED = CPP | {".py", ".cmake", ".sh"}
FOLDERS = [*ALLOWED, "tests", "scripts"]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes(path):
    """The (line number, quote, header) of each #include of a file."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if found := INCLUDE.match(line):
            yield number, found[1], found[2]


def layer_fault(folder, header):
    """What is wrong with including a header of the project from a folder, or None."""
    target = header.split("/")[0]
    if folder == "tests" or target == folder:
        return None
    if target not in ALLOWED:
        return f'"{header}" is not given from the repository\'s root'
    if target in ALLOWED[folder] or header in ALLOWED_HEADERS.get(folder, ()):
        return None
    return f'{folder}/ must not know "{header}"'


def confinement_fault(relative, header):
    """What is wrong with including a library's header in a file, or None."""
    for pattern, places in CONFINED.items():
        if fnmatch(header, pattern) and not any(fnmatch(relative, place) for place in places):
            return f"<{header}> belongs only into {', '.join(sorted(places)) or 'no file yet'}"
    return None


def include_faults(root, path):
    relative = path.relative_to(root).as_posix()
    folder = relative.split("/")[0]
    for number, quote, header in includes(path):
        fault = layer_fault(folder, header) if quote == '"' else None
        if folder != "tests":
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


def length_fault(root, path):
    relative = path.relative_to(root).as_posix()
    lines = len(path.read_text(encoding="utf-8").splitlines())
    if lines > MAX_LINES and relative not in LONGER:
        return f"{relative}: {lines} lines, more than {MAX_LINES}: split it"
    return None


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
    return [fault for fault in found if fault]


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    found = faults(root)
    print(*found, sep="\n")
    print(f"{len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
