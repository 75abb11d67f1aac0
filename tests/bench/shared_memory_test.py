"""Where shared memory is scarce, forbidden or out of reach: the program says so, and is right all the same."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

from program import MPIEXEC, NOT_AVAILABLE, PATIENCE_S, PROGRAM, ProgramTest, main

FORBID = [sys.executable, "-B", str(Path(__file__).resolve().parent / "forbid_memory.py")]
# All of a rank's own: its processes, and /proc with them. As root only.
OWN_PROCESSES = ["unshare", "--pid", "--fork", "--mount-proc"]
# An MPI without shared memory; MPICH has it in UCX, too.
WITHOUT_ITS_OWN = {"OMPI_MCA_btl": "self,tcp", "MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "self,tcp"}
# A full /dev/shm. The words after it are the command; what it leaves there is listed at the end.
FULL = [
    "unshare", "--mount", "sh", "-c",
    "mount -t tmpfs -o size=16k tmpfs /dev/shm && head -c 16k /dev/zero >/dev/shm/filled || exit 77; "
    '"$@"; code=$?; echo left: $(ls -A /dev/shm); exit $code',
    "sh",
]
ALLREDUCE = ("allreduce", "-b", "1M", "-e", "1M", "-n", "3", "--algorithm", "multi-ring", "-J", "out.json")
SKIPPED = 77
THROUGH_MPI = "polyring: messages go through MPI inside hosts, too: "
FORBIDDEN = r"cannot share memory: \d+ bytes of shared memory .*: memfd_create: "


class SharedMemory(ProgramTest):
    def run_words(self, *words, **environment):
        return subprocess.run(
            [*map(str, words)], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=PATIENCE_S, env={**os.environ, **environment},
        )

    def skip_unless(self, *wrapper):
        tried = self.run_words(*wrapper, "/bin/true")
        if tried.returncode != 0:
            raise unittest.SkipTest(tried.stderr.strip() or f"{wrapper[0]} is not permitted")

    def polyring(self, *options, around=(), inside=(), **environment):
        return self.run_words(*around, MPIEXEC, "-n", 2, *inside, PROGRAM, *ALLREDUCE, *options, **environment)

    def right(self, ran):
        """The way that the messages took."""
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        rows = json.loads((self.folder / "out.json").read_text(encoding="utf-8"))["rows"]
        self.assertEqual([row["wrong"] for row in rows], [0, 0])
        return rows[0]["implementation"]

    def said(self, ran):
        return [line for line in ran.stderr.splitlines() if line.startswith("polyring: ")]

    def test_it_is_used(self):
        ran = self.polyring()
        self.assertEqual(self.right(ran), "polyring over shared memory")
        self.assertEqual([line for line in self.said(ran) if THROUGH_MPI in line], [])

    def test_it_is_not_asked_for(self):
        self.assertEqual(self.right(self.polyring("--transport", "mpi")), "polyring over MPI")

    def test_a_full_file_system(self):
        # Polyring's is in no file. What an MPI does without its own is its affair, so it has to do without.
        self.skip_unless(*FULL)
        ran = self.polyring("--transport", "shared", around=FULL, **WITHOUT_ITS_OWN)
        self.assertEqual(self.right(ran), "polyring over shared memory")
        self.assertIn("left: filled\n", ran.stdout)

    def test_it_is_forbidden(self):
        self.skip_unless(*FORBID)
        ran = self.polyring(inside=FORBID)
        self.assertEqual(self.right(ran), "polyring over MPI")
        self.assertRegex(self.said(ran)[0], THROUGH_MPI + r"rank 0 " + FORBIDDEN)

    def test_it_is_forbidden_to_one_rank(self):
        self.skip_unless(*FORBID)
        words = [PROGRAM, *ALLREDUCE]
        ran = self.run_words(MPIEXEC, "-n", 1, *words, ":", "-n", 1, *FORBID, *words)
        self.assertEqual(self.right(ran), "polyring over MPI")
        self.assertRegex(self.said(ran)[0], THROUGH_MPI + r"rank 1 " + FORBIDDEN)

    def test_it_is_forbidden_but_must_be_had(self):
        self.skip_unless(*FORBID)
        ran = self.polyring("--transport", "shared", inside=FORBID)
        self.assertEqual(ran.returncode, NOT_AVAILABLE, ran.stdout + ran.stderr)
        self.assertRegex(
            self.said(ran)[0], r"rank \d \(\S+\): shared memory cannot be used: .*memfd_create: .*; try --transport mpi$"
        )

    def test_ranks_in_containers_of_their_own(self):
        # Each is process 1 to itself. The shared memory of Open MPI and MPICH does not survive that.
        self.skip_unless(*OWN_PROCESSES)
        ran = self.polyring(inside=OWN_PROCESSES, **WITHOUT_ITS_OWN)
        self.assertEqual(self.right(ran), "polyring over MPI")
        self.assertRegex(self.said(ran)[0], THROUGH_MPI + r"rank \d cannot reach rank \d's memory: ")


if __name__ == "__main__":
    main()
