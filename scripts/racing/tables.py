"""The tables of a race, as Markdown that reads well as it is."""

from racing import results

SHOWN = {results.MET: "yes", results.MISSED: "NO", results.INCOMPLETE: "incomplete", None: "-"}
SCALES = ((1e6, "s"), (1e3, "ms"), (1, "us"))


def duration(us):
    scale, unit = next((pair for pair in SCALES if us >= pair[0]), SCALES[-1])
    return f"{us / scale:.3g} {unit}" if us < 999.5 * scale else f"{us / scale:.0f} {unit}"


def number(ratio):
    return f"{ratio:.2f}"


def interval(estimate):
    return f"{number(estimate.median)} [{number(estimate.low)}, {number(estimate.high)}]"


def markdown(header, rows):
    cells = [header, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines) + "\n"


def summary(outcomes):
    """Each work's verdicts; outcomes are (work, verdicts)."""
    rows = []
    for work, verdicts in outcomes:
        limit = "-" if work.goal.of_bound is None else f"<= {number(work.goal.of_bound)}"
        for verdict in verdicts:
            farthest = verdict.farthest
            of_bound = f"{number(farthest.of_bound)} ({farthest.launch})" if farthest else "-"
            lacks = ", ".join(f"{launch} ({why})" for launch, why in verdict.lacking.items())
            rows.append([work.name, verdict.placement, *closest(verdict.closest), work.goal.text(), SHOWN[verdict.ratio],
                         of_bound, limit, SHOWN[verdict.of_bound], lacks or "-"])
    return markdown(["work", "placement", "polyring", "best contender (launch)", "its time", "its time / polyring's", "goal",
                     "met", "most time / bound (launch)", "goal", "met", "lacks"], rows)


def closest(contest):
    if contest is None:
        return ["-"] * 4
    best = contest.best
    return [duration(contest.time_us.median), f"{best.algorithm} ({contest.launch})", duration(best.time_us.median),
            interval(best.ratio)]


def count(goals):
    """Goals are {standing: number of works}."""
    text = f"{goals[results.MET]} of {sum(goals.values())} works meet their goals"
    incomplete = goals[results.INCOMPLETE]
    return f"{text}, {incomplete} {'is' if incomplete == 1 else 'are'} incomplete" if incomplete else text


def launches(outcomes):
    """What Polyring and the best contender reached in each launch; outcomes are (work, contests, {launch: busy cores})."""
    rows = []
    for work, contests, busy in outcomes:
        for contest in contests:
            best = contest.best
            rows.append([work.name, contest.placement, contest.launch, duration(contest.time_us.median),
                         "-" if contest.of_bound is None else number(contest.of_bound), best.algorithm,
                         duration(best.time_us.median), interval(best.ratio), f"{busy[contest.launch]:.1f}"])
    return markdown(["work", "placement", "launch", "polyring", "time / bound", "best contender", "its time",
                     "its time / polyring's", "busy"], rows)
