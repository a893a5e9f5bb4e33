import assert from "node:assert/strict";
import { chmod, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { runtime } from "#runtime";
import { SluiceError } from "../../src/base/errors.ts";
import { broadcastNameFrom, checkedBroadcastName } from "../../src/live/broadcast/broadcast-name.ts";
import { STATE_SYNC_MS, sourceStart } from "../../src/live/broadcast/broadcast-start.ts";
import { createBroadcasts } from "../../src/live/broadcast/broadcasts.ts";
import { type SourceState, StateFile } from "../../src/live/broadcast/identity-state.ts";
import { tryLock } from "../../src/runtime/kv-lock.ts";
import { inFolder } from "../contract/folder.ts";
import { FakeStudio, someRequest } from "./broadcast-parts.ts";
import { MemoryFiles } from "./memory-files.ts";

const { sha256, files } = runtime;
const stateOf = (seq: number, changes: Partial<SourceState> = {}): SourceState => ({
  epoch: 1_700_000_000,
  seq,
  timestampMs: 1_700_000_000_000 + 250 * seq,
  segment: 7,
  headerHash: new Uint8Array(20).fill(seq),
  reservedSeq: 0,
  ...changes,
});

test("openIdentity: on a real disk, only the owner can read it and one process can open it", () =>
  inFolder(async (dataDir) => {
    const studio = new FakeStudio();
    const changes = {
      runtime: { ...runtime, clock: runtime.clock },
      settings: { dataDir, liveWindowMs: 0 },
      lock: tryLock,
      unixMs: () => Date.now(),
    };
    const broadcasts = createBroadcasts(studio.parts(changes));
    const broadcast = await broadcasts.start(someRequest());
    studio.reachable = [{ host: "192.0.2.7", port: 7000 }];
    const folder = join(dataDir, "broadcasts", "One");
    const whileOpen = await otherProcess(join(folder, "lock"));
    assert.equal(whileOpen, "held");
    await broadcast.stop();
    assert.equal(await otherProcess(join(folder, "lock")), "free");
    assert.deepEqual((await readdir(folder)).sort(), ["One.sluice", "info", "key", "lock", "peers", "state"]);
    if (process.platform === "win32") return;
    for (const name of await readdir(folder))
      assert.equal((await stat(join(folder, name))).mode & 0o777, 0o600, name);
    for (const path of [folder, join(dataDir, "broadcasts")])
      assert.equal((await stat(path)).mode & 0o777, 0o700, path);
    await chmod(join(folder, "key"), 0o640);
    await assert.rejects(
      broadcasts.start(someRequest()),
      (error) => error instanceof SluiceError && /640.*chmod 600/.test(error.message),
    );
    await chmod(join(folder, "key"), 0o600);
    const again = await broadcasts.start(someRequest());
    assert.equal(again.infohash, broadcast.infohash);
    await broadcasts.close();
  }));

/** The result of taking the lock in another process. */
async function otherProcess(path: string): Promise<string> {
  const { execFile } = await import("node:child_process");
  const script = `
    import { DatabaseSync } from "node:sqlite";
    const database = new DatabaseSync(process.argv.at(-1));
    let result = "free";
    try { database.exec("BEGIN EXCLUSIVE"); } catch { result = "held"; }
    console.log(result);`;
  const ways = { bun: ["-e", script], deno: ["eval", script], node: ["--input-type=module", "-e", script] };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [...ways[runtime.name], path], (error, stdout) =>
      error ? reject(error) : resolve(stdout.trim()),
    );
  });
}

test("StateFile: reads the last intact record", async () => {
  const disk = new MemoryFiles();
  const open = async () => StateFile.open("/state", disk, sha256);
  assert.deepEqual((await open()).found, { state: undefined, isDamaged: false });
  for (const seq of [5, 6, 7]) await (await open()).write(stateOf(seq));
  assert.deepEqual((await open()).found.state, stateOf(7));
  const file = disk.kept.get("/state")!;
  const whole = file.bytes;
  const damagedAt = (at: number) => whole.map((byte, i) => (i === at ? byte ^ 4 : byte));
  // Damages each byte of the newest record, and of the one before.
  for (let i = 0; i < 70; i++) {
    file.bytes = damagedAt(i);
    assert.deepEqual((await open()).found.state, stateOf(6), `byte ${i}`);
    file.bytes = damagedAt(4096 + i);
    assert.deepEqual((await open()).found.state, stateOf(7), `byte ${4096 + i}`);
  }
  for (const bytes of [whole.slice(0, 69), new Uint8Array(5000), whole.map((byte) => byte ^ 1)]) {
    file.bytes = new Uint8Array(bytes);
    assert.deepEqual((await open()).found, { state: undefined, isDamaged: true });
  }
});

test("StateFile: many writes on a real disk", () =>
  inFolder(async (folder) => {
    const path = join(folder, "state");
    const state = await StateFile.open(path, files, sha256);
    for (let seq = 1; seq <= 100; seq++) await state.write(stateOf(seq));
    await state.sync();
    await state.close();
    const again = await StateFile.open(path, files, sha256);
    assert.deepEqual(again.found, { state: stateOf(100), isDamaged: false });
    await again.close();
  }));

test("sourceStart: continues, skips numbers that may have been used, or starts an epoch", () => {
  const state = stateOf(1000);
  const at = (ms: number) => sourceStart(state, state.timestampMs + ms, 250);
  assert.deepEqual(
    { ...at(100), previousHash: 0 },
    {
      epoch: state.epoch,
      previousHash: 0,
      leastSeq: 1001,
      firstSegment: 8,
      leastTimestampMs: state.timestampMs,
      isContinued: true,
    },
  );
  assert.equal(at(-100).leastSeq, 1001 + (2 * STATE_SYNC_MS) / 250);
  assert.equal(at(-100).epoch, state.epoch);
  assert.equal(sourceStart({ ...state, reservedSeq: 1050 }, state.timestampMs, 250).leastSeq, 1051);
  const early = at(-700_000);
  assert.equal(early.isContinued, false);
  assert.ok(early.epoch > state.epoch && early.leastTimestampMs === 1000 * early.epoch);
  const future = sourceStart(stateOf(1, { epoch: 4_000_000_000, timestampMs: 4e12 }), 1_700_000_000_999, 250);
  assert.equal(future.epoch, 1_700_000_000);
  assert.deepEqual(sourceStart(undefined, 1_700_000_000_999, 250).firstSegment, undefined);
});

test("checkedBroadcastName: names valid on any disk; broadcastNameFrom: makes one of any text", () => {
  for (const name of ["a", "Первый канал", "news 24.hd_1-2", "日本語", "e\u0301"])
    assert.equal(checkedBroadcastName(name), name.normalize("NFC"));
  for (const name of [
    "",
    " a",
    "a ",
    ".a",
    "a.",
    "..",
    "a/b",
    "a\\b",
    "a:b",
    "a\nb",
    "a\0",
    "NUL",
    "com1.x",
    "a  b",
    "😀",
  ])
    assert.throws(() => checkedBroadcastName(name), SluiceError, JSON.stringify(name));
  for (const text of [
    "",
    "///",
    "BBC One: HD!",
    "con",
    "..",
    "😀".repeat(200),
    "字".repeat(200),
    "a".repeat(500),
    "  x  ",
  ]) {
    const name = broadcastNameFrom(text);
    assert.equal(checkedBroadcastName(name), name, JSON.stringify(text));
  }
  assert.equal(broadcastNameFrom("BBC One: HD!"), "BBC One HD");
});
