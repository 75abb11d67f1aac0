"""The file of a measured step, which `polyring scale --step` and `polyring train --step` read (bench/record/step_file.hpp)."""

import datetime
import errno
import json
import os
import platform
import secrets

from racing import commands
from stepping.errors import NOT_WRITTEN, Refused

SCHEMA, VERSION = "polyring-step", 1
OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def document(command, software, measured):
    """`software`: versions by name; `measured`: what the keys of the format say of model and times."""
    return {"schema": SCHEMA, "version": VERSION, "created": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "command": command, "host": platform.node(), "software": {"python": platform.python_version(), **software}, **measured}


def check(path):
    """Before anything is measured: whether the file can be written."""
    folder = path.parent
    if not folder.is_dir():
        raise Refused(f"there is no folder '{folder}' for '{path.name}'; create it, or name another file")
    if path.is_dir():
        raise Refused(f"'{path}' is a folder; name a file")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Refused(f"cannot write into '{folder}'; name a file elsewhere")


def write(path, content):
    """Writes it whole or not at all, and returns where: with .1, .2, … at the end where there is such a file."""
    temporary = path.with_name(f".{path.name[:200]}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "x", encoding="utf-8") as file:
            file.write(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        return named(temporary, path)
    except OSError as error:
        code = {"code": NOT_WRITTEN} if error.errno in OF_THE_DISK else {}
        raise Refused(f"cannot write '{path}': {error.strerror}; name another file, or check its disk", **code) from error
    finally:
        temporary.unlink(missing_ok=True)


def named(temporary, path):
    while True:
        free = commands.free_name(path)
        try:
            os.link(temporary, free)  # unlike a renaming it replaces nothing
            return free
        except FileExistsError:
            pass
        except PermissionError:  # a file system without links
            os.rename(temporary, free)
            return free
