"""What race, validate_model and bench_budget have in common as commands: their options' errors, and the folder that they write."""

import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import sys
import tempfile

USAGE = 6  # exit codes
INTERRUPTED = 128 + signal.SIGINT


class Parser(argparse.ArgumentParser):
    """Of scripts/NAME: says what is wrong in one line."""

    def __init__(self, **options):
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def error(self, message):
        print(f"{pathlib.Path(self.prog).name}: {message}; see {self.prog} --help", file=sys.stderr)
        sys.exit(USAGE)


def program(text):
    path = pathlib.Path(text).resolve()
    if not os.access(path, os.X_OK) or path.is_dir():
        raise argparse.ArgumentTypeError(f"'{text}' is not a program")
    return path


def whole_number(text):
    if not text.isdecimal() or not 1 <= int(text) <= 100:
        raise argparse.ArgumentTypeError(f"needs a number, 1 to 100, not '{text}'")
    return int(text)


def free_name(path):
    names = (path if number == 0 else path.with_name(f"{path.name}.{number}") for number in range(10000))
    return next(name for name in names if not os.path.lexists(name))


@contextlib.contextmanager
def hidden_folder(name, out):
    """A folder beside `out` until keep() gives it that name; it goes away where nobody keeps it."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        folder = pathlib.Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    except OSError as error:
        print(f"{name}: cannot write beside {out}: {error.strerror}; choose another --out", file=sys.stderr)
        sys.exit(USAGE)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def keep(folder, out):
    """Gives the folder the name `out`, or out.1, out.2, … where there is such a one; returns it."""
    kept = free_name(out)
    folder.chmod(0o755)
    folder.rename(kept)
    return kept
