import { createSocket } from "node:dgram";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { PeerAddress } from "../../src/base/address.ts";
import { bencodeDict, encodeBencode } from "../../src/wire/bencode-encode.ts";
import { encodeCompactPeers } from "../../src/wire/compact-peers.ts";

/** A tracker on loopback for tests: returns the peers that announced with an IPv4 address. */
export interface LoopbackTracker {
  readonly httpUrl: string;
  readonly udpUrl: string;
  /** Announces so far, in order: infohash, event and port. */
  readonly announces: readonly { readonly infohash: string; readonly event: string; readonly port: number }[];
  close(): Promise<void>;
}

const EVENTS = ["", "completed", "started", "stopped"] as const;
const INTERVAL_SECONDS = 900;

/** Starts a tracker that speaks HTTP (BEP 3, 23) and UDP (BEP 15) on 127.0.0.1. */
export async function startLoopbackTracker(): Promise<LoopbackTracker> {
  const swarms = new Map<string, Map<string, PeerAddress>>();
  const announces: { infohash: string; event: string; port: number }[] = [];
  const announce = (infohash: string, event: string, port: number): Uint8Array => {
    announces.push({ infohash, event, port });
    const swarm = swarms.get(infohash) ?? new Map<string, PeerAddress>();
    swarms.set(infohash, swarm);
    const others = [...swarm.values()].filter((peer) => peer.port !== port);
    if (event === "stopped") swarm.delete(String(port));
    else swarm.set(String(port), { host: "127.0.0.1", port });
    return encodeCompactPeers(others, 4);
  };
  const server = createServer((request, response) => {
    const query = request.url!.split("?")[1] ?? "";
    const members = new Map(query.split("&").map((pair) => pair.split("=", 2) as [string, string]));
    const infohash = Buffer.from(unescape(members.get("info_hash") ?? ""), "latin1").toString("hex");
    const peers = announce(infohash, members.get("event") ?? "", Number(members.get("port")));
    response.end(encodeBencode(bencodeDict({ interval: INTERVAL_SECONDS, peers })));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const socket = createSocket("udp4");
  socket.on("message", (question, from) =>
    socket.send(udpAnswer(question, announce), from.port, from.address),
  );
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  return {
    httpUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/announce`,
    udpUrl: `udp://127.0.0.1:${socket.address().port}/announce`,
    announces,
    async close() {
      socket.close();
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function udpAnswer(
  question: Buffer,
  announce: (infohash: string, event: string, port: number) => Uint8Array,
): Buffer {
  const action = question.readUInt32BE(8);
  const head = Buffer.alloc(action === 0 ? 16 : 20);
  head.writeUInt32BE(action, 0);
  question.copy(head, 4, 12, 16);
  if (action === 0) return head.fill(0x5a, 8);
  const infohash = question.subarray(16, 36).toString("hex");
  const peers = announce(infohash, EVENTS[question.readUInt32BE(80)] ?? "", question.readUInt16BE(96));
  head.writeUInt32BE(INTERVAL_SECONDS, 8);
  return Buffer.concat([head, peers]);
}
