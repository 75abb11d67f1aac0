#!/usr/bin/env python3
"""Draws the charts of polyring result files: `plot.py RESULT... --out FOLDER`.

For each chart it writes NAME.png and NAME.svg, and prints a line with the result's name, NAME, the chart's kind and title,
and what it shows, separated by tabs. A picture of the machine of several results is drawn once, and its line has all their
names, with commas between. With --overlay also charts of all the results together; their lines name no result. With
--compare NAME these alone, of results that polyring compare has aligned. Exit codes as polyring's: 0, 5 (matplotlib is
missing), 6 (bad input, nothing written), 11 (the disk is
full).
"""

import io
import os
import sys
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True  # the folder of this script may be read-only, and stays clean

from plots.contenders import check_comparable, check_number  # noqa: E402
from plots.probe import is_probe, shown_of  # noqa: E402
from plots.results import COLLECTIVES, InputError, read_result  # noqa: E402
from plots.script import Parser, new_file, run, use_matplotlib  # noqa: E402


MOST_NAMES = 6  # of results that share a picture


def parse_arguments(arguments):
    parser = Parser(description="Draws the charts of polyring result files, as PNG and SVG.",
                    epilog="example: plot.py out.json scale.json --out charts", allow_abbrev=False)
    parser.add_argument("results", nargs="+", metavar="RESULT", help="a file that polyring wrote with -J")
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="where the charts go")
    parser.add_argument("--overlay", action="store_true", help="also lay runs of one collective, or tables of scale, over one another")
    parser.add_argument("--compare", metavar="NAME", help="only lay these runs over one another; NAME begins the charts' names")
    return parser.parse_args(arguments)


def charts_of(result):
    """For a result of any kind."""
    from plots import checks, collectives, published_runs, scaling, timeline, trends
    of_kind = {**dict.fromkeys(COLLECTIVES, [collectives]), "scale": [published_runs, scaling], "train": [timeline], "accept": [checks, trends]}
    # An interrupted run may have no row yet; a table says all of a tune.
    return [chart for part in of_kind.get(result.kind, []) if result.rows for chart in part.charts(result)]


def machines_of(results):
    """The results that say what their machine is, in groups that share a picture."""
    groups = []
    for result in results:
        if not is_probe(result.machine):
            continue
        shown = shown_of(result.machine)
        same = next((group for others, group in groups if others == shown), None)
        if same is None:
            groups.append((shown, [result]))
        else:
            same.append(result)
    return [group for _, group in groups]


def topology_of(result, machines):
    """The picture of the machine of a group, with its first result."""
    group = next((group for group in machines if group[0] is result), None)
    if group is None:
        return []
    from plots import machine
    chart = machine.chart(f"{result.name}.json", result.machine, f"the machine in {names_text(f'{each.name}.json' for each in group)}")
    if len(group) > 1:
        chart.runs = [each.name for each in group]
        chart.finding += f" The machine of {names_text(chart.runs)}."
    return [chart]


def names_text(names):
    """The first, and how many there are more."""
    names = list(names)
    shown = names if len(names) <= MOST_NAMES else names[:MOST_NAMES - 1]
    return ", ".join(shown) + (f" and {len(names) - len(shown)} more" if len(names) > len(shown) else "")


def named(name, charts):
    """Each chart with the name of its files: those of one kind are numbered."""
    seen = Counter()
    for chart in charts:
        seen[chart.kind] += 1
        number = "" if seen[chart.kind] == 1 else f"-{seen[chart.kind]}"
        yield f"{name}-{chart.kind}{number}", chart


def all_charts(results, overlay, alone=""):
    """(names of the results, name of the files, chart) of each; those of all results together name no result. `alone`: the
    latter alone, and their name."""
    from plots import collectives, scaling
    machines = machines_of(results)
    for result in () if alone else results:
        for name, chart in named(result.name, topology_of(result, machines) + charts_of(result)):
            yield ",".join(chart.runs or [result.name]), name, chart
    if overlay or alone:
        overlaid = scaling if all(result.kind == "scale" for result in results) else collectives
        for name, chart in named(alone or "overlay", overlaid.overlaid_charts(results)):
            yield "", name, chart


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
    from PIL import Image
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=160)
    with new_file(folder / f"{name}.png") as file:  # of 256 colours, in a third of the bytes; charts have few
        Image.open(drawn).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE).save(file, "PNG", optimize=True)
    with new_file(folder / f"{name}.svg") as file:
        figure.savefig(file, format="svg", metadata={"Date": None})


def draw(arguments):
    options = parse_arguments(arguments)
    results = [read_result(Path(path)) for path in options.results]
    if options.overlay:
        check_comparable(results)
    if options.compare:
        check_number(results)
    use_matplotlib()
    from plots.lettering import clean
    drawings = list(all_charts(results, options.overlay, options.compare))
    check_out(options.out, [name for _, name, _ in drawings])
    for of, name, chart in drawings:
        save(chart.draw(), options.out, name)
        print(of, name, chart.kind, clean(chart.title), clean(chart.finding), sep="\t")


if __name__ == "__main__":
    sys.exit(run(draw))
