"""polyring train under mpiexec: plausible steps for every way to put gradients in buckets."""

import json

from program import ProgramTest, main

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
            self.assertGreater(row["efficiency"], 0)
            self.assertLessEqual(row["efficiency"], 1.05)
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


if __name__ == "__main__":
    main()
