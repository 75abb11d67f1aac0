"""One TCP stream between two emulated hosts: stream.py FROM TO MEGABYTES [ADDRESS], run on every host. ADDRESS is one of TO's.

The receiver prints the goodput in Mbit/s, of what comes after its first read, since a receiver that wakes up late finds more there than
the link sends in the time that it sees; then the median of short slices, and both ends' congestion control. Only the receiver prints, as
mpirun may run two hosts' lines together. A machine whose cores are taken away for moments lowers the first, as no link makes up for what
it did not send meanwhile; the median shows the link.
"""

import contextlib
import socket
import statistics
import sys
import time

PORT = 5001
TIME_LIMIT_S = 10
SLICE_S = 0.02
NAME_BYTES = 16  # of a congestion control, as in the kernel


def congestion_control(stream):
    return stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, NAME_BYTES).ljust(NAME_BYTES, b"\0")


def connect(host):
    deadline = time.monotonic() + TIME_LIMIT_S
    while True:
        with contextlib.suppress(ConnectionRefusedError):  # the receiver starts at the same time
            return socket.create_connection((host, PORT))
        if time.monotonic() > deadline:
            sys.exit(f"{host} does not listen")
        time.sleep(0.02)


def mbit_per_s(count, seconds):
    return count * 8e-6 / seconds


def receive():
    buffer = bytearray(1 << 18)
    received = in_slice = 0  # after the first read
    names = []
    slices = []
    with socket.create_server(("", PORT)) as server, server.accept()[0] as stream:
        begin = slice_begin = 0
        while count := stream.recv_into(buffer):
            now = time.monotonic()
            if not names:
                names = [name.rstrip(b"\0").decode() for name in (bytes(buffer[:NAME_BYTES]), congestion_control(stream))]
                begin = slice_begin = now
                continue
            received += count
            in_slice += count
            if now - slice_begin >= SLICE_S:
                slices.append(mbit_per_s(in_slice, now - slice_begin))
                in_slice, slice_begin = 0, now
        goodput = mbit_per_s(received, time.monotonic() - begin)
        print(f"goodput {goodput:.2f} median {statistics.median(slices or [goodput]):.2f} {' to '.join(names)}")


sender, receiver, megabytes, *address = sys.argv[1:]
if socket.gethostname() == receiver:
    receive()
elif socket.gethostname() == sender:
    with connect(*address or [receiver]) as stream:
        stream.sendall(congestion_control(stream) + bytes(int(float(megabytes) * 1e6)))
