"""Charts of collectives over size: bus bandwidth, latency, and the ratio to the vendor's call. Each has a line for each
contender with the band of its 95 % interval, out of place and in place side by side; for one run, or for several."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Callable

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from plots import style
from plots.contenders import (TIMINGS, baseline_of, brief_label, bytes_text, labels_of, run_labels_of, size_text, timing_of,
                              without_the_same)
from plots.ratio import add_ratios
from plots.results import ranks_text

BOUND_STYLE = {"color": style.MUTED, "linestyle": (0, (1, 1.5)), "linewidth": 1.6}
EXPECTED_STYLE = {"color": style.IDEAL, "alpha": 0.3, "linewidth": 0}
PLACEMENTS = {False: "out of place", True: "in place"}


@dataclass(frozen=True)
class Measure:
    kind: str  # in the names of files
    name: str  # in titles
    axis: str
    samples: str  # what the line is a median of
    point: Callable  # of a row: where the line is and both ends of its band, or nothing
    bound: Callable = lambda row: None  # what the topology allows, where it is known
    expected: Callable = lambda row: None  # from where to where good implementations get, where it is known
    baseline: str = ""
    logarithmic: bool = True
    smaller_is_better: bool = False
    value: Callable = "{:.3g}".format  # in sentences, with its unit
    tick: Callable = "{:.10g}".format  # what a logarithmic axis has at a value


def bus_bandwidth(row, time_us):
    """As in nccl-tests, in proportion to that of the row's median time; in GB/s."""
    return row["busbw_GBps"] * row["time_us"]["median"] / time_us


def expected_times(row):
    """The least and the largest that are expected; None where a row has none."""
    return row.get("expected_us")


def expected_bandwidths(row):
    times = expected_times(row)
    return times and tuple(bus_bandwidth(row, time) for time in reversed(times))


def bandwidth_point(row):
    time = row["time_us"]
    return row["busbw_GBps"], bus_bandwidth(row, time["ci_high"]), bus_bandwidth(row, time["ci_low"])


BANDWIDTH = Measure("bus-bandwidth", "bus bandwidth", "bus bandwidth (GB/s)", "median", bandwidth_point,
                    lambda row: bus_bandwidth(row, row["bound_us"]) if row["bound_us"] else None, expected_bandwidths, logarithmic=False,
                    value="{:.3g} GB/s".format)


def time_text(us, digits=10):
    """As 20 us, 500 ms: up to six figures would not fit beside the axis."""
    for factor, unit in ((1e6, "s"), (1e3, "ms")):
        if us >= factor:
            return f"{us / factor:.{digits}g} {unit}"
    return f"{us:.{digits}g} us"


LATENCY = Measure("latency", "latency", "time", "median",
                  lambda row: tuple(row["time_us"][key] for key in ("median", "ci_low", "ci_high")),
                  lambda row: row["bound_us"] or None, expected_times, tick=time_text, smaller_is_better=True,
                  value=lambda us: time_text(us, 3))


def ratio_to(baseline):
    return Measure("ratio", f"speed against {baseline}", f"{baseline} time / time", "median over pairs of samples",
                   lambda row: row.get("ratio"), baseline=baseline,
                   value="{:.3g} times".format)


def bound_lines(measure, rows):
    """What is possible, by size, for each run; empty where it is not known."""
    lines = defaultdict(dict)
    for row in rows:
        if measure.bound(row):
            lines[row["run_label"]][row["size_bytes"]] = measure.bound(row)
    return {run: sorted(line.items()) for run, line in lines.items()}


def bound_fits(measure, rows):
    """Whether the bound is known, and can be drawn without flattening everything else."""
    bounds = [value for line in bound_lines(measure, rows).values() for _, value in line]
    values = [measure.point(row)[0] for row in rows]
    if measure.logarithmic:
        return bool(bounds) and max(bounds) >= min(values) / 3
    return bool(bounds) and max(bounds) <= 2.5 * max(values)


def note(axes, text):
    axes.set_title(text, loc="right", fontsize=8.5, fontweight="normal", color=style.MUTED)


def bound_looks(measure, rows):
    """How the bound of each run looks: equal ones look the same."""
    lines = {run: tuple((size, f"{value:.6g}") for size, value in line) for run, line in bound_lines(measure, rows).items()}
    different = list(dict.fromkeys(lines.values()))
    return {run: {**BOUND_STYLE, "linestyle": (0, (1, 1.5 + 2 * different.index(line)))} for run, line in lines.items()}


def draw_bounds(axes, measure, rows, looks):
    """`looks`: none where the bounds do not fit."""
    lines = bound_lines(measure, rows)
    for run in {looks[run]["linestyle"]: run for run in lines if run in looks}.values():
        axes.plot(*zip(*lines[run]), **looks[run], zorder=1)
    if lines and not looks:
        highest = max(value for line in lines.values() for _, value in line)
        note(axes, f"bound: up to {highest:.3g} us, below this chart" if measure.logarithmic else
             f"bound: {highest:.3g} GB/s, above this chart")


def draw_expected(axes, measure, rows):
    known = sorted({(row["size_bytes"], *measure.expected(row)) for row in rows if measure.expected(row)})
    if known:
        axes.fill_between(*zip(*known), zorder=0.5, **EXPECTED_STYLE)


def draw_series(axes, measure, rows, look):
    points = sorted((row["size_bytes"], *measure.point(row)) for row in rows)
    sizes, values, lows, highs = zip(*points)
    axes.plot(sizes, values, clip_on=False, **look)
    axes.fill_between(sizes, lows, highs, color=look["color"], alpha=0.16, linewidth=0, zorder=2)


def draw_panel(axes, measure, series, looks, bounds):
    for key, rows in series.items():
        draw_series(axes, measure, rows, looks[key])
    every = [row for rows in series.values() for row in rows]
    if measure.baseline:
        axes.axhline(1, color=style.IDEAL, linewidth=2.5, zorder=1)
        note(axes, f"above 1: faster than {measure.baseline}")
    draw_expected(axes, measure, every)
    draw_bounds(axes, measure, every, bounds)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("size (bytes)")
    axes.set_title(PLACEMENTS[every[0]["in_place"]])
    style.power_ticks(axes.xaxis, [row["size_bytes"] for row in every], size_text)


def scale_y(axes, measure, rows, fits):
    """Not before all panels are drawn: to set one limit fixes the other."""
    axes.set_ylabel(measure.axis)
    if not measure.logarithmic:
        axes.set_ylim(bottom=0)
        return
    shown = [value for row in rows for value in measure.point(row)] + ([1] if measure.baseline else [])
    # A bound without any latency goes far down for small sizes: its line may leave the chart there.
    bounds = [value for line in bound_lines(measure, rows).values() for _, value in line] if fits else []
    low = min([min(shown)] + [max(value, min(shown) / 3) for value in bounds])
    style.logarithmic(axes, low, max(shown + bounds), measure.tick)


def group_title(results, measure, rows):
    ranks = {row["ranks"] for row in rows}
    parts = [f"{results[0].kind.capitalize()} {measure.name}"]
    parts += [ranks_text(ranks.pop(), "rank")] if len(ranks) == 1 else []  # else the labels say it
    parts += [f"{len(results)} runs"] if len(results) > 1 else []
    return ", ".join(parts)


def band_text(rows, line="median"):
    """What the bands are: fewer than 6 samples make no interval of 95 %, and modelled rows have none at all."""
    counts = [len(row["time_us"]["samples"]) for row in rows if row["time_us"]["samples"]]
    if not counts:
        return ""
    few = " (with fewer than 6 samples: from least to largest)" if min(counts) < 6 else ""
    return f"line: {line}, band: its 95 % confidence interval{few}"


def where_text(hosts):
    return f"on {', '.join(hosts[:4])}{' …' if len(hosts) > 4 else ''}" if hosts else ""


def subtitle(measure, results, rows):
    first = rows[0]
    parts = [first["dtype"], "" if first["op"] == "none" else first["op"]]
    if len({tuple(result.hosts) for result in results}) == 1:
        parts.append(where_text(results[0].hosts))
    if len({row["nodes"] for row in rows}) == 1:
        parts.append(ranks_text(first["nodes"], "node"))
    timings = {timing_of(row) for row in rows}
    timing = TIMINGS[timings.pop()] if len(timings) == 1 else ""  # else the labels say it
    return "; ".join(part for part in (", ".join(part for part in parts if part), timing, band_text(rows, measure.samples))
                     if part)


def looks_of(rows):
    """How the points of each series look. A contender has one colour; its runs differ in shade and marker."""
    runs = list(dict.fromkeys(row["run_label"] for row in rows))
    return {series_of(row): style.run_style(row["source"], row["colour"], runs.index(row["run_label"])) for row in rows}


def series_of(row):
    return row["run_label"], row["label"], row["source"]


def legend_of(measure, rows, looks, bounds):
    """Groups of entries: the contenders, those of each run by themselves, and all else."""
    sources = {row["source"] for row in rows}
    runs = defaultdict(dict)
    for row in rows:
        run, label, _ = series_of(row)
        look = looks[series_of(row)]
        handle = (Line2D([], [], label=f"{run}: {label}", **look) if run else
                  Line2D([], [], label=label, color=look["color"], linewidth=3))
        runs[run].setdefault(label, handle)
    others = style.source_handles(sources) if len(runs) == 1 or len(sources) > 1 else []
    equal = defaultdict(list)
    for run, look in bounds.items():
        equal[look["linestyle"]].append(run)
    for line, of in equal.items():
        label = "bound" if len(of) == len(runs) else f"bound of {', '.join(of)}"
        others.append(Line2D([], [], label=label, **{**BOUND_STYLE, "linestyle": line}))
    if any(map(measure.expected, rows)):
        others.append(Patch(label="expected", **EXPECTED_STYLE))
    if measure.baseline:
        others.append(Line2D([], [], color=style.IDEAL, linewidth=2.5, label=f"{measure.baseline} = 1"))
    return [list(handles.values()) for handles in runs.values()] + [others]


def draw(results, measure, rows):
    panels_of = defaultdict(lambda: defaultdict(list))
    for row in rows:
        panels_of[row["in_place"]][series_of(row)].append(row)
    looks = looks_of(rows)
    bounds = bound_looks(measure, rows) if bound_fits(measure, rows) else {}
    legend = legend_of(measure, rows, looks, bounds)
    under = subtitle(measure, results, rows)
    foot = 0.55 + style.foot(results)
    height = (style.head(under) + style.legend_height(style.legend_groups(*legend)) + 0.38 +
              style.panels_height(len(panels_of), 2.85) + foot)
    figure = style.new_figure(height, group_title(results, measure, rows), under, results, {row["source"] for row in rows})
    top = style.legend_above(figure, height, *legend, subtitle=under)
    panels = style.panels(figure, len(panels_of), height, top, foot, left=0.84, between=0.28, sharey=True)
    for axes, in_place in zip(panels, sorted(panels_of)):
        draw_panel(axes, measure, panels_of[in_place], looks, bounds)
    scale_y(panels[0], measure, rows, bool(bounds))
    return figure


def finding(measure, rows):
    """At the largest size, out of place where there is that."""
    size = max(row["size_bytes"] for row in rows)
    last = [row for row in rows if row["size_bytes"] == size]
    in_place = all(row["in_place"] for row in last)
    last = sorted((row for row in last if row["in_place"] == in_place), key=lambda row: measure.point(row)[0],
                  reverse=not measure.smaller_is_better)
    values = [f"{': '.join(filter(None, series_of(row)[:2]))} {measure.value(measure.point(row)[0])}" for row in last]
    bounds = [measure.bound(row) for row in last if measure.bound(row)]
    bound = f"; the bound is {measure.value(bounds[0])}" if bounds else ""
    more = f" and {len(values) - 6} more" if len(values) > 6 else ""
    name = measure.name[0].upper() + measure.name[1:]
    return f"{name} at {bytes_text(size)}, {PLACEMENTS[in_place]}: {', '.join(values[:6])}{more}{bound}."


def families_of(rows):
    """What the contenders of a colour have in common: the label; of other ranks, all of it but the dimensions."""
    families = [row["label"].replace(brief_label(row), row["algorithm"], 1) for row in rows]
    members = defaultdict(set)
    for row, family in zip(rows, families):
        members[(row["run_label"], row["ranks"], row["nodes"], family)].add(row["label"])
    if any(len(labels) > 1 for labels in members.values()):  # one could not tell them apart
        return [row["label"] for row in rows]
    return families


def named_rows(results):
    """The rows that have anything to show, each with its run, its labels and its colour. What is wrong has no time."""
    rows = [{**row, "run": result.name} for result in results for row in result.rows
            if not row.get("wrong") and row["size_bytes"] > 0 and row["busbw_GBps"] > 0 and row["time_us"]["ci_low"] > 0]
    rows = without_the_same([{**row, "label": label} for row, label in zip(rows, labels_of(rows))])
    run_labels = run_labels_of(rows) if len(results) > 1 else [""] * len(rows)
    for row, run_label in zip(rows, run_labels):
        row["run_label"] = run_label
    families = families_of(rows)
    colours = style.colours_of((family, row["algorithm"]) for row, family in zip(rows, families))
    for row, family in zip(rows, families):
        row["colour"] = colours[family]  # the same in all charts
    return rows


def charts_of(results, rows, measures):
    """A chart of each measure, of those rows that have it."""
    shown = {measure: [row for row in rows if measure.point(row)] for measure in measures}
    return [style.Chart(measure.kind, group_title(results, measure, rows), finding(measure, rows),
                        lambda measure=measure, rows=rows: draw(results, measure, rows))
            for measure, rows in shown.items() if rows]


def charts(result):
    """Those of each rank count, node count, type and operation."""
    rows, baseline = named_rows([result]), baseline_of(result.rows)
    add_ratios(rows, baseline)
    groups = defaultdict(list)
    for row in rows:
        groups[(row["ranks"], row["nodes"], row["dtype"], row["op"])].append(row)
    return [chart for group in groups.values() for chart in charts_of([result], group, (BANDWIDTH, LATENCY, ratio_to(baseline)))]


def overlaid_charts(results):
    """Those of several runs that can be compared, of each type and operation."""
    groups = defaultdict(list)
    for row in named_rows(results):
        groups[(row["dtype"], row["op"])].append(row)
    return [chart for group in groups.values() for chart in charts_of(results, group, (BANDWIDTH, LATENCY))]
