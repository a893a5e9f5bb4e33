/**
 * Imports, refreshes, lists and exports 100,000 channels on the durable store, and prints how long each took (also in CPU time, all threads), how
 * long the loop was blocked at most, and how much memory was added. `bun tests/bench/playlists.ts [entries]`
 */
import { randomBytes, scrypt } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { runtime } from "#runtime";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import { NO_OWNER } from "../../src/library/contract.ts";
import { createLibrary, type Library } from "../../src/library/library.ts";
import type { Outbound } from "../../src/outbound/outbound.ts";
import { watchHolds } from "./holds.ts";

const count = Number(process.argv[2] ?? 100_000);
const SILENT = { error: console.error, warn: console.error, info() {}, debug() {}, named: () => SILENT };
const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"));
let served: Uint8Array = new Uint8Array(0);
const outbound: Outbound = {
  get: () => Promise.reject(new Error("not here")),
  open: async (finalUrl) => ({
    status: 200,
    headers: new Headers(),
    body: blocksOf(served),
    finalUrl,
  }),
};

/** As from a network: each block comes in a turn of its own. */
function blocksOf(bytes: Uint8Array): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream(
    {
      async pull(controller) {
        await new Promise((resolve) => setImmediate(resolve));
        if (at >= bytes.length) return controller.close();
        controller.enqueue(bytes.slice(at, at + 65_536));
        at += 65_536;
      },
    },
    { highWaterMark: 0 },
  );
}

/** As a list server writes them, some 200 bytes each. */
function list(token: (i: number) => number, from = 0): Uint8Array {
  const lines = ['#EXTM3U url-tvg="http://guide.example/epg.xml.gz"'];
  for (let i = from; i < count + from; i++) {
    const group = `Group ${i % 97}`;
    lines.push(
      `#EXTINF:-1 tvg-id="ch${i}.example" tvg-name="Channel ${i} HD" tvg-logo="https://logos.example/${i}.png" group-title="${group}",Channel ${i} HD`,
      `http://tv.example:8080/live/user/pass/${i}.ts?token=${token(i)}`,
    );
  }
  return encodeUtf8(lines.join("\n"));
}

async function open(): Promise<Library> {
  const store = await runtime.openStore({ folder, kind: "sqlite", shared: false, warn: console.error });
  return createLibrary({
    ...{
      store,
      outbound,
      folder,
      log: SILENT,
      clock: runtime.clock,
      files: runtime.files,
      random: Math.random,
    },
    randomBytes: (length) => new Uint8Array(randomBytes(length)),
    scrypt: () => Promise.reject(new Error(`not here: ${scrypt.name}`)),
    sha1: runtime.sha1,
    google: { issuer: "", audience: "", keysUrl: "" },
  });
}

async function measured(name: string, work: () => Promise<unknown>): Promise<void> {
  collect();
  const start = performance.now();
  const cpu = process.cpuUsage();
  const stop = watchHolds();
  const note = await work();
  const held = stop();
  const ms = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  const figures = [
    `${ms.toFixed(0).padStart(6)} ms`,
    `CPU ${((user + system) / 1000).toFixed(0).padStart(6)} ms`,
    `held ${held.longestMs.toFixed(0).padStart(4)} ms, by us ${held.longestOwnMs.toFixed(0).padStart(3)} ms, over 20: ${held.over20}`,
    `+${(held.addedBytes / 2 ** 20).toFixed(0)} MB`,
  ];
  console.log(`${name.padEnd(34)} ${figures.join("  ")}  ${note ?? ""}`);
}

function collect(): void {
  (globalThis as { Bun?: { gc(now: boolean): void } }).Bun?.gc(true);
}

async function ended(library: Library, task: number): Promise<string> {
  for (;;) {
    const { state, problem, message } = library.tasks.get(task)!;
    if (state === "failed") throw new Error(problem!);
    if (state === "done") return message;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const text = list(() => 1);
const packed = new Uint8Array(gzipSync(text));
console.log(
  `${count} entries, ${(text.length / 1024 / 1024).toFixed(1)} MiB, ${runtime.name} ${runtime.version}`,
);
let library = await open();
const options = { name: "bench", owner: NO_OWNER, category: null };
await measured("import", async () => ended(library, await library.importPlaylist(blocksOf(text), options)));
await measured("import once more, gzip", async () =>
  ended(library, await library.importPlaylist(blocksOf(packed), options)),
);
await measured("clear", () => library.items.clear(NO_OWNER));
served = text;
const settings = { category: "", name: "bench", updateInterval: 0, login: "", password: "" };
let id = 0;
await measured("external: first refresh", async () => {
  id = await library.externalPlaylists.add(
    { type: "content", url: "http://tv.example/list", ...settings },
    { updateNow: false, allowPrivateUrls: false },
  );
  return ended(library, await library.externalPlaylists.refresh(id));
});
await measured("refresh, nothing changed", async () =>
  ended(library, await library.externalPlaylists.refresh(id)),
);
served = list((i) => (i % 100 === 0 ? 2 : 1));
await measured("refresh, 1 % changed", async () =>
  ended(library, await library.externalPlaylists.refresh(id)),
);
served = list(() => 3);
await measured("refresh, every link changed", async () =>
  ended(library, await library.externalPlaylists.refresh(id)),
);
await measured("a page of 25", () => library.items.query({ offset: count / 2, limit: 25 }).then(() => ""));
await measured("export m3u", async () => {
  const exported = library.exportPlaylist({
    query: {},
    format: "m3u",
    base: "http://h",
    protocol: "http",
    urlParameters: [],
    skipAutoSearch: false,
    generatePlayerId: false,
  });
  let bytes = 0;
  for await (const chunk of exported) bytes += chunk.length;
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
});
await measured("close", () => library.close());
await measured("open again", async () => {
  library = await open();
});
await measured("delete the external playlist", () => library.externalPlaylists.delete(id));
await library.close();
rmSync(folder, { recursive: true });
