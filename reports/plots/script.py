"""How the scripts read their arguments, and how they end: with polyring's exit codes and one sentence."""

import argparse
import sys
from pathlib import Path

from plots.results import InputError

NOT_AVAILABLE = 5
USAGE = 6


class NoMatplotlib(Exception):
    """This Python cannot draw: one sentence, with the remedy."""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise InputError(f"{message}; see {self.prog} --help")


def use_matplotlib():
    """To be called before anything that draws is imported."""
    try:
        import matplotlib
    except ImportError as error:
        raise NoMatplotlib(f"{sys.executable} has no matplotlib ({error}); install python3-matplotlib or name another "
                           "Python in POLYRING_PYTHON") from error
    matplotlib.use("Agg")


def run(draw):
    """The exit code of a script that does `draw(arguments)`."""
    try:
        draw(sys.argv[1:])
    except (InputError, NoMatplotlib) as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        return USAGE if isinstance(error, InputError) else NOT_AVAILABLE
    return 0
