"""No call of MPI may hang for longer than the time limit, from before MPI is started until after it has ended: the job ends
with the exit code for it, and a sentence says what did not finish, on which rank and host. Nor may rank 0's own work, but
while that goes on nobody gives up. Either MPI.

Environment, set by CTest: POLYRING_MPI_HANGS (see mpi_hangs.cpp), POLYRING_ROOT_WORK (see root_work.cpp).
"""

import json
import os
import re
import subprocess
import time
import unittest

from job import JobTest
from program import MPIEXEC, TIME_LIMIT_S, SANITIZED, TIMEOUT, command, main

HANGS = os.environ["POLYRING_MPI_HANGS"]
ROOT_WORK = os.environ["POLYRING_ROOT_WORK"]
RANKS = 3
TIMEOUT_S = 3
ENDS_WITHIN_S = 60  # far less than without a time limit, and enough for a busy machine
SHORT = ("allreduce", "-b", "1K", "-e", "1K", "-n", "1", "--timeout", TIMEOUT_S)
HOST = re.escape(os.uname().nodename)
MPICH = "HYDRA" in subprocess.run([MPIEXEC, "--version"], capture_output=True, text=True, check=True).stdout


class TimeLimits(JobTest):
    def timed_out(self, job, ranks, sentence, stopped=None):
        self.assertEqual(self.ended(job, ranks, stopped, within=ENDS_WITHIN_S), TIMEOUT, self.output())
        self.assertRegex(self.output(), rf"(?m)^polyring: rank [02] \({HOST}\): {sentence}")

    def test_a_rank_that_never_runs(self):
        """It is stopped before its program begins. Open MPI 4.1's mpirun itself hangs in PMIx_server_finalize, after its last
        message, if a rank is stopped, and later ended, while it connects to mpirun."""
        stop = 'if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ]; then kill -s STOP $$; fi; exec "$@"'
        job, ranks = self.launch([MPIEXEC, "-n", str(RANKS), "sh", "-c", stop, "sh", *command(*SHORT)], RANKS - 1)
        self.assertNotIn(1, ranks)
        self.timed_out(job, ranks, "starting MPI did not finish within")

    @unittest.skipIf(SANITIZED, "a sanitizer wants to be the first library that is loaded")
    def hangs(self, sentence, *words, **environment):
        settings = [f"{name}={value}" for name, value in {"LD_PRELOAD": HANGS, **environment}.items()]
        start = [MPIEXEC, "-n", str(RANKS), "env", *settings]
        job, ranks = self.launch([*start, *command(*SHORT, *words)], RANKS)
        self.timed_out(job, ranks, sentence, ranks[1])

    def test_starting_mpi(self):
        for call in ("MPI_Init_thread", "MPI_Comm_split"):
            with self.subTest(call=call):
                self.hangs(r"starting MPI did not finish within 6\.00 s; see whether all ranks have been started ",
                           POLYRING_STOP=f"1:{call}")

    def test_ending_mpi(self):
        self.hangs(r"ending MPI did not finish within 6\.00 s; the command itself is done, and its results are complete; ",
                   "--algorithm", "ring", "-J", "out.json", POLYRING_STOP="1:MPI_Finalize")
        result = json.loads((self.folder / "out.json").read_text(encoding="utf-8"))
        self.assertEqual([row["algorithm"] for row in result["rows"]], ["ring", "ring"])
        self.assertIn("Written to ", self.output())

    def test_a_communicator(self):
        if MPICH:
            self.skipTest("MPICH's algorithms share a communicator")
        self.hangs(r".*a new communicator; no answer from rank 1 ", "--algorithm", "mpi:ring", POLYRING_STOP="1:MPI_Comm_idup")

    def test_ending_the_job(self):
        self.hangs(r"mpi did not finish within 3\.00 s; see whether all ranks still run", "--algorithm", "mpi",
                   POLYRING_STOP="1:MPI_Allreduce", POLYRING_HANG="*:MPI_Abort")

    def one_rank_works(self, what):
        """Once on processes, and once on threads."""
        return [self.run_words(MPIEXEC, "-n", str(RANKS), ROOT_WORK, what), self.one_thread_works(what)]

    def one_thread_works(self, what):
        return self.run_words(ROOT_WORK, what, str(RANKS))

    def run_words(self, *words):
        return subprocess.run(
            words, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=TIME_LIMIT_S,
        )

    def sentences(self, ran):
        return [line for line in ran.stderr.splitlines() if line.startswith("polyring: ")]

    def test_rank_0_works_for_longer_than_the_others_wait(self):
        for ran in self.one_rank_works("long"):
            self.assertEqual((ran.returncode, ran.stdout), (0, "done\n"), ran.stderr)

    def test_rank_0_works_without_end(self):
        for ran in self.one_rank_works("endless"):
            self.assertEqual(ran.returncode, TIMEOUT, ran.stderr)
            self.assertRegex(ran.stderr, rf"(?m)^polyring: rank 0 \({HOST}\): its work on files or plans, .* did not finish within")

    def test_what_fails_on_rank_0(self):
        for ran in self.one_rank_works("usage"):
            self.assertEqual(ran.returncode, 6, ran.stderr)
            self.assertEqual(self.sentences(ran), ["polyring: a mistake"])

    # Of processes, faults_test.py and unwinding_test.py have the like.

    def test_what_other_threads_do_not_know_of(self):
        ran = self.one_thread_works("stray")
        self.assertEqual(ran.returncode, 1, ran.stderr)
        said = self.sentences(ran)
        self.assertEqual(len(said), 1, ran.stderr)
        self.assertRegex(said[0], rf"^polyring: rank 1 \({HOST}\): astray$")

    def test_a_thread_that_does_something_else(self):
        ran = self.one_thread_works("absent")
        self.assertEqual(ran.returncode, TIMEOUT, ran.stderr)
        self.assertRegex(ran.stderr, r"(?m)^polyring: rank \d .*rank 1\b")


if __name__ == "__main__":
    main()
