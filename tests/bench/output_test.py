"""What is printed and written cannot be: full disks, closed pipes, closed standard files. Either MPI."""

import json
import os
import resource
import signal
import subprocess
import unittest

from program import MPIEXEC, NOT_WRITTEN, TIME_LIMIT_S, PROGRAM, SUBCOMMANDS, USAGE, ProgramTest, command, environment, main, may_mount

SCALE = ("scale", "--machine", "minsky", "--gpus", "4")
ALLREDUCE = ("allreduce", "-b", "1K", "-e", "1K", "-n", "2", "-w", "0", "--algorithm", "ring")
TRAIN = ("train", "--compute-ms", "1", "-n", "1", "--bucket", "none", "--algorithm", "ring")
TUNE = ("tune", "-b", "1K", "-e", "1K", "-n", "1", "--file", "tuned.json")


def reader_gone():
    """The writing end of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


class OutputTest(ProgramTest):
    def ran(self, words, *, stdout=subprocess.PIPE, inherit=None, ranks=0):
        """`inherit` is what happens in the process before the program starts."""
        return subprocess.run(
            command(*words, ranks=ranks), env=environment(*words, ranks=ranks), cwd=self.folder,
            stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False,
            timeout=TIME_LIMIT_S, preexec_fn=inherit,
        )

    def to_full(self, words):
        with open("/dev/full", "w", encoding="utf-8") as full:
            return self.ran(words, stdout=full)

    def ended(self, ran, code, sentences):
        """With this code and so many sentences, which are returned."""
        self.assertEqual(ran.returncode, code, ran.stderr)
        said = ran.stderr.splitlines()
        self.assertEqual(len(said), sentences, ran.stderr)
        self.assertTrue(all(line.startswith("polyring: ") for line in said), ran.stderr)
        self.assertNotIn("internal", ran.stderr)
        return ran.stderr


class StandardOutput(OutputTest):
    def setUp(self):
        super().setUp()
        self.succeed(*ALLREDUCE[:1], "-b", "1K", "-e", "1M", "-f", "32", "-n", "2", "--algorithm", "ring", "-J", "two.json", ranks=2)
        self.succeed(*SCALE, "-J", "scale.json")
        before = os.environ.get("POLYRING_PYTHON")
        self.addCleanup(lambda: os.environ.pop("POLYRING_PYTHON") if before is None else os.environ.update(POLYRING_PYTHON=before))
        os.environ["POLYRING_PYTHON"] = "/bin/false"  # charts take seconds

    def commands(self):
        """Each subcommand, what it says on standard error although all is well, and long and short texts."""
        launch = ("launch", "--dry-run", "--launcher", MPIEXEC, "-H", "localhost:2", "--oversubscribe", "--", "true")
        quiet = [
            ("probe", "--machine", "minsky"), ("probe", "--machine", "minsky", "--format", "json"),
            ("plan", "--machine", "minsky"), ("plan", "--machine", "summit", "--ranks", "1536"),
            ("verify", "--ranks", "4"), ("verify", "--algorithm", "ring", "--ranks", "2,4,8,16,32,64,128,256,512"), SCALE, (*SCALE, "--explain"),
            ALLREDUCE, TRAIN, ("calibrate", "two.json"), ("completion", "bash"), ("--help",), ("--version",),
            *((name, "--help") for name in SUBCOMMANDS),
        ]
        return [*((words, False) for words in quiet), (("report", "scale.json", "--out", "r"), True), (launch, True)]

    def test_a_full_disk(self):
        for words, talks in self.commands():
            with self.subTest(words=words):
                ran = self.to_full(words)
                sentence = "polyring: cannot write to standard output: No space left on device; "
                self.assertEqual(ran.returncode, NOT_WRITTEN, ran.stderr)
                self.assertEqual(ran.stderr.count(sentence), 1, ran.stderr)
                if not talks:
                    self.ended(ran, NOT_WRITTEN, 1)

    def test_a_reader_that_has_gone(self):
        for inherit in (None, lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN)):
            for words, talks in self.commands():
                with self.subTest(words=words):
                    writing = reader_gone()
                    ran = self.ran(words, stdout=writing, inherit=inherit)
                    os.close(writing)
                    self.assertEqual(ran.returncode, NOT_WRITTEN, ran.stderr)
                    self.assertNotIn("cannot write", ran.stderr)
                    if not talks:
                        self.assertEqual(ran.stderr, "")

    def test_a_result_on_standard_output(self):
        """Alone, so that a program can read it: what is for people is on standard error."""
        for words in ((*SCALE, "-J", "-"), ("calibrate", "two.json", "-J", "-"), ("allreduce", "-g", 2, "-b", "1K", "-e", "1K", "-n", 2, "-J", "-")):
            with self.subTest(words=words):
                files = self.files()
                ran = self.run_program(*words)
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertTrue(json.loads(ran.stdout)["format"].startswith("polyring-"))
                self.assertIn("Written to standard output", ran.stderr)
                self.assertEqual(self.files(), files, "no journal either")

    def test_a_reader_that_wants_one_line(self):
        shell = f"{PROGRAM} verify --ranks 2..64 | head -n 1"
        ran = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False, timeout=TIME_LIMIT_S)
        self.assertRegex(ran.stdout, "^multi-ring.*proved")
        self.assertEqual(ran.stderr, "")

    def test_a_closed_standard_output(self):
        for words, talks in self.commands():
            with self.subTest(words=words):
                ran = self.ran(words, stdout=None, inherit=lambda: os.close(1))
                self.assertEqual(ran.returncode, NOT_WRITTEN, ran.stderr)
                self.assertEqual(ran.stderr.count("cannot write to standard output: Bad file descriptor"), 1, ran.stderr)
                if not talks:
                    self.ended(ran, NOT_WRITTEN, 1)

    def test_a_job_s(self):
        for words in (ALLREDUCE, TRAIN, TUNE, ("probe",)):
            with self.subTest(words=words):
                job = [MPIEXEC, "-n", "2", "sh", "-c", 'exec "$@" > /dev/full', "sh", PROGRAM, *words]
                ran = subprocess.run(job, env=environment(*words, ranks=2), cwd=self.folder, stdin=subprocess.DEVNULL,
                                     capture_output=True, text=True, check=False, timeout=TIME_LIMIT_S)
                self.assertEqual(ran.returncode, NOT_WRITTEN, ran.stdout + ran.stderr)
                self.assertEqual(ran.stderr.count("polyring: cannot write to standard output"), 1, ran.stderr)

    def test_results_are_written_all_the_same(self):
        for words in (SCALE, ALLREDUCE, TRAIN):
            with self.subTest(words=words):
                ran = self.to_full((*words, "-J", "out.json"))
                self.ended(ran, NOT_WRITTEN, 1)
                self.assertTrue(json.loads((self.folder / "out.json").read_text(encoding="utf-8"))["rows"])
                (self.folder / "out.json").unlink()

    def test_what_was_wrong_before_stays_so(self):
        ran = self.to_full(("plan", "--machine", "nonsense"))
        self.assertIn("nonsense", self.ended(ran, USAGE, 1))


class StandardError(OutputTest):
    def test_a_full_disk(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            for words, code in ((("plan", "--machine", "nonsense"), USAGE), (("--nonsense",), USAGE), (SCALE, 0)):
                ran = subprocess.run(command(*words), cwd=self.folder, stdout=subprocess.PIPE, stderr=full, check=False,
                                     timeout=TIME_LIMIT_S)
                self.assertEqual(ran.returncode, code, words)


class ClosedFiles(OutputTest):
    """A file that is opened must not become a standard one: what is printed would stand in it."""

    def test_all_three(self):
        for words, ranks in ((SCALE, 0), (ALLREDUCE, 0)):
            with self.subTest(words=words):
                ran = self.ran((*words, "-J", "out.json"), ranks=ranks, inherit=lambda: os.closerange(0, 3))
                self.assertEqual(ran.returncode, NOT_WRITTEN)
                self.assertTrue(json.loads((self.folder / "out.json").read_text(encoding="utf-8"))["rows"])
                self.assertEqual([str(name) for name in self.files()], ["out.json"])
                (self.folder / "out.json").unlink()

    def test_probes(self):
        for closed in ((0,), (0, 2), (2,)):
            with self.subTest(closed=closed):
                ran = self.ran(("probe", "--format", "json"), inherit=lambda: [os.close(one) for one in closed])
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertTrue(json.loads(ran.stdout)["hosts"])


class ResultFiles(OutputTest):
    def setUp(self):
        super().setUp()
        self.succeed(*SCALE, "-J", "scale.json")
        self.succeed("allreduce", "-b", "1K", "-e", "1M", "-f", "32", "-n", "2", "--algorithm", "ring", "-J", "two.json", ranks=2)
        self.before = self.files()

    def not_written(self, ran, name):
        self.assertEqual(ran.returncode, NOT_WRITTEN, ran.stderr)
        self.assertEqual(ran.stderr.count(f"polyring: cannot write '{name}"), 1, ran.stderr)
        self.assertNotIn("internal", ran.stderr)
        self.assertEqual(self.files(), self.before)

    def test_that_may_not_grow(self):
        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))

        for words, name in (((*SCALE, "-J", "out.json"), "out.json"), (("calibrate", "two.json", "-J", "c.json"), "c.json"),
                            (("report", "scale.json", "--out", "r"), ""),
                            (("probe", "--machine", "minsky", "--picture", "p.svg"), "")):
            with self.subTest(words=words):
                self.not_written(self.ran(words, inherit=limited), name)

    @unittest.skipUnless(may_mount(), "no file system can be mounted here")
    def test_on_a_full_disk(self):
        (self.folder / "full").mkdir()
        mount = "mount -t tmpfs -o size=4k none full && exec \"$@\""
        # So many samples that the result does not fit, however few digits they have.
        allreduce = ("allreduce", "-b", "1K", "-e", "1K", "-n", "1000", "--algorithm", "ring", "-J", "full/out.json")
        train = ("train", "--compute-ms", "0.1", "-n", "500", "--bucket", "none", "--algorithm", "ring", "-J", "full/out.json")
        for words, ranks in (((*SCALE[:-1], "4..256", "-J", "full/out.json"), 0), (allreduce, 0), (allreduce, 2), (train, 0)):
            with self.subTest(words=words, ranks=ranks):
                ran = subprocess.run(
                    ["unshare", "-m", "sh", "-c", mount, "sh", *command(*words, ranks=ranks)], cwd=self.folder,
                    env=environment(*words, ranks=ranks), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                    check=False, timeout=TIME_LIMIT_S)
                self.not_written(ran, "full/out.json")
                self.assertIn("No space left on device", ran.stderr)

    def test_a_wrong_path_is_a_mistake(self):
        for words in ((*SCALE, "-J", "none/out.json"), ("calibrate", "two.json", "-J", "none/c.json"),
                      ("report", "scale.json", "--out", "scale.json/r"),
                      ("probe", "--machine", "minsky", "--picture", "none/p.svg")):
            self.refused(*words, naming="cannot write")


if __name__ == "__main__":
    main()
