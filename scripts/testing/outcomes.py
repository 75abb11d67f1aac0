"""Usage: outcomes.py PRESET OUTCOME FILE …: for each preset the tests that failed, with the end of what they printed, and those
that were skipped, with the reasons, by what CTest wrote into FILE with --output-junit. FILE may be missing.

The skipped ones of GoogleTest and of Python's unittest say so themselves, also in programs that pass since their other tests ran.

A test that the machine is too busy for is skipped with "inconclusive here: why". Exits with 1 when one says so that is not
labelled `machine` (FILE.machine names those that are), or when more than three do, in all presets.
"""

import ast
import pathlib
import re
import sys
import xml.etree.ElementTree

GOOGLETEST = re.compile(r"^.+:\d+: Skipped\n(?P<why>.*)\n(?:.*\n)*?\[  SKIPPED \] (?P<name>\S+)", re.MULTILINE)
TOLD = 20  # lines of a failed test's output
INCONCLUSIVE = "inconclusive here: "
MOST_INCONCLUSIVE = 3
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
    inside = [(match["name"], match["why"].strip()) for match in GOOGLETEST.finditer(output)]
    if inside:
        return inside
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
            print(f"    failed: {case.get('name')}")
            for line in case.findtext("system-out", "").strip().splitlines()[-TOLD:]:
                print(f"      | {line}")


def skipped_by_reason(cases):
    """{reason: names}, and as a second value those of CTest's tests that are inconclusive, once for each of their names."""
    by_reason = {}
    inconclusive = []
    for case in cases:
        for name, reason in of_case(case):
            names = by_reason.setdefault(reason, [])
            if name in names:
                continue
            names.append(name)
            if reason.startswith(INCONCLUSIVE):
                inconclusive.append(case.get("name"))
    return by_reason, inconclusive


def print_skipped(by_reason):
    for reason, names in by_reason.items():
        print(f"    {'' if reason.startswith(INCONCLUSIVE) else 'skipped: '}{reason}")
        for name in names:
            print(f"      {name}")


def print_preset(preset, outcome, path):
    """Returns how many tests are inconclusive, and those that may not be."""
    print(f"  {preset}: {outcome}")
    if not path.exists():
        return 0, []
    cases = list(xml.etree.ElementTree.parse(path).getroot().iter("testcase"))
    labelled = path.with_name(path.name + ".machine")
    may = labelled.read_text().split() if labelled.exists() else []
    by_reason, inconclusive = skipped_by_reason(cases)
    print_failed(cases)
    print_skipped(by_reason)
    return len(inconclusive), [name for name in inconclusive if name not in may]


def main(words):
    print("\nSummary")
    number = 0
    wrong = []
    for preset, outcome, file in zip(words[::3], words[1::3], words[2::3]):
        inconclusive, may_not = print_preset(preset, outcome, pathlib.Path(file))
        number += inconclusive
        wrong += may_not
    if wrong:
        print(f"  inconclusive, but not labelled `machine`: {', '.join(sorted(set(wrong)))}")
    if number > MOST_INCONCLUSIVE:
        print(f"  {number} tests are inconclusive, more than {MOST_INCONCLUSIVE}: run them on a machine with less to do")
    return 1 if wrong or number > MOST_INCONCLUSIVE else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
