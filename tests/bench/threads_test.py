"""Ranks as threads of one process: -t and -g, without mpiexec and without MPI."""

import json
import signal
import subprocess
import unittest

from program import COLLECTIVES, GLOO, NOT_AVAILABLE, NOT_WRITTEN, SANITIZED, TIME_LIMIT_S, ProgramTest, command, environment, main

SKIPPED = "mpi skipped: there is no MPI between threads of one process."


class Threads(ProgramTest):
    def result(self, *words):
        self.succeed(*words, "-J", "out.json")
        path = self.folder / "out.json"
        result = json.loads(path.read_text(encoding="utf-8"))
        path.unlink()
        self.assertIn("The ranks were threads of one process, without MPI.", result["notes"])
        self.assertNotIn("mpi", result["versions"])
        self.assertEqual(len({place["host"] for place in result["placement"]}), 1)
        return result

    def test_every_collective_on_as_many_threads_as_asked_for(self):
        for collective in COLLECTIVES:
            for words, ranks in ((("-g", 2), 2), (("-t", 3), 3), (("-t", 2, "-g", 2), 4)):
                with self.subTest(collective=collective, words=words):
                    result = self.result(collective, *words, "-b", "4", "-e", "1M", "-f", "64", "-n", 3)
                    self.assertEqual([place["rank"] for place in result["placement"]], list(range(ranks)))
                    self.assertIn(SKIPPED, result["notes"])
                    for row in result["rows"]:
                        self.assertEqual((row["ranks"], row["nodes"], row["wrong"]), (ranks, 1, 0))
                        self.assertNotEqual(row["algorithm"], "mpi")
                        self.assertEqual(len(row["time_us"]["samples"]), 3)

    def test_every_transport_and_contender_that_needs_no_mpi(self):
        contenders = ["multi-ring", "ring", "tree", "recursive-doubling"] + (["gloo:ring"] if GLOO else [])
        for transport, carrier in (("auto", "shared memory"), ("shared", "shared memory"), ("tcp", "TCP")):
            with self.subTest(transport=transport):
                result = self.result("allreduce", "-g", 3, "--transport", transport, "--algorithm", ",".join(contenders),
                                     "-b", "64K", "-e", "64K", "-n", 2)
                self.assertEqual([row["algorithm"] for row in result["rows"][:len(contenders)]], contenders)
                self.assertEqual(result["rows"][0]["implementation"], f"polyring over {carrier}")

    def test_train_on_several_numbers_of_threads(self):
        result = self.result("train", "-g", 4, "--ranks", "1..4", "--compute-ms", 1, "-n", 2, "--algorithm", "multi-ring")
        self.assertEqual([(row["gpus"], row["wrong"]) for row in result["rows"]], [(1, 0), (2, 0), (4, 0)])

    def test_calls_timed_in_blocks(self):
        for timing, caption in (("osu", "timed as OSU does"), ("back-to-back", "timed back to back"), ("Isolated", None)):
            with self.subTest(timing=timing):
                name = f"{timing}.json"
                table = self.succeed("allreduce", "-g", 2, "--timing", timing, "-b", "1K", "-e", "1K", "-n", 20, "--algorithm", "multi-ring,ring",
                                     "-J", name)
                rows = json.loads((self.folder / name).read_text(encoding="utf-8"))["rows"]
                self.assertEqual([row["timing"] for row in rows], 4 * [timing.lower()])
                self.assertEqual({len(row["time_us"]["samples"]) for row in rows}, {20 if caption is None else 10})
                self.assertEqual("timed" in table, caption is not None)
                self.assertIn(caption or "", table)
                if caption:
                    self.refused("calibrate", name, naming=f"was timed with --timing {timing}")

    def test_tune_on_threads(self):
        self.succeed("tune", "-g", 2, "-b", "1K", "-e", "1K", "-n", 2, "--file", "tuned.json")
        self.assertIn("shared memory", (self.folder / "tuned.json").read_text(encoding="utf-8"))

    def test_what_cannot_be(self):
        absent = {"naming": "no MPI between", "code": NOT_AVAILABLE}
        self.refused("allreduce", "-g", 2, "--algorithm", "mpi", **absent)
        self.refused("allreduce", "-g", 2, "--algorithm", "mpi,mpi:all", **absent)
        self.refused("allreduce", "-g", 2, "--transport", "mpi", naming="have no MPI", code=NOT_AVAILABLE)
        self.refused("allreduce", "-g", 2, "--algorithm", "none", naming="unknown algorithm 'none'")
        self.refused("allreduce", "-g", 2, "--dims", "3", naming="ranks")
        self.refused("allreduce", "-g", 0, naming="--ngpus")
        self.refused("train", "-t", "two", naming="--nthreads")
        self.refused("allreduce", "-t", 64, "-g", 64, naming="4096 ranks are too many threads")
        self.refused("train", "-g", 2, "--ranks", "4", "--compute-ms", 1, naming="this job has 2")
        self.refused("allreduce", "-g", 2, "-J", "none/out.json", naming="none/out.json")

    def test_not_under_a_launcher(self):
        self.refused("allreduce", "-g", 2, ranks=2, naming="has started several processes")
        self.succeed("allreduce", "-g", 2, "-b", 8, "-e", 8, "-n", 1, ranks=1)
        self.succeed("allreduce", "-g", 1, "-t", 1, "-b", 8, "-e", 8, "-n", 1, ranks=2)

    @unittest.skipIf(SANITIZED, "AddressSanitizer takes terabytes of address space")
    def test_one_rank_that_is_out_of_memory_for_all(self):
        """The limit of address space is of the process, not of each of its threads."""
        words = ("allreduce", "-g", 2, "-b", "1G", "-e", "1G", "--algorithm", "ring")
        limited = ["bash", "-c", 'ulimit -v 6000000; exec "$@"', "bash", *command(*words)]
        ran = subprocess.run(limited, env=environment(*words), cwd=self.folder, capture_output=True, text=True, check=False,
                             timeout=TIME_LIMIT_S)
        self.assertEqual(ran.returncode, 6, ran.stderr)
        self.assertRegex(ran.stderr, r"^polyring: too little memory: 2 ranks on .* address space are left by ulimit -v")

    @unittest.skipIf(SANITIZED, "AddressSanitizer takes terabytes of address space")
    def test_threads_that_cannot_be_started(self):
        words = ("allreduce", "-g", 1000, "-b", "8", "-e", "8", "--transport", "tcp", "-T", "1000")
        # Enough for the process, and too little for so many stacks.
        limited = ["bash", "-c", 'ulimit -v 2000000; exec "$@"', "bash", *command(*words)]
        ran = subprocess.run(limited, env=environment(*words), cwd=self.folder, capture_output=True, text=True, check=False,
                             timeout=TIME_LIMIT_S)
        self.assertEqual(ran.returncode, NOT_AVAILABLE, ran.stderr)
        self.assertRegex(ran.stderr, r"^polyring: rank \d+ \(.*\): 1000 threads could not be started: .*; ask for fewer\n$")

    def test_output_that_goes_nowhere(self):
        words = ("allreduce", "-g", 2, "-b", "8", "-e", "1K", "-n", 2)
        with open("/dev/full", "w", encoding="utf-8") as full:
            ran = subprocess.run(command(*words), env=environment(*words), stdout=full, stderr=subprocess.PIPE, text=True,
                                 check=False, timeout=TIME_LIMIT_S)
        self.assertEqual((ran.returncode, len(ran.stderr.splitlines())), (NOT_WRITTEN, 1), ran.stderr)
        self.assertIn("cannot write to standard output", ran.stderr)

    def test_an_interrupt(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(signal=number):
                words = ("allreduce", "-g", 2, "-b", "4", "-e", "64M", "-f", "4", "-n", 1000000, "-J", "out.json")
                run = subprocess.Popen(command(*words), env=environment(*words), cwd=self.folder, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
                self.addCleanup(run.kill)
                run.stdout.readline()
                run.send_signal(number)
                _, err = run.communicate(timeout=TIME_LIMIT_S)
                self.assertEqual(run.returncode, code, err)
                self.assertEqual(len(err.splitlines()), 1, err)
                self.assertRegex(err, "before anything was measured|after \\d+ of \\d+ measurements")
                for path in self.folder.iterdir():
                    self.assertEqual(path.name, "out.json.part")
                    path.unlink()


if __name__ == "__main__":
    main()
