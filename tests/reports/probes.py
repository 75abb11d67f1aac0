"""Documents as `polyring probe --format json` prints them, of hosts that no preset has, for the tests of pictures."""


def device(name, **others):
    return {"name": name, "model": "", "pci": None, "numa": None, **others}


def nic(name, *states, kind="infiniband", **others):
    """`states`: GB/s of a port that is up, None for one that is down."""
    ports = [{"number": number, "up": state is not None, "GBps": state} for number, state in enumerate(states, 1)]
    return device(name, kind=kind, ports=ports, **others)


def link(end, other, kind, speed):
    return {"from": end, "to": other, "kind": kind, "GBps": speed, "latency_us": 0}


def host(name, packages, gpus=0, nics=(), links=(), switches=0, nvswitches=0, **others):
    return {
        "name": name, "model": "", "count": 1, "nvswitches": nvswitches, "nics": list(nics), "links": list(links),
        "packages": [device(f"package{i}", cores=8, memory_bytes=64 << 30, memory_GBps=None, numa=[i])
                     for i in range(packages)],
        "switches": [device(f"switch{i}", pci=f"0000:{i:02x}:00.0") for i in range(switches)],
        "gpus": [device(f"gpu{i}", model="GPU", memory_bytes=None, memory_GBps=None) for i in range(gpus)],
        "citations": [], **others}


def probe(*hosts, name="made up", hosts_per_leaf=0, uplink=None, pods=()):
    return {"schema": "polyring-probe", "version": 1, "name": name, "hosts": list(hosts),
            "fabric": {"hosts_per_leaf": hosts_per_leaf, "leaf_uplink_GBps": uplink, "pods": list(pods),
                       "latency_us": 1.7, "spine_latency_us": 0.18, "citations": []}}


def laptop():
    return host("laptop", 1, nics=[nic("wlan0", None, kind="ethernet"), nic("enp0s31f6", 0.125, kind="ethernet")],
                links=[link("wlan0", "package0", "pcie", None), link("enp0s31f6", "package0", "pcie", 0.985)],
                remarks=["wlan0 is down"])


def bare():
    return host("bare", 1)


def mesh():
    """Eight GPUs, each joined to each, with a PCIe switch and a NIC of its own."""
    links = [link("package0", "package1", "socket-bus", 64)]
    for i in range(8):
        links += [link(f"switch{i}", f"package{i // 4}", "pcie", 63), link(f"gpu{i}", f"switch{i}", "pcie", 63),
                  link(f"mlx5_{i}", f"switch{i}", "pcie", 63)]
        links += [link(f"gpu{i}", f"gpu{j}", "xgmi", 64) for j in range(i)]
    return host("mesh", 2, 8, [nic(f"mlx5_{i}", 48.5) for i in range(8)], links, switches=8)


def cube_mesh_of_two_speeds():
    """A DGX-1 with V100: single NVLinks and double ones."""
    links = [link("package0", "package1", "socket-bus", 38.4)]
    for i in range(4):
        links += [link(f"switch{i}", f"package{i // 2}", "pcie", 15.75), link(f"mlx5_{i}", f"switch{i}", "pcie", 15.75)]
        links += [link(f"gpu{2 * i + j}", f"switch{i}", "pcie", 15.75) for j in (0, 1)]
    for half in (0, 4):
        speeds = {(0, 1): 25, (0, 2): 25, (0, 3): 50, (1, 2): 50, (1, 3): 25, (2, 3): 50}
        links += [link(f"gpu{half + a}", f"gpu{half + b}", "nvlink", speed) for (a, b), speed in speeds.items()]
    links += [link(f"gpu{i}", f"gpu{i + 4}", "nvlink", 50 if i in (0, 1) else 25) for i in range(4)]
    return host("volta", 2, 8, [nic(f"mlx5_{i}", 12.1) for i in range(4)], links, switches=4)


def superchips():
    """Two processors with two GPUs each over NVLink-C2C and PCIe, an NVSwitch, NICs with a port that is down."""
    links = [link("package0", "package1", "socket-bus", 300)]
    for i in range(4):
        links += [link(f"gpu{i}", f"package{i // 2}", "c2c", 450), link(f"gpu{i}", f"package{i // 2}", "pcie", 63),
                  link(f"gpu{i}", "nvswitch0", "nvlink", 900), link(f"mlx5_{i}", f"package{i // 2}", "pcie", 63)]
    return host("superchips", 2, 4, [nic(f"mlx5_{i}", 48.5, None, pci=f"0000:0{i}:00.0") for i in range(4)], links,
                nvswitches=1)


def four_sockets():
    """Every package joined to every other, NICs at two of them and at none, and a switch below another."""
    links = [link(f"package{i}", f"package{j}", "socket-bus", 41.6) for i in range(4) for j in range(i)]
    links += [link("eth0", "package0", "pcie", 8), link("eth0", "package3", "pcie", 8), link("eth1", "package2", "pcie", 4),
              link("switch0", "package1", "pcie", None), link("switch1", "switch0", "pcie", 16),
              link("gpu0", "switch1", "pcie", 16), link("gpu1", "switch1", "pcie", 8), link("eth2", "switch1", "pcie", 8),
              link("eth3", "switch1", "pcie", 8), link("eth4", "switch1", "pcie", 8), link("gpu2", "package3", "pcie", 16),
              link("gpu0", "gpu1", "nvlink", None)]
    return host("four sockets", 4, 3, [nic(f"eth{i}", 1.25, kind="ethernet") for i in range(5)] + [nic("loose0")], links,
                switches=2)


def strangely_named():
    found = host("a$b$ & <c> \x01 \"d\"", 1, 1, [nic("mlx5_$0$", 12.1, model="An adapter of Some Extraordinarily Verbose "
                                                     "Company [ConnectX-4 Lx, " + "x" * 60 + "]")],
                 [link("gpu0", "package0", "pcie", 16), link("mlx5_$0$", "package0", "pcie", 8)])
    found["packages"][0]["model"] = "Processor(R) of a Very Long Name CPU @ 2.00GHz, second of its kind, rev. 7"
    found["model"] = "& " * 90
    return found


def documents():
    """By name."""
    found = {make.__name__: probe(make()) for make in (laptop, bare, mesh, cube_mesh_of_two_speeds, superchips,
                                                       four_sockets, strangely_named)}
    groups = [{**mesh(), "count": 14}, {**superchips(), "count": 3}, laptop()]
    pods = {"hosts": 6, "uplink_GBps": 300}
    found["two_pods"] = probe({**laptop(), "count": 11}, hosts_per_leaf=3, uplink=200, pods=[pods])
    found["many_pods"] = probe({**laptop(), "count": 512}, hosts_per_leaf=8, uplink=200,
                               pods=[{"hosts": 64, "uplink_GBps": None}, {"hosts": 256, "uplink_GBps": 800}])
    found["cluster"] = probe(*groups, name="three kinds", hosts_per_leaf=3, uplink=200)
    return found
