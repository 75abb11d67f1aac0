"""A training step's timeline: a compute and a communication lane for each run, with exposed communication marked."""

from matplotlib.patches import Patch

from plots import style
from plots.results import ranks_text

# Light enough for dark labels; the two kinds of communication differ in lightness as well as in hue.
FORWARD, COMPUTE, HIDDEN, EXPOSED = "#C5DDF0", "#84B6DF", "#BFE5D3", "#EE8A4F"
RUNS_PER_CHART = 6
LANES = (("compute", 1), ("communication", 0))


def gaps_between(begin, end, covers):
    """The parts of [begin, end] that none of `covers`, sorted by their begin, covers."""
    gaps = []
    for cover_begin, cover_end in covers:
        if begin >= end:
            break
        if cover_begin > begin:
            gaps.append((begin, min(end, cover_begin)))
        begin = max(begin, cover_end)
    return gaps + [(begin, end)] if begin < end else gaps


def short_label(label, width, character):
    """As much of the label as fits: all, its last word (a bucket's number), or nothing."""
    for text in (label, label.split()[-1] if label.split() else ""):
        if (len(text) + 1) * character <= width:
            return text
    return ""


def draw_bar(axes, begin, end, height, colour, character):
    """Bars narrower than a letter get no edge: it would cover them."""
    axes.barh(height, end - begin, left=begin, height=0.78, color=colour, edgecolor="white",
              linewidth=0.8 if end - begin > character else 0, zorder=2)


def draw_labels(axes, spans, height, character):
    for span in spans:
        width = span["end_ms"] - span["begin_ms"]
        axes.text(span["begin_ms"] + width / 2, height, short_label(span["label"], width, character), ha="center",
                  va="center", fontsize=8, color=style.INK, zorder=4)


def draw_run(axes, row, character):
    compute = sorted((span for span in row["timeline"] if span["lane"] == "compute"), key=lambda s: s["begin_ms"])
    communication = [span for span in row["timeline"] if span["lane"] != "compute"]
    busy = [(span["begin_ms"], span["end_ms"]) for span in compute]
    for span in compute:
        colour = FORWARD if span["label"] == "forward" else COMPUTE
        draw_bar(axes, span["begin_ms"], span["end_ms"], 1, colour, character)
    for span in communication:
        draw_bar(axes, span["begin_ms"], span["end_ms"], 0, HIDDEN, character)
        for begin, end in gaps_between(span["begin_ms"], span["end_ms"], busy):
            draw_bar(axes, begin, end, 0, EXPOSED, character)
    draw_labels(axes, compute, 1, character)
    draw_labels(axes, communication, 0, character)
    overlap = "with" if row["overlap"] else "without"
    axes.set_title(f"{row['algorithm']}, buckets: {row['bucket']}, {overlap} overlap: "
                   f"{row['iteration_ms']['median']:.4g} ms per iteration, {row['exposed_comm_ms']:.3g} ms exposed "
                   f"({row['source']})", fontsize=9.5)
    axes.set_yticks([height for _, height in LANES])
    axes.set_yticklabels([name for name, _ in LANES])
    axes.set_ylim(-0.55, 1.55)
    axes.tick_params(length=0)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)


def group_title(rows):
    return f"Training step of {rows[0]['model']}, {ranks_text(rows[0]['gpus'], 'rank')}"


def draw(result, rows):
    sources = {row["source"] for row in rows}
    height = 2.2 + 1.25 * len(rows)
    first = rows[0]
    subtitle = f"{first['machine']}, {ranks_text(first['nodes'], 'node')}, batch {first['batch']} per rank"
    figure = style.new_figure(height, group_title(rows), subtitle, [result], sources)
    handles = [Patch(color=FORWARD, label="forward"), Patch(color=COMPUTE, label="backward, optimiser"),
               Patch(color=HIDDEN, label="communication, hidden by compute"),
               Patch(color=EXPOSED, label="communication, exposed")]
    top = style.legend_above(figure, height, handles, [])
    panels = figure.subplots(len(rows), 1, sharex=True, squeeze=False,
                             gridspec_kw={"left": 0.115, "right": 0.98, "top": 1 - top / height,
                                          "bottom": 0.85 / height, "hspace": 0.55})[:, 0]
    end = max(span["end_ms"] for row in rows for span in row["timeline"])
    character = end / 145  # the width of a letter in ms: the axes are as wide as 145 of them
    for axes, row in zip(panels, rows):
        draw_run(axes, row, character)
    panels[-1].set_xlim(0, end * 1.005)
    panels[-1].set_xlabel("time since the step began (ms)")
    return figure


def charts(result):
    """Runs of one machine, model and size share a chart, as many as can be read."""
    groups = {}
    for row in result.rows:
        if row["timeline"]:
            key = tuple(row[name] for name in ("machine", "model", "gpus", "nodes", "batch"))
            groups.setdefault(key, []).append(row)
    pages = [rows[at:at + RUNS_PER_CHART] for rows in groups.values() for at in range(0, len(rows), RUNS_PER_CHART)]
    return [style.Chart("timeline", group_title(rows), lambda rows=rows: draw(result, rows)) for rows in pages]
