"""polyring reduce-scatter, allgather and alltoall: nccl-tests' sizes, counts and bus bandwidth, right results beside MPI's."""

import json
import unittest

from program import GLOO, ProgramTest, main

QUICK = ("-n", "3", "-w", "1")
BLOCKS = ("reduce-scatter", "allgather", "alltoall")
ALGORITHMS = {
    "reduce-scatter": "multi-ring,ring,halving-doubling,direct,pairwise,mpi",
    "allgather": "multi-ring,ring,halving-doubling,direct,pairwise,mpi",
    "alltoall": "multi-ring,direct,pairwise,mpi",
}
REDUCTIONS = {"allreduce", "reduce-scatter"}
PNG = b"\x89PNG\r\n\x1a\n"


class Collectives(ProgramTest):
    def measure(self, collective, ranks, *words):
        """The result's rows, none of them wrong."""
        path = self.folder / "result.json"
        path.unlink(missing_ok=True)
        self.stdout = self.succeed(collective, *QUICK, *words, "-J", path, ranks=ranks)
        self.result = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual(self.result["kind"], collective)
        for row in self.result["rows"]:
            self.assertEqual((row["wrong"], row["ranks"]), (0, ranks or 1), row)
            # As nccl-tests does: the size is that of the longer buffer, the count that of a rank's block.
            self.assertEqual(row["size_bytes"], row["count"] * row["ranks"] * 4)
            self.assertAlmostEqual(row["algbw_GBps"], row["size_bytes"] / row["time_us"]["median"] / 1e3, delta=1e-3 * row["algbw_GBps"])
            self.assertAlmostEqual(row["busbw_GBps"], row["algbw_GBps"] * (row["ranks"] - 1) / row["ranks"], delta=1e-3 * row["algbw_GBps"])
        return self.result["rows"]

    def test_each_beside_mpi(self):
        for collective in BLOCKS:
            for ranks in (2, 3, 4):
                with self.subTest(collective=collective, ranks=ranks):
                    names = ALGORITHMS[collective]
                    rows = self.measure(collective, ranks, "-b", "4", "-e", "1M", "-f", "16", "--algorithm", names)
                    self.assertEqual({row["algorithm"] for row in rows}, set(names.split(",")))
                    sizes = {max(4 * ranks, (4 * 16**i) // (4 * ranks) * 4 * ranks) for i in range(5)}
                    out_of_place = [row["size_bytes"] for row in rows if row["algorithm"] == "direct" and not row["in_place"]]
                    self.assertEqual(sorted(out_of_place), sorted(sizes))
                    in_place = {row["algorithm"] for row in rows if row["in_place"]}
                    # MPI's reduce-scatter in place leaves its result elsewhere; an alltoall is never in place.
                    expected = {"reduce-scatter": set(names.split(",")) - {"mpi"}, "allgather": set(names.split(",")), "alltoall": set()}
                    self.assertEqual(in_place, expected[collective])
                    self.assertEqual({row["op"] for row in rows}, {"sum" if collective in REDUCTIONS else "none"})
                    self.assertIn(f"{collective} of {ranks} ranks", self.stdout)

    def test_what_does_the_same_is_shown_once(self):
        algorithms = ("--algorithm", "ring,halving-doubling,direct", "-b", "64K", "-e", "64K")
        same = {row["algorithm"]: row.get("same_as") for row in self.measure("reduce-scatter", 2, *algorithms)}
        self.assertEqual(same, {"ring": None, "halving-doubling": "ring", "direct": "ring"})
        self.assertRegex(self.stdout, r"  ring = 2 others  ")
        self.assertIn("direct and halving-doubling did the same as ring, step by step, at all sizes.", self.stdout)
        rows = self.measure("reduce-scatter", 4, *algorithms)
        self.assertEqual({row.get("same_as") for row in rows}, {None})

    def test_dimensions_lanes_and_chunks(self):
        shape = ("--dims", "2x2", "--lanes", "2", "--chunk", "16K", "-b", "64K", "-e", "64K")
        for collective, patterns in (("reduce-scatter", "ring,halving"), ("allgather", "halving,ring"), ("alltoall", "direct,pairwise")):
            with self.subTest(collective=collective):
                row, *_ = self.measure(collective, 4, *shape, "--algorithm", "multi-ring", "--patterns", patterns)
                self.assertEqual((row["dims"], row["patterns"], row["lanes"]), ("2x2", patterns.replace(",", "+"), 2))

    def test_kinds_operations_and_special_values(self):
        words = ("-b", "6060", "-e", "6060", "--algorithm", "multi-ring,mpi", "--payload", "special")
        for kind, op in (("half", "avg"), ("bfloat16", "sum"), ("double", "max"), ("int64", "prod")):
            with self.subTest(kind=kind, op=op):
                ran = self.succeed("reduce-scatter", *QUICK, *words, "-d", kind, "-o", op, ranks=3)
                self.assertIn("multi-ring", ran)
        for collective in ("allgather", "alltoall"):
            self.succeed(collective, *QUICK, *words, "-d", "half", "--algorithm", "direct,mpi", ranks=3)

    def test_transports(self):
        for collective in BLOCKS:
            for transport in ("shared", "mpi"):
                self.measure(collective, 3, "-b", "100K", "-e", "100K", "--transport", transport, "--algorithm", "direct,pairwise")

    def test_one_rank(self):
        for collective in BLOCKS:
            self.measure(collective, 0, "-e", "4K")
            self.assertIn("One rank: there is nothing to", self.stdout)

    def test_what_cannot_be_made_is_refused(self):
        for collective in BLOCKS:
            for name in ("tree", "one-shot", "parameter-server", "recursive-doubling", "chain-tree"):
                self.refused(collective, "--algorithm", name, ranks=2, naming=f"{name} cannot make {collective}; choose from multi-ring,")
            self.refused(collective, "--algorithm", "mpi:ring", ranks=2, naming="known as an allreduce only")
            if GLOO:
                self.refused(collective, "--algorithm", "gloo:ring", ranks=2, naming="known as an allreduce only")
            self.refused(collective, "--patterns", "star", "--algorithm", "multi-ring", ranks=2, naming="star cannot make")
        self.refused("alltoall", "--algorithm", "ring", ranks=2, naming="choose from multi-ring, direct, pairwise")
        self.refused("allgather", "--op", "sum", naming="--op")
        self.refused("alltoall", "--model", "resnet50", naming="--model")

    def test_a_calibration_from_them_is_refused(self):
        self.measure("allgather", 2, "-e", "1K")
        self.refused("calibrate", "result.json", naming="is a result of polyring allgather")

    def test_report(self):
        for collective, title in (("reduce-scatter", "## Reduce-scatter: "), ("allgather", "## Allgather: "), ("alltoall", "## All-to-all: ")):
            self.measure(collective, 2, "-e", "4K", "--algorithm", "direct,mpi")
            ran = self.run_program("report", "result.json", "--out", collective)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            text = (self.folder / collective / "report.md").read_text(encoding="utf-8")
            self.assertIn(title, text)
            self.assertIn("### Against mpi", text)
            if "matplotlib" in ran.stderr:
                raise unittest.SkipTest(ran.stderr)
            self.assertEqual((self.folder / collective / "result-bus-bandwidth.png").read_bytes()[:8], PNG)


if __name__ == "__main__":
    main()
