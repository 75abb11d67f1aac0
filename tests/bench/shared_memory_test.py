"""Where shared memory is scarce, forbidden or out of reach: the program says so, and is right all the same."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

from program import MPIEXEC, NOT_AVAILABLE, TIME_LIMIT_S, PROGRAM, WITHOUT_ITS_OWN, ProgramTest, main

FORBID = [sys.executable, "-B", str(Path(__file__).resolve().parent / "forbid_memory.py"), "create"]
EMPTY = [*FORBID[:-1], "fill"]
# All of a rank's own: its processes, and /proc with them. As root only.
OWN_PROCESSES = ["unshare", "--pid", "--fork", "--mount-proc"]
# A /dev/shm of the command's own. The words after it are the command; what it leaves there is listed at the end.
OWN_FOLDER = [
    "unshare", "--mount", "sh", "-c",
    "mount -t tmpfs -o size=16k tmpfs /dev/shm || exit 77; "
    '"$@"; code=$?; echo left: $(ls -A /dev/shm); exit $code',
    "sh",
]
FULL = [*OWN_FOLDER, "sh", "-c", 'head -c 16k /dev/zero >/dev/shm/filled || exit 77; exec "$@"', "sh"]
# Kills the command, which it becomes, in the midst of it.
KILLED = ["sh", "-c", '{ sleep 3; kill -9 $$; } & exec "$@"', "sh"]
ALLREDUCE = ("allreduce", "--algorithm", "multi-ring", "-J", "out.json")
SKIPPED = 77
THROUGH_MPI = "polyring: messages go through MPI inside hosts, too: "
FORBIDDEN = r"cannot share memory: \d+ bytes of shared memory .*: memfd_create: "
TOO_LITTLE = r"cannot share memory: \d+ bytes of shared memory are not to be had: posix_fallocate: "


class SharedMemory(ProgramTest):
    def run_words(self, *words, **environment):
        return subprocess.run(
            [*map(str, words)], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=TIME_LIMIT_S, env={**os.environ, **environment},
        )

    def skip_unless(self, *wrapper):
        tried = self.run_words(*wrapper, "/bin/true")
        if tried.returncode != 0:
            raise unittest.SkipTest(tried.stderr.strip() or f"{wrapper[0]} is not permitted")

    def polyring(self, *options, around=(), inside=(), size="1M", iterations=3, ranks=2, **environment):
        words = (PROGRAM, *ALLREDUCE, "-b", size, "-e", size, "-n", iterations, *options)
        return self.run_words(*around, MPIEXEC, "-n", ranks, *inside, *words, **environment)

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
        for words, used in ((("mpi",), "MPI"), (("tcp",), "TCP"), (("tcp", "--tcp-interface", "lo"), "TCP by lo"),
                            (("shared+tcp",), "shared memory")):
            with self.subTest(words=words):
                (self.folder / "out.json").unlink(missing_ok=True)  # no result is written over
                self.assertEqual(self.right(self.polyring("--transport", *words)), f"polyring over {used}")

    def test_a_full_file_system(self):
        # Polyring's is in no file. What an MPI does without its own is its affair, so it has to do without.
        self.skip_unless(*FULL)
        ran = self.polyring("--transport", "shared", around=FULL, **WITHOUT_ITS_OWN)
        self.assertEqual(self.right(ran), "polyring over shared memory")
        self.assertIn("left: filled\n", ran.stdout)

    def test_nothing_stays_of_ranks_that_are_killed(self):
        self.skip_unless(*OWN_FOLDER)
        ran = self.polyring("--transport", "shared", around=OWN_FOLDER, inside=KILLED, iterations=1000000, **WITHOUT_ITS_OWN)
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("left:\n", ran.stdout)

    def test_it_is_forbidden(self):
        self.skip_unless(*FORBID)
        ran = self.polyring(inside=FORBID)
        self.assertEqual(self.right(ran), "polyring over MPI")
        self.assertRegex(self.said(ran)[0], THROUGH_MPI + r"rank 0 " + FORBIDDEN)

    def test_it_is_forbidden_to_one_rank(self):
        self.skip_unless(*FORBID)
        words = [PROGRAM, *ALLREDUCE, "-b", "1M", "-e", "1M", "-n", "3"]
        ran = self.run_words(MPIEXEC, "-n", 1, *words, ":", "-n", 1, *FORBID, *words)
        self.assertEqual(self.right(ran), "polyring over MPI")
        self.assertRegex(self.said(ran)[0], THROUGH_MPI + r"rank 1 " + FORBIDDEN)

    def test_it_is_forbidden_but_must_be_had(self):
        self.skip_unless(*FORBID)
        ran = self.polyring("--transport", "shared", inside=FORBID)
        self.assertEqual(ran.returncode, NOT_AVAILABLE, ran.stdout + ran.stderr)
        said, = self.said(ran)  # once, by whomever it concerns
        self.assertRegex(said, r"^polyring: shared memory cannot be used: rank \d cannot .*memfd_create: .*; choose another transport$")

    def test_there_is_not_enough(self):
        # Found out when it is made, not by a signal when it is used.
        self.skip_unless(*EMPTY)
        ran = self.polyring(inside=EMPTY, **WITHOUT_ITS_OWN)
        self.assertEqual(self.right(ran), "polyring over MPI")
        self.assertRegex(self.said(ran)[0], THROUGH_MPI + r"rank 0 " + TOO_LITTLE + "No space left on device")

    def limited(self, limit, *words, **options):
        """Files, and with them memory that is shared, of so many bytes at most: ulimit -f."""
        return self.polyring(*words, inside=("prlimit", f"--fsize={limit}"), **options, **WITHOUT_ITS_OWN)

    def test_a_limit_below_what_ranks_need_to_meet(self):
        for limit in (32 << 10, 512 << 10):  # less than the control blocks, and than the blocks
            with self.subTest(limit=limit):
                ran = self.limited(limit)
                self.assertEqual(self.right(ran), "polyring over MPI")
                self.assertRegex(self.said(ran)[0], THROUGH_MPI + r"rank 0 " + TOO_LITTLE + "File too large")

    def test_a_limit_below_the_payload(self):
        # The user's buffers are where others do not reach them; what goes through shared memory goes by pieces.
        ran = self.limited((1 << 20) + 1, size="4M")
        self.assertEqual(self.right(ran), "polyring over shared memory")

    def test_a_limit_below_a_copy_of_the_payload(self):
        # All are given the whole payload, which is copied once for all of them, and in place before it is overwritten.
        for ranks, patterns in ((2, "one-shot"), (3, "one-shot"), (4, "doubling")):
            with self.subTest(ranks=ranks, patterns=patterns):
                (self.folder / "out.json").unlink(missing_ok=True)
                ran = self.limited((1 << 20) + 1, "--patterns", patterns, ranks=ranks, size="4M")
                self.assertEqual(self.right(ran), "polyring over shared memory")

    def test_ranks_in_containers_of_their_own(self):
        # Each is process 1 to itself. The shared memory of Open MPI and MPICH does not survive that.
        self.skip_unless(*OWN_PROCESSES)
        ran = self.polyring(inside=OWN_PROCESSES, **WITHOUT_ITS_OWN)
        self.assertEqual(self.right(ran), "polyring over MPI")
        self.assertRegex(self.said(ran)[0], THROUGH_MPI + r"rank \d cannot reach rank \d's memory: ")


if __name__ == "__main__":
    main()
