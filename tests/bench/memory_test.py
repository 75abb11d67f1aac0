"""What a run needs of memory is known before it takes any: too much is refused, or the largest size is lowered. And it
needs little: see allocation_count.cpp.

Environment, set by CTest: POLYRING_ALLOCATION_COUNT.
"""

import contextlib
import json
import os
import re
import struct
import subprocess
import unittest
from pathlib import Path

from program import MPIEXEC, TIME_LIMIT_S, PROGRAM, SANITIZED, USAGE, ProgramTest, command, environment, main

COUNT = os.environ["POLYRING_ALLOCATION_COUNT"]
MIB = 1 << 20
PAYLOAD = 32 * MIB
# What the job may take of address space; MPI's libraries have their part of it.
ADDRESS_SPACE = 3 << 29
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@unittest.skipIf(SANITIZED, "a sanitizer takes memory and address space of its own")
class Memory(ProgramTest):
    def peaks(self, *words, ranks=2):
        """The most that each rank's polyring held at one time."""
        name = self.folder / "peak"
        start = [MPIEXEC, "-n", str(ranks)] if ranks else []
        ran = subprocess.run(
            [*start, "env", f"LD_PRELOAD={COUNT}", f"POLYRING_PEAK={name}", PROGRAM, *map(str, words)], cwd=self.folder,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=TIME_LIMIT_S,
        )
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        peaks = []
        for path in self.folder.glob("peak.*"):
            peaks.append(struct.unpack("Q", path.read_bytes())[0])
            path.unlink()
        return sorted(peaks)[-max(1, ranks):]

    def test_the_peak_is_at_most_four_times_the_payload_and_six_of_halves(self):
        for kind, times in (("float", 4), ("half", 6), ("bfloat16", 6)):
            for more in ((), ("--transport", "mpi"), ("--buffers", "malloc")) if kind != "bfloat16" else ((),):
                with self.subTest(kind=kind, more=more):
                    words = ("-d", kind, "-b", PAYLOAD, "-e", PAYLOAD, "-n", "1", "-w", "1", *more)
                    for peak in self.peaks("allreduce", *words):
                        print(f"{kind} {more}: {peak / PAYLOAD:.2f} times the payload", flush=True)
                        self.assertGreater(peak, 2.9 * PAYLOAD, "not all is counted")
                        self.assertLess(peak, times * PAYLOAD)

    def test_other_commands_take_little_as_well(self):
        gradients = 102_228_128  # ResNet-50's, as float32
        words = ("--model", "resnet50", "--compute-ms", "1", "-n", "1")
        for peak in self.peaks("train", *words):
            self.assertLess(peak, 2 * gradients)
        words = ("-b", PAYLOAD, "-e", PAYLOAD, "-n", "1", "--file", "tuned.json")
        for peak in self.peaks("tune", *words):
            self.assertLess(peak, 4 * PAYLOAD + 64 * MIB)

    def limited(self, limit, *words, ranks=2):
        """With so much address space for each process."""
        start = [MPIEXEC, "-n", str(ranks)] if ranks else []
        return subprocess.run(
            [*start, "prlimit", f"--as={limit}", PROGRAM, *map(str, words)], env=environment(*words, ranks=ranks),
            cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=TIME_LIMIT_S,
        )

    def test_too_much_is_one_sentence(self):
        for words in (
            ("allreduce", "-b", "16G", "-e", "16G"),
            ("allreduce", "-b", "16G", "-e", "64G", "-J", "out.json"),
            ("train", "--model", "gpt2-xl", "--compute-ms", "1", "--bucket", "none"),
            ("tune", "-b", "16G", "-e", "16G", "--file", "tuned.json"),
        ):
            for ranks in (0, 2):
                if not ranks and words[0] == "tune":
                    continue
                with self.subTest(words=words, ranks=ranks):
                    ran = self.limited(ADDRESS_SPACE, *words, ranks=ranks)
                    self.assertEqual(ran.returncode, USAGE, ran.stdout + ran.stderr)
                    said = [line for line in ran.stderr.splitlines() if line.startswith("polyring: ")]
                    self.assertEqual(len(said), 1, ran.stderr)
                    self.assertIn("too little memory", said[0])
                    self.assertIn(os.uname().nodename, said[0])
                    self.assertEqual((ran.stdout, list(self.files())), ("", []))

    def test_the_largest_size_that_is_said_fits(self):
        ran = self.limited(ADDRESS_SPACE, "allreduce", "-b", "16G", "-e", "16G", "-c", "0", "-n", "1")
        said = re.search(r"the largest size that fits is (\d+)(\w+)", ran.stderr)
        self.assertIsNotNone(said, ran.stderr)
        size = int(said[1]) * UNITS[said[2]]
        self.assertGreater(size, 32 * MIB)
        words = ("allreduce", "-n", "1", "-w", "0", "-c", "0", "-b")
        fitting = self.limited(ADDRESS_SPACE, *words, size, "-e", size)
        self.assertEqual(fitting.returncode, 0, fitting.stderr)
        larger = self.limited(ADDRESS_SPACE, *words, size + 2 * MIB, "-e", size + 2 * MIB)
        self.assertEqual(larger.returncode, USAGE, larger.stderr)

    def test_of_a_range_the_largest_size_is_lowered(self):
        words = ("allreduce", "-b", "1M", "-e", "64G", "-f", "64", "-n", "1", "-w", "0", "-c", "0", "-J", "out.json")
        ran = self.limited(ADDRESS_SPACE, *words)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("polyring: the largest size is 64MiB instead of 4GiB: for that, ", ran.stderr)
        result = json.loads((self.folder / "out.json").read_text(encoding="utf-8"))
        self.assertEqual({row["size_bytes"] for row in result["rows"]}, {1 << 20, 64 << 20})
        self.assertIn("the largest size is 64MiB instead of 4GiB", " ".join(result["notes"]))

    @contextlib.contextmanager
    def control_group(self, limit):
        """A control group of memory with this limit, and the file that a process enters it by."""
        for parent, name in ((Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"), (Path("/sys/fs/cgroup"), "memory.max")):
            group = parent / f"polyring-test-{os.getpid()}"
            try:
                group.mkdir()
            except OSError:
                continue
            try:
                (group / name).write_text(str(limit), encoding="utf-8")
            except OSError:
                group.rmdir()
                continue
            try:
                yield group / "cgroup.procs"
            finally:
                group.rmdir()
            return
        self.skipTest("no control group of memory may be made here")

    def test_the_limit_of_a_control_group(self):
        with self.control_group(512 * MIB) as entrance:
            words = command("allreduce", "-b", "1G", "-e", "1G", ranks=2)
            ran = subprocess.run(
                ["sh", "-c", f'echo $$ > {entrance}; exec "$@"', "sh", *words], env=environment("allreduce", ranks=2),
                cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=TIME_LIMIT_S,
            )
            self.assertEqual(ran.returncode, USAGE, ran.stdout + ran.stderr)
            self.assertRegex(ran.stderr, r"2 ranks on \S+ need .* are left of its control group's limit; the largest size")


if __name__ == "__main__":
    main()
