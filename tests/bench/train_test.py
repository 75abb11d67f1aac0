"""polyring train under mpiexec: plausible steps for every way to put gradients in buckets."""

import json
import os
import subprocess
import unittest

from program import NOT_AVAILABLE, SANITIZED, ProgramTest, command, main

COMPUTE_MS = 5
RESNET50 = 25_557_032  # parameters


class Train(ProgramTest):
    def steps(self, *words, ranks=2, algorithms=("multi-ring", "mpi")):
        path = self.folder / "result.json"
        path.unlink(missing_ok=True)
        self.succeed(
            "train", "--compute-ms", COMPUTE_MS, "-n", "3", "--algorithm", ",".join(algorithms), *words, "-J", path,
            ranks=ranks,
        )
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
        self.assertEqual([row["algorithm"] for row in rows], list(algorithms))
        for row in rows:
            self.assertEqual((row["gpus"], row["wrong"], row["source"]), (ranks, 0, "measured"))
            self.assertAlmostEqual(row["compute_ms"], COMPUTE_MS)
            median = row["iteration_ms"]["median"]
            self.assertGreaterEqual(median, row["compute_ms"])
            # The efficiency is that of a step of one rank alone, which computes as long.
            alone = row["efficiency"] * median
            self.assertGreaterEqual(alone, row["compute_ms"] * (1 - 1e-6))
            self.assertAlmostEqual(alone, rows[0]["efficiency"] * rows[0]["iteration_ms"]["median"], delta=1e-6 * alone)
            self.assertAlmostEqual(row["exposed_comm_ms"], median - row["compute_ms"], delta=1e-3)
            rate = ranks * row["batch"] / median * 1e3
            self.assertAlmostEqual(row["images_per_second"], rate, delta=0.01 * rate)
            self.assertEqual({span["lane"] for span in row["timeline"]}, {"compute", "communication"})
        return rows

    def communication(self, row):
        return [span for span in row["timeline"] if span["lane"] == "communication"]

    def test_one_call_for_everything(self):
        for row in self.steps("--bucket", "none"):
            self.assertNotIn("plans", row)
            self.assertEqual(row["bucket"], "none")
            self.assertEqual(len(self.communication(row)), 1)

    def test_fused(self):
        for row in self.steps("--bucket", "fused:16MiB"):
            self.assertTrue(row["overlap"])
            # 97.5 MiB of gradients; a bucket holds whole tensors, of up to 9 MiB.
            self.assertIn(len(self.communication(row)), range(7, 14))

    def test_a_call_for_each_tensor(self):
        ours, mpi = self.steps("--bucket", "per-tensor")
        for row in (ours, mpi):
            self.assertEqual(len(self.communication(row)), 161)
        self.assertNotIn("plans", mpi)
        sizes = [plan["size_bytes"] for plan in ours["plans"]]
        self.assertEqual(sizes, sorted(set(sizes)))
        self.assertEqual(sum(plan["buckets"] for plan in ours["plans"]), 161)
        self.assertEqual(sum(plan["buckets"] * plan["size_bytes"] for plan in ours["plans"]), 4 * RESNET50)
        # What a row says of its plan is true of the largest bucket.
        largest = ours["plans"][-1]["plan"]
        self.assertIn(f"multi-ring {ours['dims']}, {ours['lanes']} lane", largest)
        self.assertIn(ours["patterns"], largest)

    def test_the_rings_orders(self):
        """Of a machine whose lanes go along its links, though all buckets are of one size."""
        row, = self.steps("--bucket", "none", "--plan-for", "dgx1-v100", ranks=4, algorithms=("multi-ring",))
        plan, = row["plans"]
        self.assertRegex(plan["plan"], r"multi-ring 4, \d lanes, .*rings 0(-\d){3}/")

    def test_no_overlap(self):
        for row in self.steps("--bucket", "fused:16MiB", "--no-overlap"):
            self.assertFalse(row["overlap"])
            first = min(span["begin_ms"] for span in self.communication(row))
            self.assertGreaterEqual(first, 0.9 * COMPUTE_MS)

    def test_one_rank_and_a_published_throughput(self):
        out = self.succeed("train", "--gpu", "P100", "-n", "1", "--algorithm", "mpi", ranks=1)
        self.assertIn("P100", out)
        self.assertIn("nothing to reduce", out)

    def test_several_numbers_of_ranks(self):
        """Of the job's first ranks, in one table, from which a scaling table goes on."""
        path = self.folder / "train.json"
        out = self.succeed("train", "--compute-ms", COMPUTE_MS, "-n", "3", "--algorithm", "multi-ring,mpi", "--ranks", "4,1,2,2",
                           "-J", path, ranks=4)
        table = [line.split() for line in out.splitlines() if line.startswith(("multi-ring ", "mpi ")) and len(line.split()) > 10]
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
        expected = [(algorithm, ranks) for ranks in (1, 2, 4) for algorithm in ("multi-ring", "mpi")]
        self.assertEqual([(row["algorithm"], row["gpus"]) for row in rows], expected)
        # gpus, nodes, and 8 more columns are the last ones, whatever there is of dims
        self.assertEqual([(words[0], int(words[-10])) for words in table], expected)
        self.assertIn(f"machine {rows[0]['machine']}; model resnet50; ", out)
        for row in rows:
            self.assertEqual((row["nodes"], row["wrong"], len(row["iteration_ms"]["samples"])), (1, 0, 3))
            self.assertAlmostEqual(row["images_per_second"], row["gpus"] * row["batch"] / row["iteration_ms"]["median"] * 1e3, delta=1)
        self.assertEqual([row["dims"] for row in rows if row["dims"]], ["1", "2", "4"])
        self.assertIn("polyring scale --from-run", out)
        links = self.folder / "links.json"
        self.succeed("allreduce", "--algorithm", "ring", "-b", "64K", "-e", "1M", "-f", "4", "-n", "5", "-J", self.folder / "a.json", ranks=4)
        self.succeed("calibrate", self.folder / "a.json", "-J", links)
        scaled = self.succeed("scale", "--from-run", path, "--calibration", links, "--gpus", "1..4")
        self.assertEqual(sum(line.startswith("multi-ring") for line in scaled.splitlines()), 3)
        self.assertIn("; measured\n", scaled)

    def test_who_waits_for_the_first_ranks_does_not_mind_how_long_they_compute(self):
        out = self.succeed("train", "--compute-ms", "2000", "-n", "2", "--algorithm", "ring", "--ranks", "1", "-T", "1", ranks=2)
        self.assertRegex(out, r"(?m)^ring +1 +1 ")

    @unittest.skipIf(SANITIZED, "a sanitizer takes memory of its own")
    def test_a_number_of_ranks_leaves_no_memory_to_the_next(self):
        def peak(ranks):
            words = command("train", "--compute-ms", "1", "-n", "1", "--algorithm", "multi-ring", "--ranks", ranks, ranks=4)
            job = subprocess.Popen(words, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            _, status, used = os.wait4(job.pid, 0)  # of all ranks, that with most
            job.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(job.returncode, 0)
            return used.ru_maxrss

        self.assertLess(peak("2,3,4"), 1.2 * peak("4"))

    def test_numbers_of_ranks_that_cannot_be(self):
        self.refused("train", "--compute-ms", "1", "--ranks", "2,8", ranks=4, naming="this job has 4")
        self.refused("train", "--compute-ms", "1", "--ranks", "2,4", "--dims", "2x2", ranks=4, naming="there are 2")
        self.refused("train", "--compute-ms", "1", "--ranks", "2,4", "--dims", "2", ranks=4, naming="there are 4")
        self.refused("train", "--compute-ms", "1", "--ranks", "0", ranks=1, naming="--ranks")
        tcp = ("--transport", "tcp", "--tcp-interface", "none0")
        self.refused("train", "--compute-ms", "1", "--ranks", "1,2", *tcp, ranks=3, naming="no interface none0", code=NOT_AVAILABLE)


if __name__ == "__main__":
    main()
