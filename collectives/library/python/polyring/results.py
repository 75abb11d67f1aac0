"""Result files of Polyring's commands (-J FILE) as a data frame of pandas, or as dictionaries."""

import json
import os
import pathlib
from typing import Any, Dict, List, Union

from ._library import UsageError

FORMAT = "polyring-result"
VERSION = 1  # the newest that this reads
ALONG = ("kind", "created", "command", "polyring_version")  # of a file, in each of its rows

Path = Union[str, "os.PathLike[str]"]
Row = Dict[str, Any]


def _read(path: Path) -> Dict[str, Any]:
    file = pathlib.Path(path)
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{file}: is not JSON ({error}); give a file that -J has written") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT or not isinstance(document.get("rows"), list):
        raise UsageError(f"{file}: is no result of Polyring; give a file that -J has written")
    version = document.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise UsageError(f"{file}: has version {version} of the format, and this package reads up to {VERSION}; install a newer package")
    return document


def rows_of(*paths: Path) -> List[Row]:
    """The rows of all files, each with its file's name, command and date. Throws a UsageError that names a file that is none of
    Polyring's results, and an OSError for one that cannot be read."""
    rows: List[Row] = []
    for path in paths:
        document = _read(path)
        along = {"file": os.fspath(path), **{key: document.get(key) for key in ALONG}}
        rows.extend({**along, **row} for row in document["rows"])
    return rows


def read_results(*paths: Path) -> Any:
    """A pandas.DataFrame with a line for each row of all files, and a column for each key, such as "size_bytes" and
    "time_us.median"; the list of rows_of() where there is no pandas."""
    rows = rows_of(*paths)
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.json_normalize(rows)
