"""Speedup and efficiency over GPUs, with the ideal line and the published points; for one GPU count, bars."""

from collections import defaultdict

from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter

from plots import scaling_bars, style
from plots.contenders import MOST_RUNS
from plots.results import ranks_text
from plots.scaling_rows import (baseline_gpus, batch_text, conditions_text, group_title, groups_of, label_of, overlaid_rows,
                                published_points)

MOST_NAMED = 6  # in a sentence

__all__ = ["batch_text", "charts", "overlaid_charts"]


def series_of(row):
    return label_of(row), row["source"]


def looks_of(rows):
    """How the points of each series look: an algorithm has one colour; of several runs, these differ in shade and marker."""
    runs = {row.get("run", 0) for row in rows}
    several = 1 < len(runs) <= MOST_RUNS
    own = {label_of(row): label_of({**row, "compared": ""}) if several else label_of(row) for row in rows}
    algorithms = {own[label_of(row)]: row["algorithm"] if several or len(runs) == 1 else own[label_of(row)] for row in rows}
    colours = style.colours_of(algorithms.items())
    return {series_of(row): style.run_style(row["source"], colours[own[label_of(row)]], row.get("run", 0) if several else 0)
            for row in rows}


def draw_lines(axes, series, looks, key):
    for name, rows in series.items():
        rows = sorted(rows, key=lambda row: row["gpus"])
        axes.plot([row["gpus"] for row in rows], [row[key] for row in rows], **looks[name])


def draw_band(axes, series, looks):
    """What a model may be off. Bands of many lines hide each other, and are fainter."""
    for name, rows in series.items():
        known = sorted((row["gpus"], row["efficiency_low"], row["efficiency_high"]) for row in rows if "efficiency_low" in row)
        if known:
            axes.fill_between(*zip(*known), color=looks[name]["color"], alpha=0.18 if len(series) < 4 else 0.08, linewidth=0,
                              zorder=1.5)


def draw_published(axes, rows, key):
    points = published_points(rows, key)
    if points:
        axes.plot(*zip(*points), **{**style.point_style("published", style.INK), "linestyle": "none",
                                    "markersize": 6.5, "markerfacecolor": "none", "zorder": 5})


def draw_ideal(axes, gpus, value):
    axes.plot(gpus, [value(count) for count in gpus], color=style.IDEAL, linewidth=2.5, zorder=1)


def draw_speedup(axes, rows, series, looks):
    gpus = sorted({row["gpus"] for row in rows})
    base = baseline_gpus(rows)
    draw_ideal(axes, gpus, lambda count: count / base)
    draw_lines(axes, series, looks, "speedup")
    draw_published(axes, rows, "published_speedup")
    axes.set_yscale("log", base=2)
    style.power_ticks(axes.yaxis, [count / base for count in gpus], lambda value: f"{value:.4g}")
    axes.set_title(f"speedup over {ranks_text(round(base), 'GPU')}")


def draw_efficiency(axes, rows, series, looks):
    draw_ideal(axes, sorted({row["gpus"] for row in rows}), lambda count: 1)
    draw_band(axes, series, looks)
    draw_lines(axes, series, looks, "efficiency")
    draw_published(axes, rows, "published_efficiency")
    shown = [row.get("efficiency_low", row["efficiency"]) for row in rows]
    shown += [value for _, value in published_points(rows, "published_efficiency")]
    axes.set_ylim(max(0, int(min(shown) * 20 - 0.5) / 20), max(1.03, max(shown) + 0.03))
    axes.yaxis.set_major_locator(MaxNLocator(8, steps=(1, 2, 5, 10)))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_title("scaling efficiency")


def legend_of(rows, looks):
    """Groups of entries: the series, those of each run by themselves, and all else."""
    runs = defaultdict(dict)
    for row in rows:
        look = looks[series_of(row)]
        handle = (Line2D([], [], label=label_of(row), **look) if row.get("compared") else
                  Line2D([], [], label=label_of(row), color=look["color"], linewidth=3))
        runs[row.get("run", 0)].setdefault(label_of(row), handle)
    sources = {row["source"] for row in rows}
    others = style.source_handles(sources) if len(runs) == 1 or len(sources) > 1 else []
    others.append(Line2D([], [], color=style.IDEAL, linewidth=2.5, label="ideal"))
    if has_published(rows):
        others.append(Line2D([], [], label="published", **{**style.point_style("published", style.INK),
                                                          "linestyle": "none", "markerfacecolor": "none"}))
    return [list(handles.values()) for handles in runs.values()] + [others]


def has_published(rows):
    return any(row["published_speedup"] is not None or row["published_efficiency"] is not None for row in rows)


def title_of(results, rows, several):
    """What the results say, where it is the same, else what the rows are of; and what is to be said below it. `several`: there
    are others like it."""
    said = {result.title for result in results if result.title}
    if len(said) != 1:
        return group_title(rows), ""
    return (f"{said.pop()}: {group_title(rows)}", "") if several else (said.pop(), f"{group_title(rows)}; ")


def range_text(rows):
    return "; band: what is not exactly known" if any("efficiency_low" in row for row in rows) else ""


def draw(results, rows, title, more):
    subtitle = more + conditions_text(rows)
    if len({row["gpus"] for row in rows}) == 1:
        return scaling_bars.draw(results, rows, title, subtitle)
    subtitle += range_text(rows)
    series = defaultdict(list)
    for row in rows:
        series[series_of(row)].append(row)
    looks = looks_of(rows)
    sources = {row["source"] for row in rows} | ({"published"} if has_published(rows) else set())
    legend = legend_of(rows, looks)
    foot = 0.55 + style.foot(results)
    height = (style.head(subtitle) + style.legend_height(style.legend_groups(*legend)) + 0.38 +
              style.panels_height(2, 2.85) + foot)
    figure = style.new_figure(height, title, subtitle, results, sources)
    top = style.legend_above(figure, height, *legend, subtitle=subtitle)
    panels = style.panels(figure, 2, height, top, foot, left=0.62)
    draw_speedup(panels[0], rows, series, looks)
    draw_efficiency(panels[1], rows, series, looks)
    for axes in panels:
        axes.set_xscale("log", base=2)
        axes.set_xlabel("GPUs")
        style.power_ticks(axes.xaxis, [row["gpus"] for row in rows], str)
    return figure


def efficiency_text(row):
    low, high = (100 * row.get(key, row["efficiency"]) for key in ("efficiency_low", "efficiency_high"))
    known = f"{low:.1f} to {high:.1f}, " if low < high else ""
    return f"{100 * row['efficiency']:.1f} % ({known}{row['source']})"


def finding(rows):
    """At the largest count."""
    gpus = max(row["gpus"] for row in rows)
    last = sorted((row for row in rows if row["gpus"] == gpus), key=lambda row: -row["efficiency"])
    values = list(dict.fromkeys(f"{label_of(row)} {efficiency_text(row)}" for row in last))
    more = [f"{len(values) - MOST_NAMED} more"] if len(values) > MOST_NAMED else []
    values[MOST_NAMED:] = more + [f"{100 * value:.1f} % published" for count, value in published_points(rows, "published_efficiency")
                                  if count == gpus]
    return f"Efficiency with {ranks_text(gpus, 'GPU')}: {', '.join(values)}."


def chart_of(results, rows, several=False):
    title, more = title_of(results, rows, several)
    return style.Chart("scaling", title, finding(rows), lambda: draw(results, rows, title, more))


def charts(result):
    groups = groups_of(result)
    return [chart_of([result], rows, len(groups) > 1) for rows in groups]


def overlaid_charts(results):
    """All runs in one chart."""
    return [chart_of(results, overlaid_rows(results))]
