"""The tables of a race, as Markdown that reads well as it is."""

SCALES = ((1e6, "s"), (1e3, "ms"), (1, "us"))


def duration(us):
    scale, unit = next((pair for pair in SCALES if us >= pair[0]), SCALES[-1])
    return f"{us / scale:.3g} {unit}" if us < 999.5 * scale else f"{us / scale:.0f} {unit}"


def number(ratio):
    return f"{ratio:.2f}"


def interval(estimate):
    return f"{number(estimate.median)} [{number(estimate.low)}, {number(estimate.high)}]"


def yes(met):
    return "-" if met is None else "yes" if met else "NO"


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
        if not verdicts:
            rows.append([work.name, *["-"] * 5, work.goal.text(), "not raced", *["-"] * 3])
        for verdict in verdicts:
            contest = verdict.contest
            best = contest.best
            of_bound = "-" if contest.of_bound is None else number(contest.of_bound)
            limit = "-" if work.goal.of_bound is None else f"<= {number(work.goal.of_bound)}"
            bound_met = "unknown" if limit != "-" and verdict.bound_met is None else yes(verdict.bound_met)
            rows.append([work.name, contest.placement, duration(contest.time_us.median), f"{best.algorithm} ({contest.launch})",
                         duration(best.time_us.median), interval(best.ratio), work.goal.text(), yes(verdict.met), of_bound,
                         limit, bound_met])
    return markdown(["work", "placement", "polyring", "best rival (launch)", "its time", "its time / polyring's", "goal",
                     "met", "time / bound", "goal", "met"], rows)


def launches(outcomes):
    """What Polyring and the best rival reached in each launch; outcomes are (work, contests, {launch: busy cores})."""
    rows = []
    for work, contests, busy in outcomes:
        for contest in contests:
            best = contest.best
            rows.append([work.name, contest.placement, contest.launch, duration(contest.time_us.median),
                         "-" if contest.of_bound is None else number(contest.of_bound), best.algorithm,
                         duration(best.time_us.median), interval(best.ratio), f"{busy[contest.launch]:.1f}"])
    return markdown(["work", "placement", "launch", "polyring", "time / bound", "best rival", "its time",
                     "its time / polyring's", "busy"], rows)
