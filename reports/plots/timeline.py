"""A training step's timeline: a compute and a communication lane for each run, with exposed communication marked."""

import textwrap

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
                  va="center", fontsize=8, color=style.ON_FACES, zorder=4)


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
    title = (f"{row['algorithm']}, buckets: {row['bucket']}, {overlap} overlap: "
             f"{row['iteration_ms']['median']:.4g} ms per iteration, {row['exposed_comm_ms']:.3g} ms exposed "
             f"({row['source']})")
    wide = style.sheet.panels > 1
    axes.set_title(title if wide else textwrap.fill(title, 57), fontsize=9.5 if wide else 7.5)
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
    first = rows[0]
    subtitle = f"{first['machine']}, {ranks_text(first['nodes'], 'node')}, batch {first['batch']} per rank"
    handles = [Patch(color=FORWARD, label="forward"), Patch(color=COMPUTE, label="backward, optimiser"),
               Patch(color=HIDDEN, label="communication, hidden by compute"),
               Patch(color=EXPOSED, label="communication, exposed")]
    foot, each = 0.5 + style.foot([result]), 0.85 if style.sheet.panels > 1 else 1.25
    height = style.head(subtitle) + style.legend_height(style.legend_groups(handles)) + 0.38 + each * len(rows) + foot
    figure = style.new_figure(height, group_title(rows), subtitle, [result], sources)
    top = style.legend_above(figure, height, handles, subtitle=subtitle)
    if style.sheet.panels == 1:
        top += 0.18  # titles of two lines
    panels = figure.subplots(len(rows), 1, sharex=True, squeeze=False,
                             gridspec_kw={"left": 1.2 / style.sheet.width, "right": 1 - 0.2 / style.sheet.width,
                                          "top": 1 - top / height, "bottom": foot / height, "hspace": 0.55 if style.sheet.panels > 1 else 0.75})[:, 0]
    end = max(span["end_ms"] for row in rows for span in row["timeline"])
    character = end / style.sheet.letters(145)  # the width of a letter in ms: the axes are as wide as so many
    for axes, row in zip(panels, rows):
        draw_run(axes, row, character)
    panels[-1].set_xlim(0, end * 1.005)
    panels[-1].set_xlabel("time since the step began (ms)")
    return figure


def finding(rows):
    steps = [f"{row['algorithm']} {row['iteration_ms']['median']:.4g} ms, with {row['exposed_comm_ms']:.3g} ms of "
             f"communication exposed ({row['source']})" for row in rows]
    return f"Time of a step: {'; '.join(steps)}."


def charts(result):
    """Runs of one machine, model and size share a chart, as many as can be read."""
    groups = {}
    for row in result.rows:
        if row["timeline"]:
            key = tuple(row[name] for name in ("machine", "model", "gpus", "nodes", "batch"))
            groups.setdefault(key, []).append(row)
    pages = [rows[at:at + RUNS_PER_CHART] for rows in groups.values() for at in range(0, len(rows), RUNS_PER_CHART)]
    return [style.Chart("timeline", group_title(rows), finding(rows), lambda rows=rows: draw(result, rows)) for rows in pages]
