"""A rank that dies or hangs ends the whole job, with a sentence that names who is missing; one that is late is waited
for, and named. Either MPI."""

import json
import os
import re
import signal
import subprocess
import time

from program import PROGRAM, SANITIZED, TIMEOUT, WITHOUT_ITS_OWN, ProgramTest, command, main

TIMEOUT_S = 3
RANKS = 3
LATE_S = 2
LATE_ITERATIONS = 1000 if SANITIZED else 8000  # for more seconds than it takes to stop a rank
ENDLESS = ("-b", "8M", "-e", "8M", "-n", "1000000", "--timeout", TIMEOUT_S)


def parents():
    """Each process and its parent."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8") as stat:
                found[int(name)] = int(stat.read().rpartition(")")[2].split()[1])
        except OSError:
            continue  # ended meanwhile
    return found


def ranks_below(job):
    """The polyring processes that this job has started, and no other's: rank to process."""
    above = parents()
    ranks = {}
    for process in above:
        ancestor = process
        while ancestor in above and ancestor != job:
            ancestor = above[ancestor]
        if ancestor != job:
            continue
        try:
            if not os.path.samefile(f"/proc/{process}/exe", PROGRAM):
                continue
            with open(f"/proc/{process}/environ", encoding="utf-8", errors="replace") as environment:
                number = re.search(r"(?:OMPI_COMM_WORLD_RANK|PMIX_RANK|PMI_RANK)=(\d+)", environment.read())
        except OSError:
            continue
        if number:
            ranks[int(number.group(1))] = process
    return ranks


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


class Faults(ProgramTest):
    def start(self, *words, size=ENDLESS, **environment):
        """The job, once it measures, and its ranks."""
        output = (self.folder / "output").open("w", encoding="utf-8")
        self.addCleanup(output.close)
        job = subprocess.Popen(
            command("allreduce", *size, *words, ranks=RANKS),
            cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
        )
        ranks = {}
        self.addCleanup(self.end, job, ranks)
        deadline = time.monotonic() + 90
        while len(ranks) < RANKS:
            self.assertIsNone(job.poll(), self.output())
            self.assertLess(time.monotonic(), deadline, "the ranks did not start")
            time.sleep(0.1)
            ranks.update(ranks_below(job.pid))
        # Starting takes little of a processor, measuring all that there is: how long it lasts until then depends on the
        # machine's other work.
        while min(map(processor_seconds, ranks.values())) < 1:
            self.assertLess(time.monotonic(), deadline, "the ranks do not measure")
            time.sleep(0.1)
        self.assertIsNone(job.poll(), self.output())
        return job, ranks

    def end(self, job, ranks):
        """Whatever a failed test has left of its own job."""
        for process in self.left(ranks):
            os.kill(process, signal.SIGKILL)
        if job.poll() is None:
            job.kill()
        job.wait()

    def left(self, ranks):
        """Those of the job's ranks that still run."""
        alive = []
        for process in ranks.values():
            try:
                if os.path.samefile(f"/proc/{process}/exe", PROGRAM):
                    alive.append(process)
            except OSError:
                continue
        return alive

    def output(self):
        return (self.folder / "output").read_text(encoding="utf-8", errors="replace")

    def ended(self, job, ranks, stopped=None, patience=20):
        """The exit code of the job, which ends in time and leaves nothing but what we have stopped ourselves."""
        try:
            code = job.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            self.fail(f"the job hangs\n{self.output()}")
        deadline = time.monotonic() + 10
        while set(self.left(ranks)) - {stopped} and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(set(self.left(ranks)) - {stopped}, set())
        return code

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
        size = ("-b", "2M", "-e", "2M", "-n", LATE_ITERATIONS, "--timeout", 30)
        job, ranks = self.start("--algorithm", "multi-ring", "-J", path, size=size)
        os.kill(ranks[1], signal.SIGSTOP)
        time.sleep(LATE_S)
        os.kill(ranks[1], signal.SIGCONT)
        self.assertEqual(self.ended(job, ranks, patience=200), 0, self.output())
        result = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual([row["wrong"] for row in result["rows"]], [0, 0])
        sentence = rf"rank 1 \({re.escape(os.uname().nodename)}\) came (?:late \d+ times, by up to )?(\d\.\d+) s"
        for text in (self.output(), "\n".join(result["notes"])):
            self.assertRegex(text, sentence)
            late = float(re.search(sentence, text).group(1))
            self.assertGreater(late, 0.7 * LATE_S)
            self.assertLess(late, 1.5 * LATE_S)

    def timed_out(self, algorithm, sentence):
        """Another rank than the one that hangs says the sentence, and the job ends with the code for it."""
        job, ranks = self.start("--algorithm", algorithm)
        os.kill(ranks[1], signal.SIGSTOP)
        self.assertEqual(self.ended(job, ranks, stopped=ranks[1]), TIMEOUT, self.output())
        self.assertRegex(self.output(), rf"(?m)^polyring: rank [02] \({re.escape(os.uname().nodename)}\): {sentence}")

    def test_a_rank_that_hangs(self):
        # In the midst of a schedule, or in the barrier before one: wherever it was stopped, the others find out who.
        self.timed_out("multi-ring", r".*no answer from rank 1 \(\S+\):")

    def test_a_rank_that_hangs_in_mpi(self):
        # MPI_Allreduce does not say whom it waits for, nor can a rank inside of it answer; a barrier before it does.
        self.timed_out("mpi", r"(mpi did not finish within 3\.00 s|.*no answer from .*rank 1 \(\S+\))")


if __name__ == "__main__":
    main()
