"""How much faster a contender is than the baseline: the same numbers as in the table, see base/statistics.hpp."""

from collections import defaultdict
from functools import lru_cache
from math import exp, log
from statistics import median

from plots.contenders import point_of


@lru_cache(maxsize=None)
def median_ranks(samples):
    """Which of the sorted samples, counted from 1, bound the median with 95 % confidence; by the same steps as in C++."""
    log_probability = -samples * log(2)
    tail, low = exp(log_probability), 1
    while 2 * (low + 1) <= samples:
        log_probability += log((samples - low + 1) / low)
        tail += exp(log_probability)
        if 1 - 2 * tail < 0.95:
            break
        low += 1
    return low, samples + 1 - low


def pairwise_ratio(ours, others):
    """The median of ours[i] / others[i] with the ends of its interval."""
    ratios = sorted(our / other for our, other in zip(ours, others))
    low, high = median_ranks(len(ratios))
    return median(ratios), ratios[low - 1], ratios[high - 1]


def speed_ratio(baseline, row):
    """None where the samples do not come in pairs."""
    theirs, ours = baseline["time_us"]["samples"], row["time_us"]["samples"]
    if not ours or len(ours) != len(theirs) or min(ours) <= 0:
        return None
    return pairwise_ratio(theirs, ours)


def add_ratios(rows, baseline):
    """Gives each row that has a partner a "ratio": the baseline's time / its time. Rows have labels already."""
    order, partners = {}, defaultdict(list)
    for row in rows:
        order.setdefault(row["label"], len(order))
        if row["algorithm"] == baseline:
            partners[point_of(row)].append(row)
    for row in rows:
        found = partners.get(point_of(row), [])
        ratio = speed_ratio(min(found, key=lambda other: order[other["label"]]), row) if found else None
        if ratio and row["algorithm"] != baseline:
            row["ratio"] = ratio
