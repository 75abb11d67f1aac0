"""scripts/accept_trial: what it refuses, and the replays of a result's samples that it counts."""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1])
PROGRAM = pathlib.Path(os.environ["POLYRING_PROGRAM"])
REPLAY = PROGRAM.parent / "accept_replay"
HOSTS = [f"node{number}" for number in range(4)]
RANKS = 4
USAGE = 6
RUNS = 50


def timing(samples):
    ordered = sorted(samples)
    median = (ordered[len(ordered) // 2 - 1] + ordered[len(ordered) // 2]) / 2
    return {"median": median, "ci_low": ordered[0], "ci_high": ordered[-1], "min": ordered[0], "p99": ordered[-1], "samples": samples}


class Result:
    """A result of polyring accept that is made up: four hosts of minsky, whose rates (GB/s) are as good as is expected of it."""

    def __init__(self):
        self.random = random.Random(1)
        machine = subprocess.run([PROGRAM, "probe", "--machine", "minsky", "--hosts", "4", "--format", "json"], capture_output=True,
                                 text=True, check=True).stdout
        self.rows = []
        for first, host in enumerate(HOSTS):
            self.add("host.allreduce", host, [host], 45)
            for second in range(first + 1, len(HOSTS)):
                pair = [host, HOSTS[second]]
                self.add("pairs.allreduce", " and ".join(pair), pair, 41)
            for rank in range(RANKS):
                self.add("stragglers", f"rank {first * RANKS + rank} on {host}", [host], 1)
        self.add("all.allreduce", "multi-ring", HOSTS, 29)
        self.file = {"format": "polyring-result", "version": 1, "kind": "accept", "created": "2026-01-01T00:00:00Z", "command": "",
                     "polyring_version": "", "commit": "", "placement": [{"rank": number, "host": HOSTS[number // RANKS]}
                                                                         for number in range(RANKS * len(HOSTS))],
                     "environment": {}, "versions": {}, "machine": json.loads(machine), "notes": [], "inputs": [], "rows": self.rows}

    def add(self, check, subject, hosts, median):
        samples = [median * self.random.gauss(1, 0.02) for _ in range(24)]
        self.rows.append({"check": check, "subject": subject, "hosts": hosts, "verdict": "pass", "why": "", "remedy": "", "quantity": "busbw",
                          "unit": "GB/s", "value": timing(samples), "least": None, "most": None, "threshold_source": "", "size_bytes": 1 << 26,
                          "attempts": 1, "seconds": 1, "source": "emulated"})

    def scale(self, check, of, factor):
        for row in self.rows:
            if row["check"] == check and of(row):
                row["value"] = timing([factor * sample for sample in row["value"]["samples"]])
        return self


class Replay(unittest.TestCase):
    def outcome(self, result, check, subject=""):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "accept.json")
            path.write_text(json.dumps(result.file), encoding="utf-8")
            ran = subprocess.run([REPLAY, path, check, subject, str(RUNS)], capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout

    def named(self, result, check, subject=""):
        text = self.outcome(result, check, subject)
        self.assertEqual(text.splitlines()[0], f"{RUNS} of {RUNS}", text)

    def test_a_healthy_cluster_passes(self):
        self.named(Result(), "pass")

    def test_faults_are_named_and_none_is_a_pass(self):
        host = Result().scale("pairs.allreduce", lambda row: "node2" in row["hosts"], 0.5)
        self.named(host, "pairs.allreduce", "node2")
        self.assertTrue(self.outcome(host, "pass").startswith(f"0 of {RUNS}\n"))
        self.named(Result().scale("pairs.allreduce", lambda row: row["hosts"] == ["node1", "node3"], 0.5), "pairs.allreduce", "node1 and node3")
        self.named(Result().scale("stragglers", lambda row: row["subject"].startswith("rank 9 "), 1.2), "stragglers", "rank 9 on node2")

    def test_leaves_are_those_of_the_result(self):
        """Of hosts that are by turns under two."""
        slow = Result().scale("pairs.allreduce", lambda row: {*row["hosts"]} not in ({"node0", "node2"}, {"node1", "node3"}), 0.5)
        leaves = [{"name": "a", "hosts": ["node0", "node2"]}, {"name": "b", "hosts": ["node1", "node3"]}]
        subject = "uplinks between the leaves of node0 and node2 and of node1 and node3"
        self.assertTrue(self.outcome(slow, "pairs.allreduce", subject).startswith(f"0 of {RUNS}\n"))
        slow.file["leaves"] = leaves
        self.named(slow, "pairs.allreduce", subject)

    def test_a_threshold_at_the_true_value_is_inconclusive(self):
        text = self.outcome(Result(), "threshold", "node0 and node1")
        self.assertGreaterEqual(int(text.split()[0]), RUNS - 1, text)


class Options(unittest.TestCase):
    def run_trial(self, *words):
        return subprocess.run([ROOT / "scripts/accept_trial", *words], capture_output=True, text=True, check=False)

    def test_help_and_what_cannot_be(self):
        self.assertIn("slow-pair", self.run_trial("--help").stdout)
        ran = self.run_trial("nonsense", "--build", str(PROGRAM.parents[1]))
        self.assertEqual((ran.returncode, ran.stdout), (USAGE, ""))
        self.assertIn("unknown fault 'nonsense'; known: healthy, slow-host", ran.stderr)
        ran = self.run_trial("--build", "/nowhere")
        self.assertEqual(ran.returncode, USAGE)
        self.assertIn("is missing; run scripts/build", ran.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
