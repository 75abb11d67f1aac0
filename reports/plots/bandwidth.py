"""Bus bandwidth over size, a line for each algorithm with its 95 % interval; out of place and in place side by side."""

from collections import defaultdict

from matplotlib.lines import Line2D

from plots import style

BOUND_STYLE = {"color": style.MUTED, "linestyle": (0, (1, 1.5)), "linewidth": 1.6}
PLACEMENTS = {False: "out of place", True: "in place"}


def size_text(size):
    for suffix, factor in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if size >= factor:
            return f"{size / factor:.3g}{suffix}"
    return str(size)


def brief_label(row):
    return f"{row['algorithm']} {row['dims']}" if "x" in row["dims"] else row["algorithm"]


def labels_of(rows):
    """A label for each row that tells it from every other of the same size and placement."""
    details = ("lanes", "chunk_bytes", "implementation")
    texts = {"lanes": lambda value: f"{value} lanes", "implementation": str,
             "chunk_bytes": lambda value: f"{size_text(value)} chunks"}
    first, differing = {}, defaultdict(set)
    for row in rows:
        label = brief_label(row)
        contender = first.setdefault((label, row["size_bytes"], row["in_place"], row["source"]), row)
        differing[label] |= {detail for detail in details if row[detail] != contender[detail]}
    return [", ".join([brief_label(row)] + [texts[detail](row[detail]) for detail in details
                                            if detail in differing[brief_label(row)]]) for row in rows]


def bus_bandwidth(row, time_us):
    """As in nccl-tests, in proportion to that of the row's median time; in GB/s."""
    return row["busbw_GBps"] * row["time_us"]["median"] / time_us


def bound_line(rows):
    """The bandwidth that is possible, by size; empty where it is not known."""
    return sorted({row["size_bytes"]: bus_bandwidth(row, row["bound_us"]) for row in rows if row["bound_us"]}.items())


def draw_series(axes, rows, colour):
    rows = sorted(rows, key=lambda row: row["size_bytes"])
    sizes = [row["size_bytes"] for row in rows]
    axes.plot(sizes, [row["busbw_GBps"] for row in rows], clip_on=False,
              **style.point_style(rows[0]["source"], colour))
    axes.fill_between(sizes, [bus_bandwidth(row, row["time_us"]["ci_high"]) for row in rows],
                      [bus_bandwidth(row, row["time_us"]["ci_low"]) for row in rows], color=colour, alpha=0.16,
                      linewidth=0, zorder=2)


def bound_fits(rows):
    """Whether the bound is known, and can be drawn without flattening everything else."""
    bounds = [value for _, value in bound_line(rows)]
    return bool(bounds) and max(bounds) <= 2.5 * max(row["busbw_GBps"] for row in rows)


def draw_bound(axes, rows, fits):
    if not bound_line(rows):
        return
    if fits:
        axes.plot(*zip(*bound_line(rows)), **BOUND_STYLE, zorder=1)
    else:
        highest = max(value for _, value in bound_line(rows))
        axes.set_title(f"bound: {highest:.3g} GB/s, above this chart", loc="right", fontsize=8.5,
                       fontweight="normal", color=style.MUTED)


def draw_panel(axes, lines, colours, bound_is_drawn):
    for (label, _), rows in lines.items():
        draw_series(axes, rows, colours[label])
    every = [row for rows in lines.values() for row in rows]
    draw_bound(axes, every, bound_is_drawn)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("size (bytes)")
    axes.set_title(PLACEMENTS[every[0]["in_place"]])
    style.power_ticks(axes.xaxis, [row["size_bytes"] for row in every], size_text)


def group_title(kind, rows):
    return f"{kind.capitalize()} bus bandwidth, {style.ranks_text(rows[0]['ranks'], 'rank')}"


def band_text(rows):
    """What the bands are: fewer than 6 samples make no interval of 95 %, and modelled rows have none at all."""
    counts = [len(row["time_us"]["samples"]) for row in rows if row["time_us"]["samples"]]
    if not counts:
        return ""
    few = " (with fewer than 6 samples: from least to largest)" if min(counts) < 6 else ""
    return f"line: median, band: its 95 % confidence interval{few}"


def draw(result, rows):
    by_placement = defaultdict(lambda: defaultdict(list))
    labels = labels_of(rows)
    for row, label in zip(rows, labels):
        by_placement[row["in_place"]][(label, row["source"])].append(row)
    colours = style.colours_of((label, row["algorithm"]) for row, label in zip(rows, labels))
    sources = {row["source"] for row in rows}

    height = 5.4
    first = rows[0]
    where = f"on {', '.join(result.hosts[:4])}{' …' if len(result.hosts) > 4 else ''}, " if result.hosts else ""
    operation = "" if first["op"] == "none" else f"{first['op']}, "
    parts = [f"{first['dtype']}, {operation}{where}{style.ranks_text(first['nodes'], 'node')}", band_text(rows)]
    subtitle = "; ".join(part for part in parts if part)
    figure = style.new_figure(height, group_title(result.kind, rows), subtitle, result, sources)
    handles = [Line2D([], [], color=colour, linewidth=3, label=label) for label, colour in colours.items()]
    others = style.source_handles(sources)
    if bound_fits(rows):
        others.append(Line2D([], [], label="bound", **BOUND_STYLE))
    top = style.legend_above(figure, height, handles, others)
    panels = figure.subplots(1, len(by_placement), sharey=True, squeeze=False,
                             gridspec_kw={"left": 0.065, "right": 0.98, "top": 1 - top / height,
                                          "bottom": 0.95 / height, "wspace": 0.06})[0]
    for axes, in_place in zip(panels, sorted(by_placement)):
        draw_panel(axes, by_placement[in_place], colours, bound_fits(rows))
    # Not before both are drawn: to set one limit fixes the other.
    panels[0].set_ylim(bottom=0)
    panels[0].set_ylabel("bus bandwidth (GB/s)")
    return figure


def charts(result):
    """A chart for each rank count, node count, type and operation that has anything to show."""
    groups = defaultdict(list)
    for row in result.rows:
        if row["size_bytes"] > 0 and row["busbw_GBps"] > 0 and row["time_us"]["ci_low"] > 0:
            groups[(row["ranks"], row["nodes"], row["dtype"], row["op"])].append(row)
    return [style.Chart(group_title(result.kind, rows), lambda rows=rows: draw(result, rows)) for rows in groups.values()]
