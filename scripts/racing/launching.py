"""Starts polyring under the mpirun of either MPI, on this host or on emulated ones, and brings its results back."""

import contextlib
import dataclasses
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
EMULATE = ROOT / "scripts/emulate"
MPIRUN = {"openmpi": ("mpirun.openmpi", "mpirun"), "mpich": ("mpiexec.mpich", "mpiexec.hydra")}

TIMEOUT = 4  # exit codes, those of polyring
NOT_AVAILABLE = 5
WRONG_RESULT = 7
FAILURES = {2, 3, TIMEOUT, NOT_AVAILABLE, WRONG_RESULT, 10}  # other codes would tell of this script

LONGEST_S = 3600  # of a launch; polyring itself ends when nothing happens for --timeout
TIMEOUT_OPTIONS = ("-T", "300")  # the slowest algorithms need a minute for each large allreduce between hosts
LISTENING_S = 0.5  # to what else this machine does, before a launch
PARTING_S = 20  # how long ranks may take to end after their result is written, and after a signal


class Failed(Exception):
    """A launch that gave no result: why, and the exit code for this kind of failure."""

    def __init__(self, why, code):
        super().__init__(why)
        self.code = code


@dataclasses.dataclass
class Ran:
    command: str
    seconds: float
    busy: float  # cores that others kept busy just before
    result: dict
    wrong: list  # what the program says about wrong results


def environment():
    """This process's, and the leave for Open MPI to start as root and to put more ranks on a host than it has cores."""
    lines = (ROOT / "scripts/mpi.env").read_text().splitlines()
    return os.environ | dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def mpirun(mpi):
    return next(filter(None, map(shutil.which, MPIRUN[mpi])), None)


def why_not_emulated(mpi):
    """Why there are no emulated hosts here; empty where there are."""
    command = [EMULATE, "--nodes", "1", "--ranks-per-node", "1", "--rate", "200mbit", "--mpi", mpi, "--", "true"]
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return "" if ran.returncode == 0 else last_line(ran.stderr)


def why_no_gloo(program):
    """Why this build of polyring has no Gloo; empty when it has."""
    command = [program, "allreduce", "-b", "8", "-e", "8", "-n", "1", "--algorithm", "gloo:ring"]
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=environment())
    return "" if ran.returncode == 0 else last_line(ran.stderr)


def last_line(text):
    """The last thing that polyring or a script said, or else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith(("polyring: ", "emulate: "))]
    return (ours or lines or ["it said nothing"])[-1]


def command_of(launch, hosts, program, words):
    """Binding is left to the MPI: each does it well on one host, and scripts/emulate says how between hosts."""
    interface = ("--tcp-interface", "eth0" if hosts.emulated else "lo")
    polyring = [str(program), *words, *(interface if launch.has_gloo else ())]
    if hosts.emulated:
        return [str(EMULATE), *hosts.options, "--mpi", launch.mpi, "--", *launch.options, *polyring]
    return [mpirun(launch.mpi), "-n", str(hosts.ranks), *launch.options, *polyring]


def end(job):
    """With SIGTERM, and then for sure. scripts/emulate passes the signal on, and so does an mpirun."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if job.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                job.wait(PARTING_S)


@contextlib.contextmanager
def started(command, **options):
    """A job, which ends with the block. ^C and SIGTERM come in the block alone: any sooner, they would leave it behind."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))

    def as_before():
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    try:
        job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
                               preexec_fn=as_before, **options)
        try:
            as_before()
            yield job
        finally:
            end(job)
    finally:
        as_before()


def wait_for(job, path):
    """Until the job ends, or has written its result but does not end: so may an MPI, in MPI_Finalize."""
    deadline = time.monotonic() + LONGEST_S
    while job.poll() is None:
        if path.exists():
            with contextlib.suppress(subprocess.TimeoutExpired):
                job.wait(PARTING_S)
            break
        if time.monotonic() > deadline:
            raise Failed(f"it had no result after {LONGEST_S} s", TIMEOUT)
        time.sleep(0.2)


def busy_cores():
    """How many, while nothing is raced. A load average would count the launch before."""
    def ticks():
        fields = [int(field) for field in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return sum(fields), fields[3] + fields[4]  # all, and those idle or waiting for a disk

    before = ticks()
    time.sleep(LISTENING_S)
    total, idle = (now - earlier for now, earlier in zip(ticks(), before))
    return os.cpu_count() * (1 - idle / max(total, 1))


def run(launch, hosts, program, words, path):
    """Runs polyring with these words and reads what it wrote to `path`. Throws Failed when that is nothing."""
    command = command_of(launch, hosts, program, [*words, *TIMEOUT_OPTIONS, "-J", str(path)])
    busy = busy_cores()
    began = time.monotonic()
    log = path.with_suffix(".log")
    with log.open("w") as errors, started(command, cwd=path.parent, env=environment(), stderr=errors) as job:
        wait_for(job, path)
    if not path.exists():
        code = WRONG_RESULT if "nothing was timed" in log.read_text() else job.returncode
        raise Failed(last_line(log.read_text()), code if code in FAILURES else 1)
    log.unlink()
    result = json.loads(path.read_text())
    wrong = [note.removeprefix("Wrong results: ") for note in result["notes"] if note.startswith("Wrong results")]
    if job.returncode == WRONG_RESULT and not wrong:
        wrong = [f"{launch.name} ended with exit code {WRONG_RESULT}"]
    shown = shlex.join([pathlib.Path(command[0]).name, *command[1:]]).replace(f"{path.parent}/", "")
    shown = shown.replace(str(program), "polyring").replace(f"{ROOT}/", "")
    return Ran(shown, time.monotonic() - began, busy, result, wrong)
