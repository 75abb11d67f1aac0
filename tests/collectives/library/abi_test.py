"""Checks what libpolyring.so exports, under which version, and what it needs; and that the C example works.

Run with nm, readelf, the library and the example. A name that is in exports.txt is a promise: taking one out, or changing what it
takes, breaks programs that are built, and needs another SOVERSION.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

NM, READELF, LIBRARY, EXAMPLE = sys.argv[1:5]
PROMISED = pathlib.Path(__file__).with_name("exports.txt").read_text().split()


def printed(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Exports(unittest.TestCase):
    def test_are_those_promised(self):
        names = [line.split()[-1] for line in printed(NM, "-D", "--defined-only", LIBRARY).splitlines()]
        other = re.compile(r"^(POLYRING_0\.1|__asan|__ubsan|__tsan|__sanitizer|__odr_asan|__lsan)")  # the version, and what sanitizers add
        exported = sorted(name for name in names if not other.match(name))
        self.assertEqual(exported, [f"{name}@@POLYRING_0.1" for name in PROMISED])

    def test_the_name_that_programs_look_for(self):
        self.assertIn("[libpolyring.so.0]", printed(READELF, "-d", LIBRARY))

    def test_no_mpi_hwloc_or_json_is_needed(self):
        needed = re.findall(r"NEEDED.*\[(.*)\]", printed(READELF, "-d", LIBRARY))
        self.assertTrue(needed)
        for name in needed:
            self.assertRegex(name, r"^(libfmt|libstdc\+\+|libm|libgcc_s|libc|libpthread|libdl|librt|ld-linux[^.]*|lib.?san|libclang_rt.*)\.so")


class Example(unittest.TestCase):
    def test_sums_are_right(self):
        with tempfile.TemporaryDirectory() as folder:
            ranks = [subprocess.Popen([EXAMPLE, str(rank), "3", f"{folder}/id"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      text=True) for rank in range(3)]
            for rank, process in enumerate(ranks):
                output, _ = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 0, output)
                self.assertRegex(output, rf"^rank {rank} of 3 over shared memory.*: 0 of 1000000 sums wrong\n$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
