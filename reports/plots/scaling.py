"""Speedup and efficiency over GPUs, with the ideal line and the published points."""

from collections import defaultdict

from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from plots import style
from plots.results import ranks_text


def baseline_gpus(rows):
    """How many GPUs have the speedup 1: one node of the published systems."""
    for row in rows:
        if row["speedup"] > 0:
            return row["gpus"] * row["efficiency"] / row["speedup"]
    return 1


def label_of(row):
    """The algorithm, of a strategy what is the same at all GPU counts: not the number of its replicas; and the machine, where
    several are compared."""
    where = f"{row['machine']}: " if row.get("compared") else ""
    if "strategy" not in row:
        return where + row["algorithm"]
    factors = row["strategy"].split(",")
    split = [factor for factor in factors if not factor.startswith(("data=", "inter-model="))]
    return f"{where}{row['algorithm']}, {','.join(split) or factors[0].split('=')[0]}"


def batch_text(row):
    return f"global batch {row['global_batch']}" if "global_batch" in row else f"batch {row['batch']} per GPU"


def published_points(rows, key):
    return sorted({row["gpus"]: row[key] for row in rows if row[key] is not None}.items())


def draw_lines(axes, series, colours, key):
    for (label, source), rows in series.items():
        rows = sorted(rows, key=lambda row: row["gpus"])
        axes.plot([row["gpus"] for row in rows], [row[key] for row in rows],
                  **style.point_style(source, colours[label]))


def draw_band(axes, series, colours):
    """What a calibrated model may be off."""
    for (label, _), rows in series.items():
        known = sorted((row["gpus"], row["efficiency_low"], row["efficiency_high"]) for row in rows if "efficiency_low" in row)
        if known:
            axes.fill_between(*zip(*known), color=colours[label], alpha=0.18, linewidth=0, zorder=1.5)


def draw_published(axes, rows, key):
    points = published_points(rows, key)
    if points:
        axes.plot(*zip(*points), **{**style.point_style("published", style.INK), "linestyle": "none",
                                    "markersize": 6.5, "markerfacecolor": "none", "zorder": 5})


def draw_ideal(axes, gpus, value):
    axes.plot(gpus, [value(count) for count in gpus], color=style.IDEAL, linewidth=2.5, zorder=1)


def draw_speedup(axes, rows, series, colours):
    gpus = sorted({row["gpus"] for row in rows})
    base = baseline_gpus(rows)
    draw_ideal(axes, gpus, lambda count: count / base)
    draw_lines(axes, series, colours, "speedup")
    draw_published(axes, rows, "published_speedup")
    axes.set_yscale("log", base=2)
    style.power_ticks(axes.yaxis, [count / base for count in gpus], lambda value: f"{value:.4g}")
    axes.set_title(f"speedup over {ranks_text(round(base), 'GPU')}")


def draw_efficiency(axes, rows, series, colours):
    draw_ideal(axes, sorted({row["gpus"] for row in rows}), lambda count: 1)
    draw_band(axes, series, colours)
    draw_lines(axes, series, colours, "efficiency")
    draw_published(axes, rows, "published_efficiency")
    shown = [row.get("efficiency_low", row["efficiency"]) for row in rows]
    shown += [value for _, value in published_points(rows, "published_efficiency")]
    axes.set_ylim(max(0, int(min(shown) * 10 - 0.5) / 10), max(1.03, max(shown) + 0.03))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_title("scaling efficiency")


def group_title(rows):
    machines = list(dict.fromkeys(row["machine"] for row in rows))
    return f"Scaling of {rows[0]['model']} on {' and '.join(machines)}"


def draw(result, rows):
    series = defaultdict(list)
    for row in rows:
        series[(label_of(row), row["source"])].append(row)
    compared = any(row.get("compared") for row in rows)
    colours = style.colours_of((label_of(row), label_of(row) if compared else row["algorithm"]) for row in rows)
    sources = {row["source"] for row in rows}
    if any(row["published_speedup"] is not None or row["published_efficiency"] is not None for row in rows):
        sources.add("published")

    first = rows[0]
    overlap = "with" if first["overlap"] else "without"
    batches = " and ".join(dict.fromkeys(batch_text(row) for row in rows))
    subtitle = f"{batches}, buckets: {first['bucket']}, {overlap} overlap"
    handles = [Line2D([], [], color=colour, linewidth=3, label=label) for label, colour in colours.items()]
    others = style.source_handles(sources - {"published"})
    others.append(Line2D([], [], color=style.IDEAL, linewidth=2.5, label="ideal"))
    if "published" in sources:
        others.append(Line2D([], [], label="published", **{**style.point_style("published", style.INK),
                                                          "linestyle": "none", "markerfacecolor": "none"}))
    foot = 0.55 + style.foot([result])
    height = (style.head(subtitle) + style.legend_height(style.legend_groups(handles, others)) + 0.38 +
              style.panels_height(2, 2.85) + foot)
    figure = style.new_figure(height, group_title(rows), subtitle, [result], sources)
    top = style.legend_above(figure, height, handles, others, subtitle=subtitle)
    panels = style.panels(figure, 2, height, top, foot, left=0.62)
    draw_speedup(panels[0], rows, series, colours)
    draw_efficiency(panels[1], rows, series, colours)
    for axes in panels:
        axes.set_xscale("log", base=2)
        axes.set_xlabel("GPUs")
        style.power_ticks(axes.xaxis, [row["gpus"] for row in rows], str)
    return figure


def finding(rows):
    """At the largest count."""
    gpus = max(row["gpus"] for row in rows)
    last = sorted((row for row in rows if row["gpus"] == gpus), key=lambda row: -row["efficiency"])
    values = [f"{label_of(row)} {100 * row['efficiency']:.1f} % ({row['source']})" for row in last]
    values += [f"{100 * value:.1f} % published" for count, value in published_points(rows, "published_efficiency")
               if count == gpus]
    return f"Efficiency with {ranks_text(gpus, 'GPU')}: {', '.join(values)}."


def compared(groups):
    """Groups of machines that differ in nothing but the batch are one: --machine A --machine B."""
    same_but_batch = defaultdict(list)
    for (machine, *others, _), rows in groups.items():
        same_but_batch[(*others, round(baseline_gpus(rows)))].append((machine, rows))
    for same in same_but_batch.values():
        if len({machine for machine, _ in same}) == len(same) > 1:
            yield [{**row, "compared": True} for _, rows in same for row in rows]
        else:
            yield from (rows for _, rows in same)


def charts(result):
    """A chart for each machine, model, bucket policy, overlap and batch: a GPU's, or that of all GPUs."""
    groups = defaultdict(list)
    for row in result.rows:
        if row["speedup"] > 0:
            key = (*(row[name] for name in ("machine", "model", "bucket", "overlap")), batch_text(row))
            groups[key].append(row)
    return [style.Chart("scaling", group_title(rows), finding(rows), lambda rows=rows: draw(result, rows)) for rows in compared(groups)]
