import { createHash, randomBytes } from "node:crypto";
import { runtime } from "#runtime";
import { SILENT_LOG } from "../../src/base/log.ts";
import { createLibrary, type Library } from "../../src/library/library.ts";
import { openMemory } from "../../src/runtime/kv-memory.ts";
import { inFolder } from "../contract/folder.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { ListServer } from "./list-server.ts";
import { until } from "./until.ts";

/** A whole library in memory with fake list servers. */
export interface RealLibrary {
  readonly library: Library;
  readonly server: ListServer;
  /** Waits until imports and refreshes have ended. */
  idle(): Promise<void>;
}

/** Runs `work` with a real library, which is closed afterwards. */
export function withRealLibrary<T>(work: (real: RealLibrary) => Promise<T>): Promise<T> {
  return inFolder(async (folder) => {
    const server = new ListServer();
    const library = await createLibrary({
      store: openMemory(),
      clock: new FakeClock(),
      files: runtime.files,
      folder,
      outbound: Object.assign(server, {
        get: () => Promise.reject(new Error("nothing may be fetched whole")),
      }),
      randomBytes: (length) => new Uint8Array(randomBytes(length)),
      scrypt: async (password, salt) =>
        new Uint8Array(createHash("sha256").update(salt).update(password).digest()),
      sha1: runtime.sha1,
      random: () => 0,
      log: SILENT_LOG,
      google: { issuer: "https://accounts.example", audience: "", keysUrl: "" },
    });
    const isOver = () => library.tasks.list().every(({ state }) => state !== "running");
    try {
      return await work({ library, server, idle: () => until(isOver, "the end of all tasks") });
    } finally {
      await library.close();
    }
  });
}
