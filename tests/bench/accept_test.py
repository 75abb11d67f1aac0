"""polyring accept: what it judges, prints and writes, and its exit codes."""

import json
import xml.etree.ElementTree as xml

from program import ProgramTest, main

BELOW, INCONCLUSIVE = 8, 9
QUICK = ("accept", "--checks", "hosts.alike,correct")


class Accept(ProgramTest):
    def rows(self, name="accept.json"):
        result = json.loads((self.folder / name).read_text(encoding="utf-8"))
        self.assertEqual(result["kind"], "accept")
        return result["rows"]

    def test_passes_on_ranks_of_one_host(self):
        text = self.succeed(*QUICK, "-J", "accept.json", ranks=4)
        self.assertRegex(text, r"(?m)^hosts.alike +pass +1 of 1 ")
        self.assertRegex(text, r"(?m)^PASS: all \d+ judgements passed\.$")
        rows = self.rows()
        self.assertEqual({row["verdict"] for row in rows}, {"pass"})
        algorithms = {row["subject"] for row in rows if row["check"] == "correct"}
        self.assertLessEqual({"multi-ring", "ring", "halving-doubling", "tree"}, algorithms)

    def test_ranks_may_be_threads(self):
        self.succeed(*QUICK, "-g", 3, "-J", "accept.json")
        self.assertEqual({row["verdict"] for row in self.rows()}, {"pass"})

    def test_every_check_is_named_and_none_passes_that_was_not_measured(self):
        """One host: nothing says how fast it must be, and pairs that are asked for are missing."""
        ran = self.run_program("accept", "-J", "accept.json", "--budget", "5s", ranks=2)
        self.assertIn(ran.returncode, (BELOW, INCONCLUSIVE), ran.stderr)
        rows = {row["check"]: row for row in self.rows()}
        self.assertEqual(rows["pairs.allreduce"]["verdict"], "skipped")
        self.assertEqual(rows["host.allreduce"]["verdict"], "missing")
        self.assertIn("nothing says what it must be", rows["host.allreduce"]["why"])
        self.assertIn("--baseline", rows["host.allreduce"]["remedy"])
        ran = self.run_program("accept", "--checks", "pairs.allreduce", ranks=2)
        self.assertEqual(ran.returncode, INCONCLUSIVE, ran.stderr)
        self.assertIn("MISSING: 1 of 1 judgement were not measured: pairs.allreduce", ran.stdout)

    def test_other_programs_read_it(self):
        self.succeed(*QUICK, "--junit", "a.xml", "--prometheus", "a.prom", "--drain", ranks=2)
        suites = xml.parse(self.folder / "a.xml").getroot()
        self.assertEqual([suite.get("name") for suite in suites], ["hosts.alike", "correct"])
        self.assertEqual({suite.get("failures") for suite in suites}, {"0"})
        self.assertIn('polyring_accept_verdict{verdict="pass"} 1', (self.folder / "a.prom").read_text(encoding="utf-8"))
        # Others look for them by their names.
        self.succeed(*QUICK, "--junit", "a.xml", "--prometheus", "a.prom", ranks=2)
        self.assertEqual(sorted(file.name for file in self.folder.glob("a.*")), ["a.prom", "a.xml"])
        line = self.succeed(*QUICK, "--nagios", "-q", ranks=2).splitlines()[-1]
        self.assertRegex(line, r"^POLYRING OK - PASS: .* \| passed=\d+ failed=0 ")
        ran = self.run_program("accept", "--checks", "pairs.allreduce", "--nagios", ranks=2)
        self.assertEqual(ran.returncode, 3)
        self.assertIn("POLYRING UNKNOWN - MISSING", ran.stdout)

    def test_refuses_what_cannot_be_before_it_measures(self):
        for words, naming in ((("--checks", "hosts.alik"), "hosts.alike"), (("--checks", "nonsense"), "pairs.allreduce"),
                              (("--algorithm", "nonsense"), "multi-ring"), (("--budget", "nonsense"), "nonsense"),
                              (("--attempts", "0"), "--attempts"), (("--junit", "missing/a.xml"), "missing/a.xml"),
                              (("-J", "missing/a.json"), "missing/a.json"), (("--prometheus", "."), "folder")):
            with self.subTest(words):
                self.refused("accept", *words, naming=naming, ranks=2)


if __name__ == "__main__":
    main()
