import type { Instant, UnixSeconds } from "../base/time.ts";
import type { Clock, Net, Runtime } from "./contract.ts";
import {
  aes128Gcm,
  ed25519Key,
  ed25519Verifier,
  lookup,
  randomBytes,
  scrypt,
  sha1,
  sha256,
} from "./crypto.ts";
import { files } from "./files.ts";
import { httpClient } from "./http-client.ts";
import { serve } from "./http-server.ts";
import { InheritedListeners } from "./inherited-listener.ts";
import { backupStore, lockPath, openStore, readBackup, restoreStore } from "./open-store.ts";
import { connectTls, machineNet, type TrafficMemory } from "./sockets.ts";
import { surroundings } from "./surroundings.ts";
import { bindUdp as bindUdpByNode } from "./udp.ts";
import { startWorker } from "./worker.ts";

/** Read buffer of a connection on Deno: 200 connections cost 12.5 MiB. */
const OWN_BUFFER_BYTES = 64 * 1024;
/** Read buffer that all connections share on Node; large, to save system calls. */
const SHARED_BUFFER_BYTES = 256 * 1024;
/** The longest delay that timers accept (a signed 32-bit number of milliseconds); longer ones fire at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;

const clock: Clock = {
  now: () => performance.now() as Instant,
  unixSeconds: () => Math.floor(Date.now() / 1000) as UnixSeconds,
  at(at, run) {
    // Rounded up: if a timer fires early, its callback schedules the next one immediately.
    const delayMs = Math.min(Math.max(Math.ceil(at - performance.now()), 0), MAX_DELAY_MS);
    const timer = setTimeout(run, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/**
 * Builds a runtime from the `node:*` modules, which Bun, Deno and Node all provide. `memory` observes the reads of peer
 * connections, accepted connections and the response bodies that are sent.
 */
export function machineRuntime(
  name: Runtime["name"],
  version: string,
  memory?: TrafficMemory,
  bindUdp: Net["bindUdp"] = bindUdpByNode,
): Runtime {
  const inherited = new InheritedListeners();
  return {
    name,
    version,
    clock,
    net: machineNet(readBufferOf(name), memory, bindUdp),
    files,
    http: httpClient,
    surroundings,
    startWorker: (worker, handlers) => startWorker(name, worker, handlers),
    discarded: (bytes) => memory?.discarded?.(bytes),
    sha1,
    sha256,
    aes128Gcm,
    ed25519Key,
    ed25519Verifier,
    randomBytes,
    scrypt,
    serve: (handler, options) => serve(handler, options, memory?.sent, inherited),
    connectTls,
    lookup,
    lock: lockPath,
    openStore,
    backupStore,
    readBackup,
    restoreStore,
  };
}

/** Returns the source of read buffers for outgoing connections; undefined on Bun, which gains nothing by them. */
function readBufferOf(name: Runtime["name"]): (() => Uint8Array) | undefined {
  if (name === "bun") return undefined;
  // Deno reads into the buffer while other callbacks run, so connections must not share one.
  if (name === "deno") return () => new Uint8Array(OWN_BUFFER_BYTES);
  const shared = new Uint8Array(SHARED_BUFFER_BYTES);
  return () => shared;
}
