"""How the scripts read their arguments, and how they end: with polyring's exit codes and one sentence."""

import argparse
import errno
import os
import secrets
import sys
from contextlib import contextmanager
from pathlib import Path

from plots.results import InputError

NOT_AVAILABLE = 5
USAGE = 6
NOT_WRITTEN = 11
OF_THE_DISK = {None, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}  # None: of Pillow's, in the midst of a picture


class NotHere(Exception):
    """This Python lacks something: one sentence, with the remedy."""


class NotWritten(Exception):
    """The disk is full, or fails: one sentence."""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise InputError(f"{message}; see {self.prog} --help")


def use_matplotlib():
    """To be called before anything that draws is imported."""
    try:
        import matplotlib
    except ImportError as error:
        raise NotHere(f"{sys.executable} has no matplotlib ({error}); install python3-matplotlib or name another "
                           "Python in POLYRING_PYTHON") from error
    matplotlib.use("Agg")


@contextmanager
def new_file(path):
    """A file to write into, which gets the name `path` when it is whole. Until then it has one that nobody can guess.

    Replaces nothing but where a file system has no links.
    """
    temporary = path.with_name(f".{path.name[:200]}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
        try:
            os.link(temporary, path)
        except PermissionError:
            os.replace(temporary, path)
    except OSError as error:
        sentence = f"cannot write '{path}': {error.strerror or error}"
        if error.errno in OF_THE_DISK:
            raise NotWritten(f"{sentence}; check its disk, and run this again") from error
        raise InputError(f"{sentence}; name another one") from error
    finally:
        temporary.unlink(missing_ok=True)


def run(draw):
    """The exit code of a script that does `draw(arguments)`."""
    try:
        draw(sys.argv[1:])
    except (InputError, NotHere, NotWritten) as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        return {InputError: USAGE, NotHere: NOT_AVAILABLE, NotWritten: NOT_WRITTEN}[type(error)]
    return 0
