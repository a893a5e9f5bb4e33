import { runtime } from "#runtime";
import { SluiceError } from "../../src/base/errors.ts";
import { type Infohash, infohashOf } from "../../src/base/ids.ts";
import { PeerLimits } from "../../src/net/peer-limits.ts";
import { listenForPeers } from "../../src/net/peer-listener.ts";
import { createOutbound } from "../../src/outbound/outbound.ts";
import { Swarm } from "../../src/protocol/swarm/swarm.ts";
import type { TcpListener, TcpSocket } from "../../src/runtime/contract.ts";
import { PieceBufferPool } from "../../src/storage/piece-buffers.ts";
import { PieceMemory } from "../../src/storage/piece-memory.ts";
import { TransportFiles } from "../../src/storage/transport-files.ts";
import { ConnectionCount } from "../../src/transfer/connection-count.ts";
import type { TransferDependencies } from "../../src/transfer/contract.ts";
import type { SwarmTransfer } from "../../src/transfer/transfer.ts";
import { ServerSlots } from "../../src/transfer/web-seeds/server-slots.ts";
import { keepingLog, someSettings } from "../engine/parts.ts";
import { NO_FINDER } from "../parts/no-reach.ts";
import { sha1, sha256 } from "../wire/make-torrent.ts";
import { TransportFileServer } from "./transport-file-server.ts";

/** Returns the dependencies of transfers with real sockets, without trackers and cache; `changes` replaces some. */
export async function transferDependencies(
  folder: string,
  changes: Partial<TransferDependencies> = {},
): Promise<TransferDependencies> {
  const pool = new PieceBufferPool(1 << 20);
  const log = keepingLog();
  const { files, ed25519Verifier } = runtime;
  return {
    runtime,
    settings: someSettings(folder),
    log,
    openMedia: () => Promise.reject(new SluiceError("unsupported_container", "not implemented")),
    announcer: {
      announce: () => Promise.resolve({ ok: false, reason: "none" }),
      scrape: () => Promise.resolve(undefined),
    },
    finder: NO_FINDER,
    outbound: createOutbound(runtime, log),
    seedSlots: new ServerSlots(),
    pool,
    memory: new PieceMemory(pool, runtime.clock),
    cache: undefined,
    kept: await TransportFiles.open({
      limitBytes: 1e9,
      files,
      sha1,
      sha256,
      ed25519Verifier,
      log,
      folder: `${folder}/transport-files`,
    }),
    connections: new ConnectionCount(10),
    limits: new PeerLimits({ uploadLimit: 0, downloadLimit: 0, limitLan: true }),
    random: Math.random,
    p2pPort: 0,
    makeSwarm: (setup, now) => new Swarm(setup, now),
    ...changes,
  };
}

/** Accepts incoming connections for a transfer on a port of 127.0.0.1. */
export function listenFor(transfer: SwarmTransfer): Promise<TcpListener> {
  const { net, clock } = runtime;
  return listenForPeers(
    { net, clock, log: keepingLog(), adopt: (_, ...rest) => transfer.accept(...rest) },
    { host: "127.0.0.1", port: 0 },
  );
}

/** Starts a peer that serves `bytes` as metadata, in the swarm of their SHA-1, and records the requested infohashes. */
export async function serveMetadata(bytes: Uint8Array) {
  const infohash: Infohash = infohashOf(sha1(bytes));
  const asked: string[] = [];
  const { net, clock } = runtime;
  const adopt = (wanted: Infohash, socket: TcpSocket, first: Uint8Array) => {
    asked.push(wanted);
    if (wanted !== infohash) return undefined;
    const giver = new TransportFileServer({ infohash, peerId: new Uint8Array(20).fill(0x41), bytes });
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
