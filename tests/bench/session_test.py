"""A long run keeps what it has: rows as they are measured, a journal beside the output, ^C, SIGTERM and SIGKILL."""

import contextlib
import json
import os
import select
import signal
import subprocess
import time
import unittest

from job import ranks_below
from program import TIME_LIMIT_S, TIMEOUT, USAGE, ProgramTest, command, environment, main

QUICK_THEN_ENDLESS = ("allreduce", "--algorithm", "multi-ring,mpi", "-b", "4", "-e", "64M", "-f", "4", "-w", "1")
TRAIN = ("train", "--compute-ms", "1", "-n", "1000000", "--bucket", "none", "--model", "resnet50")


class Session(ProgramTest):
    def start(self, *words, ranks=0, **more):
        run = subprocess.Popen(
            command(*words, ranks=ranks), env=environment(*words, ranks=ranks), cwd=self.folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more,
        )
        self.addCleanup(self.end, run)
        return run

    def start_with_a_full_pipe(self, *words):
        """A process alone that has to wait for a reader before it prints anything; and the reader, not yet used."""
        read, write = os.pipe()
        reader = open(read, encoding="utf-8")
        self.addCleanup(reader.close)
        os.set_blocking(write, False)
        try:
            while True:
                os.write(write, b" " * 4096)
        except BlockingIOError:
            os.set_blocking(write, True)
        run = subprocess.Popen(
            command(*words), env=environment(*words), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=write,
            stderr=subprocess.PIPE, text=True,
        )
        os.close(write)
        self.addCleanup(self.end, run)
        return run, reader

    def wchans(self, run):
        """Where in the kernel each of its threads waits."""
        for task in os.listdir(f"/proc/{run.pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{run.pid}/task/{task}/wchan", encoding="utf-8") as wchan:
                yield wchan.read()

    def end(self, run):
        if run.poll() is None:
            run.kill()
        run.communicate()

    def wait_for(self, condition, what, run):
        deadline = time.monotonic() + TIME_LIMIT_S
        while not condition():
            self.assertIsNone(run.poll(), f"ended before {what}")
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.02)

    def journal(self, name="out.json.part"):
        """The entries of a journal that are whole, after its head."""
        try:
            lines = (self.folder / name).read_text(encoding="utf-8").split("\n")[1:-1]
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines]

    def rows_of(self, entries):
        rows = {}
        for entry in entries:
            if "row" in entry:
                rows[entry["at"]] = entry["row"]
        return [rows[at] for at in sorted(rows)]

    def table_rows(self, text):
        """The lines that begin with a size and a count."""
        return [line for line in text.splitlines() if len(line.split()) > 5 and "".join(line.split()[:2]).isdigit()]

    def report(self, name, out):
        """What is said, and the result that is left in the report's folder."""
        ran = self.run_program("report", name, "--out", out)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        found = list((self.folder / out).glob("*.json"))
        self.assertEqual(len(found), 1)
        return ran.stderr, json.loads(found[0].read_text(encoding="utf-8"))

    def read_line(self, run, wanted):
        """Reads the output up to a line for which `wanted` holds, while the run goes on."""
        lines = []
        while not lines or not wanted(lines[-1]):
            ready, _, _ = select.select([run.stdout], [], [], TIME_LIMIT_S)
            self.assertTrue(ready, lines)
            line = run.stdout.readline()
            self.assertNotEqual(line, "", f"ended: {lines}")
            lines.append(line)
        return lines

    def test_a_row_appears_when_it_is_measured(self):
        run = self.start(*QUICK_THEN_ENDLESS, "-J", "out.json", ranks=2)
        lines = self.read_line(run, lambda line: line.split()[:2] == ["4", "1"])
        self.assertIsNone(run.poll(), "the first row came with the last")
        self.assertIn("algorithm", "".join(lines))
        self.assertFalse((self.folder / "out.json").exists())

    def test_the_result_is_what_the_journal_said(self):
        words = ("allreduce", "-b", "1K", "-e", "256K", "-f", "4", "-n", "5", "-J", "out.json")
        run, read = self.start_with_a_full_pipe(*words)  # so that it waits for us
        self.wait_for((self.folder / "out.json.part").exists, "the journal", run)
        with (self.folder / "out.json.part").open(encoding="utf-8") as journal:  # which the end deletes
            out = read.read()
            _, err = run.communicate(timeout=TIME_LIMIT_S)
            self.assertEqual(run.returncode, 0, err)
            head, *entries = map(json.loads, journal)
        result = json.loads((self.folder / "out.json").read_text(encoding="utf-8"))
        self.assertEqual(self.rows_of(entries), result["rows"])
        self.assertEqual(head["planned"], len(result["rows"]))
        self.assertEqual(head["notes"] + [entry["note"] for entry in entries if "note" in entry], result["notes"])
        for key in ("created", "command", "machine", "placement", "versions", "environment"):
            self.assertEqual(head[key], result[key])
        self.assertNotIn("partial", result)
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"out.json"})
        self.assertEqual(len(self.table_rows(out.split("Above 1")[0])), len(result["rows"]) // 2)

    def interrupted(self, number, code, *words):
        """A process alone: what it printed, said, and left in its journal."""
        run = self.start(*words, "-J", "out.json")
        self.wait_for(lambda: len(self.journal()) > 3, "rows", run)
        begin = time.monotonic()
        run.send_signal(number)
        out, err = run.communicate(timeout=TIME_LIMIT_S)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual(run.returncode, code, err)
        said = [line for line in err.splitlines() if line.startswith("polyring: ")]
        self.assertEqual(len(said), 1, err)
        self.assertRegex(said[0], r"after \d+ of \d+ measurements; out\.json\.part has them")
        self.assertFalse((self.folder / "out.json").exists())
        return out

    def test_interrupts_of_a_process_alone(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(signal=number):
                out = self.interrupted(number, code, *QUICK_THEN_ENDLESS)
                rows = self.rows_of(self.journal())
                points = {(row["algorithm"], row["count"]) for row in rows}
                printed = len(self.table_rows(out))
                # What was being written to a slow disk is not printed: at most one measurement of both algorithms.
                self.assertTrue(0 < printed and len(points) - 2 <= printed <= len(points), out)
                said, result = self.report("out.json.part", f"report{code}")
                self.assertIn("out is partial: its run ended after", said)
                self.assertEqual(result["rows"], rows)
                self.assertRegex(result["partial"], r"^\d+ of \d+ measurements$")
                (self.folder / "out.json.part").unlink()

    def test_an_interrupted_train_has_the_steps_so_far(self):
        out = self.interrupted(signal.SIGINT, 130, *TRAIN)
        _, result = self.report("out.json.part", "r")
        self.assertEqual(len(result["rows"]), 2)
        for row in result["rows"]:
            self.assertGreaterEqual(len(row["iteration_ms"]["samples"]), 2)
            self.assertIn(row["algorithm"], out)

    def test_the_rows_of_a_train_are_those_of_its_last_step(self):
        words = ("train", "--compute-ms", "1", "-n", "7", "--bucket", "none", "--model", "resnet50", "-J", "out.json")
        self.succeed(*words, ranks=2)
        result = json.loads((self.folder / "out.json").read_text(encoding="utf-8"))
        self.assertEqual([len(row["iteration_ms"]["samples"]) for row in result["rows"]], [7, 7])

    def test_interrupted_before_anything_is_measured(self):
        run = self.start("allreduce", "-n", "1000000", "-b", "64M", "-e", "64M", "-J", "out.json")
        self.wait_for((self.folder / "out.json.part").exists, "the journal", run)
        time.sleep(0.2)
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=TIME_LIMIT_S)
        self.assertEqual(run.returncode, 130, err)
        self.assertIn("interrupted before anything was measured", err)
        self.assertEqual(list(self.files()), [])

    def test_a_reader_that_does_not_read(self):
        """What cannot be printed does not keep an interrupt from ending the run."""
        run, _ = self.start_with_a_full_pipe(*QUICK_THEN_ENDLESS)
        self.wait_for(lambda: any("pipe_write" in wchan for wchan in self.wchans(run)), "a full pipe", run)
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=TIME_LIMIT_S)
        self.assertEqual(run.returncode, 130, err)
        self.assertIn("polyring: interrupted", err)

    def test_a_killed_run_leaves_its_journal(self):
        run = self.start(*QUICK_THEN_ENDLESS, "-J", "out.json")
        self.wait_for(lambda: len(self.journal()) > 3, "rows", run)
        run.kill()
        run.communicate(timeout=TIME_LIMIT_S)
        entries = self.journal()
        said, result = self.report("out.json.part", "r")
        self.assertIn(f"after {entries[-1]['measured']} of ", said)
        self.assertEqual(result["rows"], self.rows_of(entries))
        # Nobody's name is taken by the next run, which comes to its end.
        self.succeed("allreduce", "-e", "1K", "-n", "2", "-J", "out.json")
        self.assertEqual({path.name for path in self.folder.iterdir() if path.is_file()}, {"out.json", "out.json.part"})

    def test_an_interrupted_job(self):
        """As with ^C: the launcher gets the signal, and passes it on in its own way."""
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                run = self.start(*QUICK_THEN_ENDLESS, "-J", "out.json", ranks=2)
                self.wait_for(lambda: len(self.journal()) > 3, "rows", run)
                run.send_signal(number)
                out, err = run.communicate(timeout=TIME_LIMIT_S)
                self.assertNotEqual(run.returncode, 0)
                self.assertRegex(out + err, r"polyring: (interrupted|ended by SIGTERM) after \d+ of \d+ measurements; out\.json\.part")
                self.assertGreater(len(self.table_rows(out)), 0)
                said, _ = self.report("out.json.part", f"r{int(number)}")
                self.assertIn("partial", said)
                (self.folder / "out.json.part").unlink()

    def test_a_job_that_fails_says_where_its_rows_are(self):
        run = self.start(*QUICK_THEN_ENDLESS, "-T", "3", "-J", "out.json", ranks=2)
        self.wait_for(lambda: len(self.journal()) > 3, "rows", run)
        os.kill(ranks_below(run.pid)[1], signal.SIGSTOP)
        out, err = run.communicate(timeout=TIME_LIMIT_S)
        self.assertEqual(run.returncode, TIMEOUT, err)
        self.assertRegex(out + err, r"polyring: the run ended after \d+ of \d+ measurements; out\.json\.part has them")
        self.report("out.json.part", "r")

    def test_a_journal_that_cannot_be_begun(self):
        """All ranks end soon, and nothing stays."""
        name = "x" * 248 + ".json"  # with .part the longest that there may be is passed
        ran = self.run_program("allreduce", "-e", "1K", "-n", "2", "-J", name, ranks=2)
        self.assertEqual(ran.returncode, USAGE, ran.stderr)
        self.assertEqual(ran.stderr.count("File name too long"), 1, ran.stderr)
        self.assertEqual(list(self.files()), [])

    def test_tune_prints_and_keeps_each_size(self):
        run = self.start("tune", "-b", "1K", "-e", "64M", "--file", "tuned.json", ranks=2)
        self.read_line(run, lambda line: line.split()[:1] == ["1024"])
        self.assertIsNone(run.poll())
        self.assertEqual(self.journal("tuned.json.part")[0]["row"]["size_bytes"], 1024)
        run.terminate()
        run.communicate(timeout=TIME_LIMIT_S)
        _, result = self.report("tuned.json.part", "r")
        self.assertEqual(result["kind"], "tune")
        self.assertFalse((self.folder / "tuned.json").exists())


if __name__ == "__main__":
    main()
