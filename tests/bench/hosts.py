"""Files of small hosts and networks, for the tests of probe beside this file."""

from pathlib import Path

FIXTURES = Path(__file__).resolve().parent.parent / "topology" / "fixtures"


def host_xml(name):
    """hwloc's XML of the fixture with two sockets, as of a host of this name."""
    text = (FIXTURES / "two_sockets.v2.xml").read_text(encoding="utf-8")
    return text.replace('name="HostName" value="twosockets"', f'name="HostName" value="{name}"')


def fabric(leaves, hosts, uplink="4xHDR"):
    """What ibnetdiscover prints of a spine, with one cable to each of the leaves of so many hosts: node0, node1, …"""
    peers = []

    def guid(number):
        return f"{number:016x}"

    spine = guid(1)
    lines = [f'\nvendid=0x2c9\nSwitch\t65 "S-{spine}"\t\t# "spine" enhanced port 0 lid 1 lmc 0']
    lines += [f'[{i + 1}]\t"S-{guid(16 + i)}"[65]\t\t# "leaf{i}" lid 2 {uplink}' for i in range(leaves)]
    for leaf in range(leaves):
        own = guid(16 + leaf)
        lines.append(f'\nvendid=0x2c9\nSwitch\t65 "S-{own}"\t\t# "leaf{leaf}" enhanced port 0 lid 2 lmc 0')
        for i in range(hosts):
            node, port = leaf * hosts + i, i + 1
            card = guid(4096 + node)
            lines.append(f'[{port}]\t"H-{card}"[1]({card}) \t\t# "node{node} mlx5_0" lid 3 4xHDR')
            peers.append(
                f'\ncaguid=0x{card}\nCa\t1 "H-{card}"\t\t# "node{node} mlx5_0"\n'
                f'[1]({card}) \t"S-{own}"[{port}]\t\t# lid 3 lmc 0 "leaf{leaf}" lid 2 4xHDR'
            )
        lines.append(f'[65]\t"S-{spine}"[{leaf + 1}]\t\t# "spine" lid 1 {uplink}')
    return "#\n# Topology file: generated on Sun Nov 22 00:00:00 2026\n#\n" + "\n".join(lines + peers) + "\n"
