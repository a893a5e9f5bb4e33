"""A tracker that knows one peer of every swarm, over UDP (BEP 15) and HTTP (BEP 3, 23) at one port.

usage: one-peer-tracker.py ADDRESS PORT PEER_ADDRESS PEER_PORT
"""

import http.server
import socket
import struct
import sys
import threading

address, port = sys.argv[1], int(sys.argv[2])
peer = socket.inet_aton(sys.argv[3]) + struct.pack(">H", int(sys.argv[4]))


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"d8:intervali1800e5:peers6:" + peer + b"e"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        print("http", self.client_address[0], flush=True)

    def log_message(self, *_):
        pass


def udp():
    endpoint = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    endpoint.bind((address, port))
    while True:
        data, sender = endpoint.recvfrom(2048)
        action, transaction = struct.unpack(">II", data[8:16])
        if action == 0:
            endpoint.sendto(struct.pack(">IIQ", 0, transaction, 7), sender)
        elif action == 1:
            endpoint.sendto(struct.pack(">IIIII", 1, transaction, 1800, 0, 1) + peer, sender)
        print("udp", sender[0], flush=True)


threading.Thread(target=udp, daemon=True).start()
server = http.server.ThreadingHTTPServer((address, port), Handler)
print("listening", flush=True)
server.serve_forever()
