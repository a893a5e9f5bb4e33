import { runtime } from "#runtime";
import { SluiceError } from "../../src/base/errors.ts";
import { type Infohash, infohashOf } from "../../src/base/ids.ts";
import { FileGiver } from "../../src/engine/live/file-giver.ts";
import { listenForPeers } from "../../src/engine/peer-listener.ts";
import { PieceBufferPool } from "../../src/engine/piece-buffers.ts";
import { PieceMemory } from "../../src/engine/piece-memory.ts";
import { PeerLimits } from "../../src/engine/reach/peer-limits.ts";
import type { SwarmTransfer } from "../../src/engine/transfer.ts";
import type { TransferHouse } from "../../src/engine/transfer-house.ts";
import { TransportFiles } from "../../src/engine/transport-files.ts";
import { ServerSlots } from "../../src/engine/web-seeds/server-slots.ts";
import { createOutbound } from "../../src/outbound/outbound.ts";
import type { TcpListener, TcpSocket } from "../../src/runtime/contract.ts";
import { Swarm } from "../../src/swarm/swarm.ts";
import { NO_FINDER } from "../parts/no-reach.ts";
import { sha1, sha256 } from "../wire/make-torrent.ts";
import { keepingLog, someSettings } from "./parts.ts";

/** What transfers share, with real sockets, no trackers and no cache; some of it changed. */
export async function someHouse(
  folder: string,
  changes: Partial<TransferHouse> = {},
): Promise<TransferHouse> {
  const pool = new PieceBufferPool(1 << 20);
  const log = keepingLog();
  const { files, ed25519Verifier } = runtime;
  return {
    runtime,
    settings: someSettings(folder),
    log,
    openMedia: () => Promise.reject(new SluiceError("unsupported_container", "none here")),
    announcer: {
      announce: () => Promise.resolve({ ok: false, reason: "none" }),
      scrape: () => Promise.resolve(undefined),
    },
    finder: NO_FINDER,
    outbound: createOutbound(runtime, log),
    seedSlots: new ServerSlots(),
    pool,
    memory: new PieceMemory(pool),
    cache: undefined,
    kept: await TransportFiles.open({
      files,
      sha1,
      sha256,
      ed25519Verifier,
      log,
      folder: `${folder}/transport-files`,
    }),
    connections: { open: 0, limit: 10 },
    limits: new PeerLimits({ uploadLimit: 0, downloadLimit: 0, limitLan: true }),
    random: Math.random,
    p2pPort: 0,
    makeSwarm: (setup, now) => new Swarm(setup, now),
    ...changes,
  };
}

/** Lets others call a transfer, at a port of its own on 127.0.0.1. */
export function listenFor(transfer: SwarmTransfer): Promise<TcpListener> {
  const { net, clock } = runtime;
  return listenForPeers(
    { net, clock, log: keepingLog(), adopt: (_, ...rest) => transfer.accept(...rest) },
    { host: "127.0.0.1", port: 0 },
  );
}

/** A peer that gives `bytes` as the metadata of the swarm of their SHA-1, and counts who came. */
export async function serveMetadata(bytes: Uint8Array) {
  const infohash: Infohash = infohashOf(sha1(bytes));
  const asked: string[] = [];
  const { net, clock } = runtime;
  const adopt = (wanted: Infohash, socket: TcpSocket, first: Uint8Array) => {
    asked.push(wanted);
    if (wanted !== infohash) return undefined;
    const giver = new FileGiver({ infohash, peerId: new Uint8Array(20).fill(0x41), bytes });
    const received = (part: Uint8Array) => {
      const answer = giver.received(part);
      if (answer) socket.write(answer);
    };
    received(first);
    return { received, drained() {}, closed() {} };
  };
  const listener = await listenForPeers(
    { net, clock, log: keepingLog(), adopt },
    { host: "127.0.0.1", port: 0 },
  );
  return { infohash, asked, address: listener.address, close: () => listener.close() };
}
