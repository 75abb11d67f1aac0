"""Usage: outcomes.py FILE: the tests that failed, with the end of what they printed, and those that were skipped, with the
reasons, by what CTest wrote with --output-junit.

The skipped ones of GoogleTest and of Python's unittest say so themselves, also in programs that pass since their other tests ran.
"""

import ast
import re
import sys
import xml.etree.ElementTree

GOOGLETEST = re.compile(r"^.+:\d+: Skipped\n(?P<why>.*)\n(?:.*\n)*?\[  SKIPPED \] (?P<name>\S+)", re.MULTILINE)
TOLD = 20  # lines of a failed test's output
UNITTEST_NAME = re.compile(r"^ *(\w+) \(([\w.]+)\)")
UNITTEST_REASON = re.compile(r"""(?:^|\.\.\. )skipped ('.*'|".*")$""")
UNITTEST_COUNT = re.compile(r"^OK \(.*skipped=(\d+)", re.MULTILINE)


def of_unittest(output):
    """(name, reason) of each."""
    found = []
    name = ""
    for line in output.splitlines():
        if started := UNITTEST_NAME.match(line):
            whole_class = started[1] == "setUpClass"
            name = f"{started[2].rpartition('.')[2]}, all of it" if whole_class else started[1]
        if reason := UNITTEST_REASON.search(line):
            found.append((name, ast.literal_eval(reason[1]).splitlines()[0]))
    count = sum(map(int, UNITTEST_COUNT.findall(output)))
    if count > len(found):
        found.append((f"{count - len(found)} tests", "no reason shown; unittest needs verbosity=2"))
    return found


def of_case(case):
    """The same for one test of CTest's."""
    test, output = case.get("name"), case.findtext("system-out", "")
    inside = of_unittest(output)
    if inside:
        return [(f"{test} {name}", reason) for name, reason in inside]
    inside = [match["why"].strip() for match in GOOGLETEST.finditer(output)]
    if inside:
        return [(test, inside[0])]
    if case.get("status") == "disabled":
        return [(test, "CMake has switched it off")]
    skipped = case.find("skipped")
    if skipped is None:
        return []
    said = output.strip().splitlines()
    why = said[-1].removeprefix("skipped: ") if said else skipped.get("message", "")
    return [(test, why if why and not why.startswith("SKIP_") else "it does not say why")]


def print_failed(cases):
    for case in cases:
        if case.get("status") == "fail":
            print(f"  failed: {case.get('name')}")
            for line in case.findtext("system-out", "").strip().splitlines()[-TOLD:]:
                print(f"    | {line}")


def print_skipped(cases):
    by_reason = {}
    for case in cases:
        for name, reason in of_case(case):
            names = by_reason.setdefault(reason, [])
            if name not in names:
                names.append(name)
    for reason, names in by_reason.items():
        print(f"  skipped: {reason}")
        for name in names:
            print(f"    {name}")


cases = list(xml.etree.ElementTree.parse(sys.argv[1]).getroot().iter("testcase"))
print_failed(cases)
print_skipped(cases)
