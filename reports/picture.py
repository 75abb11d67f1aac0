#!/usr/bin/env python3
"""Draws the hosts of a probe: `picture.py PROBE --source TEXT --out FILE`, where FILE ends in .svg or .png.

Exit codes as polyring's: 0, 5 (matplotlib is missing), 6 (bad input, nothing written), 11 (the disk is full).
"""

import sys
from pathlib import Path

sys.dont_write_bytecode = True  # the folder of this script may be read-only, and stays clean

from plots.probe import read_probe  # noqa: E402
from plots.results import InputError  # noqa: E402
from plots.script import Parser, new_file, run, use_matplotlib  # noqa: E402

OPTIONS = {".png": {"dpi": 160}, ".svg": {"metadata": {"Date": None}}}


def parse_arguments(arguments):
    parser = Parser(description="Draws the hosts of a probe.", allow_abbrev=False,
                    epilog="example: picture.py probe.json --source 'probed on node07' --out node07.svg")
    parser.add_argument("probe", type=Path, metavar="PROBE", help="what polyring probe --format json printed")
    parser.add_argument("--source", required=True, metavar="TEXT", help="where the hosts were read")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="the picture, .svg or .png")
    options = parser.parse_args(arguments)
    if options.out.suffix not in OPTIONS:
        raise InputError(f"'{options.out}' names no kind of picture; let it end in .svg or .png")
    if options.out.exists():
        raise InputError(f"'{options.out}' exists already; name another file")
    return options


def draw(arguments):
    options = parse_arguments(arguments)
    probe = read_probe(options.probe)
    use_matplotlib()
    from plots import machine
    figure = machine.draw(probe, options.source)
    with new_file(options.out) as file:
        figure.savefig(file, format=options.out.suffix[1:], **OPTIONS[options.out.suffix])


if __name__ == "__main__":
    sys.exit(run(draw))
