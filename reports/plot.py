#!/usr/bin/env python3
"""Draws the charts of polyring result files: `plot.py RESULT... --out FOLDER`.

For each chart it writes NAME.png and NAME.svg, and prints a line with the result's name, NAME and the chart's title,
separated by tabs. Exit codes as polyring's: 0, 5 (matplotlib is missing), 6 (bad input, nothing written), 11 (the disk is
full).
"""

import os
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # the folder of this script may be read-only, and stays clean

from plots.results import COLLECTIVES, InputError, read_result  # noqa: E402
from plots.script import Parser, new_file, run, use_matplotlib  # noqa: E402


def parse_arguments(arguments):
    parser = Parser(description="Draws the charts of polyring result files, as PNG and SVG.",
                    epilog="example: plot.py out.json scale.json --out charts", allow_abbrev=False)
    parser.add_argument("results", nargs="+", metavar="RESULT", help="a file that polyring wrote with -J")
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="where the charts go")
    return parser.parse_args(arguments)


def charts_of(result):
    """Pairs of a chart's kind and the chart, for a result of any kind."""
    from plots import bandwidth, scaling, timeline
    if result.kind == "tune" or not result.rows:  # a table says it; an interrupted run may have no row yet
        return []
    if result.kind in COLLECTIVES:
        return [("bus-bandwidth", chart) for chart in bandwidth.charts(result)]
    if result.kind == "scale":
        return [("scaling", chart) for chart in scaling.charts(result)]
    return [("timeline", chart) for chart in timeline.charts(result)]


def named_charts(result):
    """The charts of a result, each with the name of its files."""
    charts = charts_of(result)
    for index, (kind, chart) in enumerate(charts):
        number = "" if index == 0 else f"-{index + 1}"
        yield f"{result.name}-{kind}{number}", chart


def check_out(folder, names):
    if len(set(names)) < len(names):
        raise InputError("two results have the same name; rename one of them")
    taken = [name for name in names for suffix in ("png", "svg") if (folder / f"{name}.{suffix}").exists()]
    if taken:
        raise InputError(f"'{folder}' already has a chart '{taken[0]}'; name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write into '{folder}': {error.strerror}; name another folder") from error
    if not os.access(folder, os.W_OK):
        raise InputError(f"cannot write into '{folder}': permission denied; name another folder")


def save(figure, folder, name):
    for suffix, options in (("png", {"dpi": 160}), ("svg", {"metadata": {"Date": None}})):
        with new_file(folder / f"{name}.{suffix}") as file:
            figure.savefig(file, format=suffix, **options)


def draw(arguments):
    options = parse_arguments(arguments)
    results = [read_result(Path(path)) for path in options.results]
    use_matplotlib()
    from plots.lettering import clean
    drawings = [(result, name, chart) for result in results for name, chart in named_charts(result)]
    check_out(options.out, [name for _, name, _ in drawings])
    for result, name, chart in drawings:
        save(chart.draw(), options.out, name)
        print(result.name, name, clean(chart.title), sep="\t")


if __name__ == "__main__":
    sys.exit(run(draw))
