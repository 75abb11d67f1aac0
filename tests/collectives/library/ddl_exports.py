"""Checks that libddl.so exports DDL's calls and nothing else. Run with nm and the library."""

import re
import subprocess
import sys

PROMISED = ("ddl_allreduce", "ddl_allreduce_mpi", "ddl_error_text", "ddl_finalize", "ddl_free", "ddl_init", "ddl_malloc", "ddl_rank", "ddl_size")


def main():
    listing = subprocess.run([sys.argv[1], "-D", "--defined-only", sys.argv[2]], check=True, capture_output=True, text=True).stdout
    names = [line.split()[-1] for line in listing.splitlines()]
    other = re.compile(r"DDL_1|__asan|__ubsan|__tsan|__sanitizer|__odr_asan|__lsan")  # the version, and what sanitizers add
    exported = sorted(name for name in names if not other.match(name))
    promised = [f"{name}@@DDL_1" for name in PROMISED]
    for name in sorted(set(exported) ^ set(promised)):
        print(f"{name}: {'not promised' if name in exported else 'not exported'}")
    return 0 if exported == promised else 1


if __name__ == "__main__":
    sys.exit(main())
