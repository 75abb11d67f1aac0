"""Jobs of several ranks that a test does something to while they run."""

import os
import re
import signal
import subprocess
import time

from program import PROGRAM, ProgramTest

START_S = 90


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


class JobTest(ProgramTest):
    def launch(self, words, ranks, **environment):
        """Starts these words, and returns the job and its ranks, which are as many, as soon as their processes exist."""
        output = (self.folder / "output").open("w", encoding="utf-8")
        self.addCleanup(output.close)
        job = subprocess.Popen(
            words, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
        )
        found = {}
        self.addCleanup(self.end, job, found)
        deadline = time.monotonic() + START_S
        while len(found) < ranks:
            self.assertIsNone(job.poll(), self.output())
            self.assertLess(time.monotonic(), deadline, "the ranks did not start")
            time.sleep(0.01)
            found.update(ranks_below(job.pid))
        return job, found

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

    def ended(self, job, ranks, stopped=None, within=20):
        """The exit code of the job, which ends in time and leaves nothing but what we have stopped ourselves."""
        try:
            code = job.wait(timeout=within)
        except subprocess.TimeoutExpired:
            code = None
        deadline = time.monotonic() + 10
        while set(self.left(ranks)) - {stopped} and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(set(self.left(ranks)) - {stopped}, set(), self.output())
        # Open MPI 4.1's mpirun may itself hang in PMIx_server_finalize, or crash there, when all ranks have ended and it has
        # said with which code.
        said = re.search(r"Exit code: +(\d+)\n-+\n", self.output())
        if said and (code is None or code == -signal.SIGSEGV and "(PMIx_server_finalize+" in self.output()):
            return int(said[1])
        self.assertIsNotNone(code, f"the job hangs\n{self.output()}")
        return code
