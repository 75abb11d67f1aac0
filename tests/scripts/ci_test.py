""".ci/run with stand-ins for the scripts that it calls: what it says in the end, and its exit status."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()


@unittest.skipUnless((ROOT / ".ci/run").exists(), "this tree has no .ci/run")
class Ci(unittest.TestCase):
    def run_with(self, fuzz, test):
        """The last part of what it prints, from the test's own word on, and its status."""
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder) / "tree"
            (tree / "scripts").mkdir(parents=True)
            shutil.copytree(ROOT / ".ci", tree / ".ci")
            for name, body in {"setup": "exit 0", "fuzz": fuzz, "test": f"echo tested; {test}"}.items():
                path = tree / "scripts" / name
                path.write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
                path.chmod(0o755)
            ran = subprocess.run([tree / ".ci/run"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 text=True, check=False, timeout=60)
        _, tested, end = ran.stdout.partition("tested\n")
        self.assertTrue(tested, ran.stdout)
        return end, ran.returncode

    def test_what_passes_says_nothing_more(self):
        self.assertEqual(self.run_with("echo found nothing", "exit 0"), ("", 0))
        self.assertEqual(self.run_with("echo found nothing", "exit 3"), ("", 3))

    def test_findings_are_the_end(self):
        failed = "\nscripts/fuzz, before the tests, failed with 1\n"
        for test in ("exit 0", "exit 3"):
            self.assertEqual(self.run_with("echo before; echo 'xml: FOUND something'; echo a trace; exit 1", test),
                             (f"{failed}xml: FOUND something\na trace\n", 1))

    def test_a_failure_without_findings_is_told_by_its_last_lines(self):
        end, status = self.run_with("seq 100; echo 'clang++ crashed' >&2; exit 5", "exit 0")
        self.assertEqual(status, 5)
        lines = [*map(str, range(77, 101)), "clang++ crashed"]
        self.assertEqual(end.splitlines(), ["", "scripts/fuzz, before the tests, failed with 5", *lines])


if __name__ == "__main__":
    unittest.main(verbosity=2)
