"""Bad input under mpiexec: rank 0's sentence, once, and its exit code; other subcommands run on rank 0 alone."""

import subprocess

from program import GLOO, MPIEXEC, NOT_AVAILABLE, NOT_WRITTEN, TIME_LIMIT_S, ProgramTest, command, main

CASES = {
    ("allreduce", "--nonsense"): "--nonsense",
    ("nonsense",): "nonsense",
    ("allreduce", "--dims", "4x8"): "4x8 make 32 ranks, but there are 2",
    ("allreduce", "-b", "0"): "--minbytes",
    ("allreduce", "-b", "2K", "-e", "1K"): "--maxbytes",
    ("allreduce", "--algorithm", "nonsense"): "nonsense",
    ("allreduce", "--algorithm", "mpi:nonsense"): "mpi:recursive_doubling, ",
    ("allreduce", "--transport", "nonsense"): "auto, shared, mpi, tcp, shared+tcp",
    ("allreduce", "--buffers", "nonsense"): "library, malloc",
    ("allreduce", "--payload", "nonsense"): "unknown payload 'nonsense'; choose from whole, special",
    ("train", "--compute-ms", "5", "--transport", "nonsense"): "auto, shared, mpi",
    ("allreduce", "-J", "missing/x.json"): "missing/x.json",
    ("train",): "--compute-ms",
    ("train", "--compute-ms", "5", "--dims", "2x2"): "2x2 make 4 ranks, but there are 2",
    ("train", "--compute-ms", "5", "--bucket", "fused:0"): "buckets",
    ("train", "--compute-ms", "5", "-J", "missing/x.json"): "missing/x.json",
    ("allreduce", "--tuned", "missing.json"): "missing.json",
    ("allreduce", "--plan-for", "nonsense"): "'nonsense' is neither a machine known by name nor a file",
    ("allreduce", "--plan-for", "minsky", "--tuned", "none"): "--plan-for",
    ("train", "--compute-ms", "5", "--plan-for", "minsky", "--patterns", "nonsense"): "nonsense",
    ("tune", "-b", "2K", "-e", "1K"): "--maxbytes",
    ("tune", "--transport", "nonsense"): "nonsense",
    ("tune", "--file", "missing/x.json"): "missing/x.json",
    ("tune", "--timeout", "0"): "--timeout",
    ("probe", "--machine", "nonsense"): "nonsense",
}


class UsageUnderMpi(ProgramTest):
    def test_one_sentence(self):
        for words, naming in CASES.items():
            self.refused(*words, ranks=2, naming=naming)

    def test_a_result_that_cannot_be_written(self):
        # Its folder has gone by the time that all is measured, for which the ranks sleep at least 3 s.
        (self.folder / "gone").mkdir()
        words = command("train", "--model", "resnet50", "--compute-ms", "600", "-n", "5", "-J", "gone/x.json")
        taken_away = ["sh", "-c", '{ sleep 2; rm -rf gone; } & exec "$@"', "sh"]
        ran = subprocess.run(
            [MPIEXEC, "-n", "2", *taken_away, *words], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, check=False, timeout=TIME_LIMIT_S,
        )
        self.assertEqual(ran.returncode, NOT_WRITTEN, ran.stdout + ran.stderr)
        said = [line for line in ran.stderr.splitlines() if line.startswith("polyring: ")]
        self.assertEqual(len(said), 1, ran.stderr)
        self.assertIn("gone/x.json", said[0])

    def test_what_this_build_lacks(self):
        if GLOO:
            self.skipTest("this build has Gloo")
        for words in (("allreduce",), ("train", "--compute-ms", "5")):
            for ranks in (0, 2):
                self.refused(
                    *words, "--algorithm", "mpi,gloo:ring", ranks=ranks, naming="libgloo-dev", code=NOT_AVAILABLE
                )

    def test_one_process_prints(self):
        for words in (
            ("--version",),
            ("allreduce", "--help"),
            ("probe", "--machine", "minsky"),
            ("plan", "--machine", "minsky", "--ranks", "16"),
            ("verify", "--dims", "2x2"),
            ("scale", "--machine", "minsky", "--gpus", "4"),
        ):
            with self.subTest(words=words):
                self.assertEqual(self.succeed(*words, ranks=2), self.succeed(*words))


if __name__ == "__main__":
    main()
