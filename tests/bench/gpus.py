"""What tests of --device cuda share. They run on the software GPU: its libraries come before CUDA's (LD_LIBRARY_PATH), and a
file says what machine it pretends to be and which faults it has (tests/software_gpu/plan.hpp)."""

import json
import os
import unittest

from program import SANITIZED, ProgramTest

slow = unittest.skipIf(SANITIZED, "slow under a sanitizer; the plain build runs it")


def starts(threads, processes):
    """How a job begins: words of its command line, and the ranks of mpiexec. Under a sanitizer, processes are slow."""
    return ((("-g", threads), 0), *(() if SANITIZED else (((), processes),)))


class GpuTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(os.environ.pop, "POLYRING_SOFTWARE_GPU", None)

    def machine(self, *lines):
        """What the software GPU is from now on."""
        path = self.folder / "gpu.plan"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        os.environ["POLYRING_SOFTWARE_GPU"] = str(path)

    def result(self, *words, ranks=0):
        self.succeed(*words, "-J", "out.json", ranks=ranks)
        path = self.folder / "out.json"
        result = json.loads(path.read_text(encoding="utf-8"))
        path.unlink()
        self.assertEqual(result["versions"]["gpu"], "software GPU")
        self.assertRegex(result["versions"]["cuda"], r"^\d+\.\d+$")
        self.assertTrue(any("The data were on GPUs." in note for note in result["notes"]))
        self.assertTrue(any("times say nothing" in note for note in result["notes"]))
        for row in result["rows"]:
            self.assertEqual((row["wrong"], row["source"]), (0, "emulated"))
        return result
