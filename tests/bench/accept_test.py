"""polyring accept: what it judges, prints and writes, and its exit codes."""

import json
import os
import re
import signal
import time
import xml.etree.ElementTree as xml

from job import START_S, JobTest
from program import ProgramTest, command, main

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


class Killed(JobTest):
    def test_a_rank_that_dies_is_named(self):
        words = ("accept", "-J", "accept.json", "--junit", "a.xml")
        job, ranks = self.launch(command(*words, ranks=3), 3)
        deadline = time.monotonic() + START_S
        while not re.search(r"(?m)^correct ", self.output()):
            self.assertIsNone(job.poll(), self.output())
            self.assertLess(time.monotonic(), deadline, "the first checks do not end")
            time.sleep(0.01)
        os.kill(ranks[1], signal.SIGKILL)
        self.assertNotEqual(self.ended(job, ranks), 0)
        # Whatever becomes of rank 0, its journal has what was judged.
        self.assertTrue((self.folder / "accept.json.part").exists(), self.output())
        if "BAD TERMINATION" in self.output():  # MPICH's mpiexec kills all ranks at once
            return
        self.assertIn(f"FAIL  ranks.alive, rank 1 on {os.uname().nodename}: ", self.output())
        self.assertRegex(self.output(), r"ERROR  [a-z.]+: The job ended while this ran")
        self.assertIn("MISSING  repeatability: The job ended before this ran.", self.output())
        suites = {suite.get("name"): suite for suite in xml.parse(self.folder / "a.xml").getroot()}
        self.assertEqual(suites["ranks.alive"].get("failures"), "1")
        self.assertEqual(suites["repeatability"].get("errors"), "1")


if __name__ == "__main__":
    main()
