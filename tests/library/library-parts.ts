import { createHash, randomBytes, scryptSync } from "node:crypto";
import { type Log, SILENT_LOG } from "../../src/base/log.ts";
import { createLibrary } from "../../src/library/library.ts";
import type { Outbound } from "../../src/outbound/outbound.ts";
import type { Clock, Files, KeyValueStore } from "../../src/runtime/contract.ts";
import { openMemory } from "../../src/runtime/kv-memory.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { ListServer } from "./list-server.ts";

/** Dependencies that a test can replace. */
interface Given {
  readonly store?: KeyValueStore;
  readonly clock?: Clock;
  readonly server?: ListServer;
  readonly log?: Log;
}

/** A disk without files that refuses writes. */
const NO_FILES: Files = {
  open: () => Promise.reject(new Error("no disk")),
  read: async () => undefined,
  parts() {
    throw new Error("no disk");
  },
  replace: () => Promise.reject(new Error("no disk")),
  remove: async () => {},
  list: async () => [],
  stat: async () => undefined,
  freeBytes: async () => undefined,
};

/** A whole library on a store in memory (or a given one), with fake list servers. */
export async function openLibrary(given: Given = {}) {
  const {
    store = openMemory(),
    clock = new FakeClock(),
    server = new ListServer(),
    log = SILENT_LOG,
  } = given;
  const outbound: Outbound = {
    get: () => Promise.reject(new Error("nothing is fetched whole here")),
    open: (url, options) => server.open(url, options),
  };
  const library = await createLibrary({
    ...{ store, clock, outbound, log, files: NO_FILES, folder: "/nowhere", random: () => 0 },
    randomBytes: (length) => new Uint8Array(randomBytes(length)),
    scrypt: async (password, salt, { N, r, p, keyBytes }) =>
      new Uint8Array(scryptSync(password, salt, keyBytes, { N, r, p, maxmem: 256 * N * r })),
    sha1: (bytes) => new Uint8Array(createHash("sha1").update(bytes).digest()),
    google: { issuer: "", audience: "", keysUrl: "" },
  });
  return { library, store, clock, server };
}
