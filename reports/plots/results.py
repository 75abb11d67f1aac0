"""Reads polyring result files (reports/result.schema.json), as far as the charts need them."""

import json
from dataclasses import dataclass

VERSION = 1
NUMBER = (int, float)
OPTIONAL_NUMBER = (int, float, type(None))

TIMINGS = ("isolated", "osu", "back-to-back", "blocking", "graph")
SOURCES = ("measured", "emulated", "modelled", "published", "imported")

RUN_KEYS = {"machine": str, "model": str, "algorithm": str, "gpus": int, "nodes": int, "batch": int, "bucket": str,
            "overlap": bool, "source": str}
COLLECTIVES = ("allreduce", "reduce-scatter", "allgather", "alltoall")
COLLECTIVE_KEYS = {"algorithm": str, "implementation": str, "dims": str, "patterns": str, "lanes": int, "chunk_bytes": int, "ranks": int,
                   "nodes": int, "size_bytes": int, "dtype": str, "op": str, "in_place": bool, "time_us": dict,
                   "busbw_GBps": NUMBER, "bound_us": OPTIONAL_NUMBER, "source": str}
KEYS = {
    **dict.fromkeys(COLLECTIVES, COLLECTIVE_KEYS),
    "train": {**RUN_KEYS, "iteration_ms": dict, "exposed_comm_ms": NUMBER, "images_per_second": NUMBER,
              "timeline": list},
    "scale": {**RUN_KEYS, "speedup": NUMBER, "efficiency": NUMBER, "published_speedup": OPTIONAL_NUMBER,
              "published_efficiency": OPTIONAL_NUMBER},
    "tune": {"size_bytes": int, "source": str},
    "accept": {"check": str, "subject": str, "hosts": list, "verdict": str, "why": str, "remedy": str, "quantity": str,
               "unit": str, "value": (dict, type(None)), "least": OPTIONAL_NUMBER, "most": OPTIONAL_NUMBER,
               "threshold_source": str, "size_bytes": int, "source": str},
}
PUBLISHED_RUN_KEYS = {"published_run": str, "held_out": bool, "published_efficiency": NUMBER, "efficiency_low": NUMBER,
                      "efficiency_high": NUMBER}
TIMING_KEYS = {"median": NUMBER, "ci_low": NUMBER, "ci_high": NUMBER, "samples": list}
SPAN_KEYS = {"lane": str, "label": str, "begin_ms": NUMBER, "end_ms": NUMBER}


class InputError(Exception):
    """A user's mistake: one sentence, with the remedy."""


@dataclass
class Result:
    name: str  # of the file, without .json
    kind: str
    rows: list
    created: str
    command: str
    polyring_version: str
    hosts: list
    machine: dict  # as of polyring probe; None where the file has no such thing
    title: str = ""  # of charts; empty: they make one from the rows


def ranks_text(count, word):
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def check(path, where, value, keys):
    """That `value` is an object with these keys, of these types, and without negative numbers."""
    remedy = "run the command that made it again"
    if not isinstance(value, dict):
        raise InputError(f"'{path}' is damaged: '{where}' is not an object; {remedy}")
    for key, types in keys.items():
        if key not in value:
            raise InputError(f"'{path}' is damaged: '{where}.{key}' is missing; {remedy}")
        found = value[key]
        # True is an int to Python.
        if not isinstance(found, types) or (isinstance(found, bool) and types is not bool):
            raise InputError(f"'{path}' is damaged: '{where}.{key}' has a wrong type; {remedy}")
        if isinstance(found, NUMBER) and found < 0:
            raise InputError(f"'{path}' is damaged: '{where}.{key}' is negative; {remedy}")


def check_numbers(path, where, values):
    if not isinstance(values, list):
        raise InputError(f"'{path}' is damaged: '{where}' has a wrong type; run the command that made it again")
    for index, value in enumerate(values):
        check(path, where, {str(index): value}, {str(index): NUMBER})


def check_row(path, where, row, kind):
    check(path, where, row, KEYS[kind])
    if row["source"] not in SOURCES:
        raise InputError(f"'{path}' is damaged: '{where}.source' is '{row['source']}' and none of "
                         f"{', '.join(SOURCES)}; run the command that made it again")
    if row.get("timing", TIMINGS[0]) not in TIMINGS:
        raise InputError(f"'{path}' is damaged: '{where}.timing' is '{row['timing']}' and none of {', '.join(TIMINGS)}; "
                         "run the command that made it again")
    if "published_run" in row:
        check(path, where, row, PUBLISHED_RUN_KEYS)
    for key in ("time_us", "iteration_ms"):
        if key in KEYS[kind]:
            check(path, f"{where}.{key}", row[key], TIMING_KEYS)
    check_numbers(path, f"{where}.trend", row.get("trend", []))
    for index, span in enumerate(row.get("timeline", [])):
        check(path, f"{where}.timeline[{index}]", span, SPAN_KEYS)


def printable(value):
    """The same without what no font and no SVG has: names come from files and firmware."""
    if isinstance(value, dict):
        return {printable(key): printable(each) for key, each in value.items()}
    if isinstance(value, list):
        return [printable(each) for each in value]
    return "".join(letter if letter.isprintable() else " " for letter in value) if isinstance(value, str) else value


def parse(path):
    try:
        return printable(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(f"cannot read '{path}': {error.strerror}; check the name") from error
    except ValueError as error:
        raise InputError(f"'{path}' is not whole JSON; name a file that polyring wrote with -J, or copy it "
                         "again") from error


def read_result(path):
    document = parse(path)
    if not isinstance(document, dict) or document.get("format") != "polyring-result":
        raise InputError(f"'{path}' is not a polyring result; name a file that polyring wrote with -J")
    check(path, "file", document, {"version": int, "kind": str, "rows": list, "created": str, "command": str,
                                   "polyring_version": str, "placement": list})
    check(path, "file", {"title": "", **document}, {"title": str})
    if document["version"] > VERSION:
        raise InputError(f"'{path}' has version {document['version']} of the result format and this polyring knows "
                         f"up to {VERSION}; use a newer polyring")
    kind = document["kind"]
    if kind not in KEYS:
        raise InputError(f"'{path}' is damaged: 'kind' is '{kind}' and none of {', '.join(KEYS)}; run the command "
                         "that made it again")
    for index, row in enumerate(document["rows"]):
        check_row(path, f"rows[{index}]", row, kind)
    for index, place in enumerate(document["placement"]):
        check(path, f"placement[{index}]", place, {"rank": int, "host": str})
    hosts = list(dict.fromkeys(place["host"] for place in document["placement"]))
    return Result(path.stem, kind, document["rows"], document["created"], document["command"],
                  document["polyring_version"], hosts, document.get("machine"), document.get("title", ""))
