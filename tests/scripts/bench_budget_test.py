"""What scripts/bench_budget makes of commands that are quick, slow or fail; the program is a stand-in."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
USAGE = 6
BELOW_THRESHOLD = 8


class BenchBudget(unittest.TestCase):
    def run_script(self, program, *options):
        with tempfile.TemporaryDirectory() as folder:
            stand_in = pathlib.Path(folder) / "polyring"
            stand_in.write_text(f"#!{sys.executable}\n{program}\n")
            stand_in.chmod(0o755)
            return subprocess.run([ROOT / "scripts/bench_budget", "--polyring", stand_in, "--rounds", "1", *options],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=100)

    def test_a_quick_command(self):
        ran = self.run_script("", "--only", "scale-minsky")
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertRegex(ran.stdout, r"(?m)^scale-minsky .* yes$")

    def test_one_that_computes_for_longer_than_its_budget(self):
        burn = "import time\nwhile time.process_time() < 4: pass"
        ran = self.run_script(burn, "--only", "probe-dgx")
        self.assertEqual(ran.returncode, BELOW_THRESHOLD, ran.stdout + ran.stderr)
        self.assertRegex(ran.stdout, r"(?m)^probe-dgx .* NO$")

    def test_one_that_only_waits(self):
        ran = self.run_script("import time; time.sleep(2)", "--only", "scale-minsky")
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    def test_one_that_fails(self):
        ran = self.run_script("raise SystemExit(5)", "--only", "probe-own")
        self.assertEqual(ran.returncode, 5)
        self.assertIn("bench_budget: polyring probe failed with exit code 5\n", ran.stderr)

    def test_options(self):
        for words, said in ((("--only", "nosuch"), "nothing is called 'nosuch'"), (("--rounds", "0"), "needs a number, 1 to 100")):
            ran = self.run_script("", *words)
            self.assertEqual((ran.returncode, ran.stdout), (USAGE, ""))
            self.assertIn(said, ran.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
