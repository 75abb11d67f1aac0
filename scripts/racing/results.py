"""From polyring's result files to who won by how much.

Polyring and the contenders of a launch took turns, so that the i-th samples of two of them belong together: a ratio is the
median of the ratios of those pairs, and its 95 % interval comes from order statistics, as in base/statistics.cpp.
"""

import dataclasses
import math
import statistics

POLYRING = "multi-ring"
CONFIDENCE = 0.95
MET, MISSED, INCOMPLETE = "met", "missed", "incomplete"  # how a goal stands; incomplete: what raced cannot tell


@dataclasses.dataclass(frozen=True)
class Estimate:
    median: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class Contender:
    algorithm: str
    time_us: Estimate
    ratio: Estimate  # its time over Polyring's


@dataclasses.dataclass(frozen=True)
class Contest:
    """Polyring and the contenders of one launch, in one placement of the buffers."""

    launch: str
    placement: str  # "out-of-place", "in-place" or "step"
    time_us: Estimate  # Polyring's
    bound_us: float | None
    contenders: tuple
    rounds: int = 1  # that are merged in it

    @property
    def best(self):
        return min(self.contenders, key=lambda contender: contender.ratio.median)

    @property
    def of_bound(self):
        return self.time_us.median / self.bound_us if self.bound_us else None


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A work in one placement: how its goals stand over all launches, and the launches that decide."""

    placement: str
    closest: Contest | None  # that of the best contender; None: nothing raced
    farthest: Contest | None  # from its bound; None: no bound is known
    lacking: dict  # {launch: why it does not count in full}
    ratio: str  # how this goal stands
    of_bound: str | None  # the same; None: there is no such goal

    @property
    def standing(self):
        return worst([self.ratio, self.of_bound])


def worst(standings):
    """What is missed stays so, whatever the launches that are lacking would have given."""
    return next((standing for standing in (MISSED, INCOMPLETE) if standing in standings), MET)


def low_rank(count):
    """Of sorted samples, the low-th smallest and the low-th largest hold the median with 95 % confidence."""
    tail = 1 / 2**count
    low = 1
    while 2 * (low + 1) <= count:
        tail += math.comb(count, low) / 2**count
        if 1 - 2 * tail < CONFIDENCE:
            break
        low += 1
    return low


def estimate(samples):
    ordered = sorted(samples)
    low = low_rank(len(ordered))
    return Estimate(statistics.median(ordered), ordered[low - 1], ordered[-low])


def pairwise(contender, ours):
    return estimate([a / b for a, b in zip(contender, ours, strict=True)])


def over_rounds(estimates):
    """The median of the medians; the interval holds those of all rounds, since rounds differ by more than samples."""
    return Estimate(statistics.median(one.median for one in estimates), min(one.low for one in estimates),
                    max(one.high for one in estimates))


def samples_of(result):
    """{placement: {algorithm: samples in us}} and {placement: bound in us} of a result file of one size."""
    samples, bounds = {}, {}
    for row in result["rows"]:
        if result["kind"] == "train":
            placement, bound = "step", None
            of_row = [1e3 * (step - row["compute_ms"]) for step in row["iteration_ms"]["samples"]]
        else:
            placement, bound = "in-place" if row["in_place"] else "out-of-place", row["bound_us"]
            of_row = row["time_us"]["samples"]
        of_placement = samples.setdefault(placement, {})
        if row["algorithm"] in of_placement:
            raise ValueError(f"{row['algorithm']} is there twice, {placement}")
        of_placement[row["algorithm"]] = of_row
        bounds[placement] = bound
    return samples, bounds


def contests(launch, result):
    """A contest for each placement in which Polyring and a contender were right."""
    samples, bounds = samples_of(result)
    found = []
    for placement, of_placement in samples.items():
        ours = of_placement.pop(POLYRING, None)
        if ours is None or not of_placement:
            continue
        contenders = tuple(Contender(name, estimate(theirs), pairwise(theirs, ours)) for name, theirs in of_placement.items())
        found.append(Contest(launch, placement, estimate(ours), bounds[placement], contenders))
    return found


def merged(rounds):
    """One contest of the same contest in several rounds; of the contenders, those that were in all of them."""
    first = rounds[0]
    if len(rounds) == 1:
        return first
    bounds = [contest.bound_us for contest in rounds]
    contenders = []
    for name in (contender.algorithm for contender in first.contenders):
        same = [contender for contest in rounds for contender in contest.contenders if contender.algorithm == name]
        if len(same) == len(rounds):
            contenders.append(Contender(name, over_rounds([contender.time_us for contender in same]), over_rounds([contender.ratio for contender in same])))
    return Contest(first.launch, first.placement, over_rounds([contest.time_us for contest in rounds]),
                   statistics.median(bounds) if all(bounds) else None, tuple(contenders), len(rounds))


def by_launch(found):
    """Of the contests of all launches and rounds of a work, one for each launch and placement."""
    groups = {}
    for contest in found:
        groups.setdefault((contest.placement, contest.launch), []).append(contest)
    return [contest for rounds in groups.values() if (contest := merged(rounds)).contenders]


def lacking(found, placements, launches, rounds, faults):
    """{placement: {launch: why}}: those with a fault, and those without Polyring beside a contender in every round."""
    raced = {(contest.placement, contest.launch): contest.rounds for contest in by_launch(found)}
    of_placements = {placement: dict(faults) for placement in placements}
    for placement, why in of_placements.items():
        for launch in launches:
            if (number := raced.get((placement, launch), 0)) < rounds:
                why.setdefault(launch, f"{number} of {rounds} rounds" if number else "no result")
    return of_placements


def held(each, whole):
    """How a goal stands that holds or not in each; `whole`: those are all that there should be."""
    if not all(each):
        return MISSED
    return MET if each and whole else INCOMPLETE


def verdict(goal, placement, raced, why_lacking):
    """A goal must be met in every launch, against every contender: MPIs differ, and one must not hide another."""
    ratio = held([goal.met_by(contender.ratio) for contest in raced for contender in contest.contenders], not why_lacking)
    bounded = [contest for contest in raced if contest.of_bound is not None]
    of_bound = None
    if goal.of_bound is not None:
        unbounded = {contest.launch: "no bound" for contest in raced if contest.of_bound is None}
        why_lacking = unbounded | why_lacking
        of_bound = held([contest.of_bound <= goal.of_bound for contest in bounded], not why_lacking)
    return Verdict(placement, min(raced, key=lambda contest: contest.best.ratio.median, default=None),
                   max(bounded, key=lambda contest: contest.of_bound, default=None), why_lacking, ratio, of_bound)


def verdicts(goal, found, of_placements):
    """One for each placement; `of_placements` is what lacking() gives."""
    raced = by_launch(found)
    return [verdict(goal, placement, [contest for contest in raced if contest.placement == placement], why)
            for placement, why in of_placements.items()]


def promising(result, factor):
    """Of a heat: the algorithms that are at most `factor` times as slow as the fastest, at some size and placement.

    The least time of each counts, so that what the machine did in a moment does not cost a contender its place.
    """
    leasts = {}
    for row in result["rows"]:
        leasts.setdefault((row["size_bytes"], row["in_place"]), {})[row["algorithm"]] = min(row["time_us"]["samples"])
    names = {}  # in order
    for times in leasts.values():
        least = min(times.values())
        names |= {name: None for name, time in times.items() if time <= factor * least}
    return list(names)
