"""Charts as SVG that can stand inside a page: they follow its colours and its font, and nothing in them can act."""

import io
import re
import xml.etree.ElementTree as ElementTree

from pages.document import name_of
from plots import style

SVG, XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
KEPT = {"svg", "g", "defs", "path", "use", "clipPath", "rect", "text", "tspan", "image"}
REFERENCE = re.compile(r"url\(#([^)]+)\)|^#(.+)$")
BROAD = 8  # inches; two pictures that are less wide may stand side by side
DECIMALS = re.compile(r"(\.\d\d)\d+")
FONT = re.compile(r"font: ?([^;]*?px) [^;]*")
COLOUR = re.compile(r"#[0-9a-f]{6}")


def drawings(prefix, chart, looks):
    """For wide and for narrow windows; a picture that has a size of its own is the same in both. `looks`: gets what the
    page's style must have, the name of the class of each text of a style."""
    from markupsafe import Markup
    label = f"{chart.title}. {chart.finding}"
    sheets = {"wide": style.PAGE} if chart.kind == "topology" else {"wide": style.PAGE, "narrow": style.PHONE}
    found, note = {}, ""
    for suffix, sheet in sheets.items():
        with style.drawn_for(sheet):
            figure = chart.draw()
            note = figure.get_label()
            found[suffix] = Markup(inline_svg(figure, f"{prefix}{suffix[0]}", label, looks))  # nosec: an XML serializer wrote it
    return {"drawings": found, "note": note, "broad": figure.get_figwidth() > BROAD}


def inline_svg(figure, prefix, label, looks):
    written = io.BytesIO()
    figure.savefig(written, format="svg", facecolor="none", metadata={"Date": None})
    root = ElementTree.fromstring(written.getvalue())
    width = float(root.get("viewBox").split()[2])
    strip(root)
    rename(root, prefix)
    flatten(root)
    for element in root.iter():
        element.tag = element.tag.removeprefix(SVG)
        for key, value in list(element.attrib.items()):
            element.set(key, shortened(key, value))
        if "style" in element.attrib:
            look = restyled(element.attrib.pop("style"))
            element.set("class", looks.setdefault(look, f"k{len(looks)}"))
        if element.get("transform", "").startswith("rotate(-0 "):
            del element.attrib["transform"]
    root.attrib = {"viewBox": root.get("viewBox"), "role": "img", "aria-label": label, "style": f"--width: {width:.0f}pt"}
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)


def strip(element):
    """Leaves out what a chart does not need, as links, styles and scripts; matplotlib writes none of the last."""
    for child in list(element):
        if child.tag.removeprefix(SVG) in KEPT:
            strip(child)
        else:
            element.remove(child)


def flatten(element):
    """Without groups that have no look, and without white space between elements: a third of the size."""
    children = []
    for child in element:
        flatten(child)
        children += list(child) if child.tag == f"{SVG}g" and not child.attrib else [child]
    for child in children:
        child.tail = None
    if children:
        element.text = None
    element[:] = children


def rename(root, prefix):
    """Names that are used get the prefix, as a page has many charts; others go."""
    used = {found[1] or found[2] for element in root.iter() for value in element.attrib.values()
            if (found := REFERENCE.search(value))}
    for element in root.iter():
        if element.get("id") in used:
            element.set("id", f"{prefix}-{element.get('id')}")
        else:
            element.attrib.pop("id", None)
        link = element.attrib.pop(f"{XLINK}href", "")
        if link.startswith("#"):
            element.set("href", f"#{prefix}-{link[1:]}")
        elif link.startswith("data:image/png;"):
            element.set("href", link)
        if "clip-path" in element.attrib:
            element.set("clip-path", element.get("clip-path").replace("url(#", f"url(#{prefix}-"))


def restyled(value):
    value = FONT.sub(r"font:\1 var(--chart-font)", DECIMALS.sub(r"\1", value)).replace("; ", ";").replace(": ", ":")
    return COLOUR.sub(lambda found: f"var({name_of(found[0])})" if found[0] in IN_THE_DARK else found[0], value)


def shortened(key, value):
    return value if key in ("id", "href", "clip-path", "style") else DECIMALS.sub(r"\1", value).replace("\n", "")


IN_THE_DARK = {colour.lower() for colour in style.IN_THE_DARK}
