"""Checks that the kernels for AVX2 and AVX-512 define no code that the linker could use elsewhere.

Of an inline function that several objects define the linker keeps any one, and a copy that was compiled for AVX-512
would end the program on a processor without it. Run with nm and the library.
"""

import subprocess
import sys

WIDE = {"avx2.cpp", "avx512.cpp"}


def shared_code(listing):
    """The (object, symbol) of each weak or unique function in the wide objects of what `nm -A -C` lists."""
    for line in listing.splitlines():
        place, _, rest = line.rpartition(": ") if " " not in line else line.partition(" ")
        member = place.split(":")[-2] if place.endswith(":") else place.split(":")[1]
        kind, _, symbol = rest.strip().partition(" ")
        if member.removesuffix(".o") in WIDE and kind in {"W", "w", "u"}:
            yield member, symbol
