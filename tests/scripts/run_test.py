"""Runs scripts/run in a copy of the scripts whose set-up, build, mpiexec and polyring are stand-ins."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve() / "polyring"
        shutil.copytree(ROOT / "scripts", self.root / "scripts")
        self.log = self.root / "calls"
        self.fake("scripts/setup", "exit 0")
        self.fake("scripts/build", "exit 0")
        self.fake("mpiexec", f'echo "mpiexec $1 $2, root $OMPI_ALLOW_RUN_AS_ROOT" >> {self.log}; shift 2; exec "$@"')
        self.fake("scripts/emulate", f'echo "emulate $*" >> {self.log}; while [ "$1" != -- ]; do shift; done; shift; exec "$@"')
        self.fake("build/bin/polyring", f'echo "$*" >> {self.log}; echo "table of $1"')
        (self.root / "build/CMakeCache.txt").write_text(f"MPIEXEC_EXECUTABLE:FILEPATH={self.root}/mpiexec\n")

    def fake(self, name, body):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!{shutil.which('bash')}\n{body}\n")
        path.chmod(0o755)

    def run_script(self, *options, cwd="/"):
        return subprocess.run(
            [self.root / "scripts/run", *options],
            cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60,
        )

    def calls(self):
        return self.log.read_text().splitlines()

    def test_ends_with_the_tables_in_order(self):
        ran = self.run_script()
        self.assertEqual(ran.returncode, 0, ran.stderr)
        places = [ran.stdout.index(f"table of {name}\n") for name in ("probe", "allreduce", "accept", "train", "scale", "report")]
        self.assertEqual(places, sorted(places))
        self.assertIn("[2/7] allreduce on", ran.stderr)
        self.assertIn("== Allreduce on 4 emulated hosts\n\ntable of allreduce\n", ran.stdout)

    def test_ranks_and_output_folder(self):
        where = self.root / "elsewhere"
        where.mkdir()
        ran = self.run_script("--ranks", "3", "--out", "mine", "--quick", cwd=where)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(self.calls().count("mpiexec -n 3, root 1"), 2)
        self.assertRegex("\n".join(self.calls()), rf"report accept.json allreduce.json emulated.json train.json scale.json today.json --out {where}/mine\n?$")
        self.assertTrue(any("-e 1M" in call for call in self.calls()))

    def test_measures_with_two_to_four_ranks(self):
        cores = len(os.sched_getaffinity(0))
        self.run_script()
        self.assertIn(f"mpiexec -n {min(4, max(2, cores))}, root 1", self.calls())

    def test_emulated_hosts_have_the_mpi_that_polyring_is_built_with(self):
        for version, mpi in (("polyring 0.1.0 (abc)\nMPI       Open MPI 4.1.4", "openmpi"), ("polyring 0.1.0 (abc)\nMPI       MPICH 4.0.2", "mpich")):
            with self.subTest(mpi=mpi):
                self.log.unlink(missing_ok=True)
                self.fake("build/bin/polyring", f'[ "$1" = --version ] && echo "{version}" && exit; echo "$*" >> {self.log}; echo "table of $1"')
                self.assertEqual(self.run_script().returncode, 0)
                self.assertIn(f"--mpi {mpi} --", "\n".join(self.calls()))

    def test_a_bad_verdict_is_no_failure_and_a_broken_run_is(self):
        for code, ends in ((8, 0), (9, 0), (7, 7)):
            with self.subTest(code=code):
                self.fake("build/bin/polyring", f'echo "table of $1"; [ "$1" != accept ] || exit {code}')
                self.assertEqual(self.run_script("--quick").returncode, ends)

    def test_where_hosts_cannot_be_emulated(self):
        self.fake("scripts/emulate", 'echo "network namespaces need root" >&2; exit 5')
        for ranks, instead in ((2, True), (4, False)):
            with self.subTest(ranks=ranks):
                self.log.unlink(missing_ok=True)
                ran = self.run_script("--ranks", str(ranks))
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertIn("no emulated hosts (network namespaces need root)", ran.stderr)
                self.assertEqual("== Allreduce on 4 ranks of" in ran.stdout, instead)
                self.assertEqual(self.calls().count("mpiexec -n 4, root 1"), 1 if instead else 2)
                self.assertEqual("report allreduce.json 4ranks.json" in "\n".join(self.calls()), instead)

    def test_emulated_hosts_that_fail(self):
        self.fake("scripts/emulate", 'echo "polyring: a wrong result" >&2; exit 7')
        ran = self.run_script()
        self.assertEqual(ran.returncode, 7)
        self.assertIn("polyring: a wrong result\n", ran.stderr)

    def test_a_failing_step_stops_with_its_code(self):
        self.fake("build/bin/polyring", '[[ $1 != train ]] || { echo "wrong result" >&2; exit 7; }; echo "table of $1"')
        ran = self.run_script()
        self.assertEqual(ran.returncode, 7)
        self.assertIn("wrong result", ran.stderr)
        self.assertNotIn("table of", ran.stdout)

    def test_bad_options_are_refused_before_any_work(self):
        for options in (["--ranks", "0"], ["--ranks", "two"], ["--ranks"], ["--out"], ["--fast"], ["report"]):
            with self.subTest(options=options):
                ran = self.run_script(*options)
                self.assertEqual(ran.returncode, 6)
                self.assertEqual(len(ran.stderr.splitlines()), 1)
                self.assertFalse(self.log.exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
