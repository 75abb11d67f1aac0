#!/usr/bin/env python3
"""Makes the page of a report: `page.py CONTENT RESULT... --out FILE`, where CONTENT is JSON of reports/report_page.cpp.

The page needs no other file and asks nobody for anything: style and charts are in it, and it has no script. Exit codes as
polyring's: 0, 5 (Jinja2 is missing), 6 (bad input, nothing written), 11 (the disk is full).
"""

import sys
from pathlib import Path

sys.dont_write_bytecode = True  # the folder of this script may be read-only, and stays clean

from pages.document import fill  # noqa: E402
from plot import all_charts  # noqa: E402
from plots.results import parse, read_result  # noqa: E402
from plots.script import Parser, new_file, run, use_matplotlib  # noqa: E402


def parse_arguments(arguments):
    parser = Parser(description="Makes the page of a report.", allow_abbrev=False,
                    epilog="example: page.py content.json out.json scale.json --out index.html")
    parser.add_argument("content", type=Path, metavar="CONTENT", help="what the page says, as polyring report writes it")
    parser.add_argument("results", nargs="+", metavar="RESULT", help="the results, for their charts")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="the page")
    parser.add_argument("--overlay", action="store_true", help="also charts of all results together")
    return parser.parse_args(arguments)


def named_charts(content):
    return [chart for topic in content["topics"] for part in topic["parts"] for chart in part["charts"]]


def draw_charts(content, options):
    """Adds to each chart of the content its drawings, as SVG, and a note on how to read them."""
    content["looks"] = {}
    wanted = {chart["name"]: chart for chart in named_charts(content)}
    if not wanted:
        return
    use_matplotlib()
    from pages.inline import drawings
    results = [read_result(Path(path)) for path in options.results]
    for number, (_, name, chart) in enumerate(all_charts(results, options.overlay)):
        if name in wanted:
            wanted[name].update(drawings(f"c{number}", chart, content["looks"]))


def make(arguments):
    options = parse_arguments(arguments)
    content = parse(options.content)
    text = fill(content, lambda: draw_charts(content, options))
    with new_file(options.out) as file:
        file.write(text.encode("utf-8"))


if __name__ == "__main__":
    sys.exit(run(make))
