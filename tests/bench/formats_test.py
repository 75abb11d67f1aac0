"""--format, --wide, --quiet and the width of tables: the same for all commands that have rows."""

import csv
import io
import json
import os
from unittest import mock

from program import COLLECTIVES, USAGE, ProgramTest, main

SMALL = ("-b", "1K", "-e", "4K", "-f", "4", "-n", "7", "-g", "3")
MEASURED = {
    **{name: (name, *SMALL, "--algorithm", "direct,pairwise") for name in COLLECTIVES},
    "train": ("train", "-g", "2", "-n", "2", "--compute-ms", "1", "--algorithm", "ring"),
    "tune": ("tune", *SMALL, "--tuned", "tuned.json"),
    "accept": ("accept", "-g", "3", "--checks", "hosts.alike,correct"),
    "scale": ("scale", "--machine", "minsky", "--gpus", "4,8", "--algorithm", "ring,tree"),
}
COMPUTED = {
    "verify": ("verify", "--ranks", "2..3", "--algorithm", "ring"),
    "plan": ("plan", "--machine", "minsky"),
    "probe": ("probe", "--machine", "minsky"),
}


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


class Formats(ProgramTest):
    def test_csv_has_the_json_at_full_precision(self):
        for name, words in MEASURED.items():
            with self.subTest(name):
                options = () if name == "tune" else ("-J", f"{name}.json")
                ran = self.run_program(*words, *options, "--format", "csv")
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertIn("Written to", ran.stderr, "all but rows is for people")
                rows = rows_of(ran.stdout)
                self.assertGreater(len(rows), 1 if name != "train" else 0)
                if not options:
                    continue
                for row, right in zip(rows, json.loads((self.folder / f"{name}.json").read_text())["rows"], strict=True):
                    for key, value in right.items():
                        if isinstance(value, dict):
                            for part in ("median", "ci_low", "ci_high", "min", "p99"):
                                self.assertEqual(float(row[f"{key}_{part}"]), value[part])
                            self.assertEqual(int(row[f"{key}_samples"]), len(value["samples"]))
                        elif isinstance(value, bool):
                            self.assertEqual(row[key], str(value).lower())
                        elif isinstance(value, (int, float)):
                            self.assertEqual(float(row[key]), value)
                        elif value is None and f"{key}_median" in row:  # a time that there is not
                            self.assertEqual(row[f"{key}_median"], "")
                        elif not isinstance(value, list):
                            self.assertEqual(row[key], value or "")

    def test_csv_comes_row_by_row_under_one_head(self):
        for words in (*MEASURED.values(), *COMPUTED.values()):
            with self.subTest(words[0]):
                lines = self.succeed(*words, "--format", "csv").splitlines()
                self.assertEqual(lines.count(lines[0]), 1)
                self.assertEqual({len(row) for row in csv.reader(lines)}, {len(next(csv.reader(lines)))})
                self.assertRegex(lines[0], r"^\w+(,\w+)+$")

    def test_json_is_what_a_file_would_have(self):
        for name, words in MEASURED.items():
            with self.subTest(name):
                result = json.loads(self.succeed(*words, "--format", "json"))
                self.assertEqual((result["format"], result["kind"]), ("polyring-result", name))
                self.assertTrue(result["rows"])
        self.assertEqual(json.loads(self.succeed(*COMPUTED["verify"], "--format", "json"))[1],
                         {"plan": "ring 3, 1 lane", "ranks": 3, "schedule": "proved", "programs": "proved", "fault": ""})
        plan, = json.loads(self.succeed(*COMPUTED["plan"], "--format", "json"))
        self.assertEqual((plan["ranks"], plan["size_bytes"]), (4, 100000000))
        self.assertLessEqual(plan["bound_us"], plan["modelled_us"])
        plan, = json.loads(self.succeed("plan", "--machine", "dgx1-v100", "--format", "json"))
        self.assertEqual(plan["dims"], "8", "it is a text also where it is one number")

    def test_json_and_a_file_are_the_same(self):
        text = self.succeed(*MEASURED["scale"], "--format", "json", "-J", "scale.json")
        self.assertEqual(text, (self.folder / "scale.json").read_text())
        self.assertEqual(json.loads(self.succeed(*MEASURED["scale"], "--format", "json", "-J", "-"))["kind"], "scale")

    def test_markdown_is_a_table(self):
        for words in (*MEASURED.values(), *COMPUTED.values()):
            with self.subTest(words[0]):
                table = [line for line in self.succeed(*words, "--format", "markdown").splitlines() if line.startswith("|")]
                self.assertRegex(table[1], r"^(\| :?---:? )+\|$")
                self.assertEqual({line.count(" | ") for line in table[:3]}, {table[1].count(" | ")})

    def test_calibrate(self):
        for algorithm in ("ring", "direct"):
            self.succeed("allreduce", "-g", 4, "-b", "64K", "-e", "4M", "-f", "4", "-n", "5", "--algorithm", algorithm, "-J", f"{algorithm}.json")
        words = ("calibrate", "ring.json", "direct.json")
        whole = json.loads(self.succeed(*words, "--format", "json"))
        self.assertEqual(whole["format"], "polyring-calibration")
        links = {row["link"]: row for row in rows_of(self.succeed(*words, "--format", "csv"))}
        for fit in whole["links"]:
            self.assertAlmostEqual(float(links[fit["link"]]["latency_us"]), fit["latency_us"], places=2)
        points = rows_of(self.succeed(*words, "--format", "csv", "--points"))
        self.assertEqual(len(points), 2 * 2 * 4)
        measured = {row["time_us"]["median"] for name in ("ring", "direct") for row in json.loads((self.folder / f"{name}.json").read_text())["rows"]}
        self.assertLessEqual({round(float(row["measured_us"]), 6) for row in points}, {round(time, 6) for time in measured})

    def test_quiet_prints_the_rows_alone(self):
        for name, words in MEASURED.items():
            with self.subTest(name):
                lines = self.succeed(*words, "-q").splitlines()
                heads = [index for index, line in enumerate(lines) if line.startswith("--")]
                self.assertEqual(len(heads), 1, "no second table")
                self.assertLess(heads[0], 4)
                self.assertNotRegex("\n".join(lines), r"[.;]( |$)")

    def test_quiet_json_says_nothing_to_people(self):
        ran = self.run_program(*MEASURED["allreduce"], "-q", "--format", "json")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))

    def test_rows_of_many_sizes_are_printed_once_each(self):
        rows = [line.split() for line in self.succeed("allreduce", "-g", "2", "-b", "64", "-e", "1K", "-i", "64", "-n", "1", "-q").splitlines()[4:]]
        self.assertEqual([row[0] for row in rows if row], [str(size) for size in range(64, 1025, 64)])
        self.assertEqual(rows[1::2], [[]] * 15, "a gap between sizes")

    def test_two_results_do_not_share_the_output(self):
        self.refused(*MEASURED["scale"], "-J", "-", "--format", "csv", naming="-J - and --format csv")
        self.refused(*MEASURED["scale"], "--format", "cvs", naming="did you mean csv?")
        self.refused("plan", "--machine", "minsky", "--format", "json", "--explain", naming="--explain")
        self.refused("probe", "--machine", "minsky", "--format", "csv", "--expect", naming="--expect")


class Width(ProgramTest):
    """What is not narrowed has 1000 characters here."""

    def lines(self, *words, columns=None):
        variables = {} if columns is None else {"COLUMNS": columns}
        with mock.patch.dict(os.environ, variables):
            if columns is None:
                del os.environ["COLUMNS"]
            return self.succeed(*words).splitlines()

    def table(self, *words, columns=None):
        """The lines from the one under the heading on."""
        lines = self.lines(*words, "-q", columns=columns)
        return lines[next(index for index, line in enumerate(lines) if line.startswith("--")):]

    def test_tables_fit(self):
        for name in ("allreduce", "alltoall", "train", "scale"):
            for columns in ("100", "80", None):
                with self.subTest(name, columns=columns):
                    longest = max(map(len, self.table(*MEASURED[name], columns=columns)))
                    self.assertLessEqual(longest, int(columns or 100))
            self.assertGreater(max(map(len, self.table(*MEASURED[name], "--wide"))), 80)

    def test_a_narrow_table_has_each_placement_below_the_other(self):
        rows = [line.split()[:3] for line in self.table(*MEASURED["allreduce"])[1:]]
        self.assertEqual(rows, [[], *rows][1:])
        self.assertEqual(rows[:4], [["1024", "out", "direct"], ["1024", "out", "pairwise"], ["1024", "in", "direct"], ["1024", "in", "pairwise"]])

    def test_what_is_left_out_is_said(self):
        lines = self.lines(*MEASURED["scale"], columns="80")
        self.assertLessEqual(max(map(len, lines[:lines.index("")])), 80)
        caption = " ".join(lines[:lines.index("")])
        self.assertRegex(caption, "; modelled; --wide adds lanes, nodes, exposed$")
        self.assertNotIn("--wide", self.lines(*MEASURED["scale"], columns="1000")[0])

    def test_columns_that_are_no_number(self):
        for columns in ("", "0", "-5", "wide", "99999999999999999999"):
            with self.subTest(columns=columns):
                self.assertLessEqual(max(map(len, self.table(*MEASURED["scale"], columns=columns))), 100)

    def test_a_title_is_in_the_result(self):
        words = ("scale", "--machine", "minsky", "--algorithm", "multi-ring", "--gpus", "4", "-q", "-J")
        self.succeed(*words, "titled.json", "--title", "Offer B")
        self.succeed(*words, "plain.json")
        titled, plain = (json.loads((self.folder / name).read_text(encoding="utf-8")) for name in ("titled.json", "plain.json"))
        self.assertEqual(titled["title"], "Offer B")
        self.assertNotIn("title", plain)

    def test_empty_columns_are_left_out(self):
        self.assertNotIn("published", "\n".join(self.lines(*MEASURED["scale"], "--wide", "-q")))
        self.assertNotIn("bound", "\n".join(self.lines(*MEASURED["allreduce"], "--wide", "-q")))


if __name__ == "__main__":
    main()
