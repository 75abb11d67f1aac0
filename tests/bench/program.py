"""Runs polyring, alone or under mpiexec, for the tests beside this file.

Environment, set by CTest: POLYRING_PROGRAM, POLYRING_MPIEXEC, POLYRING_SANITIZE, POLYRING_GLOO.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = os.environ["POLYRING_PROGRAM"]
MPIEXEC = os.environ["POLYRING_MPIEXEC"]
SANITIZED = bool(os.environ.get("POLYRING_SANITIZE"))
GLOO = os.environ.get("POLYRING_GLOO") == "1"  # whether the program was built with it
GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "bench"
# An MPI without shared memory; MPICH has it in UCX, too.
WITHOUT_ITS_OWN = {"OMPI_MCA_btl": "self,tcp", "MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "self,tcp"}
SESSIONS = tempfile.TemporaryDirectory(dir=os.environ.get("OMPI_MCA_orte_tmpdir_base"), ignore_cleanup_errors=True)
os.environ["COLUMNS"] = "1000"  # tables whole, however narrow the terminal is
NOT_AVAILABLE = 5
USAGE = 6
NOT_WRITTEN = 11
TIMEOUT = 4
TIME_LIMIT_S = 120

COLLECTIVES = ("allreduce", "reduce-scatter", "allgather", "alltoall")
MEASURING = {*COLLECTIVES, "train", "tune", "calibrate", "accept"}  # which initialise MPI also without mpiexec
SUBCOMMANDS = ("probe", "plan", "verify", *COLLECTIVES, "train", "scale", "tune", "calibrate", "accept", "compare", "report", "launch", "completion")


def command(*arguments, ranks=0, preload=""):
    """The words of the command line; without mpiexec for 0 ranks. `preload` is a library for the program, and not for mpiexec."""
    start = [MPIEXEC, "-n", str(ranks)] if ranks else []
    if preload:
        start += ["env", f"LD_PRELOAD={preload}"]
    return [*start, PROGRAM, *map(str, arguments)]


def has_threads(*arguments):
    """Whether several ranks are threads of one process, which then does not initialise MPI."""
    words = [str(word) for word in arguments]
    return any(option in ("-g", "-t") and number != "1" for option, number in zip(words, words[1:]))


def environment(*arguments, ranks=0):
    """Leaks are always looked for where MPI is not initialised: that is quick (see MpiTests.cmake). The run has a session folder
    of its own: of the run before, which had no mpiexec, Open MPI's daemon may still be removing its folder."""
    own = dict(os.environ)
    own["OMPI_MCA_orte_tmpdir_base"] = tempfile.mkdtemp(dir=SESSIONS.name)
    without_mpi = "--help" in arguments or not MEASURING.intersection(arguments[:1]) or has_threads(*arguments)
    if "ASAN_OPTIONS" in own and not ranks and without_mpi:
        own["ASAN_OPTIONS"] += ":detect_leaks=1:fast_unwind_on_malloc=1"
    return own


def may_mount():
    """Whether a test can have a file system of its own."""
    probe = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    return shutil.which("unshare") and subprocess.run(probe, capture_output=True, check=False).returncode == 0


def main():
    """unittest.main(), but with CTest's code for skipped where all tests were."""
    result = unittest.main(module="__main__", exit=False, verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if result.testsRun > 0 and len(result.skipped) == result.testsRun else 0)


def shortened(sentence, arguments):
    """The sentence with each file it was given by name only: how long the folders are is not the sentence's fault."""
    for argument in arguments:
        if isinstance(argument, Path):
            sentence = sentence.replace(str(argument), argument.name)
    return sentence


class ProgramTest(unittest.TestCase):
    """Each test has an empty folder of its own, in which the program runs."""

    preload = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()

    def run_program(self, *arguments, ranks=0):
        return subprocess.run(
            command(*arguments, ranks=ranks, preload=self.preload), env=environment(*arguments, ranks=ranks),
            cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=TIME_LIMIT_S,
        )

    def succeed(self, *arguments, ranks=0):
        ran = self.run_program(*arguments, ranks=ranks)
        self.assertEqual(ran.returncode, 0, f"{arguments}\n{ran.stdout}{ran.stderr}")
        return ran.stdout

    def files(self):
        return {path.relative_to(self.folder): path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}

    def refused(self, *arguments, ranks=0, naming="", code=USAGE):
        """One sentence that contains `naming`, this exit code, nothing on standard output and nothing written. Returns the sentence."""
        with self.subTest(arguments=arguments, ranks=ranks):
            before = self.files()
            ran = self.run_program(*arguments, ranks=ranks)
            self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
            self.assertEqual(ran.stdout, "")
            # mpiexec has more to say about a job that fails.
            sentences = [line for line in ran.stderr.splitlines() if not ranks or line.startswith("polyring: ")]
            self.assertEqual(len(sentences), 1, ran.stderr)
            self.assertTrue(sentences[0].startswith("polyring: "), ran.stderr)
            self.assertIn(naming, sentences[0])
            self.assertLess(len(shortened(sentences[0], arguments)), 700)
            self.assertEqual(self.files(), before)
            return sentences[0]
        return ""
