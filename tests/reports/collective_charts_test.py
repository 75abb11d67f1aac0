"""The charts of collectives: latency, the same ratios to the vendor's call as in the table, and runs over one another.

usage: collective_charts_test.py EXAMPLES_PROGRAM PLOT_SCRIPT
"""

import copy
import csv
import random
import subprocess
import sys
import unittest

import charts_test

PROGRAM, SCRIPT = sys.argv[1:3]

from plots import collectives, contenders, ratio, style  # noqa: E402
from plots.results import read_result  # noqa: E402


def set_samples(row, samples):
    ordered = sorted(samples)
    low, high = ratio.median_ranks(len(samples))
    row["time_us"].update(samples=samples, min=ordered[0], ci_low=ordered[low - 1], median=ratio.median(ordered),
                          ci_high=ordered[high - 1], p99=ordered[-1])
    row["bound_us"] = row["bound_fraction"] = None


def texts_of(figure):
    return [text.get_text() for text in figure.texts]


def legend_of(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def line_styles(figure):
    return {line.get_linestyle() for axes in figure.axes for line in axes.get_lines()}


class CollectiveChartsTest(charts_test.FolderTest):
    def figures(self, document, name="run.json"):
        return {chart.kind: chart.draw() for chart in collectives.charts(read_result(self.write(name, document)))}

    def overlaid(self, *documents):
        results = [read_result(self.write(f"{name}.json", document)) for name, document in zip("abc", documents)]
        contenders.check_comparable(results)
        return {chart.kind: chart.draw() for chart in collectives.overlaid_charts(results)}

    def ratios_of_table(self, path):
        table = subprocess.run([PROGRAM, "compare", path], capture_output=True, text=True, check=True).stdout
        return sorted((int(size), place == "in-place", label.split()[0].strip(","), median, low, high)
                      for size, place, label, _, median, low, high, *_ in list(csv.reader(table.splitlines()))[1:] if median)

    def expect_ratios_of_table(self, name, document):
        def number(value):  # as in tables
            digits = len(str(int(value))) if value >= 1 else 1
            return f"{value:.{max(0, 4 - digits)}f}"

        path = self.write(name, document)
        rows = collectives.named_rows([read_result(path)])
        ratio.add_ratios(rows, "mpi")
        ours = sorted((row["size_bytes"], row["in_place"], row["algorithm"], *map(number, row["ratio"]))
                      for row in rows if "ratio" in row)
        self.assertEqual(ours, self.ratios_of_table(path), name)
        return ours

    def test_ratios_are_those_of_the_table(self):
        shaken = random.Random(3)
        for count in (1, 2, 5, 6, 7, 10, 41, 300):
            document = self.result("allreduce")
            for row in document["rows"]:
                set_samples(row, [shaken.lognormvariate(3, 0.4) for _ in range(count)])
            self.assertEqual(len(self.expect_ratios_of_table(f"{count}.json", document)), len(document["rows"]) * 2 // 3)

    def test_ratios_need_pairs(self):
        document = self.result("allreduce")
        for row in document["rows"]:
            if row["size_bytes"] == 8192 and row["algorithm"] == "ring":
                set_samples(row, row["time_us"]["samples"][:9])
        pairs = self.expect_ratios_of_table("unequal.json", document)
        self.assertNotIn((8192, "ring"), {(size, algorithm) for size, _, algorithm, *_ in pairs})
        lines = {tuple(line.get_xdata()) for axes in self.figures(document)["ratio"].axes for line in axes.get_lines()}
        self.assertIn(tuple(sorted({row["size_bytes"] for row in document["rows"]} - {8192})), lines)

    def test_ratios_are_to_the_first_baseline_with_the_same_timing(self):
        document = self.result("allreduce")
        for more in ({"timing": "osu"}, {"implementation": "another"}):
            for row in copy.deepcopy(document["rows"]):
                if row["algorithm"] == "mpi" or "timing" in more:
                    set_samples(row, [2 * time for time in row["time_us"]["samples"]])
                    document["rows"].insert(0, {**row, **more})
        for seed in range(4):
            random.Random(seed).shuffle(document["rows"])
            self.expect_ratios_of_table(f"variants{seed}.json", document)

    def test_what_has_no_ratio(self):
        for kept in (("mpi",), ("ring", "multi-ring")):
            document = self.result("allreduce")
            document["rows"] = [row for row in document["rows"] if row["algorithm"] in kept]
            self.assertEqual(list(self.figures(document, f"{kept[0]}.json")), ["bus-bandwidth", "latency"])
        document = self.result("allreduce")
        for row in document["rows"]:
            row.update(source="modelled")
            row["time_us"]["samples"] = []
        self.assertEqual(list(self.figures(document)), ["bus-bandwidth", "latency"])

    def test_latency_is_logarithmic_and_has_its_bound(self):
        document = self.result("allreduce")
        figure = self.figures(document)["latency"]
        self.assertEqual([axes.get_title() or axes.get_title(loc="left") for axes in figure.axes],
                         ["out of place", "in place"])
        for axes in figure.axes:
            self.assertEqual((axes.get_xscale(), axes.get_yscale()), ("log", "log"))
            self.assertEqual(len(axes.get_lines()), 4)
        self.assertIn("bound", legend_of(figure))
        ticks = [text.get_text() for text in figure.axes[0].get_yticklabels()]
        self.assertLessEqual({"20 us", "1 ms"}, set(ticks))
        self.assertLessEqual(max(map(len, ticks)), 6, "there is no room for more")
        for row in document["rows"]:
            row["bound_us"] /= 1e6
        figure = self.figures(document)["latency"]
        self.assertNotIn("bound", legend_of(figure))
        self.assertIn("below this chart", figure.axes[0].get_title(loc="right"))

    def test_other_timings_are_named(self):
        document = self.result("allreduce")
        for timing, said in (("osu", "timed as OSU does"), ("back-to-back", "timed back to back"), ("isolated", "sum, on")):
            for row in document["rows"]:
                row["timing"] = timing
            for figure in self.figures(document, f"{timing}.json").values():
                self.assertIn(said, texts_of(figure)[1])
                self.assertEqual("timed" in texts_of(figure)[1], timing != "isolated")
        for row in document["rows"]:
            row.pop("timing")
        document["rows"] += [{**row, "timing": "osu"} for row in document["rows"]]
        for figure in self.figures(document, "mixed.json").values():
            self.assertLessEqual({"ring, timing isolated", "ring, timing osu"}, set(legend_of(figure)))
            self.assertNotIn("timed", texts_of(figure)[1])

    def test_variants_of_a_contender_are_told_apart(self):
        document = self.result("allreduce")
        document["rows"] += [{**row, "patterns": "ring+ring"} for row in document["rows"] if row["algorithm"] == "multi-ring"]
        labels = legend_of(self.figures(document)["latency"])
        self.assertLessEqual({"multi-ring 2x2, direct+ring", "multi-ring 2x2, ring+ring"}, set(labels))

    def test_what_did_the_same_is_one_line(self):
        document = self.result("allreduce")
        for row in document["rows"]:
            if row["algorithm"] == "ring":
                row["same_as"] = "multi-ring"
        legend = legend_of(self.figures(document, "same.json")["latency"])
        self.assertIn("multi-ring 2x2 = ring", legend)
        self.assertNotIn("ring", legend)
        same = [row for row in document["rows"] if "same_as" in row]
        del same[0]["same_as"]  # at one size it was another
        legend = legend_of(self.figures(document)["bus-bandwidth"])
        self.assertIn("ring", legend)
        self.assertIn("multi-ring 2x2", legend)

    def test_runs_over_one_another(self):
        figures = self.overlaid(self.result("allreduce"), self.result("allreduce"))
        self.assertEqual(list(figures), ["bus-bandwidth", "latency"])
        names = ["multi-ring 2x2", "ring", "mpi"]
        self.assertEqual(legend_of(figures["latency"])[:6], [f"{run}: {name}" for run in "ab" for name in names])
        looks = [(line.get_color(), line.get_marker()) for line in figures["latency"].axes[0].get_lines()[:6]]
        self.assertEqual(len(set(looks)), 6)
        self.assertEqual(looks[0][0], style.BLUE)
        self.assertEqual(looks[3][0], style.mixed(style.BLUE, style.RUN_SHADES[1]))

    def test_names_of_runs_are_no_formulas_and_not_left_out(self):
        path = self.write("_$\\frac$.json", self.result("allreduce"))
        run = self.plot(path, self.folder / "allreduce.json", "--overlay", "--out", self.out)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn("_$\\frac$: ring", (self.out / "overlay-latency.svg").read_text(encoding="utf-8"))

    def test_runs_of_other_ranks_say_them(self):
        more = self.result("allreduce")
        for row in more["rows"]:
            row.update(ranks=8, dims=row["dims"].replace("2x2", "2x4"))
        figure = self.overlaid(self.result("allreduce"), more)["bus-bandwidth"]
        self.assertEqual(legend_of(figure)[0], "a, 4 ranks: multi-ring 2x2")
        self.assertEqual(legend_of(figure)[3], "b, 8 ranks: multi-ring 2x4")
        self.assertEqual(figure.axes[0].get_lines()[3].get_color(), style.mixed(style.BLUE, style.RUN_SHADES[1]))

    def test_a_contender_keeps_its_colour(self):
        document = self.result("allreduce")
        for row in document["rows"]:
            row["algorithm"] = {"multi-ring": "mpi:ring", "ring": "nccl"}.get(row["algorithm"], row["algorithm"])
        document["rows"] += [{**row, "ranks": 8, "dims": "2x4" if row["dims"] == "2x2" else row["dims"]} for row in document["rows"]]
        colours = [{line.get_color() for line in figure.axes[0].get_lines()} - {style.IDEAL, style.MUTED}
                   for figure in (chart.draw() for chart in collectives.charts(read_result(self.write("run.json", document))))]
        self.assertEqual(len(colours), 6)
        self.assertEqual(colours[0], {style.SKY, style.INK})
        self.assertEqual(colours[2], {style.SKY})
        self.assertEqual(colours[:3], colours[3:])

    def test_bounds_of_runs_are_told_apart(self):
        other = self.result("allreduce")
        self.assertIn("bound", legend_of(self.overlaid(other, other)["latency"]))
        for row in other["rows"]:
            row["bound_us"] *= 0.5
        figure = self.overlaid(self.result("allreduce"), other)["latency"]
        self.assertEqual(legend_of(figure)[-2:], ["bound of a", "bound of b"])

    def test_the_script_draws_runs_over_one_another(self):
        run = self.plot(self.folder / "allreduce.json", self.write("b.json", self.result("allreduce")), "--overlay", "--out", self.out)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual([line.split("\t")[:2] for line in run.stdout.splitlines()][-2:],
                         [["", "overlay-bus-bandwidth"], ["", "overlay-latency"]])
        self.assertTrue((self.out / "overlay-latency.svg").exists())

    def test_no_more_runs_than_can_be_told_apart(self):
        results = [read_result(self.write(f"{name}.json", self.result("allreduce"))) for name in "abcde"]
        contenders.check_comparable(results[:4])
        with self.assertRaisesRegex(Exception, "5 runs over one another cannot be told apart; name 4 at most"):
            contenders.check_comparable(results)

    def test_runs_that_cannot_be_compared(self):
        first = self.folder / "allreduce.json"

        def refused(expected, *others):
            self.refused(expected, first, *others, "--overlay", "--out", self.out)

        refused("no other result")
        refused("'scale' is of polyring scale", self.folder / "scale.json")
        refused("'empty' has no rows", self.write("empty.json", {**self.result("allreduce"), "rows": []}))
        refused("in the collective, allreduce and alltoall", self.write("other.json", {**self.result("allreduce"), "kind": "alltoall"}))
        for word, key, was, value in (("type", "dtype", "float32", "half"), ("operation", "op", "sum", "max"),
                                      ("timing", "timing", "isolated", "osu")):
            other = self.result("allreduce")
            for row in other["rows"]:
                row[key] = value
            refused(f"'allreduce' and '{key}' cannot be compared: they differ in the {word}, {was} and {value}",
                    self.write(f"{key}.json", other))


class PartsTest(unittest.TestCase):
    def test_ranks_of_the_median(self):
        """Those of tests/base/statistics_test.cpp, and of the normal approximation."""
        for samples, low in ((1, 1), (5, 1), (6, 1), (8, 1), (9, 2), (20, 6), (100, 40), (1_000_000, 499_020)):
            self.assertEqual(ratio.median_ranks(samples), (low, samples + 1 - low))

    def test_logarithmic_axes_have_ticks(self):
        for low, high in ((1, 1), (0.98, 1.03), (0.2, 7), (20, 7000), (0.5, 3e7)):
            axes = style.Figure().subplots()
            style.logarithmic(axes, low, high)
            self.assertLessEqual(axes.get_ylim()[0], low)
            self.assertGreaterEqual(axes.get_ylim()[1], high)
            self.assertTrue(3 <= len(axes.get_yticks()) <= 12, axes.get_yticks())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
