"""Writes man pages from what `polyring --help` and `polyring SUBCOMMAND --help` say: polyring.1 and a page for each subcommand.

Usage: man_pages.py PROGRAM FOLDER

Prints the names of the files. What exit codes mean comes from the table in docs/measuring.md.
"""

import datetime
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENTRY = re.compile(r"^  (\S.*?)(?:  +(\S.*))?$")
DESCRIPTION = re.compile(r"^ {20,}(\S.*)$")
# NAME,…=[a,b] has a default, and KEY=RATE,… has none.
VALUE = re.compile(r"^(?P<type>(?:[^:=]|=(?=[^=]*…))+?)?(?::(?P<kind>[A-Z]+)(?: in \[(?P<least>\d+) - (?P<most>\d+)\])?)?"
                   r"(?:=(?P<default>[^…]*?))?(?P<more> \.\.\.)?$")
COLUMN = 28  # of descriptions, after the two spaces before each name
TAIL = re.compile(r" (?:Excludes|Needs): | REQUIRED")


def said(program, *words):
    ran = subprocess.run([program, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8", check=True,
                         env={**os.environ, "COLUMNS": "1000"}, timeout=60)
    return ran.stdout


def sections(text):
    """The lines before any title, and those below each title, such as "Options:"."""
    title, found = "", {"": []}
    for line in text.splitlines():
        if re.fullmatch(r"[A-Z]\w+:", line):
            title = line[:-1]
            found[title] = []
        elif line.strip():
            found[title].append(line)
    return found


def entries(lines):
    """Each option with its description."""
    found = []
    for line in lines:
        if below := DESCRIPTION.match(line):
            found[-1][1] = (found[-1][1] + " " + below[1]).strip()
        elif entry := ENTRY.match(line):
            found.append([entry[1], entry[2] or ""])
    for entry in found:
        if not entry[1]:  # what is left of the column just fits, so that one space is between them
            bytes_of = entry[0].encode()
            entry[:] = bytes_of[:COLUMN].decode().strip(), bytes_of[COLUMN:].decode().strip()
    return found


def roff(text):
    """Text as roff prints it in any locale: dashes that can be searched for, and no line that it takes for a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti").replace("…", "...")
    return "\\&" + text if text.startswith((".", "\\(aq")) else text


def sentence(text):
    return text if not text or text.endswith((".", "…")) else text + "."


def option(names, description):
    """One entry as roff; `names` is what --help shows of an option: its names, its value and its conditions."""
    head = TAIL.split(names)[0]
    conditions = dict(re.findall(r" (Excludes|Needs): ((?:--?\S+ ?)+)", names))
    word, _, rest = head.partition(" ")
    shown = ", ".join(f"\\fB{roff(name)}\\fR" for name in word.split(","))
    value = VALUE.match(rest)
    said_of_it = [sentence(description)]
    if value and rest:
        shown += f" \\fI{roff(value['type'])}\\fR" if value["type"] else ""
        shown += " ..." if value["more"] else ""
        if value["least"]:
            said_of_it.append(f"From {value['least']} to {value['most']}.")
        if value["default"]:
            said_of_it.append(f"Default: {value['default'].strip('[]')}.")
    elif rest:
        shown += f" {roff(rest)}"
    if " REQUIRED" in names:
        said_of_it.append("Must be given.")
    for condition, phrase in (("Needs", "Only with"), ("Excludes", "Not with")):
        if condition in conditions:
            said_of_it.append(f"{phrase} {', '.join(conditions[condition].split())}.")
    return f".TP\n{shown}\n{roff(' '.join(filter(None, said_of_it)))}\n"


def head(name, summary, usage, version, date):
    title = name.upper().replace("-", "\\-")
    synopsis = re.sub(r"^polyring\S*( [a-z-]+)?", lambda match: f"\\fB{roff(match[0])}\\fR", usage)
    synopsis = synopsis if synopsis.startswith("\\fB") else roff(synopsis)
    return (f'.TH "{title}" "1" "{date}" "{version}" "User Commands"\n.SH NAME\n{roff(name)} \\- {roff(summary)}\n'
            f".SH SYNOPSIS\n{synopsis}\n")


def example(lines):
    return ".SH EXAMPLES\n.nf\n" + "".join(roff(line.strip()) + "\n" for line in lines) + ".fi\n"


def exit_codes():
    rows = re.findall(r"^\| ([\d, ]+) \| (.+?) \|$", (ROOT / "docs/measuring.md").read_text(encoding="utf-8"), re.MULTILINE)
    plain = [(code, re.sub(r" ?\(\[.*?\)\)", "", meaning)) for code, meaning in rows]
    return ".SH EXIT STATUS\n" + "".join(f".TP\n{code}\n{roff(meaning)}\n" for code, meaning in plain)


def page(program, names, name, version, date):
    """The page of one subcommand, or with an empty name that of the program."""
    parts = sections(said(program, *([name] if name else []), "--help"))
    summary, usage = parts[""][0], parts[""][1].removeprefix("Usage: ")
    text = head(f"polyring-{name}" if name else "polyring", summary.removeprefix("Polyring ").rstrip("."), usage, version, date)
    if not name:
        text += (".SH DESCRIPTION\nEach subcommand has a page of its own, such as\n.BR polyring\\-probe (1).\n.SH SUBCOMMANDS\n" +
                 "".join(f".TP\n\\fB{roff(entry)}\\fR\n{roff(sentence(description))}\n"
                         for entry, description in entries(line for line in parts["Subcommands"] if line.startswith("  "))))
    for title, heading in (("Positionals", "ARGUMENTS"), ("Options", "OPTIONS")):
        if title in parts:
            text += f".SH {heading}\n" + "".join(option(*entry) for entry in entries(parts[title]))
    if "Example" in parts:
        text += example(parts["Example"])
    text += exit_codes()
    others = ["polyring"] if name else [f"polyring-{other}" for other in names]
    return text + ".SH SEE ALSO\n" + ",\n".join(f".BR {roff(other)} (1)" for other in others) + "\n"


def main(program, folder):
    folder = pathlib.Path(folder)
    names = [entry for entry, _ in entries(line for line in sections(said(program, "--help"))["Subcommands"] if line.startswith("  "))]
    version = " ".join(said(program, "--version").split()[:2])
    seconds = os.environ.get("SOURCE_DATE_EPOCH")  # so that a package is the same whenever it is built
    moment = datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc) if seconds else datetime.datetime.now()
    folder.mkdir(parents=True, exist_ok=True)
    for name in ["", *names]:
        path = folder / (f"polyring-{name}.1" if name else "polyring.1")
        path.write_text(page(program, names, name, version, f"{moment:%Y-%m-%d}"), encoding="utf-8")
        print(path.name)


if __name__ == "__main__":
    main(*sys.argv[1:])
