"""One TCP connection (CUBIC) between two network namespaces of this process. Between them, two TUN devices and this
program are the line: rate, queue, delay and loss. Linux, as root.

Usage: tcp_path.py RATE_BYTES_PER_SECOND DELAY_MS LOSS_PERCENT SEED MESSAGE_BYTES MESSAGES PER_SECOND
Sends MESSAGES messages, PER_SECOND of them (0: all at once); prints the delay of each in ms, as JSON. Only the direction
of the messages has a rate and losses."""

import ctypes, fcntl, heapq, json, os, random, select, socket, struct, subprocess, sys, threading, time

CLONE_NEWNET, TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x40000000, 0x400454CA, 1, 0x1000
QUEUE_SECONDS, MIN_QUEUE_BYTES, PORT = 0.2, 32 * 1024, 5000
rate, delay_ms, loss_percent, seed, size, count, per_second = map(float, sys.argv[1:])
size, count = int(size), int(count)


def end(address, other):
    """Makes a namespace with a TUN device; returns the device and a socket in the namespace."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", b"line", IFF_TUN | IFF_NO_PI))
    for words in ("link set lo up", f"addr add {address} peer {other} dev line", "link set line up"):
        subprocess.run(["ip", *words.split()], check=True)
    sock = socket.socket()
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return tun, sock


def line(near, far):
    """Carries packets between the devices."""
    chance, pending, free, number = random.Random(int(seed)), [], 0.0, 0
    limit = max(QUEUE_SECONDS, MIN_QUEUE_BYTES / rate)
    while True:
        wait = max(0, pending[0][0] - time.monotonic()) if pending else None
        for tun in select.select([near, far], [], [], wait)[0]:
            packet, now = os.read(tun, 2048), time.monotonic()
            if packet[0] >> 4 != 4:
                continue
            out = now
            if tun == near:
                if free - now > limit:
                    continue
                out = free = max(free, now) + len(packet) / rate
                # The handshake arrives.
                if len(packet) > 100 and chance.random() * 100 < loss_percent:
                    continue
            number += 1
            heapq.heappush(pending, (out + delay_ms / 1000, number, far if tun == near else near, packet))
        while pending and pending[0][0] <= time.monotonic():
            _, _, tun, packet = heapq.heappop(pending)
            os.write(tun, packet)


near, sender = end("10.9.0.1", "10.9.0.2")
far, server = end("10.9.0.2", "10.9.0.1")
server.bind(("10.9.0.2", PORT))
server.listen()
threading.Thread(target=line, args=(near, far), daemon=True).start()
sender.connect(("10.9.0.2", PORT))
receiver, _ = server.accept()
began = time.monotonic()
due = [began + (i / per_second if per_second else 0) for i in range(count)]


def send():
    for at in due:
        time.sleep(max(0, at - time.monotonic()))
        sender.sendall(bytes(size))


threading.Thread(target=send, daemon=True).start()
received, delays = 0, []
while len(delays) < count:
    received += len(receiver.recv(1 << 16))
    while len(delays) < received // size:
        delays.append(round(1000 * (time.monotonic() - due[len(delays)]), 1))
print(json.dumps(delays))
