"""Lines of text whose width is known before anything is drawn. Lengths are in inches, sizes in points."""

from dataclasses import dataclass
from functools import lru_cache

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

from plots import style

LEADING = 1.32  # from line to line, in sizes


@dataclass(frozen=True)
class Line:
    text: str
    size: float = 8
    bold: bool = False
    colour: str = style.INK

    @property
    def width(self):
        return width_of(self.text, self.size, self.bold)

    @property
    def height(self):
        return self.size * LEADING / 72


@lru_cache(maxsize=None)
def width_of(text, size, bold):
    font = FontProperties(family=style.FONT, size=size, weight="bold" if bold else "normal")
    return TextToPath().get_text_width_height_descent(text, font, ismath=False)[0] / 72


def clean(text):
    """Without what no font and no SVG has: names come from files and firmware."""
    return "".join(letter if letter.isprintable() else " " for letter in text or "").strip()


def wrapped(text, width, **options):
    """Lines of at most `width`, broken between words, and within words that are longer than a line."""
    lines = []
    for word in clean(text).split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and Line(longer, **options).width <= width:
            lines[-1] = longer
            continue
        while Line(word, **options).width > width and len(word) > 1:
            fits = max(1, *(end for end in range(1, len(word)) if Line(word[:end], **options).width <= width), 1)
            lines.append(word[:fits])
            word = word[fits:]
        lines.append(word)
    return [Line(line, **options) for line in lines]


def fitted(text, width, size, least):
    """A bold line as large as fits into `width`, up to `size`; what is too long even at the `least` size is cut."""
    text = clean(text)
    line = Line(text, min(size, max(least, size * width / max(Line(text, size, bold=True).width, 1e-9))), bold=True)
    while line.width > width and len(text) > 1:
        text = text[:min(len(text) - 1, int(len(text) * width / line.width))]
        line = Line(f"{text.rstrip()}…", least, bold=True)
    return line


def height_of(lines):
    return sum(line.height for line in lines)


def width_of_all(lines):
    return max((line.width for line in lines), default=0)
