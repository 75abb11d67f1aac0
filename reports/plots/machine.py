"""A picture of the hosts of a probe: a panel for each kind of host, and the fabric between them.

Lengths are in inches and y grows downwards, as in machine_layout.py: a text that is measured to fit a box fits it.
"""

import math
from collections import defaultdict
from dataclasses import dataclass

from matplotlib import patheffects
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch, Rectangle
from matplotlib.path import Path

from plots import style
from plots.lettering import Line, clean, height_of, width_of_all, wrapped
from plots.machine_layout import MARGIN, HostLayout
from plots.probe import LINK_NAMES, agree, bandwidth_text, checked_probe, memory_text, three_digits

EDGE = 0.3           # around everything
INSIDE = 0.25        # from the outline of a host to its parts
LEAST_WIDTH = 6.8
CORNER = 0.12        # the radius of a wire's corners
BELOW = 0.12         # from the parts of a host to its outline
STUB = 0.24          # what leaves a host from a port
STRONG = 40          # GB/s; where no link has that much, none has the widest line
MOST_REMARKS = 6
MOST_LEAVES = 4      # that are drawn without pods
MOST_IN_POD = 2
MOST_PODS = 2
FRAME_FACE = "#F7F9FA"

FACES = {"packages": "#E8F1F8", "switches": "#EEF1F4", "gpus": "#E3F4EE", "nvswitches": "#CDEBDF",
         "nics": "#FDF3DC", "fabric": "white"}
EDGES = {"packages": style.BLUE, "switches": style.MUTED, "gpus": style.GREEN, "nvswitches": style.GREEN,
         "nics": "#A87400", "fabric": style.INK}


@dataclass(frozen=True)
class Kind:
    """How links of a kind are drawn: told apart in grey, too."""
    colour: str
    dashes: tuple = None
    double: bool = False


KINDS = {"nvlink": Kind(style.GREEN), "xgmi": Kind(style.ORANGE), "c2c": Kind("#A8508A", double=True),
         "pcie": Kind("#3A4652"), "socket-bus": Kind(style.BLUE, (0, (3, 1))), "memory": Kind(style.MUTED, (0, (1, 1))),
         "uplink": Kind(style.INK), "pod-uplink": Kind(style.INK, double=True)}
NAMES = {**LINK_NAMES, "uplink": "uplinks of a leaf switch", "pod-uplink": "uplinks of a pod"}
UNKNOWN = (0, (1, 1.6))  # the dashes of a link of unknown bandwidth


def key_of(link):
    return link["kind"], link["GBps"] or 0


class Canvas:
    """Draws onto a figure, `strongest` (GB/s) with the widest line."""

    def __init__(self, width, height, strongest):
        style.use_style()
        self.figure = Figure(figsize=(width, height))
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set_axis_off()
        self.axes.set_xlim(0, width)
        self.axes.set_ylim(height, 0)
        self.strongest = strongest

    def text(self, x, y, line, align="left"):
        """`y` is the line's upper edge."""
        self.axes.text(x, y + line.height / 2, line.text, fontsize=line.size, color=line.colour, ha=align,
                       fontweight="bold" if line.bold else "normal", va="center_baseline", parse_math=False, zorder=6)

    def lines(self, x, y, lines, align="left"):
        for line in lines:
            self.text(x, y, line, align)
            y += line.height

    def box(self, box, x, y, behind=False):
        """A box of the layout, moved by x and y."""
        left, top = x + box.x, y + box.y
        self.axes.add_patch(FancyBboxPatch(
            (left, top), box.width, box.height, boxstyle="round,pad=0,rounding_size=0.06", facecolor=FACES[box.kind],
            edgecolor=style.VERMILION if box.down else EDGES[box.kind], linewidth=1.5 if box.down else 1,
            linestyle=(0, (3, 2)) if box.down else "solid", zorder=1 if behind else 5))
        text = top + (box.height - box.needed_height + MARGIN) / 2
        self.lines(x + box.text_x, text, box.lines, "center")
        if box.memory:
            width, height = width_of_all(box.memory) + 2 * MARGIN, height_of(box.memory) + MARGIN / 2
            text += height_of(box.lines) + MARGIN * 3 / 4
            self.axes.add_patch(Rectangle((left + (box.width - width) / 2, text - MARGIN / 4), width, height, zorder=5,
                                          facecolor="white", edgecolor=EDGES[box.kind], linewidth=0.7))
            self.lines(left + box.width / 2, text, box.memory, "center")

    def outline(self, x, y, width, height, face="white"):
        self.axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=0.1", zorder=0,
                                           facecolor=face, edgecolor="#B6C0CA", linewidth=1))

    def line_width(self, gigabytes_per_second):
        """In points; the more, the wider."""
        if not gigabytes_per_second:
            return 1.1
        return 0.9 + 3.3 * (gigabytes_per_second / self.strongest) ** 0.7

    def wire(self, link, points, on_top=False):
        kind, bandwidth = KINDS[link["kind"]], link["GBps"]
        width = self.line_width(bandwidth)
        dashes = (kind.dashes or "solid") if bandwidth else UNKNOWN
        layer = 3 if on_top else 2
        halo = [patheffects.withStroke(linewidth=width + 3, foreground="white")] if on_top else []
        self.stroke(points, kind.colour, width, dashes, layer, halo)
        if kind.double and bandwidth:
            self.stroke(points, "white", width * 0.35, "solid", layer, [])

    def stroke(self, points, colour, width, dashes, layer, effects):
        self.axes.add_patch(PathPatch(rounded(points), facecolor="none", edgecolor=colour, linewidth=width,
                                      linestyle=dashes, capstyle="butt", zorder=layer, path_effects=effects))

    def port(self, port, x, y):
        """An arrow out of the host, or a cross where the port is down."""
        x, y = x + port.x, y + port.y
        if port.up:
            self.stroke([(x, y), (x, y + STUB)], style.INK, 1.2, "solid", 4, [])
            head = Path([(x - 0.05, y + STUB - 0.06), (x + 0.05, y + STUB - 0.06), (x, y + STUB + 0.02)], closed=False)
            self.axes.add_patch(PathPatch(head, facecolor=style.INK, edgecolor="none", zorder=4))
            return
        middle, arm = y + STUB / 2 + 0.02, 0.055
        for slope in (-1, 1):
            self.stroke([(x - arm, middle - slope * arm), (x + arm, middle + slope * arm)], style.VERMILION, 1.8, "solid",
                        4, [])


def rounded(points):
    """A path through the points with round corners."""
    vertices, codes = [points[0]], [Path.MOVETO]
    for before, corner, after in zip(points, points[1:], points[2:]):
        lengths = [math.dist(corner, other) for other in (before, after)]
        radius = min(CORNER, *(length / 2 for length in lengths))
        into, out = (tuple(corner[axis] + (other[axis] - corner[axis]) * radius / length for axis in (0, 1)) if length
                     else corner for other, length in zip((before, after), lengths))
        vertices += [into, corner, out]
        codes += [Path.LINETO, Path.CURVE3, Path.CURVE3]
    return Path([*vertices, points[-1]], [*codes, Path.LINETO])


# --- what is written


def several(count, word):
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def parts_lines(host):
    """What all GPUs, and all NICs, of a host have in common."""
    lines = []
    gpus, nics = host["gpus"], host["nics"]
    if gpus and agree(gpus, ["model"]) and gpus[0].get("model"):
        memory = memory_text(gpus[0]) if agree(gpus, ["memory_bytes", "memory_GBps"]) else ""
        lines.append(f"{several(len(gpus), 'GPU')}: {gpus[0]['model']}{f', {memory}' if memory else ''}")
    if nics and agree(nics, ["model", "kind"]):
        model = f"{nics[0]['model']}, " if nics[0].get("model") else ""
        kind = {"infiniband": "InfiniBand", "ethernet": "Ethernet"}.get(nics[0]["kind"], "link layer unknown")
        lines.append(f"{several(len(nics), 'NIC')}: {model}{kind}")
    return lines


def heading(host, name, width):
    """The lines above a host; `name` is empty where the picture's title says it already."""
    title = " — ".join(text for text in (name, clean(host.get("model"))) if text)
    lines = wrapped(title, width, size=10.5, bold=True)
    lines += [line for text in parts_lines(host) for line in wrapped(text, width, size=9)]
    return lines + remark_lines(host, width)


def remark_lines(host, width):
    remarks = host.get("remarks", [])
    shown = [line for remark in remarks[:MOST_REMARKS]
             for line in wrapped(f"! {remark}", width, size=8.5, colour=style.VERMILION)]
    more = len(remarks) - MOST_REMARKS
    return shown + ([Line(f"… and {more} more", 8.5, colour=style.VERMILION)] if more > 0 else [])


def count_text(host):
    return clean(host["name"]) + (f" × {host['count']}" if host["count"] > 1 else "")


def title_text(probe):
    hosts = probe["hosts"]
    if len(hosts) == 1:
        return count_text(hosts[0])
    total = sum(host["count"] for host in hosts)
    gpus = sum(host["count"] * len(host["gpus"]) for host in hosts)
    return f"{clean(probe['name'])}: {several(total, 'host')}, {several(gpus, 'GPU')}"


def time_text(microseconds):
    if microseconds < 1:
        return f"{three_digits(microseconds * 1000)} ns"
    return f"{three_digits(microseconds)} µs"


# --- the pieces of the picture


@dataclass
class Panel:
    host: dict
    layout: HostLayout
    heading: list

    @property
    def height(self):
        return INSIDE + height_of(self.heading) + 0.15 + self.layout.height + BELOW

    def draw(self, canvas, y, width):
        canvas.outline(EDGE, y, width, self.height)
        canvas.lines(EDGE + INSIDE, y + INSIDE / 2, self.heading)
        x = EDGE + (width - self.layout.width) / 2
        y += INSIDE + height_of(self.heading) + 0.15
        for wire in self.layout.wires:
            canvas.wire(wire.link, [(x + px, y + py) for px, py in wire.points], wire.on_top)
        for box in self.layout.boxes.values():
            canvas.box(box, x, y, behind=box.kind == "nvswitches")
        for port in self.layout.ports:
            canvas.port(port, x, y)


class Legend:
    """What the wires are: entries side by side, as many as fit on a line."""
    SAMPLE, BETWEEN, HEIGHT = 0.45, 0.3, 0.24

    def __init__(self, links, width):
        keys = sorted({key_of(link) for link in links}, key=lambda key: (list(KINDS).index(key[0]), -key[1]))
        self.entries = [({"kind": kind, "GBps": speed}, Line(self.label(kind, speed), 9)) for kind, speed in keys]
        self.rows, used = [], width
        for entry in self.entries:
            length = self.SAMPLE + 0.1 + entry[1].width + self.BETWEEN
            if used + length > width:
                self.rows.append([])
                used = 0
            self.rows[-1].append((used, entry))
            used += length
        self.height = self.HEIGHT * len(self.rows)

    @staticmethod
    def label(kind, speed):
        return f"{NAMES[kind]} {bandwidth_text(speed)}" if speed else f"{NAMES[kind]}, bandwidth unknown"

    def draw(self, canvas, y):
        for row in self.rows:
            for x, (link, line) in row:
                canvas.wire(link, [(EDGE + x, y + self.HEIGHT / 2), (EDGE + x + self.SAMPLE, y + self.HEIGHT / 2)])
                canvas.text(EDGE + x + self.SAMPLE + 0.1, y + (self.HEIGHT - line.height) / 2, line)
            y += self.HEIGHT


def ends_of(items, most):
    """The first of so many items and the last, with None for those between; all where there are no more."""
    return items if len(items) <= most else [*items[:most - 1], None, items[-1]]


class FabricStrip:
    """The leaf switches, a frame around those of each pod, and the spine, small; nothing where no leaves are known."""
    LEAF_WIDTH, HEIGHT, RISE, BETWEEN, FRAME, DOTS = 0.8, 0.26, 0.24, 0.25, 0.12, 0.3

    def __init__(self, probe, width):
        fabric = probe["fabric"]
        per_leaf = fabric["hosts_per_leaf"]
        hosts = sum(host["count"] for host in probe["hosts"])
        leaves = -(-hosts // per_leaf) if per_leaf else 0
        pods = fabric.get("pods", []) if leaves else []
        self.link = {"kind": "uplink", "GBps": fabric["leaf_uplink_GBps"]}
        self.pod_link = {"kind": "pod-uplink", "GBps": pods[0]["uplink_GBps"]} if pods else None
        self.pods = self.shown(leaves, max(1, pods[0]["hosts"] // per_leaf) if pods else 0)
        above = "the pod" if pods else "the spine"
        blocking = (f"{bandwidth_text(self.link['GBps'])} from each leaf to {above}" if self.link["GBps"]
                    else f"{above} blocks nothing")
        text = (f"Fabric: leaf switches of {several(per_leaf, 'host')}, {blocking}"
                f"{''.join(self.pod_text(pod) for pod in pods)}; {self.latency_text(fabric)}")
        self.lines = wrapped(text, width - 2 * INSIDE, size=9) if leaves else []

    @staticmethod
    def latency_text(fabric):
        if not fabric["latency_us"]:
            return "latency unknown, taken as 0"
        more = f", {time_text(fabric['spine_latency_us'])} more over the spine" if fabric["spine_latency_us"] else ""
        return f"{time_text(fabric['latency_us'])} from NIC to NIC{more}"

    @staticmethod
    def pod_text(pod):
        up = f"{bandwidth_text(pod['uplink_GBps'])} up" if pod["uplink_GBps"] else "uplinks that block nothing"
        return f", pods of {several(pod['hosts'], 'host')} with {up}"

    @staticmethod
    def shown(leaves, per_pod):
        """The numbers of the leaves in each pod that there is room for, None for those between; of the spine itself,
        where there are no pods."""
        if not per_pod:
            return [(0, ends_of(list(range(1, leaves + 1)), MOST_LEAVES))]
        pods = [(first // per_pod + 1, ends_of(list(range(first + 1, min(first + per_pod, leaves) + 1)), MOST_IN_POD))
                for first in range(0, leaves, per_pod)]
        return ends_of(pods, MOST_PODS)

    @property
    def text_height(self):
        return INSIDE + height_of(self.lines) + 0.1

    @property
    def pods_height(self):
        """Of what is above the spine."""
        return 2 * (self.HEIGHT + self.FRAME) + self.RISE if self.pod_link else self.HEIGHT

    @property
    def height(self):
        return self.text_height + self.pods_height + self.RISE + self.HEIGHT + INSIDE if self.lines else 0

    def links(self):
        return [link for link in (self.link, self.pod_link) if self.lines and link and link["GBps"]]

    def draw(self, canvas, y, width):
        if not self.lines:
            return
        canvas.outline(EDGE, y, width, self.height)
        canvas.lines(EDGE + INSIDE, y + INSIDE / 2, self.lines)
        y += self.text_height
        spine_y = y + self.pods_height + self.RISE
        widths = [self.DOTS if pod is None else self.pod_width(pod[1]) for pod in self.pods]
        total = sum(widths) + self.BETWEEN * (len(widths) - 1)
        left = x = EDGE + (width - total) / 2
        for pod, wide in zip(self.pods, widths):
            if pod is None:
                self.dots(canvas, x, y + self.FRAME)
            elif self.pod_link:
                self.draw_pod(canvas, pod, (x, y), wide, spine_y)
            else:
                self.draw_leaves(canvas, pod[1], x, y, spine_y)
            x += wide + self.BETWEEN
        self.switch(canvas, left, spine_y, total, "spine")

    def pod_width(self, leaves):
        wide = sum(self.DOTS if leaf is None else self.LEAF_WIDTH for leaf in leaves)
        return wide + self.BETWEEN * (len(leaves) - 1) + (2 * self.FRAME if self.pod_link else 0)

    def draw_pod(self, canvas, pod, corner, wide, spine_y):
        """A frame around its leaves and the switches above them, which are drawn as one."""
        (number, leaves), (x, y) = pod, corner
        switches_y = y + self.pods_height - self.FRAME - self.HEIGHT
        canvas.outline(x, y, wide, self.pods_height, FRAME_FACE)
        self.draw_leaves(canvas, leaves, x + self.FRAME, y + self.FRAME, switches_y)
        self.switch(canvas, x + self.FRAME, switches_y, wide - 2 * self.FRAME, f"pod {number}")
        self.uplink(canvas, self.pod_link, x + wide / 2, switches_y + self.HEIGHT, spine_y)

    def draw_leaves(self, canvas, leaves, x, y, above_y):
        for leaf in leaves:
            if leaf is None:
                self.dots(canvas, x, y)
                x += self.DOTS + self.BETWEEN
                continue
            self.switch(canvas, x, y, self.LEAF_WIDTH, f"leaf {leaf}")
            self.uplink(canvas, self.link, x + self.LEAF_WIDTH / 2, y + self.HEIGHT, above_y)
            x += self.LEAF_WIDTH + self.BETWEEN

    @staticmethod
    def uplink(canvas, link, x, y, end_y):
        if link["GBps"]:
            canvas.wire(link, [(x, y), (x, end_y)])
        else:  # blocks nothing, which is not unknown
            canvas.stroke([(x, y), (x, end_y)], KINDS[link["kind"]].colour, canvas.line_width(None), "solid", 2, [])

    def dots(self, canvas, x, y):
        line = Line("…", 9, bold=True)
        canvas.text(x + self.DOTS / 2, y + (self.HEIGHT - line.height) / 2, line, "center")

    def switch(self, canvas, x, y, width, name):
        canvas.axes.add_patch(Rectangle((x, y), width, self.HEIGHT, facecolor="white", edgecolor=style.INK,
                                        linewidth=1, zorder=5))
        line = Line(name, 9, bold=True)
        canvas.text(x + width / 2, y + (self.HEIGHT - line.height) / 2, line, "center")


def varied_kinds(probe):
    """The kinds of links that have several bandwidths."""
    speeds = defaultdict(set)
    for host in probe["hosts"]:
        for link in host["links"]:
            speeds[link["kind"]].add(link["GBps"])
    return {kind for kind, found in speeds.items() if len(found) > 1}


def finding(probe):
    words = {"packages": "package", "gpus": "GPU", "nics": "NIC"}
    hosts = [f"{count_text(host)}: {', '.join(several(len(host[key]), word) for key, word in words.items() if host[key])}"
             for host in probe["hosts"]]
    return f"{'; '.join(hosts[:4])}{' …' if len(hosts) > 4 else ''}."


def chart(path, probe, source):
    probe = checked_probe(path, probe)
    return style.Chart("topology", title_text(probe), finding(probe), lambda: draw(probe, source))


def draw(probe, source):
    """The figure of a document that read_probe() has read; `source` says where its hosts were read."""
    varied = varied_kinds(probe)
    layouts = [HostLayout(host, varied) for host in probe["hosts"]]
    title = Line(title_text(probe) if style.sheet.framed else "", 14 if style.sheet.framed else 1, bold=True)
    width = max([LEAST_WIDTH, title.width, *(layout.width + 2 * INSIDE for layout in layouts)])
    fabric = FabricStrip(probe, width)
    panels = [Panel(host, layout, heading(host, count_text(host) if len(layouts) > 1 else "", width - 2 * INSIDE))
              for host, layout in zip(probe["hosts"], layouts)]
    links = [link for host in probe["hosts"] for link in host["links"]] + fabric.links()
    legend = Legend(links, width)
    said = f"Source: {source}.  Bandwidths are those of one direction; wider lines carry more."
    foot = wrapped(said, width, size=7.5, colour=style.MUTED) if style.sheet.framed else []

    blocks = [panel for panel in panels] + ([fabric] if fabric.height else [])
    between = 0.18 + STUB  # ports reach out of a host
    height = (2 * EDGE + title.height + 0.08 + legend.height + 0.1 + sum(block.height + between for block in blocks) +
              height_of(foot))
    canvas = Canvas(width + 2 * EDGE, height, max([STRONG, *(link["GBps"] or 0 for link in links)]))
    canvas.text(EDGE, EDGE, title)
    y = EDGE + title.height + 0.08
    legend.draw(canvas, y)
    y += legend.height + 0.1
    for block in blocks:
        block.draw(canvas, y, width)
        y += block.height + between
    canvas.lines(EDGE, y, foot)
    canvas.figure.set_label(said.rstrip("."))
    return canvas.figure
