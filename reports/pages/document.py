"""Fills the template of the page. All text is escaped; only the charts' SVG, which inline.py has checked, is not."""

import sys
from pathlib import Path

from plots.script import NotHere

def environment():
    try:
        import jinja2
    except ImportError as error:
        raise NotHere(f"install python3-jinja2 ({sys.executable} has no Jinja2: {error}), or name another Python in "
                      "POLYRING_PYTHON") from error
    return jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
                              loader=jinja2.FileSystemLoader(Path(__file__).parent))


def colours():
    """(name, by day, by night) of each colour of the charts that is another in the dark."""
    try:
        from plots import style
    except ImportError:  # no matplotlib, no charts
        return []
    return [(name_of(light), light, dark) for light, dark in style.IN_THE_DARK.items()]


def name_of(colour):
    return f"--c{colour[1:].lower()}"


def fill(content, draw_charts):
    """The page's text. `draw_charts`: called when it is certain that there can be a page."""
    template = environment().get_template("index.html.jinja")
    draw_charts()
    return template.render(content, colours=colours())
