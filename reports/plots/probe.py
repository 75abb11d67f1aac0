"""Reads the JSON of `polyring probe` (topology/inventory/formats/probe_json.hpp), and says what hangs under what."""

from collections import defaultdict

from plots.results import InputError, NUMBER, check, parse

SCHEMA, VERSION = "polyring-probe", 1
REMEDY = "write it with: polyring probe --format json"
DEVICES = ("packages", "switches", "gpus", "nics")
LINK_KEYS = {"from": str, "to": str, "kind": str, "GBps": (*NUMBER, type(None))}
HOST_KEYS = {"name": str, "count": int, "packages": list, "switches": list, "nvswitches": int, "gpus": list,
             "nics": list, "links": list}
FABRIC_KEYS = {"hosts_per_leaf": int, "leaf_uplink_GBps": (*NUMBER, type(None)), "latency_us": NUMBER,
               "spine_latency_us": NUMBER}

POD_KEYS = {"hosts": int, "uplink_GBps": (*NUMBER, type(None))}

LINK_NAMES = {"nvlink": "NVLink", "xgmi": "xGMI", "c2c": "NVLink-C2C", "pcie": "PCIe", "socket-bus": "socket bus",
              "memory": "memory"}

# Who read what where, and on what a process may run.
NOT_DRAWN = ("citations", "sources", "allowed_cores", "members", "gpu_driver", "link_faults", "kinds")

# What a device may hang on, the first that reaches it: a GPU with PCIe and NVLink to its package hangs on PCIe.
HANGS_ON = (("pcie",), ("c2c", "nvlink", "xgmi"))


def read_probe(path):
    document = parse(path)
    if not is_probe(document):
        raise InputError(f"'{path}' is not of polyring probe; {REMEDY}")
    return checked_probe(path, document)


def is_probe(document):
    return isinstance(document, dict) and document.get("schema") == SCHEMA


def shown_of(document):
    """What a picture of it shows: two that are equal in this look the same."""
    hosts = document.get("hosts")
    named = isinstance(hosts, list) and len(hosts) != 1  # otherwise the host's own name stands above it
    return {key: without(NOT_DRAWN, document.get(key)) for key in ("hosts", "fabric", *(("name",) if named else ()))}


def without(keys, value):
    """A copy without these keys of its objects."""
    if isinstance(value, dict):
        return {key: without(keys, each) for key, each in value.items() if key not in keys}
    return [without(keys, each) for each in value] if isinstance(value, list) else value


def checked_probe(path, document):
    """The document, with "kinds" in each host: the kind of each device by its name."""
    check(path, "file", document, {"version": int, "name": str, "hosts": list, "fabric": dict})
    if document["version"] > VERSION:
        raise InputError(f"'{path}' has version {document['version']} of the probe's format and this polyring knows up "
                         f"to {VERSION}; use a newer polyring")
    check(path, "fabric", document["fabric"], FABRIC_KEYS)
    for index, pods in enumerate(document["fabric"].get("pods", [])):
        check(path, f"fabric.pods[{index}]", pods, POD_KEYS)
    for index, host in enumerate(document["hosts"]):
        check(path, f"hosts[{index}]", host, HOST_KEYS)
        host["kinds"] = kinds_of(host)
        check_devices(path, f"hosts[{index}]", host)
    return document


def kinds_of(host):
    """The kind of each device of a host by its name."""
    kinds = {device["name"]: group for group in DEVICES for device in host[group]}
    kinds.update({f"nvswitch{index}": "nvswitches" for index in range(host["nvswitches"])})
    return kinds


def check_devices(path, where, host):
    for index, nic in enumerate(host["nics"]):
        check(path, f"{where}.nics[{index}]", nic, {"kind": str, "ports": list})
    for index, link in enumerate(host["links"]):
        check(path, f"{where}.links[{index}]", link, LINK_KEYS)
        for end in ("from", "to"):
            if link[end] not in host["kinds"]:
                raise InputError(f"'{path}' is damaged: '{where}.links[{index}].{end}' is no device; {REMEDY}")
        if link["kind"] not in LINK_NAMES:
            raise InputError(f"'{path}' has a link of the kind '{link['kind']}' in '{where}.links[{index}]' and this "
                             "polyring knows none; use a newer polyring")


def other_end(link, device):
    return link["to"] if link["from"] == device else link["from"]


def parents_of(host):
    """For each switch, GPU and NIC the packages or switches that it hangs under: one, or several that are equally
    near to a package. Devices that reach no package are left out."""
    kinds = host["kinds"]
    parents = {}
    for allowed in HANGS_ON:
        links = [link for link in host["links"] if link["kind"] in allowed]
        edge = {name for name, kind in kinds.items() if kind == "packages" or (kind == "switches" and name in parents)}
        while edge:
            found = defaultdict(list)
            for link in links:
                for device in (link["from"], link["to"]):
                    parent = other_end(link, device)
                    if parent in edge and kinds[device] in DEVICES[1:] and device not in parents:
                        found[device] += [parent] if parent not in found[device] else []
            parents.update(found)
            edge = {device for device in found if kinds[device] == "switches"}
    return parents


def three_digits(value):
    """As in the tables: `12.1`, `40.0`, `450`."""
    return f"{value:#.3g}".rstrip(".")


def bandwidth_text(gigabytes_per_second):
    if not gigabytes_per_second:
        return "? GB/s"
    for unit, factor in (("TB/s", 1000), ("GB/s", 1)):
        if gigabytes_per_second >= factor:
            return f"{three_digits(gigabytes_per_second / factor)} {unit}"
    return f"{three_digits(gigabytes_per_second * 1000)} MB/s"


def memory_text(device):
    """`16 GiB at 732 GB/s`, as far as it is known."""
    if not device.get("memory_bytes"):
        return ""
    size = f"{device['memory_bytes'] / 2 ** 30:.0f} GiB"
    return f"{size} at {bandwidth_text(device['memory_GBps'])}" if device.get("memory_GBps") else size


def agree(devices, keys):
    """Whether all devices agree in all of `keys`."""
    return len({tuple(device.get(key) for key in keys) for device in devices}) <= 1
