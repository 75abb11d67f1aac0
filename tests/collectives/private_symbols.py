"""Checks that the kernels for AVX2 and AVX-512 define no code that the linker could use elsewhere.

Of an inline function that several objects define the linker keeps any one, and a copy compiled for AVX-512 would end
the program on a processor without it. Run with nm and the library.
"""

import subprocess
import sys

WIDE = {"avx2.cpp.o", "avx512.cpp.o"}
SHARED = {"W", "w", "u"}  # weak and unique symbols, in nm's letters


def symbols(nm, library):
    """The (object, kind, name) of each symbol that an object of the library defines."""
    listing = subprocess.run([nm, "-A", "-C", "--defined-only", library], check=True, capture_output=True, text=True)
    for line in listing.stdout.splitlines():
        member, _, symbol = line.removeprefix(f"{library}:").partition(":")
        _, kind, name = symbol.split(" ", 2)
        yield member, kind, name


def main():
    wide = [symbol for symbol in symbols(*sys.argv[1:]) if symbol[0] in WIDE]
    faults = [f"{member} shares {name}" for member, kind, name in wide if kind in SHARED]
    faults += [f"{member} is not in the library" for member in WIDE - {symbol[0] for symbol in wide}]
    print(*faults, sep="\n")
    print(f"{len(faults)} faults in {len(wide)} symbols")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
