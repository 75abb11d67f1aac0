"""polyring calibrate on runs of this machine, and tables of scale that rest on it."""

import json

from program import ProgramTest, main


class Calibrate(ProgramTest):
    runs = {}  # results by their names, made once

    def setUp(self):
        super().setUp()
        for name, ranks in (("two", 2), ("three", 3)):
            path = self.folder / f"{name}.json"
            if name not in self.runs:
                self.succeed("allreduce", "-b", "1K", "-e", "1M", "-f", "32", "-n", "5", "--algorithm", "multi-ring,ring,mpi",
                             "-J", path, ranks=ranks)
                self.runs[name] = path.read_bytes()
            path.write_bytes(self.runs[name])

    def calibrate(self, *words):
        out = self.succeed("calibrate", *words, "-J", "calibration.json")
        return out, json.loads((self.folder / "calibration.json").read_text(encoding="utf-8"))

    def train(self):
        path = self.folder / "train.json"
        if "train" not in self.runs:
            self.succeed("train", "--compute-ms", "5", "-n", "3", "--bucket", "fused:16MiB", "--algorithm", "multi-ring,mpi",
                         "-J", path, ranks=2)
            self.runs["train"] = path.read_bytes()
        path.write_bytes(self.runs["train"])

    def test_fits_one_run_and_is_checked_on_another(self):
        out, kept = self.calibrate("two.json", "--check", "three.json", "--points")
        self.assertEqual((kept["source"], [link["link"] for link in kept["links"]]), ("measured", ["memory"]))
        self.assertEqual(kept["fitted_to"], ["two.json: 2 ranks on 1 host"])
        # Two algorithms of ours, three sizes, out of place and in place.
        self.assertEqual((kept["fitted"]["points"], kept["checked"]["points"]), (12, 12))
        self.assertEqual((kept["range"]["most_ranks"], kept["range"]["largest_bytes"]), (3, 1 << 20))
        self.assertIn("ring of 1MiB in place", out)
        self.assertIn("at 12 others it is off by", out)

    def test_a_run_is_no_check_of_itself(self):
        (self.folder / "copy.json").write_bytes((self.folder / "two.json").read_bytes())
        self.refused("calibrate", "two.json", "--check", "copy.json", "-J", "c.json", naming="they are the same run")
        self.refused("calibrate", "two.json", "three.json", "--check", "three.json", naming="they are the same run")

    def test_what_cannot_be_calibrated_on(self):
        self.succeed("scale", "--machine", "minsky", "--algorithm", "ring", "--gpus", "4", "-J", "scale.json")
        self.refused("calibrate", "scale.json", naming="is a result of polyring scale")
        self.refused("calibrate", "none.json", naming="none.json")
        vendor = json.loads((self.folder / "two.json").read_text(encoding="utf-8"))
        vendor["rows"] = [row for row in vendor["rows"] if row["algorithm"] == "mpi"]
        (self.folder / "vendor.json").write_text(json.dumps(vendor), encoding="utf-8")
        self.refused("calibrate", "vendor.json", naming="only of vendors' calls")
        scattered = json.loads((self.folder / "three.json").read_text(encoding="utf-8"))
        scattered["placement"][1]["host"] = "elsewhere"
        (self.folder / "scattered.json").write_text(json.dumps(scattered), encoding="utf-8")
        self.refused("calibrate", "scattered.json", naming="not numbered one after another")
        self.refused("scale", "--machine", "minsky", "--calibration", "two.json", naming="is no calibration")

    def test_a_table_says_what_it_rests_on(self):
        self.calibrate("two.json", "three.json")
        out = self.succeed("scale", "--machine", "minsky", "--algorithm", "multi-ring", "--gpus", "8,2", "--calibration",
                           "calibration.json", "-J", "scale.json")
        self.assertNotIn("Not validated", out)
        self.assertIn("Beyond 3 ranks nothing was measured", out)
        self.assertIn("Allreduces of 1KiB to 1MiB were measured, and gradients are exchanged in 102 MB", out)
        self.assertRegex(out, r"Not measured, but as stated: .*nvlink.*network")
        for row in json.loads((self.folder / "scale.json").read_text(encoding="utf-8"))["rows"]:
            self.assertLessEqual(row["efficiency_low"], row["efficiency"])
            self.assertLessEqual(row["efficiency"], row["efficiency_high"])
        self.assertIn("modelled time", self.succeed("plan", "--machine", "minsky", "--calibration", "calibration.json"))

    def test_a_table_begins_with_what_was_measured(self):
        self.calibrate("two.json", "three.json")
        self.train()
        out = self.succeed("scale", "--from-run", "train.json", "--calibration", "calibration.json", "--gpus", "1,2",
                           "-J", "scale.json")
        self.assertIn("Measured: on 2 ranks (train.json)", out)
        self.assertIn("Allreduces of 1KiB to 1MiB were measured", out)
        rows = json.loads((self.folder / "scale.json").read_text(encoding="utf-8"))["rows"]
        self.assertEqual([(row["gpus"], row["source"], row["algorithm"]) for row in rows],
                         [(1, "modelled", "multi-ring"), (2, "measured", "multi-ring")])
        trained = json.loads((self.folder / "train.json").read_text(encoding="utf-8"))["rows"][0]
        self.assertAlmostEqual(rows[1]["iteration_ms"], trained["iteration_ms"]["median"])
        # The baseline is a whole host, and that was measured.
        self.assertAlmostEqual(rows[1]["speedup"], 1)
        alone = [row["efficiency"] * row["iteration_ms"]["median"] for row in
                 json.loads((self.folder / "train.json").read_text(encoding="utf-8"))["rows"]]
        self.assertAlmostEqual(rows[0]["iteration_ms"], sum(alone) / len(alone))

    def cut_of_rings(self, latency_us, *words):
        """Lanes and chunk of a multi-ring on links that the calibration has with this latency."""
        document = json.loads((self.folder / "calibration.json").read_text(encoding="utf-8"))
        for link in document["links"]:
            link["latency_us"] = latency_us
        (self.folder / "changed.json").write_text(json.dumps(document), encoding="utf-8")
        path = self.folder / "cut.json"
        path.unlink(missing_ok=True)
        self.succeed("allreduce", "-b", "4M", "-e", "4M", "-n", "2", "-w", "1", "--algorithm", "multi-ring", "--dims", "2x2",
                     "--patterns", "ring,ring", "--calibration", "changed.json", *words, "-J", path, ranks=4)
        result = json.loads(path.read_text(encoding="utf-8"))
        self.assertIn("least price on this machine as calibrated: changed.json", " ".join(result["notes"]))
        cuts = {(row["lanes"], row["chunk_bytes"]) for row in result["rows"]}
        self.assertEqual(len(cuts), 1)
        return cuts.pop()

    def test_an_allreduce_is_cut_as_its_price_says(self):
        self.calibrate("two.json", "three.json")
        self.assertEqual(self.cut_of_rings(1e6), (1, 0), "where each message costs a second, there are few")
        lanes, chunk = self.cut_of_rings(0)
        self.assertGreater(lanes * (4 << 20 if chunk == 0 else (4 << 20) // chunk), 1)
        self.assertEqual(self.cut_of_rings(1e6, "--lanes", "2", "--chunk", "64K"), (2, 65536), "what is asked for holds")
        self.assertEqual(self.cut_of_rings(1e6, "--chunk", "1K")[1], 1024, "however many chunks that makes")
        self.assertNotIn("least price", self.succeed("allreduce", "-b", "1K", "-e", "1K", "-n", "1", "--algorithm", "multi-ring",
                                                     "--calibration", "calibration.json", ranks=1))
        self.refused("allreduce", "--calibration", "two.json", ranks=1, naming="is no calibration")
        self.refused("allreduce", "--calibration", "two.json", ranks=2, naming="is no calibration")
        self.refused("allreduce", "--calibration", "calibration.json", "--tuned", "t.json", ranks=2, naming="--tuned")

    def test_a_link_of_unknown_speed_is_not_free(self):
        self.calibrate("two.json", "three.json")
        host = json.loads(self.succeed("probe", "--machine", "minsky", "--format", "json"))
        self.assertTrue(self.forget_the_speed(host, "socket-bus"))
        (self.folder / "host.json").write_text(json.dumps(host), encoding="utf-8")
        self.refused("scale", "--from", "host.json", "--compute-ms", "100", "--gpus", "4", "--calibration", "calibration.json",
                     naming="calibrate with runs that cross it")

    def forget_the_speed(self, value, kind):
        """Of all links of that kind; how many there are."""
        if isinstance(value, list):
            return sum(self.forget_the_speed(item, kind) for item in value)
        if not isinstance(value, dict):
            return 0
        if value.get("kind") == kind and "GBps" in value:
            value["GBps"] = 0
            return 1
        return sum(self.forget_the_speed(item, kind) for item in value.values())

    def test_what_cannot_be_gone_on_from(self):
        self.train()
        self.refused("scale", "--from-run", "train.json", naming="give --calibration")
        self.refused("scale", "--from-run", "two.json", naming="is a result of polyring allreduce")
        self.refused("scale", "--from-run", "train.json", "--machine", "minsky", naming="--machine")
        other = json.loads((self.folder / "train.json").read_text(encoding="utf-8"))
        for row in other["rows"]:
            row["batch"] += 1
        (self.folder / "other.json").write_text(json.dumps(other), encoding="utf-8")
        self.refused("scale", "--from-run", "train.json", "--from-run", "other.json", naming="not of one model")
        other["rows"] = [row for row in other["rows"] if row["algorithm"] == "mpi"]
        (self.folder / "other.json").write_text(json.dumps(other), encoding="utf-8")
        self.refused("scale", "--from-run", "other.json", naming="only steps of vendors")


if __name__ == "__main__":
    main()
