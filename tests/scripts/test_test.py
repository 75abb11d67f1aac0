"""Runs scripts/test, with the real CTest, on a few tests that pass, fail or are skipped; set-up and build are stand-ins."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
USAGE = 6

SUITE = """
import sys, unittest
class Some(unittest.TestCase):
    def test_that_runs(self): pass
    def test_that_is_not_permitted(self): self.skipTest("needs root, here\\nor there")
    def test_with_a_line(self):
        \"\"\"What it is for.\"\"\"
        print("noise")
        self.skipTest("it's late")
class Whole(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise unittest.SkipTest("no namespaces")
    def test_never(self): pass
unittest.main(verbosity=int(sys.argv.pop(1)))
"""
GOOGLETEST = "[ RUN      ] Reads.Files\\\\n/a b.cpp:7: Skipped\\\\nno files named\\\\n\\\\n[  SKIPPED ] Reads.Files (0 ms)\\\\n"
TESTS = f"""
add_test(suite "{sys.executable}" -B suite.py 2)
add_test(terse "{sys.executable}" -B suite.py 1)
add_test(Reads.Files printf "{GOOGLETEST}")
set_tests_properties(Reads.Files PROPERTIES SKIP_REGULAR_EXPRESSION "\\\\[  SKIPPED \\\\]")
add_test(style sh -c "echo 'skipped: no formatter'; exit 77")
add_test(silent sh -c "exit 77")
set_tests_properties(style silent PROPERTIES SKIP_RETURN_CODE 77)
add_test(switched_off true)
set_tests_properties(switched_off PROPERTIES DISABLED TRUE)
add_test(fine echo "skipped: nothing")
"""
SKIPPED = """\
    skipped: needs root, here
      suite test_that_is_not_permitted
    skipped: it's late
      suite test_with_a_line
    skipped: no namespaces
      suite Whole, all of it
    skipped: no reason shown; unittest needs verbosity=2
      terse 3 tests
    skipped: no files named
      Reads.Files
    skipped: no formatter
      style
    skipped: it does not say why
      silent
    skipped: CMake has switched it off
      switched_off
"""


class Test(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        shutil.copytree(ROOT / "scripts", self.root / "scripts")
        shutil.copy(ROOT / "CMakePresets.json", self.root)
        for script in ("setup", "build"):
            (self.root / "scripts" / script).write_text("#!/bin/sh\n")

    def write_tests(self, preset, text):
        folder = self.root / ("build" if preset == "release" else f"build-{preset}")
        folder.mkdir()
        (folder / "suite.py").write_text(SUITE)
        (folder / "CTestTestfile.cmake").write_text(text)

    def summary(self, code, *options, **environment):
        """What follows the word."""
        ran = self.run_script(*options, **environment)
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        return ran.stdout.partition("\nSummary\n")[2]

    def run_script(self, *options, **environment):
        own = {"POLYRING_TEST_PRESETS": "release", "POLYRING_MUST_RUN": ""}  # and not those of the run that this test belongs to
        return subprocess.run([self.root / "scripts/test", *options], env={**os.environ, **own, **environment},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)

    def test_what_must_run_is_installed(self):
        (self.root / "scripts/setup").write_text("#!/bin/sh\necho setup: $*\n")
        self.write_tests("release", "add_test(fine true)\n")
        self.assertIn("setup: --simgrid\n", self.run_script().stdout)
        self.assertIn("setup: --simgrid --slurm --browser\n", self.run_script(POLYRING_MUST_RUN="slurm emulation  browser").stdout)
        ran = self.run_script(POLYRING_MUST_RUN="browser,slurm")
        self.assertEqual((ran.returncode, ran.stdout), (USAGE, ""))
        self.assertEqual(ran.stderr, "test: POLYRING_MUST_RUN names 'browser,slurm'; it may name browser, slurm, torch, emulation and gpu\n")

    def test_what_is_skipped_is_listed_with_its_reason(self):
        self.write_tests("release", TESTS)
        lines = self.summary(0, "--parallel", "1").splitlines(keepends=True)
        self.assertEqual(lines[0], "  release: passed\n")
        self.assertEqual(sorted(lines[1:]), sorted(SKIPPED.splitlines(keepends=True)))

    def test_each_preset_has_its_own_list(self):
        self.write_tests("release", 'add_test(style sh -c "echo why; exit 77")\nset_tests_properties(style PROPERTIES SKIP_RETURN_CODE 77)\n')
        self.write_tests("asan", 'add_test(wrong sh -c "seq 30; exit 1")\nadd_test(right true)\n')
        said = "".join(f"      | {number}\n" for number in range(11, 31))
        self.assertEqual(self.summary(1, POLYRING_TEST_PRESETS="release asan"),
                         f"  release: passed\n    skipped: why\n      style\n  asan: FAILED\n    failed: wrong\n{said}")

    def test_the_next_preset_is_built_beside_the_tests(self):
        """The test ends only when the other build has begun."""
        begun = self.root / "begun"
        (self.root / "scripts/build").write_text(f"#!/bin/sh\necho builds $1\n[ $1 = release ] || touch {begun}\n[ $1 != tsan ] || exit 3\n")
        self.write_tests("release", f'add_test(waits timeout 20 sh -c "until [ -e {begun} ]; do sleep 0.1; done")\n')
        self.write_tests("asan", "add_test(fine true)\n")
        ran = self.run_script(POLYRING_TEST_PRESETS="release asan")
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertIn("\n== asan: build\nbuilds asan\n\n== asan: test\n", ran.stdout)
        self.assertIn("\nSummary\n  release: passed\n  asan: passed\n", ran.stdout)
        ran = self.run_script(POLYRING_TEST_PRESETS="release tsan")
        self.assertEqual(ran.returncode, 3, ran.stdout + ran.stderr)
        self.assertTrue(ran.stdout.endswith("\n== tsan: build\nbuilds tsan\n"), ran.stdout)

    def test_a_build_ends_with_the_script(self):
        here = self.root / "here"
        (self.root / "scripts/build").write_text(f"#!/bin/sh\n[ $1 = release ] || (echo $$ > {here}; exec sleep 600)\n")
        self.write_tests("release", f'add_test(waits timeout 20 sh -c "until [ -s {here} ]; do sleep 0.1; done")\n')
        script = subprocess.Popen([self.root / "scripts/test"], env={**os.environ, "POLYRING_TEST_PRESETS": "release asan", "POLYRING_MUST_RUN": ""},
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while not (here.exists() and here.read_text().strip()):
            time.sleep(0.05)
        group = os.getpgid(int(here.read_text()))
        script.terminate()
        script.communicate(timeout=30)
        with self.assertRaises(ProcessLookupError):
            for _ in range(100):
                os.killpg(group, 0)
                time.sleep(0.05)

    def test_a_list_of_an_earlier_run_is_not_shown(self):
        self.write_tests("release", TESTS)
        self.summary(0)
        self.assertEqual(self.summary(0, "-N"), "  release: passed\n")

    def test_what_the_machine_is_too_busy_for(self):
        busy = "inconclusive here: 1 of 2 cores is busy"
        tests = [f'add_test({name} sh -c "echo \'{busy}\'; exit 77")\n' for name in "abcd"]
        properties = "set_tests_properties({} PROPERTIES SKIP_RETURN_CODE 77 LABELS \"{}\")\n"
        labelled = "".join(tests[:3]) + properties.format("a b c", "mpi;machine")
        self.write_tests("release", labelled)
        names = "".join(f"      {name}\n" for name in "abc")
        self.assertEqual(self.summary(0, "-j1"), f"  release: passed\n    {busy}\n{names}")
        self.write_tests("asan", tests[3] + properties.format("d", "machine"))
        self.assertIn("  4 tests are inconclusive, more than 3:", self.summary(1, POLYRING_TEST_PRESETS="release asan"))
        self.write_tests("tsan", tests[0] + properties.format("a", "mpi;threads"))
        self.assertIn("  inconclusive, but not labelled `machine`: a\n", self.summary(1, POLYRING_TEST_PRESETS="tsan"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
