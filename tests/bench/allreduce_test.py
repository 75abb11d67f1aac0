"""polyring allreduce under mpiexec: right results of every kind, the sizes asked for, and a report from them."""

import json
import unittest

from program import GLOO, NOT_AVAILABLE, ProgramTest, main

QUICK = ("-n", "3", "-w", "1")
PNG = b"\x89PNG\r\n\x1a\n"


class Allreduce(ProgramTest):
    def measure(self, ranks, *words):
        """The result's rows, none of them wrong; out of place and in place of everything."""
        path = self.folder / "result.json"
        path.unlink(missing_ok=True)
        self.stdout = self.succeed("allreduce", *QUICK, *words, "-J", path, ranks=ranks)
        self.result = json.loads(path.read_text(encoding="utf-8"))
        rows = self.result["rows"]
        for row in rows:
            self.assertEqual((row["wrong"], row["ranks"], row["source"]), (0, ranks or 1, "measured"), row)
            self.assertGreater(row["time_us"]["min"], 0)
            self.assertLessEqual(row["time_us"]["min"], row["time_us"]["median"])
            self.assertEqual(len(row["time_us"]["samples"]), 3)
            size = row["algbw_GBps"] * row["time_us"]["median"] * 1e3
            self.assertAlmostEqual(size, row["size_bytes"], delta=1e-3 * row["size_bytes"])
            factor = 2 * (row["ranks"] - 1) / row["ranks"]
            self.assertAlmostEqual(row["busbw_GBps"], row["algbw_GBps"] * factor, delta=1e-6 + 1e-3 * row["algbw_GBps"])
        places = [sorted((row["algorithm"], row["size_bytes"]) for row in rows if row["in_place"] == x) for x in (False, True)]
        self.assertEqual(places[0], places[1])
        return rows

    def sizes(self, *words):
        return sorted({row["size_bytes"] for row in self.measure(2, "--algorithm", "mpi", *words)})

    def test_acceptance(self):
        sizes = [1 << shift for shift in range(10, 21)]
        rows = self.measure(4, "--dims", "2x2", "-b", "1K", "-e", "1M", "--algorithm", "multi-ring,mpi")
        for name in ("multi-ring", "mpi"):
            for place in (False, True):
                found = [r["size_bytes"] for r in rows if r["algorithm"] == name and r["in_place"] == place]
                self.assertEqual(sorted(found), sizes)
        self.assertEqual({row["dims"] for row in rows if row["algorithm"] == "multi-ring"}, {"2x2"})
        self.assertEqual(len(self.result["placement"]), 4)
        self.assertRegex(self.stdout, r"size +count +type +redop +root +time +algbw +busbw +#wrong")
        before = (self.folder / "result.json").read_bytes()
        self.succeed("allreduce", *QUICK, "-e", "1K", "-J", "result.json", ranks=2)
        self.assertEqual((self.folder / "result.json").read_bytes(), before)
        second = json.loads((self.folder / "result.json.1").read_text(encoding="utf-8"))
        self.assertEqual(second["rows"][0]["ranks"], 2)

    def test_report(self):
        self.measure(2, "-e", "4K")
        ran = self.run_program("report", "result.json", "--out", "r")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("multi-ring", (self.folder / "r/report.md").read_text(encoding="utf-8"))
        if "matplotlib" in ran.stderr:
            raise unittest.SkipTest(ran.stderr)
        self.assertEqual((self.folder / "r/result-bus-bandwidth.png").read_bytes()[:8], PNG)
        self.succeed("report", "result.json", "--out", "r")
        self.assertTrue((self.folder / "r.1/report.md").exists())

    def test_one_rank(self):
        for ranks in (0, 1):
            self.measure(ranks, "-e", "4K")
            self.assertIn("nothing to reduce", self.stdout)
            self.assertIn("nothing to reduce", " ".join(self.result["notes"]))

    def test_three_ranks(self):
        names = {"halving-doubling", "direct", "tree", "parameter-server", "ring", "multi-ring", "mpi"}
        rows = self.measure(3, "-b", "4", "-e", "64K", "-f", "4", "--algorithm", ",".join(sorted(names)))
        self.assertEqual({row["algorithm"] for row in rows}, names)

    def test_baselines(self):
        rows = self.measure(2, "-b", "4", "-e", "64K", "-f", "16", "--algorithm", "mpi,mpi:all")
        names = {row["algorithm"] for row in rows}
        self.assertLessEqual({"mpi", "mpi:recursive_doubling"}, names)
        self.assertGreaterEqual(len(names), 5)

    def test_gloo(self):
        if not GLOO:
            self.skipTest("this build has no Gloo")
        for ranks in (1, 2, 3):
            rows = self.measure(ranks, "-b", "4", "-e", "64K", "-f", "16", "--algorithm", "gloo:all,mpi")
            names = {row["algorithm"] for row in rows}
            self.assertEqual(names, {"mpi", "gloo:ring", "gloo:bcube", "gloo:ring-chunked", "gloo:halving-doubling"})
        self.measure(2, "-e", "1K", "--algorithm", "gloo:ring", "--tcp-interface", "lo")
        ran = self.run_program("allreduce", "--algorithm", "gloo:ring", "--tcp-interface", "none0", ranks=2)
        self.assertEqual(ran.returncode, NOT_AVAILABLE, ran.stderr)
        self.assertIn("no interface none0", ran.stderr)

    def test_every_kind_and_operation(self):
        for kind in ("float", "double", "half", "bfloat16", "int32", "int64"):
            for op in ("sum", "prod", "min", "max", "avg"):
                with self.subTest(kind=kind, op=op):
                    rows = self.measure(2, "-b", "1000", "-e", "1000", "-d", kind, "-o", op)
                    self.assertEqual({row["op"] for row in rows}, {op})
                    self.assertEqual(len(rows), 4)

    def test_special_values(self):
        """Of MPI and Gloo by value, of Polyring to the bit: patterns that combine at many ranks, in several orders."""
        names = ["multi-ring", "tree", "mpi", *(["gloo:ring"] if GLOO else [])]
        words = ("-b", "8K", "-e", "8K", "--payload", "special", "--algorithm", ",".join(names), "--patterns", "doubling", "--lanes", "3")
        kinds = (("float", "sum"), ("float", "min"), ("double", "prod"), ("double", "max"), ("half", "avg"), ("half", "max"),
                 ("bfloat16", "sum"), ("bfloat16", "min"), ("int32", "avg"), ("int64", "min"))
        for kind, op in kinds:
            with self.subTest(kind=kind, op=op):
                rows = self.measure(4, *words, "-d", kind, "-o", op)
                self.assertEqual({row["algorithm"] for row in rows}, set(names))
        self.assertIn("special values", " ".join(self.result["notes"]))
        self.measure(2, "-e", "1K", "--payload", "whole")
        self.assertNotIn("special values", " ".join(self.result["notes"]))

    def test_sizes(self):
        self.assertEqual(self.sizes("-b", "1K", "-e", "4K"), [1024, 2048, 4096])
        self.assertEqual(self.sizes("-b", "1K", "-e", "40K", "-f", "3"), [1024, 3072, 9216, 27648])
        self.assertEqual(self.sizes("-b", "1K", "-e", "4K", "-i", "1K"), [1024, 2048, 3072, 4096])
        self.assertEqual(self.sizes("-b", "1K", "-e", "3K", "-i", "1500"), [1024, 2524])
        self.assertEqual(self.sizes("-b", "1", "-e", "9"), [4, 8])

    def test_sizes_of_a_model(self):
        path = self.folder / "result.json"
        self.succeed("allreduce", "--model", "resnet50", "-n", "2", "-w", "1", "--algorithm", "mpi", "-J", path, ranks=2)
        counts = {row["count"] for row in json.loads(path.read_text(encoding="utf-8"))["rows"]}
        # Widths of ResNet-50's layers, its first and largest convolutions, and its classifier.
        expected = {64, 128, 256, 512, 1000, 1024, 2048, 64 * 3 * 7 * 7, 512 * 512 * 3 * 3, 2048 * 1000}
        self.assertLessEqual(expected, counts)
        self.assertEqual(max(counts), 512 * 512 * 3 * 3)

    def test_ddl_options(self):
        rows = self.measure(4, "-e", "1K", "--algorithm", "multi-ring", "--ddl-options", "-mode p:2x2")
        self.assertEqual({row["dims"] for row in rows}, {"2x2"})

    def test_lanes_chunks_and_patterns(self):
        rows = self.measure(
            4, "-b", "100K", "-e", "100K", "--algorithm", "multi-ring", "--dims", "2x2", "--lanes", "3", "--chunk", "8K",
            "--patterns", "ring,halving",
        )
        self.assertEqual({(row["lanes"], row["chunk_bytes"]) for row in rows}, {(3, 8192)})

    def test_plans_inside_of_a_host(self):
        """One step for the tiniest payloads, then one meeting: what makes it fast where memory is shared."""
        rows = self.measure(2, "-b", "2K", "-e", "4K", "--algorithm", "multi-ring", "--transport", "shared")
        self.assertEqual({(row["size_bytes"], row["patterns"]) for row in rows}, {(2048, "one-shot"), (4096, "direct")})
        rows = self.measure(3, "-b", "1M", "-e", "1M", "--algorithm", "multi-ring", "--transport", "shared")
        self.assertEqual({(row["dims"], row["patterns"], row["lanes"]) for row in rows}, {("3", "direct", 1)})
        rows = self.measure(2, "-b", "1M", "-e", "1M", "--algorithm", "multi-ring", "--transport", "mpi")
        self.assertEqual({row["patterns"] for row in rows}, {"ring"})

    def test_plans_for_another_machine(self):
        """What polyring plan shows for it, down to the lanes' orders, runs here."""
        words = ("-b", "1M", "-e", "1M", "--algorithm", "multi-ring,ring", "--plan-for")
        rows = self.measure(4, *words, "dgx1-v100")
        for algorithm in ("multi-ring", "ring"):
            shown = self.succeed("plan", "--machine", "dgx1-v100", "--ranks", 4, "--size", "1M", "--algorithm", algorithm)
            row = next(row for row in rows if row["algorithm"] == algorithm)
            self.assertIn(f"\n{algorithm} {row['dims']}, {row['lanes']} lane", shown)
            self.assertIn(f"rings {row['orders']}\n", shown)
        self.assertIn("Plans are those for 4 ranks of dgx1-v100", self.stdout)
        # A file of probe's is the machine that it describes.
        (self.folder / "machine.json").write_text(
            self.succeed("probe", "--machine", "dgx1-v100", "--format", "json"), encoding="utf-8")
        again = self.measure(4, *words, self.folder / "machine.json")
        self.assertEqual([(row["algorithm"], row["orders"]) for row in again], [(row["algorithm"], row["orders"]) for row in rows])

    def test_partial_sums_of_halves(self):
        words = ("-b", "8K", "-e", "8K", "--algorithm", "multi-ring", "--patterns", "ring", "-d", "half")
        for partials, said in (("float32", False), ("same", True)):
            rows = self.measure(3, *words, "--partials", partials)
            self.assertEqual({row["implementation"].endswith(", rounded at each step") for row in rows}, {said})
        rows = self.measure(3, *words[:-1], "float", "--partials", "same")
        self.assertNotIn("rounded", rows[0]["implementation"])
        self.refused("allreduce", "--partials", "half", ranks=2, naming="choose from float32, same")

    def test_orders(self):
        orders = "0-2-1-3/3-1-2-0"
        rows = self.measure(
            4, "-b", "1K", "-e", "1K", "--algorithm", "multi-ring,ring", "--dims", "4", "--lanes", "2", "--orders", orders
        )
        self.assertEqual({(row["orders"], row["lanes"]) for row in rows}, {(orders, 2)})

    def test_unchecked(self):
        self.succeed("allreduce", *QUICK, "-e", "1K", "-c", "0", "-J", "unchecked.json", ranks=2)
        rows = json.loads((self.folder / "unchecked.json").read_text(encoding="utf-8"))["rows"]
        self.assertEqual({row["wrong"] for row in rows}, {None})


if __name__ == "__main__":
    main()
