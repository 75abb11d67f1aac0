"""One TCP stream between two emulated hosts: stream.py FROM TO MEGABYTES, run on every host.

The receiver prints the goodput in Mbit/s, from when the stream is accepted to its end; both print the congestion control.
"""

import contextlib
import socket
import sys
import time

PORT = 5001
PATIENCE_S = 10


def tell_congestion_control(stream):
    name = stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    print("tcp", name.rstrip(b"\0").decode())


def connect(host):
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with contextlib.suppress(ConnectionRefusedError):  # the receiver starts at the same time
            return socket.create_connection((host, PORT))
        if time.monotonic() > deadline:
            sys.exit(f"{host} does not listen")
        time.sleep(0.02)


def receive():
    buffer = bytearray(1 << 18)
    received = 0
    with socket.create_server(("", PORT)) as server, server.accept()[0] as stream:
        begin = time.monotonic()
        while count := stream.recv_into(buffer):
            received += count
        print(f"goodput {received * 8e-6 / (time.monotonic() - begin):.2f}")
        tell_congestion_control(stream)


sender, receiver, megabytes = sys.argv[1:]
if socket.gethostname() == receiver:
    receive()
elif socket.gethostname() == sender:
    with connect(receiver) as stream:
        stream.sendall(bytes(int(float(megabytes) * 1e6)))
        tell_congestion_control(stream)
