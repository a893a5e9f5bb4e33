import { clock } from "./clock.ts";
import type { Runtime } from "./contract.ts";
import { ed25519Key, ed25519Verifier, lookup, randomBytes, scrypt, sha1, sha256 } from "./crypto.ts";
import { files } from "./files.ts";
import { httpClient } from "./http-client.ts";
import { serve } from "./http-server.ts";
import { backupStore, openStore, restoreStore } from "./open-store.ts";
import { machineNet } from "./sockets.ts";
import { surroundings } from "./surroundings.ts";

/** What a connection reads at once, where each has a buffer of its own: 200 connections then cost 12.5 MiB. */
const OWN_BUFFER_BYTES = 64 * 1024;
/** One buffer for all, where a read is handed over before the next one begins: few system calls a megabyte. */
const SHARED_BUFFER_BYTES = 256 * 1024;

/**
 * The parts that `node:*` modules give on every runtime, put together. `moved` hears of every read from a peer, and of
 * all that bodies of HTTP answers send.
 */
export function machineRuntime(
  name: Runtime["name"],
  version: string,
  moved: (bytes: number) => void = () => {},
): Runtime {
  const shared = new Uint8Array(SHARED_BUFFER_BYTES);
  // Deno reads into the buffer while other callbacks run, so two connections must not share one.
  const readBuffer = name === "deno" ? () => new Uint8Array(OWN_BUFFER_BYTES) : () => shared;
  return {
    name,
    version,
    clock,
    net: machineNet(readBuffer, moved),
    files,
    http: httpClient,
    surroundings,
    sha1,
    sha256,
    ed25519Key,
    ed25519Verifier,
    randomBytes,
    scrypt,
    serve: (handler, options) => serve(handler, options, moved),
    lookup,
    lock: async (path) => (await import("./kv-lock.ts")).tryLock(path),
    openStore,
    backupStore,
    restoreStore,
  };
}
