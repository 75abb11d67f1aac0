"""polyring accept: what it judges, prints and writes, and its exit codes."""

import json
import os
import re
import signal
import socket
import time
import xml.etree.ElementTree as xml

from hosts import fabric
from job import START_S, JobTest, ranks_below
from program import NOT_AVAILABLE, USAGE, ProgramTest, command, main

BELOW, INCONCLUSIVE = 8, 9
QUICK = ("accept", "--checks", "hosts.alike,correct")
# What any machine reaches.
EASY = """
checks = ["host.allreduce"]
[reference."host.allreduce"]
busbw = [1, -0.9, "none", "MB/s"]
"""


class Accept(ProgramTest):
    def rows(self, name="accept.json"):
        result = json.loads((self.folder / name).read_text(encoding="utf-8"))
        self.assertEqual(result["kind"], "accept")
        return result["rows"]

    def test_passes_on_ranks_of_one_host(self):
        text = self.succeed(*QUICK, "-J", "accept.json", ranks=4)
        self.assertRegex(text, r"(?m)^hosts.alike +pass +1 of 1 ")
        self.assertRegex(text, r"(?m)^PASS: all \d+ judgements passed\.$")
        rows = self.rows()
        self.assertEqual({row["verdict"] for row in rows}, {"pass"})
        algorithms = {row["subject"] for row in rows if row["check"] == "correct"}
        self.assertLessEqual({"multi-ring", "ring", "halving-doubling", "tree"}, algorithms)
        self.assertEqual({row["why"] for row in rows if row["check"] == "correct"}, {"31 cases had the right result on all ranks."})

    def test_ranks_may_be_threads(self):
        self.succeed(*QUICK, "-g", 3, "-J", "accept.json")
        self.assertEqual({row["verdict"] for row in self.rows()}, {"pass"})

    def test_every_check_is_named_and_none_passes_that_was_not_measured(self):
        """One host: nothing says how fast it must be, and pairs that are asked for are missing."""
        ran = self.run_program("accept", "-J", "accept.json", "--budget", "5s", ranks=2)
        self.assertIn(ran.returncode, (BELOW, INCONCLUSIVE), ran.stderr)
        rows = {row["check"]: row for row in self.rows()}
        self.assertEqual(rows["pairs.allreduce"]["verdict"], "skipped")
        self.assertEqual(rows["host.allreduce"]["verdict"], "missing")
        self.assertIn("nothing says what it must be", rows["host.allreduce"]["why"])
        self.assertIn("--baseline", rows["host.allreduce"]["remedy"])
        ran = self.run_program("accept", "--checks", "pairs.allreduce", ranks=2)
        self.assertEqual(ran.returncode, INCONCLUSIVE, ran.stderr)
        self.assertIn("MISSING: 1 of 1 judgement were not measured: pairs.allreduce", ran.stdout)

    def test_how_training_scales_is_shown_and_not_judged(self):
        ran = self.run_program("accept", "--checks", "hosts.alike,train", "-J", "accept.json", "--junit", "a.xml", ranks=2)
        if "fit into the memory" in ran.stdout:
            self.skipTest("too little memory for the gradients of resnet50")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertRegex(ran.stdout, r"(?m)^train +shown ")
        row = self.rows()[-1]
        self.assertEqual((row["verdict"], row["subject"], row["quantity"], row["unit"]), ("shown", "resnet50 on 2 ranks", "efficiency", "%"))
        self.assertTrue(5 < row["value"]["median"] < 105, row)
        self.assertIn("images/s of one P100", row["why"])
        self.assertRegex(row["why"], r"the model says \d+\.\d %, with links inside hosts of .*B/s")
        suite = xml.parse(self.folder / "a.xml").getroot().findall("testsuite")[1]
        self.assertEqual((suite.get("errors"), suite.get("skipped")), ("0", "0"))
        ran = self.run_program("accept", "--checks", "train", "-g", 2)
        self.assertEqual(ran.returncode, INCONCLUSIVE, ran.stderr)  # nothing is judged

    def test_other_programs_read_it(self):
        self.succeed(*QUICK, "--junit", "a.xml", "--prometheus", "a.prom", "--drain", ranks=2)
        suites = xml.parse(self.folder / "a.xml").getroot()
        self.assertEqual([suite.get("name") for suite in suites], ["hosts.alike", "correct"])
        self.assertEqual({suite.get("failures") for suite in suites}, {"0"})
        self.assertIn('polyring_accept_verdict{verdict="pass"} 1', (self.folder / "a.prom").read_text(encoding="utf-8"))
        # Others look for them by their names.
        self.succeed(*QUICK, "--junit", "a.xml", "--prometheus", "a.prom", ranks=2)
        self.assertEqual(sorted(file.name for file in self.folder.glob("a.*")), ["a.prom", "a.xml"])
        line = self.succeed(*QUICK, "--nagios", "-q", ranks=2).splitlines()[-1]
        self.assertRegex(line, r"^POLYRING OK - PASS: .* \| passed=\d+ failed=0 ")
        ran = self.run_program("accept", "--checks", "pairs.allreduce", "--nagios", ranks=2)
        self.assertEqual(ran.returncode, 3)
        self.assertIn("POLYRING UNKNOWN - MISSING", ran.stdout)

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")

    def test_a_specification_says_what_must_be(self):
        self.write("site.toml", EASY.replace("[1, -0.9", "[1000, -0.05").replace("MB/s", "GB/s"))
        ran = self.run_program("accept", "site.toml", "--budget", "1s", "-J", "accept.json", ranks=3)
        self.assertEqual(ran.returncode, BELOW, ran.stderr)
        (row,) = self.rows()
        self.assertEqual((row["check"], row["verdict"], row["least"]), ("host.allreduce", "fail", 950))
        self.assertRegex(row["why"], r"^busbw is .* must be at least 950 GB/s \(spec site\.toml:4\)\.$")
        inputs = json.loads((self.folder / "accept.json").read_text(encoding="utf-8"))["inputs"]
        self.assertIn({"name": "check", "value": "host.allreduce", "source": "spec site.toml:2"}, inputs)

    def test_what_a_specification_names_must_not_go_missing(self):
        self.write("site.toml", 'checks = ["pairs.allreduce"]')
        ran = self.run_program("accept", "site.toml", "-g", 2)
        self.assertEqual(ran.returncode, INCONCLUSIVE, ran.stderr)
        self.assertIn("MISSING: 1 of 1 judgement were not measured: pairs.allreduce", ran.stdout)
        self.succeed("accept", "--checks", "hosts.alike", "site.toml", "-g", 2)  # which then says nothing of checks
        self.write("site.toml", EASY + '"busbw@12345" = [1, 0, "none", "GB/s"]')
        ran = self.run_program("accept", "site.toml", "-g", 2, "--budget", "1s")
        self.assertEqual(ran.returncode, INCONCLUSIVE, ran.stderr)
        self.assertRegex(ran.stdout, r"MISSING  host\.allreduce, busbw@12345: spec site\.toml:5 has .* measured were busbw@")

    def test_a_baseline_says_what_must_be(self):
        self.write("site.toml", EASY)
        text = self.succeed("accept", "site.toml", "--budget", "1s", "--save-baseline", "good.json", ranks=2)
        self.assertRegex(text, r"(?m)^Baseline written to good\.json$")
        checks = ("accept", "--checks", "host.allreduce", "--budget", "1s")
        self.succeed(*checks, "--baseline", "good.json", "--tolerance", "99%", "-J", "accept.json", ranks=2)
        (before,), (after,) = self.rows("good.json"), self.rows()
        self.assertEqual((after["verdict"], after["threshold_source"]), ("pass", "baseline good.json"))
        self.assertAlmostEqual(after["least"], 0.01 * before["value"]["median"])
        self.refused(*checks, "--baseline", "good.json", ranks=3, naming="its size is 2 ranks on 1 host, and here it is 3 ranks on 1 host")
        self.refused(*checks, "--baseline", "good.json", "-g", 2, naming="here it is none")
        self.refused(*checks, "--save-baseline", "good.json", "-g", 2, naming="exists already")
        good = json.loads((self.folder / "good.json").read_text(encoding="utf-8"))
        for change, naming in (({"kind": "train", "rows": []}, "a result of train"), ({"machine": None}, "which machine"),
                               ({"rows": [before | {"verdict": "fail"}]}, "not all of it passed: host.allreduce of"),
                               ({"partial": "1 of 2 measurements"}, "came to no end"), ({"format": "x"}, "not a polyring result"),
                               ({"polyring_version": "9"}, "its polyring is 9"), ({"rows": []}, "measured anything")):
            self.write("bad.json", json.dumps(good | change))
            self.refused(*checks, "--baseline", "bad.json", "-g", 2, naming=naming)
        ran = self.run_program(*checks, "--baseline", "good.json", "--algorithm", "ring", ranks=2)
        self.assertEqual(ran.returncode, USAGE)
        self.assertIn("its algorithm is multi-ring, and here it is ring", ran.stderr)

    def test_no_baseline_is_made_of_a_bad_run(self):
        ran = self.run_program("accept", "--checks", "pairs.allreduce", "--save-baseline", "bad.json", "-g", 2)
        self.assertEqual(ran.returncode, INCONCLUSIVE)
        self.assertIn("no baseline is written to 'bad.json': not all of it passed: pairs.allreduce", ran.stderr)
        self.assertEqual(self.files(), {})

    def test_rounds(self):
        self.write("site.toml", EASY)
        text = self.succeed("accept", "site.toml", "--budget", "1s", "--duration", "4s", "-J", "accept.json", ranks=2)
        (row,) = self.rows()
        self.assertEqual(row["verdict"], "pass")
        self.assertGreaterEqual(len(row["trend"]), 2)
        self.assertRegex(text, rf"(?m)^{len(row['trend'])} rounds in ")
        self.assertEqual(len(re.findall(r"(?m)^host\.allreduce +pass ", text)), 1)
        self.write("site.toml", EASY.replace("[1, -0.9", "[1000, -0.05").replace("MB/s", "GB/s"))
        ran = self.run_program("accept", "site.toml", "--budget", "1s", "--duration", "4s", ranks=2)
        self.assertEqual(ran.returncode, BELOW, ran.stderr)
        self.assertIn("round 2: FAIL  host.allreduce, ", ran.stdout)
        self.assertIn(": Round 1: busbw is ", ran.stdout)

    def test_goes_on_from_a_run_that_came_to_no_end(self):
        checks = ("accept", "--checks", "hosts.alike,correct", "-J", "accept.json")
        self.succeed(*checks, ranks=2)
        whole = json.loads((self.folder / "accept.json").read_text(encoding="utf-8"))
        judged = [row | {"why": "As judged then."} for row in whole["rows"]]
        judged = judged[:1 + [row["check"] for row in judged].index("correct")]
        cut = whole | {"partial": "1 of 2 measurements", "rows": judged}
        self.write("cut.json", json.dumps(cut))
        text = self.succeed(*checks, "--resume", "cut.json", ranks=2)
        self.assertIn("Resumed from cut.json: hosts.alike as judged then.", text)
        rows = self.rows("accept.json.1")
        self.assertEqual({row["check"] for row in rows}, {"hosts.alike", "correct"})
        self.assertEqual({row["check"] for row in rows if row["why"] == "As judged then."}, {"hosts.alike"})
        # A journal is what is left of a run in fact.
        head = {key: value for key, value in whole.items() if key != "rows"} | {"format": "polyring-journal", "planned": 2}
        head = {"format": head.pop("format")} | head
        lines = [head] + [{"measured": 1, "at": at, "row": row} for at, row in enumerate(judged)]
        self.write("cut.json.part", "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
        self.succeed(*checks, "--resume", "cut.json.part", ranks=2)
        self.assertEqual({row["check"] for row in self.rows("accept.json.2") if row["why"] == "As judged then."}, {"hosts.alike"})
        self.refused(*checks, "--resume", "accept.json", "-g", 2, naming="came to its end")
        self.refused(*checks, "--resume", "cut.json", ranks=3, naming="'cut.json' cannot be resumed: its size is 2 ranks on 1 host")
        for change, naming in (({"kind": "train", "rows": []}, "is of train"), ({"machine": None}, "which machine"),
                               ({"placement": [{"rank": rank, "host": "elsewhere"} for rank in range(2)]}, "its rank 0 was on elsewhere")):
            self.write("bad.json", json.dumps(cut | change))
            ran = self.run_program(*checks, "--resume", "bad.json", ranks=2)
            self.assertEqual(ran.returncode, USAGE, ran.stderr)
            self.assertIn(naming, ran.stderr)

    def test_says_which_checks_of_gpus_there_are(self):
        self.refused("accept", "--checks", "gpu.healt", naming="unknown check 'gpu.healt'")
        for name in ("gpu.copies", "gpu.memory", "gpu.compute", "gpu.health"):
            self.assertIn(name, self.succeed("accept", "--help"))

    def test_goes_on_from_rounds(self):
        self.write("site.toml", EASY.replace('["', '["hosts.alike", "'))
        words = ("accept", "site.toml", "--budget", "1s", "-J", "accept.json")
        self.succeed(*words, "--duration", "3s", ranks=2)
        whole = json.loads((self.folder / "accept.json").read_text(encoding="utf-8"))
        hosts, speed = whole["rows"]
        rounds = len(speed["trend"])
        self.assertEqual((whole["rounds"]["whole"], whole["rounds"]["checks"]), (rounds, []))
        # One more round has begun, and the time is over.
        failed = hosts | {"verdict": "fail", "why": "As judged then."}
        died = hosts | {"check": "ranks.alive", "verdict": "fail"}
        del died["trend"]
        cut = whole | {"partial": "2 of 2 measurements", "rounds": {"whole": rounds, "checks": ["hosts.alike"], "seconds": 1000},
                       "rows": [failed, speed, died]}
        self.write("cut.json", json.dumps(cut))
        ran = self.run_program(*words, "--duration", "3s", "--resume", "cut.json", ranks=2)
        self.assertEqual(ran.returncode, BELOW, ran.stderr)
        self.assertIn(f"Resumed from cut.json: {rounds} round{'s' if rounds > 1 else ''}, hosts.alike as judged then.", ran.stdout)
        after = json.loads((self.folder / "accept.json.1").read_text(encoding="utf-8"))
        self.assertEqual(after["rows"][0], failed)
        self.assertEqual([row["check"] for row in after["rows"]], ["hosts.alike", "host.allreduce"])
        self.assertEqual(after["rows"][1]["trend"][:-1], speed["trend"])
        self.assertEqual((after["rounds"]["whole"], after["rounds"]["checks"]), (rounds + 1, []))
        self.assertGreater(after["rounds"]["seconds"], 1000)
        self.refused(*words, "--resume", "cut.json", "-g", 2, naming="'cut.json' is of several rounds; give --duration, too")
        self.write("one.json", json.dumps({key: value for key, value in cut.items() if key != "rounds"}))
        self.refused(*words, "--resume", "one.json", "--duration", "3s", "-g", 2, naming="is of a run without rounds")
        ran = self.run_program(*words, "--checks", "host.allreduce", "--duration", "3s", "--resume", "cut.json", ranks=2)
        self.assertEqual(ran.returncode, USAGE, ran.stderr)
        self.assertIn("its checks are hosts.alike, host.allreduce, and here they are host.allreduce", ran.stderr)

    def test_refuses_a_bad_specification_before_it_measures(self):
        for text, naming in (("checks = [", "bad.toml:1: this is not TOML"), ('\ncheks = ["correct"]', "bad.toml:2: unknown key 'cheks'; did you mean checks?"),
                             ('[reference.stragglers]\ntime = [1, 0, 0, ""]', "bad.toml:2: unknown quantity of stragglers 'time'")):
            self.write("bad.toml", text)
            self.refused("accept", "bad.toml", "-g", 2, naming=naming)
        self.refused("accept", "bad.toml", ranks=2, naming=naming)
        for words, naming in (((".",), "not a regular file"), (("missing.toml",), "missing.toml"), (("--baseline", "missing.json"), "missing.json"),
                              (("--save-baseline", "missing/a.json"), "missing/a.json"), (("--save-baseline", "."), "folder"),
                              (("--tolerance", "5%"), "--baseline"), (("--tolerance", "100%"), "100%")):
            self.refused("accept", *words, "-g", 2, naming=naming)

    def test_takes_leaf_switches_from_a_fabric(self):
        own = socket.gethostname().split(".")[0]
        self.write("bad.out", "nonsense")
        self.write("other.out", fabric(2, 2))
        self.write("net.out", fabric(2, 2).replace('"node0 ', f'"{own} '))
        for file, naming in (("missing.out", "missing.out"), ("bad.out", "ibnetdiscover > FILE"), ("other.out", "is in 'other.out', neither by GUID")):
            self.refused(*QUICK, "--fabric", file, naming=naming, ranks=2)
        self.succeed("accept", "--checks", "hosts.alike", "--fabric", "net.out", "-J", "accept.json", ranks=2)
        result = json.loads((self.folder / "accept.json").read_text(encoding="utf-8"))
        self.assertIn({"name": "fabric", "value": "net.out", "source": "--fabric"}, result["inputs"])
        self.assertEqual(result["leaves"], [{"name": "leaf0", "hosts": [result["placement"][0]["host"]]}])

    def test_counts_and_reads_what_hosts_have(self):
        (self.folder / "data").mkdir()
        (self.folder / "data" / "records").write_bytes(bytes(5 << 20))
        checks = ("--checks", "links,nic.counters,host.cpu,data,rails", "--budget", "8s", "-J", "accept.json")
        self.run_program("accept", *checks, "--data", "data", ranks=2)
        rows = {row["check"]: row for row in self.rows()}
        self.assertEqual(set(rows), {"links", "nic.counters", "host.cpu", "data", "rails"})
        self.assertNotIn("error", {row["verdict"] for row in rows.values()})
        self.assertGreater(rows["data"]["value"]["median"], 0)
        self.assertEqual(sorted(path.name for path in (self.folder / "data").iterdir()), ["records"])
        ran = self.run_program("accept", "--checks", "data", "--data", "missing", "-J", "missing.json", ranks=2)
        self.assertEqual(ran.returncode, NOT_AVAILABLE, ran.stderr)
        self.assertIn("'missing'", self.rows("missing.json")[0]["why"])

    def test_refuses_what_cannot_be_before_it_measures(self):
        for words, naming in ((("--checks", "hosts.alik"), "hosts.alike"), (("--checks", "nonsense"), "pairs.allreduce"),
                              (("--algorithm", "nonsense"), "multi-ring"), (("--budget", "nonsense"), "--budget 'nonsense'"),
                              (("--duration", "1000h"), "--duration 1000h"),
                              (("--attempts", "0"), "--attempts"), (("--like", "nonsense"), "dgx-a100"), (("--junit", "missing/a.xml"), "missing/a.xml"),
                              (("-J", "missing/a.json"), "missing/a.json"), (("--prometheus", "."), "folder")):
            with self.subTest(words):
                self.refused("accept", *words, naming=naming, ranks=2)


class Killed(JobTest):
    def test_the_next_rank_says_that_rank_0_died(self):
        job, ranks = self.launch(command("accept", "-J", "accept.json", ranks=3), 3)
        self.await_output(job, r"(?m)^correct ")
        ranks = ranks_below(job.pid)  # without rank 0's child, which has probed this host
        os.kill(ranks[0], signal.SIGKILL)
        self.assertNotEqual(self.ended(job, ranks), 0)
        if "BAD TERMINATION" in self.output():  # MPICH's mpiexec kills all ranks at once
            return
        host = os.uname().nodename
        sentence = f"polyring: rank 1 ({host}): rank 0 ({host}) ended before its time; see why: "
        self.assertEqual(self.output().count(sentence), 1, self.output())
        lines = (self.folder / "accept.json.part").read_text(encoding="utf-8").splitlines()
        (row,) = json.loads(lines[-1])["more"]
        self.assertEqual((row["check"], row["subject"], row["verdict"]), ("ranks.alive", f"rank 0 on {host}", "fail"))
        # A report has it, too.
        self.succeed("report", "accept.json.part", "--out", "report")
        self.assertIn(f"rank 0 on {host}", (self.folder / "report" / "report.md").read_text(encoding="utf-8"))

    def await_output(self, job, pattern):
        deadline = time.monotonic() + START_S
        while not re.search(pattern, self.output()):
            self.assertIsNone(job.poll(), self.output())
            self.assertLess(time.monotonic(), deadline, "the first checks do not end")
            time.sleep(0.01)

    def test_rounds_go_on_from_the_journal(self):
        words = ("accept", "--checks", "hosts.alike,correct", "-J", "accept.json", "--duration")
        job, ranks = self.launch(command(*words, "1h", ranks=2), 2)
        journal = self.folder / "accept.json.part"
        deadline = time.monotonic() + START_S
        while not (journal.exists() and '"whole":2' in journal.read_text(encoding="utf-8")):
            self.assertIsNone(job.poll(), self.output())
            self.assertLess(time.monotonic(), deadline, "the first rounds do not end")
            time.sleep(0.01)
        ranks = ranks_below(job.pid)  # without rank 0's child, which has probed this host
        os.kill(ranks[0], signal.SIGKILL)
        self.assertNotEqual(self.ended(job, ranks), 0)
        text = self.succeed(*words, "1s", "--resume", "accept.json.part", ranks=2)
        self.assertRegex(text, r"Resumed from accept\.json\.part: [2-9]\d* rounds")
        result = json.loads((self.folder / "accept.json").read_text(encoding="utf-8"))
        self.assertGreaterEqual(result["rounds"]["whole"], 2)
        self.assertEqual({row["verdict"] for row in result["rows"]}, {"pass"})
        self.assertEqual({row["check"] for row in result["rows"]}, {"hosts.alike", "correct"})

    def test_a_rank_that_dies_is_named(self):
        words = ("accept", "-J", "accept.json", "--junit", "a.xml")
        job, ranks = self.launch(command(*words, ranks=3), 3)
        self.await_output(job, r"(?m)^correct ")
        os.kill(ranks[1], signal.SIGKILL)
        self.assertNotEqual(self.ended(job, ranks), 0)
        # Whatever becomes of rank 0, its journal has what was judged.
        self.assertTrue((self.folder / "accept.json.part").exists(), self.output())
        if "BAD TERMINATION" in self.output():  # MPICH's mpiexec kills all ranks at once
            return
        self.assertIn(f"FAIL  ranks.alive, rank 1 on {os.uname().nodename}: ", self.output())
        self.assertRegex(self.output(), r"ERROR  [a-z.]+: The job ended while this ran")
        self.assertIn("MISSING  repeatability: The job ended before this ran.", self.output())
        suites = {suite.get("name"): suite for suite in xml.parse(self.folder / "a.xml").getroot()}
        self.assertEqual(suites["ranks.alive"].get("failures"), "1")
        self.assertEqual(suites["repeatability"].get("errors"), "1")


if __name__ == "__main__":
    main()
