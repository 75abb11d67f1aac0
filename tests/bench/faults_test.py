"""A rank that dies or hangs ends the whole job, with a sentence that names who is missing; one that is late is waited
for, and named. Either MPI."""

import json
import os
import re
import signal
import time

from job import START_S, JobTest
from program import SANITIZED, TIMEOUT, WITHOUT_ITS_OWN, command, main

TIMEOUT_S = 3
RANKS = 3
LATE_S = 2
LATE_ITERATIONS = 1000 if SANITIZED else 4000  # for some seconds
ENDLESS = ("-b", "8M", "-e", "8M", "-n", "1000000", "--timeout", TIMEOUT_S)


def open_files(process):
    return [os.readlink(entry.path) for entry in os.scandir(f"/proc/{process}/fd")]


def mapped_files(process):
    with open(f"/proc/{process}/maps", encoding="utf-8") as lines:
        return [words[5] for words in (line.strip().split(maxsplit=5) for line in lines) if len(words) == 6]


def processor_seconds(process):
    """What it has used so far; endless for one that has ended."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as stat:
            used = stat.read().rpartition(")")[2].split()[11:13]
    except OSError:
        return float("inf")
    return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")


class Faults(JobTest):
    def start(self, *words, **environment):
        """The job, once it measures, and its ranks."""
        job, ranks = self.launch(command("allreduce", *ENDLESS, *words, ranks=RANKS), RANKS, **environment)
        # Starting takes little of a processor, measuring all that there is: how long it lasts until then depends on the
        # machine's other work.
        deadline = time.monotonic() + START_S
        while min(map(processor_seconds, ranks.values())) < 1:
            self.assertIsNone(job.poll(), self.output())
            self.assertLess(time.monotonic(), deadline, "the ranks do not measure")
            time.sleep(0.1)
        self.assertIsNone(job.poll(), self.output())
        return job, ranks

    def dies(self, job, ranks):
        """Rank 1, by force; the job ends, and who it was is said by mpiexec, or by a rank that waits for it."""
        os.kill(ranks[1], signal.SIGKILL)
        self.assertNotEqual(self.ended(job, ranks), 0)
        output = self.output()
        self.assertIn(os.uname().nodename, output)
        if "BAD TERMINATION" in output:
            # MPICH's mpiexec kills all ranks at once, even with -disable-auto-cleanup, and may name any of them.
            self.assertRegex(output, rf"PID ({'|'.join(map(str, ranks.values()))})\b")
            # UCX aborts a rank that was reading the dead one's memory, and names the process. mpiexec may hear of that first.
            read = rf"process_vm_(readv|writev)\(pid={ranks[1]} .* returned -1: No such process"
            self.assertRegex(output, rf"EXIT CODE: {signal.SIGKILL:d}\b|{read}")
            return
        named = set(re.findall(r"(?:process|for|from) rank (\d+)\b", output))
        self.assertEqual(named, {"1"}, output)

    def test_a_rank_that_dies(self):
        self.dies(*self.start("--algorithm", "multi-ring", "--transport", "mpi"))

    def test_a_rank_that_dies_over_tcp(self):
        job, ranks = self.start("--algorithm", "multi-ring", "--transport", "tcp")
        os.kill(ranks[1], signal.SIGKILL)
        self.assertNotEqual(self.ended(job, ranks), 0)
        # Who had a connection to it may say so before mpiexec does, and who had one to that one next.
        self.assertRegex(self.output(), r"connection to rank 1 at \S+ was lost|process rank 1\b|BAD TERMINATION")

    def test_a_rank_that_dies_over_shared_memory(self):
        job, ranks = self.start("--algorithm", "multi-ring", "--transport", "shared", **WITHOUT_ITS_OWN)
        # What it shares has no name that could stay behind, and neither has what this MPI shares.
        for process in ranks.values():
            files = {*open_files(process), *mapped_files(process)}
            self.assertIn("/memfd:polyring (deleted)", files)
            self.assertEqual([file for file in files if re.match(r"/dev/shm/.*(?<! \(deleted\))$", file)], [])
        self.dies(job, ranks)

    def test_a_rank_that_is_late(self):
        path = self.folder / "out.json"
        sizes = ("-b", "4", "-e", "2M", "-f", "524288", "-n", LATE_ITERATIONS, "--timeout", 30)
        words = command("allreduce", *sizes, "--algorithm", "multi-ring", "-J", path, ranks=RANKS)
        job, ranks = self.launch(words, RANKS)
        journal = self.folder / "out.json.part"
        deadline = time.monotonic() + START_S
        while not journal.exists() or journal.read_text(encoding="utf-8").count("\n") < 3:  # a head and both rows of 4 B
            self.assertIsNone(job.poll(), self.output())
            self.assertLess(time.monotonic(), deadline, "no row is measured")
            time.sleep(0.02)
        time.sleep(0.3)  # past the first checks of 2 MiB
        stopped = time.monotonic()
        os.kill(ranks[1], signal.SIGSTOP)
        time.sleep(LATE_S)
        os.kill(ranks[1], signal.SIGCONT)
        self.assertEqual(self.ended(job, ranks, within=200), 0, self.output())
        result = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual([row["wrong"] for row in result["rows"]], [0, 0, 0, 0])
        sentence = rf"rank 1 \({re.escape(os.uname().nodename)}\) came (?:late \d+ times, by up to )?(\d\.\d+) s"
        for text in (self.output(), "\n".join(result["notes"])):
            self.assertRegex(text, sentence)
            late = float(re.search(sentence, text).group(1))
            self.assertGreater(late, LATE_S / 2)
            self.assertLess(late, time.monotonic() - stopped)

    def timed_out(self, algorithm, sentence):
        """Another rank than the one that hangs says the sentence, and the job ends with the code for it."""
        job, ranks = self.start("--algorithm", algorithm)
        os.kill(ranks[1], signal.SIGSTOP)
        self.assertEqual(self.ended(job, ranks, stopped=ranks[1]), TIMEOUT, self.output())
        self.assertRegex(self.output(), rf"(?m)^polyring: rank [02] \({re.escape(os.uname().nodename)}\): {sentence}")

    def test_a_rank_that_hangs(self):
        # In the midst of a schedule, or in the barrier before one: wherever it was stopped, the others find out who.
        self.timed_out("multi-ring", r".*no answer from rank 1 \(\S+\):")

    def test_a_rank_that_hangs_while_others_wait(self):
        """Of the first two ranks: the third has no part in their steps."""
        words = ("--ranks", "2,3", "--compute-ms", "1", "-n", "1000000", "--algorithm", "ring", "--timeout", TIMEOUT_S)
        job, ranks = self.launch(command("train", *words, ranks=RANKS), RANKS)
        deadline = time.monotonic() + START_S
        while min(processor_seconds(ranks[0]), processor_seconds(ranks[1])) < 1:
            self.assertIsNone(job.poll(), self.output())
            self.assertLess(time.monotonic(), deadline, "the ranks do not measure")
            time.sleep(0.1)
        os.kill(ranks[1], signal.SIGSTOP)
        self.assertEqual(self.ended(job, ranks, stopped=ranks[1]), TIMEOUT, self.output())
        self.assertRegex(self.output(), r"(?m)^polyring: rank 0 .*no answer from rank 1 ")

    def test_rank_0_hangs_while_others_wait(self):
        """It is the only one to compute: nobody else would notice."""
        words = ("--ranks", "1", "--compute-ms", "1", "-n", "1000000", "--bucket", "none", "--algorithm", "ring", "--timeout", 1)
        job, ranks = self.launch(command("train", *words, "-J", "out.json", ranks=2), 2)
        journal = self.folder / "out.json.part"
        deadline = time.monotonic() + START_S
        while not journal.exists() or journal.read_text(encoding="utf-8").count("\n") < 3:
            self.assertIsNone(job.poll(), self.output())
            self.assertLess(time.monotonic(), deadline, "rank 0 does not measure")
            time.sleep(0.02)
        os.kill(ranks[0], signal.SIGSTOP)
        self.assertEqual(self.ended(job, ranks, stopped=ranks[0], within=60), TIMEOUT, self.output())
        self.assertRegex(self.output(), r"(?m)^polyring: rank 1 .*no answer from rank 0 ")

    def test_a_rank_that_hangs_in_mpi(self):
        # MPI_Allreduce does not say whom it waits for, nor can a rank inside of it answer; a barrier before it does.
        self.timed_out("mpi", r"(mpi did not finish within 3\.00 s|.*no answer from .*rank 1 \(\S+\))")


if __name__ == "__main__":
    main()
