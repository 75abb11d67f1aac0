"""What a process has from the one that started it: ignored and blocked signals, few open files. Either MPI."""

import json
import resource
import signal
import subprocess

from program import MPIEXEC, NOT_AVAILABLE, TIME_LIMIT_S, PROGRAM, ProgramTest, environment, main

LAUNCH = ("launch", "--launcher", MPIEXEC, "-H", "localhost:2", "--oversubscribe")


def children_forgotten():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def all_blocked():
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


class InheritedTest(ProgramTest):
    def start(self, *words, inherit):
        job = subprocess.Popen(
            [PROGRAM, *map(str, words)], env=environment(*words), cwd=self.folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=inherit)
        self.addCleanup(lambda: job.poll() is None and job.kill())
        return job

    def ran(self, *words, inherit):
        job = self.start(*words, inherit=inherit)
        output, errors = job.communicate(timeout=TIME_LIMIT_S)
        return subprocess.CompletedProcess(words, job.returncode, output, errors)

    def well(self, *words, inherit):
        ran = self.ran(*words, inherit=inherit)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        return ran


class Signals(InheritedTest):
    def test_probe(self):
        plain = self.well("probe", "--format", "json", inherit=None).stdout
        for inherit in (children_forgotten, all_blocked):
            for words in (("probe", "--format", "json"), ("probe",)):
                ran = self.well(*words, inherit=inherit)
                self.assertEqual(ran.stderr, "")
            self.assertEqual(json.loads(self.well("probe", "--format", "json", inherit=inherit).stdout).keys(),
                             json.loads(plain).keys())

    def test_report_draws(self):
        self.succeed("scale", "--machine", "minsky", "--gpus", "4", "-J", "scale.json")
        said = self.well("report", "scale.json", "--out", "plain", inherit=None).stderr
        for inherit in (children_forgotten, all_blocked):
            name = inherit.__name__
            self.assertEqual(self.well("report", "scale.json", "--out", name, inherit=inherit).stderr, said)
            self.assertEqual(sorted(path.name for path in (self.folder / name).iterdir()),
                             sorted(path.name for path in (self.folder / "plain").iterdir()))

    def test_launch(self):
        for inherit in (children_forgotten, all_blocked):
            self.well(*LAUNCH, "--dry-run", "--", "true", inherit=inherit)
            self.well(*LAUNCH, "--", "true", inherit=inherit)
            self.assertEqual(self.ran(*LAUNCH, "--no-trial", "--", "sh", "-c", "exit 3", inherit=inherit).returncode, 3)

    def test_allreduce(self):
        for inherit in (children_forgotten, all_blocked):
            self.well("allreduce", "-b", "1K", "-e", "1K", "-n", "2", inherit=inherit)

    def test_blocked_signals_end_it(self):
        job = self.start(*LAUNCH, "--no-trial", "--", "sh", "-c", "echo began; exec sleep 60", inherit=all_blocked)
        self.assertEqual(job.stdout.readline(), "began\n")
        job.send_signal(signal.SIGTERM)
        job.communicate(timeout=TIME_LIMIT_S)
        self.assertEqual(job.returncode, -signal.SIGTERM)

    def test_ignored_signals_to_end_stay_ignored(self):
        libraries = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=False).stdout
        if "libucs.so" in libraries:
            self.skipTest("UCX, which this MPI loads, takes SIGHUP for itself before main() (UCX_DEBUG_SIGNO)")

        def nohup():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)

        job = self.start(*LAUNCH, "--no-trial", "--", "sh", "-c", "echo began; sleep 2", inherit=nohup)
        self.assertEqual(job.stdout.readline(), "began\n")
        job.send_signal(signal.SIGHUP)
        job.communicate(timeout=TIME_LIMIT_S)
        self.assertEqual(job.returncode, 0)


class OpenFiles(InheritedTest):
    """With few of them a command does its work or says in one sentence why it does not."""

    def test_few(self):
        self.succeed("scale", "--machine", "minsky", "--gpus", "4", "-J", "scale.json")
        commands = (("probe",), ("plan", "--machine", "minsky"), ("scale", "--machine", "minsky", "--gpus", "4", "-J", "s.json"),
                    ("report", "scale.json", "--out", "r"))
        for files in (64, 24, 12, 8):
            for words in commands:
                with self.subTest(files=files, words=words):
                    ran = self.ran(*words, inherit=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)))
                    self.assertGreaterEqual(ran.returncode, 0, "it crashed")
                    self.assertNotIn("internal", ran.stderr)
                    if ran.returncode != 0:
                        self.assertIn(ran.returncode, (NOT_AVAILABLE, 6, 11), ran.stderr)
                        self.assertEqual(len(ran.stderr.splitlines()), 1, ran.stderr)

    def test_launch(self):
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))  # noqa: E731
        self.well(*LAUNCH, "--dry-run", "--", "true", inherit=few)


if __name__ == "__main__":
    main()
