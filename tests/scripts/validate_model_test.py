"""scripts/validate_model: all of it in small on emulated hosts, where these are permitted, and what it refuses.

Environment, set by CTest: POLYRING_PROGRAM.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import must_run

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
SCRIPT = ROOT / "scripts/validate_model"
PROGRAM = os.environ["POLYRING_PROGRAM"]
NOT_AVAILABLE = 5
USAGE = 6
INTERRUPTED = 130


class ValidateModel(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def words(self, *options):
        return [SCRIPT, "--quick", "--iters", "1", "--program", PROGRAM, "--out", self.folder / "out", *options]

    def run_script(self, *options):
        return subprocess.run(self.words(*options), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def test_all_of_it_in_small(self):
        ran = self.run_script()
        if ran.returncode == NOT_AVAILABLE:
            must_run.skip("emulation", ran.stderr.strip())
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        kept = json.loads((self.folder / "out/calibration.json").read_text())
        self.assertEqual([link["link"] for link in kept["links"]], ["memory", "network"])
        self.assertEqual((len(kept["fitted_to"]), len(kept["checked_on"]), kept["source"]), (2, 5, "emulated"))
        # Three algorithms and sizes, out of place and in place.
        self.assertEqual((kept["fitted"]["points"], kept["checked"]["points"]), (2 * 18, 5 * 18))
        self.assertIn(f"mean error {100 * kept['checked']['mean']:.1f} %, goal 8 %", ran.stdout)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["out"])

    def test_nothing_is_left_of_a_run_that_is_ended(self):
        job = subprocess.Popen(self.words(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, start_new_session=True)
        said = job.stderr.readline()
        if not said.startswith("1/7"):
            self.assertEqual(job.wait(), NOT_AVAILABLE, said)
            job.communicate()
            must_run.skip("emulation", said.strip())
        time.sleep(0.5)
        job.send_signal(signal.SIGTERM)
        _, errors = job.communicate(timeout=60)
        self.assertEqual(job.returncode, INTERRUPTED, errors)
        self.assertIn("interrupted; nothing is written", errors)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_what_it_refuses(self):
        for options, naming in ((("--iters", "0"), "needs a number, 1 to 1000, not '0'"),
                                (("--program", "/dev/null"), "is not a program"), (("--fast",), "--fast")):
            with self.subTest(options=options):
                ran = self.run_script(*options)
                self.assertEqual((ran.returncode, ran.stdout), (USAGE, ""))
                self.assertIn(naming, ran.stderr)
                self.assertEqual(len(ran.stderr.splitlines()), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
