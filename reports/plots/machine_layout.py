"""Where the parts of a host are drawn, in inches from its upper left corner; y grows downwards.

    packages        ┌────── package0 ──────┐══════╗      A package is as wide as what hangs under it, and so is a
    switches        ├─ switch0 ─┬─ switch1 ┤             PCIe switch: what hangs there is reached straight down.
    GPUs            gpu0 │ gpu1   gpu2  gpu3             Wires to NICs pass between the GPUs.
    links of GPUs    └───┼──┘      └─────┘               Each has a track of its own wherever it would meet another.
    NVSwitches      ═════╪═════════════════
    NICs               mlx5_0
"""

from collections import defaultdict
from dataclasses import dataclass, field

from plots import style
from plots.lettering import Line, clean, height_of, width_of_all, wrapped
from plots.probe import DEVICES, LINK_NAMES, agree, bandwidth_text, memory_text, other_end, parents_of

GAP = 0.14      # between boxes of a row
MARGIN = 0.12   # from the edge of a box to its text, and to what hangs under it
BLOCKS = 0.22   # between what hangs under two switches
CHANNEL = 0.15  # between a GPU and the wires that pass beside it
LANE = 0.26     # between these wires, so that two of them meet two NICs
TRACK = 0.13    # between links of GPUs
STEP = 0.09     # between wires that turn side by side
ROW = 0.32      # between rows
SOCKETS = 0.75  # between packages
LEAST_PACKAGE, LEAST_BOX, WIDEST_TEXT = 2.3, 0.88, 1.25
BAR = 0.32      # the height of an NVSwitch

ROWS = {"packages": 0, "switches": 1, "gpus": 2, "nvswitches": 3, "nics": 4}


@dataclass(eq=False)
class Box:
    kind: str
    name: str
    lines: list
    memory: list = field(default_factory=list)  # lines in a box of their own, below
    down: bool = False
    x: float = 0
    y: float = 0
    width: float = 0
    height: float = 0

    @property
    def right(self):
        return self.x + self.width

    @property
    def bottom(self):
        return self.y + self.height

    @property
    def centre(self):
        return self.x + self.width / 2

    @property
    def needed_height(self):
        return height_of(self.lines) + MARGIN + (height_of(self.memory) + MARGIN if self.memory else 0)

    @property
    def text_x(self):
        """The middle of the text. On an NVSwitch, which wires to NICs cross, it stands below the first GPU."""
        return self.x + min(self.width, LEAST_BOX) / 2 if self.kind == "nvswitches" else self.centre

    def spans(self, x):
        return self.x + 0.05 <= x <= self.right - 0.05


@dataclass
class Wire:
    link: dict
    points: list
    on_top: bool = False  # of others that it crosses


@dataclass
class Port:
    """Where a port leaves the host, at the lower edge of its NIC."""
    x: float
    y: float
    up: bool


@dataclass(eq=False)
class Node:
    """A package or a switch and what hangs under it; without a box: what no single package holds."""
    box: Box = None
    depth: int = 0
    nodes: list = field(default_factory=list)
    gpus: list = field(default_factory=list)
    nics: list = field(default_factory=list)


def name_line(name):
    return Line(clean(name), 9.5, bold=True)


def details(device, shown, speed):
    """The lines below a device's name; `shown` are those of its keys that need saying."""
    texts = [str(device[key]) for key in shown if device.get(key)]
    texts += [] if device.get("package_known", True) else ["package ?"]
    lines = [line for text in texts for line in wrapped(text, WIDEST_TEXT)]
    return lines + ([Line(speed, colour=style.MUTED)] if speed else [])


def package_lines(package, width):
    cores = package.get("cores")  # none where they are unknown, or 0 in older files
    counts = [f"{cores} core{'' if cores == 1 else 's'}"] if cores else []
    counts += [f"NUMA {','.join(map(str, package['numa']))}"] if package.get("numa") else []
    texts = [package.get("model") or "", ", ".join(counts)]
    return [name_line(package["name"])] + [line for text in texts for line in wrapped(text, width - 2 * MARGIN)]


def port_lines(nic, named):
    """`named`: a single port is called so, since another bandwidth stands beside it."""
    if not nic["ports"]:
        return [Line("ports ?")]
    lines = []
    for port in nic["ports"]:
        number = f"port {port['number']}: " if len(nic["ports"]) > 1 else "port: " if named else ""
        state = bandwidth_text(port["GBps"]) if port["up"] else "DOWN"
        lines.append(Line(number + state, bold=not port["up"], colour=style.INK if port["up"] else style.VERMILION))
    return lines


def row_width(boxes):
    return sum(box.width for box in boxes) + GAP * max(0, len(boxes) - 1)


class HostLayout:
    """`varied`: the kinds of links that have several bandwidths; a device says what it hangs on with such a one."""

    def __init__(self, host, varied):
        self.host, self.kinds, self.varied = host, host["kinds"], varied
        self.parents = parents_of(host)
        self.wires, self.ports = [], []
        self.sort_links()
        self.boxes = {box.name: box for box in self.make_boxes()}
        self.entries = {}  # where the wires to a device end on its upper edge
        self.place_columns()
        self.place_rows()
        self.draw_wires()

    # --- what there is

    def depth(self, device):
        above = self.parents.get(device)
        return 1 + self.depth(above[0]) if above else 0

    def sort_links(self):
        """Links by what they are in the picture; of a link that hangs, the upper end and the link by the lower end."""
        self.buses, self.of_gpus, self.others = [], [], []
        self.hanging = defaultdict(list)
        for link in self.host["links"]:
            upper, lower = sorted((link["from"], link["to"]), key=lambda end: (ROWS[self.kinds[end]], self.depth(end)))
            kinds = (self.kinds[upper], self.kinds[lower])
            if kinds == ("packages", "packages"):
                self.buses.append(link)
            elif kinds[0] in ("packages", "switches") and kinds[1] in DEVICES[1:]:
                self.hanging[lower].append((upper, link))
            elif kinds in (("gpus", "gpus"), ("gpus", "nvswitches")):
                self.of_gpus.append(link)
            else:
                self.others.append(link)

    def speed_text(self, device):
        """`PCIe 7.88 GB/s`, where not all links of that kind are equal."""
        speeds = {f"{LINK_NAMES[link['kind']]} {bandwidth_text(link['GBps'])}": None
                  for _, link in self.hanging[device] if link["kind"] in self.varied}
        return ", ".join(speeds)

    def sharing(self, device):
        """`one link with mlx5_1`, of functions of one device."""
        others = {clean(other) for _, link in self.hanging[device] for other in link.get("shared_with", [])}
        return [Line(f"one link with {', '.join(sorted(others))}", colour=style.MUTED)] if others else []

    def make_boxes(self):
        boxes = [Box("packages", package["name"], []) for package in self.host["packages"]]
        for switch in self.host["switches"]:
            lines = [name_line(switch["name"]), *details(switch, ["pci"], self.speed_text(switch["name"]))]
            boxes.append(Box("switches", switch["name"], lines))
        gpu_keys = ["pci"] if agree(self.host["gpus"], ["model"]) else ["model", "pci"]
        for gpu in self.host["gpus"]:
            lines = [name_line(gpu["name"]), *details(gpu, gpu_keys, self.speed_text(gpu["name"]))]
            boxes.append(Box("gpus", gpu["name"], lines))
        nic_keys = ["pci"] if agree(self.host["nics"], ["model", "kind"]) else ["model", "kind", "pci"]
        for nic in self.host["nics"]:
            speed = self.speed_text(nic["name"])
            lines = [name_line(nic["name"]), *details(nic, nic_keys, speed), *self.sharing(nic["name"]),
                     *port_lines(nic, named=bool(speed))]
            down = bool(nic["ports"]) and not any(port["up"] for port in nic["ports"])
            boxes.append(Box("nics", nic["name"], lines, down=down))
        for name, kind in self.kinds.items():
            if kind == "nvswitches":
                boxes.append(Box(kind, name, [name_line(name)]))
        self.equalise(boxes)
        return boxes

    def equalise(self, boxes):
        """Boxes of a kind are of one size; packages get theirs when it is known what hangs under them."""
        for kind in ("switches", "gpus", "nics"):
            alike_boxes = [box for box in boxes if box.kind == kind]
            for box in alike_boxes:
                box.width = max(LEAST_BOX, max(width_of_all(each.lines) for each in alike_boxes) + 2 * MARGIN)
                box.height = max(each.needed_height for each in alike_boxes)

    def of_kind(self, kind):
        return [box for box in self.boxes.values() if box.kind == kind]

    # --- columns

    def node_of(self, box, depth, names):
        node = Node(box, depth)
        for name in names:
            if self.kinds[name] == "switches":
                node.nodes.append(self.node_of(self.boxes[name], depth + 1, self.children(name)))
            else:
                (node.gpus if self.kinds[name] == "gpus" else node.nics).append(self.boxes[name])
        return node

    def children(self, parent):
        return [name for name, kind in self.kinds.items()
                if kind in DEVICES[1:] and self.parents.get(name) == [parent]]

    def place_columns(self):
        """Packages side by side; in their middle what no single one of them holds."""
        roots = [self.node_of(self.boxes[package["name"]], 0, self.children(package["name"]))
                 for package in self.host["packages"]]
        unowned = [name for name, kind in self.kinds.items()
                   if kind in DEVICES[1:] and len(self.parents.get(name, [])) != 1]
        if unowned:
            roots.insert((len(roots) + 1) // 2, self.node_of(None, 0, unowned))
        self.leaves = []
        self.width = 0
        for previous, root in zip([None, *roots], roots):
            if previous:
                self.width += SOCKETS if previous.box and root.box else SOCKETS / 2
            self.place(root, self.width)
            self.width += self.node_width(root)
        self.packages = [root.box for root in roots if root.box]
        for package, box in zip(self.host["packages"], self.packages):
            box.lines = package_lines(package, box.width)
            memory = memory_text(package)
            box.memory = wrapped(f"memory {memory}", box.width - 4 * MARGIN) if memory else []
        for box in self.packages:
            box.height = max(each.needed_height for each in self.packages)
        self.place_entries()

    def channel(self, node):
        """The width of the gap between GPUs through which wires to NICs pass."""
        wires = sum(len(self.hanging[nic.name]) for nic in node.nics)
        return 2 * CHANNEL + LANE * (wires - 1) if node.gpus and wires else 0

    def gpu_row(self, node):
        channel = self.channel(node)
        return row_width(node.gpus) + (channel - GAP * (len(node.gpus) > 1) if channel else 0)

    def leaf_width(self, node):
        return max(self.gpu_row(node), row_width(node.nics))

    def content_width(self, node):
        widths = [self.node_width(below) for below in node.nodes]
        widths += [self.leaf_width(node)] if node.gpus or node.nics else []
        return sum(widths) + BLOCKS * max(0, len(widths) - 1)

    def node_width(self, node):
        content = self.content_width(node)
        if not node.box:
            return content
        least = LEAST_PACKAGE if node.depth == 0 else node.box.width
        return max(least, content + 2 * MARGIN)

    def place(self, node, x):
        width = self.node_width(node)
        inside = x + (width - self.content_width(node)) / 2
        for below in node.nodes:
            self.place(below, inside)
            inside += self.node_width(below) + BLOCKS
        self.place_leaf(node, inside)
        if node.box:
            node.box.x, node.box.width = x, width

    def place_leaf(self, node, left):
        self.leaves.append(node)
        channel, width = self.channel(node), self.leaf_width(node)
        x = left + (width - self.gpu_row(node)) / 2
        middle = left + width / 2
        for index, gpu in enumerate(node.gpus):
            gpu.x = x
            x = gpu.right + GAP
            if channel and index == (len(node.gpus) - 1) // 2:
                middle = gpu.right + channel / 2
                x = gpu.right + channel
        row = row_width(node.nics)
        x = min(max(middle - row / 2, left), left + width - row)
        for nic in node.nics:
            nic.x = x
            x = nic.right + GAP
        self.place_channel(node, middle)

    def place_channel(self, node, middle):
        wires = [(nic, index) for nic in node.nics for index in range(len(self.hanging[nic.name]))]
        for place, (nic, index) in enumerate(wires):
            if node.gpus:
                self.entries[nic.name, index] = middle + (place - (len(wires) - 1) / 2) * LANE
            else:
                self.entries[nic.name, index] = nic.x + nic.width * (index + 1) / (len(self.hanging[nic.name]) + 1)

    def place_entries(self):
        """Of GPUs and switches; from then on it is known which wires must go sideways to what hangs there."""
        for name, above in self.hanging.items():
            box = self.boxes[name]
            for index in range(len(above)):
                if box.kind != "nics":
                    self.entries[name, index] = box.x + box.width * (index + 1) / (len(above) + 1)
        self.sideways = [(name, index) for name, above in self.hanging.items() for index, (upper, _) in enumerate(above)
                         if not self.boxes[upper].spans(self.entries[name, index])]

    # --- rows

    def place_rows(self):
        """Sets the y of all boxes, and how far down the host reaches."""
        self.far_buses = [index for index, link in enumerate(self.buses) if not self.adjacent(link)]
        gap = ROW + STEP * len(self.sideways)
        y = 2 * STEP * len(self.far_buses)
        rows = [self.packages]
        switches = self.of_kind("switches")
        depths = sorted({self.depth(box.name) for box in switches})
        rows += [[box for box in switches if self.depth(box.name) == depth] for depth in depths]
        for row in [*rows, self.of_kind("gpus")]:
            for box in row:
                box.y = y
            y += max(box.height for box in row) + gap if row else 0
        self.assign_tracks()
        y = self.place_bars(y - gap + (TRACK * (self.tracks + 1) if self.tracks else 0))
        nics = self.of_kind("nics")
        y += max(ROW, STEP * (1 + max(len(self.turning(leaf)) for leaf in self.leaves))) if nics else 0
        for box in nics:
            box.y = y
        self.height = max(box.bottom for box in self.boxes.values())

    def place_bars(self, y):
        for bar in self.of_kind("nvswitches"):
            joined = [self.boxes[other_end(link, bar.name)] for link in self.of_gpus
                      if bar.name in (link["from"], link["to"])] or self.of_kind("gpus")
            bar.x = min((gpu.x for gpu in joined), default=0)
            bar.width = max((gpu.right for gpu in joined), default=LEAST_BOX) - bar.x
            bar.y, bar.height = y + ROW, BAR
            y = bar.bottom
        return y

    def adjacent(self, link):
        first, second = sorted((self.packages.index(self.boxes[link[end]]) for end in ("from", "to")))
        return second - first == 1

    def turning(self, leaf):
        """The wires of a leaf that must turn to meet their NIC."""
        return [(nic.name, index) for nic in leaf.nics for index in range(len(self.hanging[nic.name]))
                if not nic.spans(self.entries[nic.name, index])]

    # --- wires

    def assign_tracks(self):
        """An anchor on both GPUs and a track for each link: the shorter the nearer, so that links enclose each
        other where they can."""
        order = {box.name: place for place, box in enumerate(sorted(self.of_kind("gpus"), key=lambda box: box.x))}
        self.anchors = {}
        for gpu in order:
            ends = [(self.anchor_key(order, gpu, link), index) for index, link in enumerate(self.of_gpus)
                    if gpu in (link["from"], link["to"])]
            box = self.boxes[gpu]
            for place, (_, index) in enumerate(sorted(ends)):
                self.anchors[gpu, index] = box.x + box.width * (place + 1) / (len(ends) + 1)
        spans = [(sorted((self.anchors[link["from"], index], self.anchors[link["to"], index])), index)
                 for index, link in enumerate(self.of_gpus) if link["from"] in order and link["to"] in order]
        self.track, taken = {}, []
        for (left, right), index in sorted(spans, key=lambda span: round(span[0][1] - span[0][0], 6)):
            free = (number for number, others in enumerate(taken)
                    if all(right + GAP < low or high + GAP < left for low, high in others))
            number = next(free, len(taken))
            taken += [[]] if number == len(taken) else []
            taken[number].append((left, right))
            self.track[index] = number
        self.tracks = len(taken)

    @staticmethod
    def anchor_key(order, gpu, link):
        """From left to right: links to the left, the nearest first; to NVSwitches; to the right, the farthest first."""
        other = other_end(link, gpu)
        if other not in order:
            return (1, 0)
        distance = order[other] - order[gpu]
        return (0, -distance) if distance < 0 else (2, -distance)

    def draw_wires(self):
        for index, link in enumerate(self.buses):
            self.wires.append(Wire(link, self.bus_points(index, link)))
        for index, link in enumerate(self.of_gpus):
            self.wires.append(Wire(link, self.gpu_points(index, link)))
        for link in self.others:
            ends = [self.boxes[link[end]] for end in ("from", "to")]
            self.wires.append(Wire(link, [(box.centre, box.y + box.height / 2) for box in ends]))
        levels = self.turn_levels()
        for name, above in self.hanging.items():
            for index, (upper, link) in enumerate(above):
                points = self.start_points(name, index, upper) + self.end_points(name, index, levels)
                self.wires.append(Wire(link, points, on_top=self.boxes[name].kind == "nics"))
        for nic in self.host["nics"]:
            box = self.boxes[nic["name"]]
            for place, port in enumerate(nic["ports"]):
                x = box.x + box.width * (place + 1) / (len(nic["ports"]) + 1)
                self.ports.append(Port(x, box.bottom, port["up"]))

    def bus_points(self, index, link):
        """Beside each other, or above the packages between two that are not neighbours."""
        left, right = sorted((self.boxes[link["from"]], self.boxes[link["to"]]), key=lambda box: box.x)
        if index in self.far_buses:
            level = 2 * STEP * (self.far_buses.index(index) + 1)
            y = left.y - level
            return [(left.centre + level, left.y), (left.centre + level, y), (right.centre - level, y),
                    (right.centre - level, right.y)]
        same = [number for number, other in enumerate(self.buses)
                if {other["from"], other["to"]} == {link["from"], link["to"]}]
        y = left.y + left.height / 2 + 2 * STEP * (same.index(index) - (len(same) - 1) / 2)
        return [(left.right, y), (right.x, y)]

    def gpu_points(self, index, link):
        ends = sorted((link["from"], link["to"]), key=lambda end: self.boxes[end].x)
        if index not in self.track:
            gpu, bar = sorted(ends, key=lambda end: ROWS[self.kinds[end]])
            x = self.anchors[gpu, index]
            return [(x, self.boxes[gpu].bottom), (x, self.boxes[bar].y)]
        left, right = (self.anchors[end, index] for end in ends)
        bottom = self.boxes[ends[0]].bottom
        y = bottom + TRACK * (self.track[index] + 1.5)
        return [(left, bottom), (left, y), (right, y), (right, bottom)]

    def start_points(self, name, index, upper):
        """From the lower edge of what is above to where the wire goes down."""
        box, x = self.boxes[upper], self.entries[name, index]
        if (name, index) not in self.sideways:
            return [(x, box.bottom)]
        level = self.sideways.index((name, index))
        beside = box.right - STEP * (level + 1) if x > box.centre else box.x + STEP * (level + 1)
        y = box.bottom + STEP * (level + 1)
        return [(beside, box.bottom), (beside, y), (x, y)]

    def turn_levels(self):
        """How many steps above its NIC a wire turns: the outer ones first, so that none crosses another."""
        levels = {}
        for leaf in self.leaves:
            turning = self.turning(leaf)
            for to_left in (True, False):
                side = [key for key in turning if (self.entries[key] > self.boxes[key[0]].centre) == to_left]
                side.sort(key=lambda key: self.entries[key], reverse=to_left)
                levels.update({key: level for level, key in enumerate(side)})
        return levels

    def end_points(self, name, index, levels):
        box, x = self.boxes[name], self.entries[name, index]
        if (name, index) not in levels:
            return [(x, box.y)]
        inside = STEP * (index + 1)
        target = box.right - inside if x > box.centre else box.x + inside
        y = box.y - STEP * (levels[name, index] + 1)
        return [(x, y), (target, y), (target, box.y)]
