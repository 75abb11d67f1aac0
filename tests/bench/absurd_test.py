"""Absurd values of every option that takes a number: a right answer or one sentence, soon and without gigabytes.

They are well formed, so that a check of the form alone does not stop them. UndefinedBehaviorSanitizer's build runs this too.
"""

import os
import resource
import subprocess
import tempfile
import unittest

from help_test import OPTIONS
from program import COLLECTIVES, MEASURING, PROGRAM, SANITIZED, USAGE, ProgramTest, environment, main

LIMIT_S = 120 if SANITIZED else 30
LIMIT_KIB = (4 if SANITIZED else 1) << 20

MINSKY = ("--machine", "minsky")
START = {  # what each subcommand needs beside the option
    "probe": MINSKY,
    "plan": MINSKY,
    "verify": (),
    **dict.fromkeys(COLLECTIVES, ("-n", "1", "-w", "0", "-b", "4", "-e", "4")),
    "train": ("--compute-ms", "1", "-n", "1", "--algorithm", "ring"),
    "accept": ("--checks", "hosts.alike"),
    "tune": ("-n", "1", "-b", "4", "-e", "4", "--file", "tuned.json"),
    "scale": MINSKY,
    "launch": ("--dry-run", "-H", "localhost"),
    "calibrate": (),
    "compare": ("osu.log", "osu.log"),
    "report": (),
    "completion": (),
}
LAST = {"launch": ("--", "true")}

WHOLE = ("0", "-1", "1000000000", "2147483647", "2147483648", "4294967297", "9223372036854775807", "18446744073709551616", "9" * 40)
SIZES = ("0", "1", "4194304T", "8388607T", "9223372036854775807", "9223372036854775808", "16E", "1" + 300 * "0", "0." + 300 * "0" + "1T")
RATES = ("0GB/s", "1" + 290 * "0" + "TB/s", "9" * 400 + "GB/s", "0." + 320 * "0" + "1B/s", "-1GB/s")
TIMES = ("0", "1" + 300 * "0", "9" * 400 + "s", "0." + 320 * "0" + "1", "-1s", "999999999min")
PARTS = ("0", "0%", "1e300%", "1" + 300 * "0" + "%", "9" * 400, "-1%", "99999999999%")
LISTS = (*WHOLE, "1..2147483647", "2147483646..2147483647", "1,2147483647", "1..2147483648")
DIMS = ("0", "2147483647", "2147483648", "65536x65536", "46341x46341", "1048576x2047", "x".join(64 * ["2"]), "x".join(100 * ["1"]))
STRATEGIES = ("data=1048576", "data=2147483648", "pipeline=1048576", "intra-model=1048576", "inter-model=1048576",
              "data=1048576,pipeline=1048576,intra-model=1048576", "pipeline=1048576,intra-model=2048", "data=0")

# The values of each option that takes numbers; None where it takes none.
VALUES = {
    "--rails": WHOLE, "--nics": ("0", "-1", "64", "9" * 40, "2147483648x400Gb/s", "4x" + "9" * 40 + "GbE", *(f"4x{rate}" for rate in RATES)),
    "--oversubscription": ("0", "-1", "9" * 40, "1e-300", "1e400", "nan", "inf"), "--gpus-per-host": ("0", "-1", "1024", "2147483648", "9" * 40), "--hosts": WHOLE, "--gpus": LISTS, "--ranks": LISTS, "--ranks-per-host": WHOLE, "--count": (*WHOLE, "1125899906842624"),
    "--lanes": (*WHOLE, "1024"), "--chunk": SIZES, "--orders": ("0-2147483648", "0-2147483647", "99999999999999999999", "0"),
    "--dims": DIMS, "--ddl-options": [f"-mode p:{dims}" for dims in DIMS] + ["-dbg_level 99999999999999999999"],
    "--size": SIZES, "--minbytes": SIZES, "--maxbytes": SIZES, "--stepfactor": (*WHOLE, "1048576"), "--stepbytes": SIZES,
    "--iters": WHOLE, "--warmup_iters": WHOLE, "--blocking": WHOLE, "--cudagraph": WHOLE, "--local_register": WHOLE, "--check": WHOLE, "--timeout": TIMES,
    "--nthreads": WHOLE, "--ngpus": WHOLE,
    "--batch": (*WHOLE, "1048576"), "--global-batch": (*WHOLE, "1073741824"), "--micro-batches": (*WHOLE, "1048576"),
    "--compute-ms": (*WHOLE, "1e300", "1e-300", "-1e300", "1e400", "nan", "inf"), "--bucket": [f"fused:{size}" for size in SIZES],
    "--strategy": STRATEGIES, "--sample-bytes": SIZES, "--filesystem": RATES, "--nvme": RATES, "--reduction-rate": RATES,
    "--attempts": WHOLE, "--budget": TIMES, "--duration": TIMES, "--tolerance": PARTS,
    "--jitter": PARTS, "--utilisation": PARTS, "--seed": WHOLE,
    "--message-overhead": (*TIMES, "1s,999999999min"),
    "--assume": [f"{key}={rate}" for key in ("nic", "nvlink", "socket") for rate in RATES]
    + ["pcie=gen99999999999999999999x16", "pcie=gen5x2147483648", "nic=" + "9" * 40 + "GbE", "nic=2147483647GbE", ",".join(9999 * ["nic=ndr"])],
    "--host": ("a:100000," * 9_999 + "a:100000", "a[0-99999]:100000", "a:99999999999", "a[0-99999999999]", "a[0-9]b[0-9]c[0-9]d[0-9]e[0-9]f[0-9]",
               ",".join(f"h{i}:99999" for i in range(10_000))),
}
NO_NUMBERS = set(
    "--without --framework --ideal --name --title --machine --from --sysfs --fabric --format --picture --expect --collective --algorithm --patterns --datatype --partials --calibration --explain "
    "--tcp-interface --transport --tuned --plan-for --op --payload --timing --model --precision --buffers --output_file --gpu --no-overlap --unfused-attention --published --scaling --overlap --from-run --step "
    "--device --share-gpu --points --wide --quiet --baseline --chart --out --overlay --hostfile --oversubscribe --allow-different --rsh --launcher --launcher-args --polyring --rankfile "
    "--no-trial --dry-run --offline --checks --like --data --save-baseline --resume --junit --prometheus --drain --nagios".split())
FILES = {"calibrate": {"--check"}}  # where an option of that name takes no number
OF_MACHINES = {"--nics", "--oversubscription", "--gpus-per-host"}  # read in one place for all subcommands
OF_PLANS = {"--dims", "--ddl-options", "--lanes", "--chunk", "--orders"}  # plan and verify read them as those do that start MPI

# No answer is absurd here, but it takes a while; MORE has others of their kind.
LONG = {("scale", "--lanes", "1024"), ("verify", "--lanes", "1024")}
MORE = [
    ("plan", *MINSKY, "--ranks", "16777216", "--size", "4194304T"),
    ("plan", *MINSKY, "--algorithm", "ring", "--ranks", "16777216"),
    ("plan", *MINSKY, "--lanes", "1024", "--chunk", "1", "--size", "4194304T"),
    ("plan", *MINSKY, "--dims", "4x2097152", "--size", "8388607T", "-d", "half"),
    ("verify", "--ranks", "2,3,64", "--count", "1125899906842624", "--lanes", "1024", "--algorithm", "direct"),
    ("scale", *MINSKY, "--gpus", "2147483644", "--batch", "1048576", "--compute-ms", "1"),
    ("scale", *MINSKY, "--gpus", "100000000", "--batch", "1048576", "--compute-ms", "1"),
    ("scale", *MINSKY, "--gpus", "4,8", "--batch", "1048576", "--compute-ms", "1"),
    ("scale", *MINSKY, "--scaling", "strong", "--batch", "1048576", "--compute-ms", "1"),
    ("scale", *MINSKY, "--gpus", "100000000", "--jitter", "5%"),
    ("scale", *MINSKY, "--gpus", "4", "--lanes", "1024", "--chunk", "1"),
    ("probe", *MINSKY, "--hosts", "1048576", "--format", "json"),
    ("probe", *MINSKY, "--gpus", "16777216", "--expect"),
    ("probe", *MINSKY, "--gpus", "16777216", "--format", "matrix"),
    *(("probe", "--machine", "dgx-h100", "--expect", "--hosts", "64", "--oversubscription", ratio) for ratio in ("1", "999.5", "1e308")),
    ("plan", "--machine", "dgx-h100", "--nics", "64x1GbE", "--ranks", "64"),
    ("probe", *MINSKY, *(word for _ in range(1000) for word in ("--without", "gpu0-gpu1"))),
    ("probe", "--machine", "huge.toml"),
    ("plan", "--machine", "large.toml"),
    ("launch", "--dry-run", "--hostfile", "hosts", "--", "true"),
    ("launch", "--dry-run", "-H", "a[0-99999]", "--ranks-per-host", "100000", "--", "true"),
    ("launch", "--dry-run", "-H", "localhost", "-n", "1000000", "--oversubscribe", "--no-trial", "--", "true"),
    ("allreduce", "-b", "4", "-e", "4", "-n", "1", "-w", "0", "--lanes", "1024", "--chunk", "8388607T"),
    ("allreduce", "-b", "4", "-e", "4", "-n", "1", "-w", "0", "--dims", "46341x46341"),
    ("allreduce", "-b", "4", "-e", "8388607T", "-f", "1048576", "-n", "1", "-w", "0"),
    ("alltoall", "-b", "1", "-e", "8388607T", "-f", "1048576", "-n", "1", "-w", "0"),
    ("allgather", "-b", "4194304T", "-e", "4194304T", "-d", "half", "-n", "1", "-w", "0"),
    ("allreduce", "-b", "4194304T", "-e", "4194304T", "-d", "half", "-n", "1", "-w", "0"),
    ("allreduce", "-t", "1024", "-g", "1024"),
    ("allreduce", "-g", "48", "-b", "4", "-e", "4", "-n", "1", "-w", "0"),
    ("tune", "-b", "4194304T", "-e", "4194304T", "-n", "1", "--file", "tuned.json"),
]


class Absurd(ProgramTest):
    def setUp(self):
        super().setUp()
        (self.folder / "osu.log").write_text("# OSU MPI Allreduce Latency Test v7.4\n# Size       Avg Latency(us)\n4    1.5\n8    1.6\n", encoding="utf-8")

    def check(self, *words):
        with self.subTest(words=[word if len(word) < 60 else word[:60] + "…" for word in words]):
            with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
                ran = subprocess.Popen([PROGRAM, *words], env=environment(*words), cwd=self.folder, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S)))
                _, status, used = os.wait4(ran.pid, 0)
                ran.returncode = os.waitstatus_to_exitcode(status)
                err.seek(0)
                said = err.read().decode(errors="replace")
            self.assertIn(ran.returncode, (0, USAGE), said[-2000:])
            self.assertNotRegex(said, "runtime error|Sanitizer|internal|std::|basic_")
            self.assertLess(used.ru_maxrss, LIMIT_KIB)
            if ran.returncode == USAGE:
                self.assertEqual(said.count("\n"), 1, said)
                self.assertTrue(said.startswith("polyring: "), said)

    def start(self, subcommand, option):
        """Without the option itself."""
        words = list(START[subcommand])
        short = {"--iters": "-n", "--warmup_iters": "-w", "--minbytes": "-b", "--maxbytes": "-e", "--host": "-H"}.get(option, option)
        if short in words:
            at = words.index(short)
            del words[at : at + 2]
        return words

    def test_every_option_is_known_here(self):
        for subcommand, options in OPTIONS.items():
            for option in options.split():
                self.assertTrue(option in VALUES or option in NO_NUMBERS, f"{subcommand} {option}: does it take a number?")

    def test_together(self):
        (self.folder / "huge.toml").write_text("[" + 30_000 * "a." + "a]\n", encoding="utf-8")
        (self.folder / "large.toml").write_text('hosts = 1048576\ngpus = { count = 64, product = "A100" }\nnics = { count = 64, rate = "hdr" }\n', encoding="utf-8")
        (self.folder / "hosts").write_text(30_000 * "a:100000\n", encoding="utf-8")
        for words in MORE:
            self.check(*words)


def tried(subcommand, option):
    """Starting MPI under a sanitizer takes long: there an option that many subcommands share is tried in the first of them. The
    other collectives share allreduce's in any case."""
    if option not in VALUES or option in FILES.get(subcommand, ()):
        return False
    if option in OF_MACHINES:
        return subcommand == "probe"
    if subcommand not in MEASURING:
        return True
    elsewhere = (other for other in sorted(OPTIONS, key=lambda name: name in MEASURING) if option in OPTIONS[other].split())
    once = SANITIZED or subcommand in COLLECTIVES[1:]
    return option not in OF_PLANS and (not once or next(elsewhere) == subcommand)


def of(subcommand):
    def test(self):
        for option in OPTIONS[subcommand].split():
            for value in VALUES[option] if tried(subcommand, option) else ():
                if (subcommand, option, value) not in LONG:
                    self.check(subcommand, *self.start(subcommand, option), option, value, *LAST.get(subcommand, ()))
    return test


for name in OPTIONS:
    setattr(Absurd, f"test_{name.replace('-', '_')}", of(name))


if __name__ == "__main__":
    main()
