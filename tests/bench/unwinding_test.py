"""A rank fails while messages are under way: what MPI still writes to is not freed. Environment as program.py has it, and
POLYRING_FAILING_JOB, a program whose ranks fail on purpose."""

import os
import subprocess

from program import MPIEXEC, TIME_LIMIT_S, TIMEOUT, ProgramTest, main

MPI = 10


class Unwinding(ProgramTest):
    def run_job(self, how):
        """The exit code, and what all ranks said."""
        ran = subprocess.run(
            [MPIEXEC, "-n", "2", os.environ["POLYRING_FAILING_JOB"], how], cwd=self.folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=TIME_LIMIT_S,
        )
        self.assertNotIn("AddressSanitizer", ran.stdout)
        return ran.returncode, ran.stdout

    def test_a_program_says_why_before_anything_is_freed(self):
        code, said = self.run_job("program")
        self.assertEqual(code, TIMEOUT, said)
        self.assertRegex(said, r"(?m)^polyring: rank 0 \(\S+\): out of luck$")
        self.assertNotIn("unwound", said)

    def test_a_library_takes_back_its_receives(self):
        code, said = self.run_job("library")
        self.assertEqual(code, 0, said)
        self.assertIn("caught: out of luck", said)

    def test_what_cannot_be_taken_back_ends_the_job(self):
        code, said = self.run_job("stuck")
        if code == 0:  # this MPI has called it back
            self.assertIn("caught: out of luck", said)
            return
        self.assertEqual(code, MPI, said)
        self.assertRegex(said, r"(?m)^polyring: rank 0 \(\S+\): out of luck; .* cannot be called back")
        self.assertNotIn("caught", said)


if __name__ == "__main__":
    main()
