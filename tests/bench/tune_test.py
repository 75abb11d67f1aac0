"""polyring tune under mpiexec: it writes a file, which later runs use and say so; bad files."""

import json
import os
import subprocess
import unittest
from pathlib import Path

from program import TIME_LIMIT_S, USAGE, ProgramTest, command, environment, main

SIZES = ("-b", "4K", "-e", "16K", "-f", "4")
ALLREDUCE = ("allreduce", *SIZES, "-n", "3", "-w", "1", "--algorithm", "multi-ring,ring")


class Tune(ProgramTest):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "tuned.json"
        before = os.environ.get("POLYRING_TUNED")
        self.addCleanup(lambda: os.environ.pop("POLYRING_TUNED") if before is None else os.environ.update(POLYRING_TUNED=before))
        os.environ["POLYRING_TUNED"] = str(self.file)

    def tune(self, *words):
        return self.succeed("tune", *SIZES, "-n", "6", *words, ranks=2)

    def choices(self):
        return json.loads(self.file.read_text(encoding="utf-8"))["choices"]

    def choose(self, size, **choice):
        """Makes this the choice for the size, whatever was measured."""
        document = json.loads(self.file.read_text(encoding="utf-8"))
        for one in document["choices"]:
            if one["size_bytes"] == size:
                one.update(choice, is_default=False)
        self.file.write_text(json.dumps(document), encoding="utf-8")

    def rows(self, *words, command=ALLREDUCE):
        """The rows of multi-ring of a run, by size, and its notes."""
        path = self.folder / "result.json"
        path.unlink(missing_ok=True)
        ran = self.run_program(*command, *words, "-J", path, ranks=2)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.stderr = ran.stderr
        result = json.loads(path.read_text(encoding="utf-8"))
        rows = [row for row in result["rows"] if row["algorithm"] == "multi-ring"]
        return rows, " ".join(result["notes"])

    def plans(self, *words):
        rows, notes = self.rows(*words)
        return {row["size_bytes"]: (row["patterns"], row["lanes"]) for row in rows}, notes

    def test_later_runs_use_the_choices(self):
        ordinary, notes = self.plans()
        self.assertNotIn("tune", notes + self.stderr)
        shown = self.tune()
        self.assertIn(f"Written to {self.file}", shown)
        self.assertRegex(shown, r"(?m)^ *4096 .*(default|other)$")
        choices = self.choices()
        self.assertEqual([choice["size_bytes"] for choice in choices], [4096, 16384])
        for choice in choices:
            self.assertEqual((choice["ranks"], choice["nodes"], choice["ranks_per_node"]), (2, 1, 2))
            self.assertLessEqual(choice["time_us"], choice["default_time_us"])
        self.choose(4096, patterns="ring", lanes=3)
        self.choose(16384, patterns="direct", lanes=5)
        plans, notes = self.plans()
        self.assertEqual(plans, {4096: ("ring", 3), 16384: ("direct", 5)})
        self.assertIn(f"2 sizes is what polyring tune chose: {self.file}", notes)
        # By hand, or not at all.
        for words, lanes in ((("--lanes", "2"), {2}), (("--tuned", "none"), {1}), (("--dims", "2"), {1})):
            plans, notes = self.plans(*words)
            self.assertEqual({of_size[1] for of_size in plans.values()}, lanes)
            self.assertNotIn("tune", notes)
        self.assertEqual(self.plans("--tuned", "none")[0], ordinary)
        train = ("train", "--compute-ms", "1", "-n", "2", "--bucket", "none", "--algorithm", "multi-ring")
        self.choose(16384, size_bytes=100 << 20, lanes=7)
        rows, notes = self.rows(command=train)
        self.assertEqual({row["lanes"] for row in rows}, {7})
        self.assertIn("1 size is what polyring tune chose", notes)

    def test_another_tune_adds_to_the_file(self):
        self.tune()
        document = json.loads(self.file.read_text(encoding="utf-8"))
        document["choices"] = [{**document["choices"][0], "machine": "another"}, {**document["choices"][1], "time_us": 1e9}]
        self.file.write_text(json.dumps(document), encoding="utf-8")
        self.tune("--file", self.file)
        self.assertEqual([choice["machine"] == "another" for choice in self.choices()], [True, False, False])
        self.assertLess(max(choice["time_us"] for choice in self.choices()), 1e9)

    def test_two_at_once_keep_both_choices(self):
        jobs = [subprocess.Popen(command("tune", "-b", size, "-e", size, "-n", "1", ranks=2), env=environment("tune", ranks=2),
                                 cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                for size in ("1K", "4K")]
        for job in jobs:
            said, _ = job.communicate(timeout=TIME_LIMIT_S)
            self.assertEqual(job.returncode, 0, said)
        self.assertEqual(sorted(choice["size_bytes"] for choice in self.choices()), [1024, 4096])
        self.assertEqual(list(self.files()), [Path("tuned.json")])

    def test_the_default_file_is_made_in_the_settings(self):
        del os.environ["POLYRING_TUNED"]
        settings = os.environ.get("XDG_CONFIG_HOME")
        os.environ["XDG_CONFIG_HOME"] = str(self.folder / "new")
        self.addCleanup(lambda: os.environ.pop("XDG_CONFIG_HOME") if settings is None else os.environ.update(XDG_CONFIG_HOME=settings))
        self.succeed("tune", "-b", "1K", "-e", "1K", "-n", "1", ranks=2)
        self.assertEqual(list(self.files()), [Path("new/polyring/tuned.json")])

    def test_broken_files(self):
        self.tune()
        whole = self.file.read_text(encoding="utf-8")
        newer = json.dumps({**json.loads(whole), "version": 2})
        for text in ("", whole[: len(whole) // 2], "{}", newer, whole.replace('"lanes":', '"paths":')):
            self.file.write_text(text, encoding="utf-8")
            self.refused("allreduce", "--tuned", self.file, ranks=2, naming=str(self.file))
            self.refused("tune", ranks=2, naming=str(self.file))
            _, notes = self.rows()
            self.assertIn("goes on without tuned plans", self.stderr)
            self.assertIn(str(self.file), self.stderr)
            self.assertNotIn("tune", notes)

    def test_a_file_of_another_machine(self):
        self.tune()
        self.choose(4096, ranks=4, dims="4")
        self.choose(16384, machine="another", lanes=3)
        _, notes = self.rows()
        self.assertNotIn("tune", notes + self.stderr)
        _, notes = self.rows("--tuned", self.file)
        self.assertNotIn("tune", notes)
        self.assertIn(f"nothing in '{self.file}' is for 2 ranks", self.stderr)

    def test_bad_input(self):
        self.refused("tune", naming="one rank")
        self.refused("tune", "--file", "missing/x.json", ranks=2, naming="missing/x.json")
        self.refused("tune", "--file", ".", ranks=2, naming="folder")
        os.environ["POLYRING_TUNED"] = "none"
        self.refused("tune", ranks=2, naming="--tuned")
        os.environ["POLYRING_TUNED"] = str(self.folder / "missing/x.json")
        (self.folder / "missing").write_text("in the way", encoding="utf-8")
        self.refused("tune", ranks=2, naming="missing/x.json", code=USAGE)


if __name__ == "__main__":
    main()
