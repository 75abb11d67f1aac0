"""Wrong results have no time, an exit code of their own, and are what a report says first: with a rank whose messages of 4 KiB
and more are made wrong (accept/wrong_sends.cpp).

Environment, set by CTest: POLYRING_WRONG_SENDS.
"""

import json
import os
import subprocess
import unittest
from unittest import mock

from program import MPIEXEC, PROGRAM, SANITIZED, TIME_LIMIT_S, ProgramTest, environment, main

WRONG_SENDS = os.environ["POLYRING_WRONG_SENDS"]
WRONG_RESULT = 7


@unittest.skipIf(SANITIZED, "the sanitizer's library must be loaded first")
class WrongResults(ProgramTest):
    def wrong(self, *words):
        """Of two ranks, one of which sends wrong bytes."""
        preloaded = ["env", f"LD_PRELOAD={WRONG_SENDS}", "POLYRING_WRONG_RANK=1", PROGRAM]
        ran = subprocess.run([MPIEXEC, "-n", "2", *preloaded, *words], env=environment(*words, ranks=2), cwd=self.folder,
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=TIME_LIMIT_S)
        self.assertEqual(ran.returncode, WRONG_RESULT, ran.stdout + ran.stderr)
        return ran

    def allreduce(self, first):
        """Out of place and in place, of this size and of 256 KiB, the larger of which is wrong."""
        ran = self.wrong("allreduce", "-b", first, "-e", "256K", "-f", "256", "-n", "5", "--algorithm", "ring", "--transport", "mpi",
                         "-J", "out.json")
        self.assertIn("gave 3 wrong elements and was not timed", ran.stdout)
        return json.loads((self.folder / "out.json").read_text(encoding="utf-8"))

    def report(self):
        with mock.patch.dict(os.environ, POLYRING_PYTHON="/bin/false"):  # no charts, which take seconds
            self.succeed("report", "out.json", "--out", "report")
        return (self.folder / "report/report.md").read_text(encoding="utf-8")

    def test_a_report_says_so_first(self):
        result = self.allreduce("1K")
        self.assertEqual([row["size_bytes"] for row in result["rows"]], [1024, 1024])
        notes = [f"Wrong results: ring of 262144 bytes{place} gave 3 wrong elements and was not timed." for place in ("", " in place")]
        self.assertEqual([note for note in result["notes"] if "wrong" in note], notes)
        text = self.report()
        self.assertIn("**WRONG**: ring of 262144 bytes gave 3 wrong elements and was not timed; 1 more of its notes say such a thing "
                      "(out).\n", text)
        self.assertLess(text.index("WRONG"), text.index("Every number"))
        self.assertNotIn("ring takes", text)

    def test_where_all_was_wrong_too(self):
        self.assertEqual(self.allreduce("256K")["rows"], [])
        self.assertIn("**WRONG**: ring of 262144 bytes gave", self.report())
        self.refused("compare", "out.json", "out.json", naming="all that 'out.json' measured was wrong")

    def test_of_a_training_step(self):
        ran = self.wrong("train", "--model", "resnet50", "--batch", "32", "--gpu", "P100", "--iters", "2", "--algorithm", "ring",
                         "--transport", "mpi", "-J", "out.json")
        self.assertIn("ring gave", ran.stderr)
        result = json.loads((self.folder / "out.json").read_text(encoding="utf-8"))
        self.assertEqual(result["rows"], [])
        self.assertEqual(len([note for note in result["notes"] if note.startswith("Wrong results: ring gave ")]), 1, result["notes"])
        self.assertRegex(self.report(), r"\*\*WRONG\*\*: ring gave \d+ wrong elements on 2 ranks, where nothing was timed")


if __name__ == "__main__":
    main()
