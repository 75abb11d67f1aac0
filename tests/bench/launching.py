"""polyring launch on hosts that are none: a remote shell and programs that play them."""

import json
import os
import shutil
import signal
import subprocess

from program import MPIEXEC, PROGRAM, TIME_LIMIT_S, ProgramTest

# What ssh is to a cluster: hosts whose names begin with dead, hang and noisy are what these say.
RSH = """#!/bin/sh
host=$1
shift
case $host in
  dead*) echo "ssh: connect to host $host port 22: Connection refused" >&2; exit 255 ;;
  hang*) exec sleep 1000 ;;
  rude*) printf 'ssh: \\033]0;title\\007\\033[2Jgone\\n' >&2; exit 255 ;;
  endless*) exec yes ;;
  noisy*) echo "Welcome to $host"; echo "a warning" >&2 ;;
esac
HOST=$host exec sh -c "$*"
"""

# The program on a host: of hosts without HOST, the real one.
POLYRING = """#!/bin/sh
case $HOST.$1 in
  old*.--version) echo "polyring 0.0.1 (old)"; exit ;;
  none*) echo "sh: 1: polyring: not found" >&2; exit 127 ;;
  busy*.probe) exec sleep 1000 ;;
  few*.probe) exec cat {folder}/fewer.json ;;
  bound*.probe) exec cat {folder}/bound.json ;;
  first*.probe) exec cat {folder}/first.json ;;
  second*.probe) exec cat {folder}/second.json ;;
  slow*.probe) exec cat {folder}/slow.json ;;
  *.probe) exec cat {folder}/gpus.json ;;
esac
exec {program} "$@"
"""

# Hosts of this test run on one machine; each has a name of its own.
UNAME = """#!/bin/sh
[ -z "$HOST" ] || {{ echo "$HOST"; exit; }}
exec {real} "$@"
"""

# The launcher here and on a host.
LAUNCHER = """#!/bin/sh
case $HOST.$1 in
  bare*.--version) echo "sh: 1: $0: not found" >&2; exit 127 ;;
  other*.--version) echo "mpirun (Open MPI) 1.2.3"; exit ;;
  *.--version) {version} ;;
esac
{run}
"""

SRUN = """#!/bin/sh
[ "$1" != --version ] || {{ echo "slurm 23.02.6"; exit; }}
tasks=1
while :; do
  case $1 in
    --ntasks=*) tasks=${{1#*=}} ;;
    --nodelist=*) HOST=${{1#*=}} && export HOST ;;
    -*) ;;
    *) break ;;
  esac
  shift
done
[ "$tasks" -gt 1 ] || exec "$@"
export SLURM_STEP_NUM_TASKS=$tasks
{run}
"""


OPEN_MPI = "HYDRA" not in subprocess.run([MPIEXEC, "--version"], capture_output=True, text=True, check=True).stdout


class LaunchTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        self.rsh = self.script("rsh", RSH)
        self.script("uname", UNAME.format(real=shutil.which("uname")))
        gpus = json.loads(self.succeed("probe", "--machine", "minsky", "--format", "json"))
        (self.folder / "gpus.json").write_text(json.dumps(gpus), encoding="utf-8")
        host = gpus["hosts"][0]
        self.keep("bound", gpus, allowed_cores={"cpuset": list(range(20)), "affinity": [3, 10, 11, 12]})
        for name, cores in (("first", range(10)), ("second", range(10, 20))):
            self.keep(name, gpus, allowed_cores={"cpuset": [*cores], "affinity": [*cores]})
        no_gpus = {**host, "gpus": [], "switches": [], "nics": [], "links": []}
        self.keep("slow", {**gpus, "hosts": [no_gpus]}, allowed_cores={"cpuset": [*range(8)], "affinity": [*range(8)], "cpu_limit": 3.5})
        gone = host["gpus"].pop()["name"]
        host["links"] = [link for link in host["links"] if gone not in (link["from"], link["to"])]
        (self.folder / "fewer.json").write_text(json.dumps(gpus), encoding="utf-8")
        self.fake = self.script("polyring", POLYRING.format(folder=self.folder, program=PROGRAM))
        self.open_mpi()

    def script(self, name, text):
        path = self.bin / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    def keep(self, name, cluster, **more):
        """What hosts of this name print: the cluster's only host, and more of it."""
        document = {**cluster, "hosts": [{**cluster["hosts"][0], **more}]}
        (self.folder / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")

    def launcher(self, version, run="exit 9"):
        return self.script("mpirun", LAUNCHER.format(version=version, run=run))

    def open_mpi(self):
        return self.launcher('echo "mpirun (Open MPI) 4.1.4"; exit')

    def started(self, *words, variables=None, shell=True, cores=None):
        """polyring launch, with this test's remote shell and its programs first on PATH, bound to `cores` if given."""

        def prepare():
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            if cores:
                os.sched_setaffinity(0, cores)

        environment = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
        environment["PATH"] = f"{self.bin}:{environment['PATH']}"
        options = ["--rsh", self.rsh] if shell else []
        return subprocess.Popen(
            [PROGRAM, "launch", *map(str, options), *map(str, words)], cwd=self.folder,
            env={**environment, **(variables or {})}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=prepare,
        )

    def launch(self, *words, **more):
        job = self.started(*words, **more)
        self.addCleanup(lambda: job.poll() is None and job.kill())
        output, errors = job.communicate(timeout=TIME_LIMIT_S)
        return subprocess.CompletedProcess(words, job.returncode, output, errors)

    def dry(self, *words, program=("./train", "-x"), **more):
        """The printed command of a launch that goes well, and the rankfile."""
        ran = self.launch("--polyring", self.fake, "--dry-run", *words, "--", *program, **more)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        rankfile = self.folder / "polyring.rankfile"
        text = rankfile.read_text(encoding="utf-8") if rankfile.exists() else ""
        rankfile.unlink(missing_ok=True)
        return ran.stdout, text

    def fault(self, code, *words, naming, **more):
        """Exits so, with these phrases in as many sentences, and starts and writes nothing."""
        naming = [naming] if isinstance(naming, str) else naming
        with self.subTest(words=words):
            before = self.files()
            ran = self.launch("--polyring", self.fake, *words, "--", "./train", **more)
            self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
            self.assertEqual(ran.stdout, "")
            sentences = ran.stderr.splitlines()
            self.assertEqual(len(sentences), len(naming), ran.stderr)
            for sentence, phrase in zip(sentences, naming):
                self.assertTrue(sentence.startswith("polyring: "), sentence)
                self.assertIn(phrase, sentence)
                self.assertLess(len(sentence), 700)
            self.assertEqual(self.files(), before)
