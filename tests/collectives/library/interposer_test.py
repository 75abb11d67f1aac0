"""Runs programs that know nothing of Polyring under mpiexec, with libpolyring_mpi.so preloaded: right results, and what is taken.

Environment, set by CTest: POLYRING_MPIEXEC, POLYRING_INTERPOSER (the library), POLYRING_CALLS, POLYRING_TROUBLE and POLYRING_GROWTH
(the programs beside this file), POLYRING_FORTRAN (a folder with three programs in Fortran; empty: there is no compiler), POLYRING_NM.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

LIBRARY, CALLS, TROUBLE, GROWTH, MPIEXEC = (
    os.environ[f"POLYRING_{name}"] for name in ("INTERPOSER", "CALLS", "TROUBLE", "GROWTH", "MPIEXEC"))
FORTRAN = os.environ.get("POLYRING_FORTRAN", "")
SANITIZED = bool(os.environ.get("POLYRING_SANITIZE"))
HERE = pathlib.Path(__file__).parent
LIMIT_S = 100
COMMUNICATORS, OPERATIONS = 40, 600
NAMES = ("MPI_Allreduce", "MPI_Reduce_scatter_block", "MPI_Allgather")


def printed(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


IS_OPEN_MPI = "Open MPI" in printed(MPIEXEC, "--version") or "OpenRTE" in printed(MPIEXEC, "--version")


class Preloaded(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("OMPI_MCA_orte_tmpdir_base"), ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def launch(self, *program, ranks=2, launcher=MPIEXEC, options=(), settings=None, code=0):
        """What it prints and says, together. With an environment for each rank, `settings` is a list."""
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        each = settings if isinstance(settings, list) else [settings or {}]
        command = [launcher, *options]
        for number, own in enumerate(each):
            variables = {"LD_PRELOAD": LIBRARY, "POLYRING_MPI_MIN_BYTES": "64K", "POLYRING_MPI_COUNTERS": f"{self.folder}/counters", **own}
            command += [":"] * (number > 0) + ["-n", str(ranks if len(each) == 1 else 1), "env"]
            command += [f"{name}={value}" for name, value in variables.items()] + list(map(str, program))
        ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False,
                             env={**os.environ, "OMPI_MCA_orte_tmpdir_base": str(self.folder)})
        if code is not None:
            self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        return ran.stdout + ran.stderr

    def counters(self, rank=0):
        return json.loads((self.folder / f"counters.{rank}").read_text())


class Calls(Preloaded):
    def expect_taken(self, ranks):
        output = self.launch(CALLS, ranks=ranks)
        for rank in range(ranks):
            expected = re.search(rf"^rank {rank} taken (\d+) (\d+) (\d+)$", output, re.MULTILINE)
            self.assertEqual(self.counters(rank)["taken"], dict(zip(NAMES, map(int, expected.groups()))))
            self.assertEqual((self.counters(rank)["failed"], self.counters(rank)["notes"]), ({}, []))
        return self.counters()["passed_on"]

    def test_between_two_ranks(self):
        passed_on = self.expect_taken(2)
        self.assertEqual(passed_on["MPI_Allreduce"], {"small": 4, "op": 5, "one_rank": 3, "intercommunicator": 1})
        self.assertEqual(passed_on["MPI_Reduce_scatter_block"], {"small": 4})
        self.assertEqual(passed_on["MPI_Allgather"], {"small": 1})

    def test_among_three_ranks(self):
        self.expect_taken(3)

    def test_thresholds_of_a_type(self):
        self.launch(CALLS, settings={"POLYRING_MPI_MIN_BYTES": "double=1G,allgather=1G"})
        self.assertNotIn("MPI_Allgather", self.counters()["taken"])
        self.assertIn("small", self.counters()["passed_on"]["MPI_Allgather"])

    def test_switched_off_at_one_rank(self):
        self.assertNotIn("polyring:", self.launch(CALLS, settings=[{"POLYRING_MPI": "OFF"}, {"POLYRING_MPI": "On"}]))
        for rank in (0, 1):
            self.assertEqual(self.counters(rank)["taken"], {})
            self.assertGreater(self.counters(rank)["passed_on"]["MPI_Allreduce"]["off"], 50)

    def test_settings_that_cannot_be(self):
        for name, value, sentence in (("POLYRING_MPI", "maybe", "POLYRING_MPI is 'maybe'; set it to on or off"),
                                      ("POLYRING_MPI_MIN_BYTES", "half=1K", "POLYRING_MPI_MIN_BYTES has 'half=1K'; give one number")):
            with self.subTest(name):
                output = self.launch(TROUBLE, "crossed", settings={name: value})
                self.assertEqual(output.count(f"polyring: {sentence}"), 1, output)
                self.assertEqual(self.counters()["passed_on"]["MPI_Allreduce"], {"off": 2})


class Trouble(Preloaded):
    @unittest.skipIf(SANITIZED, "the shell that starts each rank lacks the sanitizer, which the preloaded library needs")
    def test_a_rank_is_killed(self):
        """MPICH's launcher may end all others when its own child is killed, and not when a shell returns a code."""
        options = ("--enable-recovery",) if IS_OPEN_MPI else ("-disable-auto-cleanup",)
        said = self.folder / "said"
        shell = ("sh", "-c", "trap '' USR1; \"$@\"; exit $?", "sh")
        self.launch(*shell, TROUBLE, "killed", said, options=options, code=None)
        end = time.monotonic() + LIMIT_S
        while "alive" not in (text := said.read_text() if said.exists() else "") and time.monotonic() < end:
            time.sleep(0.1)
        self.assertRegex(text, r"\A(rank 0: polyring: rank 1's process \d+ has ended[^\n]*\n){2}alive\n\Z")

    def test_a_time_limit(self):
        output = self.launch(TROUBLE, "late", "when_given_up", settings={"POLYRING_MPI_TIMEOUT": "0.2s"})
        self.assertRegex(output, r"rank 0: polyring: waited 200 ms for rank 1 \(")
        self.assertIn("the same code", output)
        self.assertNotIn("another", output)
        self.assertEqual(self.counters()["failed"], {"MPI_Allreduce": 2})

    def test_no_time_limit(self):
        self.assertEqual(self.launch(TROUBLE, "late").count("success"), 2)

    def test_a_rank_that_cannot_look_at_others(self):
        output = self.launch(TROUBLE, "no_descriptors")
        self.assertEqual(output.count("success"), 2, output)

    @unittest.skipIf(SANITIZED, "the sanitizer's operator new cannot be made to fail")
    def test_without_memory(self):
        output = self.launch(TROUBLE, "no_memory")
        self.assertEqual((output.count(": failed"), output.count(": success")), (2, 2), output)
        self.assertEqual(self.counters()["failed"], {"MPI_Allreduce": 1})

    @unittest.skipIf(SANITIZED, "the sanitizer's operator new cannot be made to fail")
    def test_without_memory_where_mpi_calls_the_library(self):
        output = self.launch(TROUBLE, "no_memory_at_the_end")
        self.assertEqual(output.count("success"), 4, output)
        self.assertEqual(output.count("polyring: the file of POLYRING_MPI_COUNTERS could not be written: std::bad_alloc"), 2, output)

    def test_settings_that_cannot_be_where_nothing_can_be_said(self):
        output = self.launch(TROUBLE, "no_stderr", settings={"POLYRING_MPI": "maybe"})
        self.assertEqual(output.count("success"), 2, output)
        self.assertEqual(self.counters()["passed_on"]["MPI_Allreduce"], {"off": 1})

    def test_messages_arrive_meanwhile(self):
        """With an MPI whose sender has to do something for them. Over UCX's TCP, MPICH may hang in MPI_Finalize."""
        output = self.launch(TROUBLE, "progress", settings={"OMPI_MCA_btl_vader_single_copy_mechanism": "none", "UCX_TLS": "self,posix"})
        self.assertEqual(output.count("arrived"), 2, output)
        self.assertEqual(self.counters()["taken"], {"MPI_Allreduce": 2})

    def test_two_threads_on_two_communicators(self):
        self.assertEqual(self.launch(TROUBLE, "threads").count(": 0 wrong"), 2)
        self.assertEqual(self.counters()["taken"], {"MPI_Allreduce": 60})

    def test_a_cluster_that_cannot_be_read(self):
        output = self.launch(TROUBLE, "crossed", settings={"POLYRING_CLUSTER": "/nowhere"})
        self.assertEqual(output.count("success"), 4, output)
        counters = self.counters()
        self.assertEqual(counters["taken"], {})
        self.assertIn("POLYRING_CLUSTER: cannot read '/nowhere'", counters["notes"][0])
        self.assertRegex(output, "polyring: POLYRING_CLUSTER: cannot read '/nowhere'.*calls go on to MPI")

    def test_communicators_freed_in_different_orders(self):
        self.assertEqual(self.launch(TROUBLE, "crossed").count("success"), 4)

    def test_a_program_of_another_mpi(self):
        compiler, launcher = [shutil.which(f"{name}.{'mpich' if IS_OPEN_MPI else 'openmpi'}") for name in ("mpicc", "mpiexec")]
        if compiler is None or launcher is None or SANITIZED:
            self.skipTest("there is no second MPI here, or a sanitizer's library would not load")
        program = self.folder / "trouble"
        printed(compiler, "-pthread", str(HERE / "mpi_trouble.c"), "-lstdc++", "-o", str(program))
        output = self.launch(program, "crossed", launcher=launcher)
        self.assertEqual(output.count("success"), 4, output)
        self.assertEqual(output.count("polyring: this libpolyring_mpi.so is for "), 1, output)
        self.assertEqual(self.counters()["passed_on"]["MPI_Allreduce"], {"other_mpi": 2})


class Growth(Preloaded):
    """Some of what scripts/soak_library does at length."""

    def test_communicators_and_calls(self):
        output = self.launch(GROWTH, "interposed", COMMUNICATORS, OPERATIONS, settings={"POLYRING_MPI_MIN_BYTES": "4K"})
        self.assertEqual(output.count("grew by"), 4, output)
        self.assertEqual(sum(self.counters()["taken"].values()), COMMUNICATORS + OPERATIONS)

    def test_communicators_of_the_library(self):
        self.assertEqual(self.launch(GROWTH, "library", COMMUNICATORS, settings={"POLYRING_MPI": "off"}).count("grew by"), 2)


@unittest.skipUnless(FORTRAN, "there is no Fortran compiler here, or a sanitizer is not for it")
class Fortran(Preloaded):
    def test_each_interface_is_taken(self):
        for interface in ("mpif", "mpi", "mpi_f08"):
            with self.subTest(interface):
                output = self.launch(f"{FORTRAN}/{interface}")
                self.assertEqual(output.count(": 0 wrong"), 2, output)
                self.assertEqual(self.counters()["taken"], dict.fromkeys(NAMES, 2))


class Exports(unittest.TestCase):
    def test_are_calls_of_mpi_alone(self):
        names = [line.split()[-1] for line in printed(os.environ["POLYRING_NM"], "-D", "--defined-only", LIBRARY).splitlines()]
        calls = re.compile(r"^(MPI|mpi)_(allreduce|reduce_scatter_block|allgather)(_|__|_f08_)?$", re.IGNORECASE)
        sanitizers = re.compile(r"^(__asan|__ubsan|__tsan|__sanitizer|__odr_asan|__lsan)")
        self.assertEqual([name for name in names if not calls.match(name) and not sanitizers.match(name)], [])
        self.assertLessEqual(set(NAMES), set(names))


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    sys.exit(not result.wasSuccessful())
