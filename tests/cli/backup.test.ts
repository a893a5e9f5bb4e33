import assert from "node:assert/strict";
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { KeyValueStore } from "../../src/runtime/contract.ts";
import { openStore } from "../../src/runtime/open-store.ts";
import { inFolder } from "../contract/folder.ts";
import { type EngineProcess, runtimeCommand, startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { startProcess } from "../parts/process.ts";

const { test } = await testsThatNeed("time");

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const [RUNTIME, ...RUNTIME_ARGS] = runtimeCommand();
const SLOW = { timeout: 110_000 };

async function sluice(dataDir: string, ...args: string[]) {
  const env = { SLUICE_DATA_DIR: dataDir, XDG_CONFIG_HOME: join(dataDir, "..") };
  const running = startProcess(RUNTIME, [...RUNTIME_ARGS, "src/main.ts", ...args], { cwd: ROOT, env });
  const code = await new Promise<number | null>((resolve) => running.child.on("close", resolve));
  return { code, output: running.output() };
}

function open(dataDir: string, warn: (message: string) => void): Promise<KeyValueStore> {
  const folder = join(dataDir, "library");
  return openStore({ folder, kind: "sqlite", shared: false, warn });
}

async function withRecords<T>(
  dataDir: string,
  work: (store: KeyValueStore) => Promise<T>,
  warn: (message: string) => void = assert.fail,
): Promise<T> {
  const store = await open(dataDir, warn);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

test("backup while the database is open, restored elsewhere, gives the same records and files", SLOW, () =>
  inFolder(async (folder) => {
    const [from, to, file] = [join(folder, "from"), join(folder, "to"), join(folder, "kept.backup")];
    const logo = Buffer.alloc(500_000, "logo");
    await mkdir(join(from, "library/images"), { recursive: true });
    await writeFile(join(from, "library/images/0123abcd"), logo);
    await writeFile(join(from, "library/images/empty"), "");
    const value = { title: "Ω \ud800 \u2028", n: 1.5 };
    await withRecords(from, async (store) => {
      await store.commit({
        set: [
          ["item/1", value],
          ["é", null],
        ],
      });
      const made = await sluice(from, "backup", file);
      assert.equal(made.code, 0, made.output);
      assert.match(made.output, /kept\.backup: \d+ bytes$/);
    });
    assert.equal((await stat(file)).mode & 0o777, 0o600);

    const restored = await sluice(to, "restore", file);
    assert.equal(restored.code, 0, restored.output);
    assert.match(restored.output, /kept\.backup: restored 2 records$/);
    await withRecords(to, async (store) => {
      assert.deepEqual(await store.get("item/1"), JSON.parse(JSON.stringify(value)));
      assert.equal(await store.get("é"), null);
    });
    assert.deepEqual(await readFile(join(to, "library/images/0123abcd")), logo);
    assert.equal((await stat(join(to, "library/images/empty"))).size, 0);

    const { code, output } = await sluice(to, "backup", "-");
    assert.equal(code, 0);
    assert.match(
      output,
      /^\{"sluice":"records","version":1,.*\n(.*\n)+\{"lines":\d+,"sha256":"[0-9a-f]{64}"\}$/,
    );
  }),
);

test("get_backup of a running engine sends a file that restore reads", SLOW, () =>
  inFolder(async (folder) => {
    const [from, to, file] = [join(folder, "from"), join(folder, "to"), join(folder, "downloaded.backup")];
    await withRecords(from, (store) => store.commit({ set: [["test/one", { title: "kept" }]] }));
    const engine = await startEngine({ dataDir: from });
    try {
      const answer = await fetch(`${engine.url}/server/api/get_api_access_token`);
      const { token } = ((await answer.json()) as { result: { token: string } }).result;
      const url = `${engine.url}/server/api/get_backup?token=${token}`;
      const response = await fetch(url);
      assert.match(response.headers.get("content-disposition") ?? "", /sluice-.*\.backup/);
      await writeFile(file, new Uint8Array(await response.arrayBuffer()));
      assert.equal((await fetch(url)).headers.get("content-type"), "application/octet-stream");
    } finally {
      await engine.stop();
    }
    const restored = await sluice(to, "restore", file);
    assert.equal(restored.code, 0, restored.output);
    await withRecords(to, async (store) => assert.deepEqual(await store.get("test/one"), { title: "kept" }));
  }),
);

/** Calls the control interface of an engine as a page on its computer does. */
async function control(engine: EngineProcess, method: string) {
  const answer = await fetch(`${engine.url}/server/api/get_api_access_token`);
  const { token } = ((await answer.json()) as { result: { token: string } }).result;
  const called = await fetch(`${engine.url}/server/api/${method}?token=${token}`);
  // biome-ignore lint/suspicious/noExplicitAny: the tests read members by name.
  return (await called.json()) as { result: any; error: { message: string } | null };
}

async function upload(engine: EngineProcess, body: Uint8Array<ArrayBuffer>) {
  const answer = await fetch(`${engine.url}/api/restore`, { method: "POST", body });
  // biome-ignore lint/suspicious/noExplicitAny: the tests read members by name.
  return (await answer.json()) as { result: any; error: { message: string } | null };
}

/** Waits until the engine has restarted after `restore_backup`. */
async function outcomeOf(engine: EngineProcess): Promise<{ records: number; problem: string | null }> {
  for (;;) {
    const { outcome } = await control(engine, "get_restore").then(
      ({ result }) => result ?? { outcome: null },
      () => ({ outcome: null }),
    );
    if (outcome !== null) return outcome;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

test(
  "a running engine restores an uploaded backup, keeps the former database, and refuses a damaged one",
  SLOW,
  () =>
    inFolder(async (folder) => {
      const [from, to, file] = [join(folder, "from"), join(folder, "to"), join(folder, "kept.backup")];
      await mkdir(join(from, "library/images"), { recursive: true });
      await writeFile(join(from, "library/images/0123abcd"), "logo");
      await withRecords(from, (store) =>
        store.commit({
          set: [
            ["test/a", "new"],
            ["watched/none", 1],
          ],
        }),
      );
      await sluice(from, "backup", file);
      const bytes = new Uint8Array(await readFile(file));
      await withRecords(to, (store) => store.commit({ set: [["test/a", "old"]] }));
      const engine = await startEngine({ dataDir: to });
      try {
        const early = await control(engine, "restore_backup");
        assert.match(early.error?.message ?? "", /no backup is ready/);
        const damaged = await upload(engine, bytes.slice(0, -2));
        assert.match(damaged.error?.message ?? "", /not a complete Sluice backup/);
        assert.match((await control(engine, "restore_backup")).error?.message ?? "", /no backup is ready/);
        const { backup, present } = (await upload(engine, bytes)).result;
        assert.deepEqual([backup.records, backup.watched, backup.files, present.watched], [2, 1, 1, 0]);
        assert.equal((await control(engine, "restore_backup")).result, "ok");
        assert.deepEqual(await outcomeOf(engine), { records: 2, problem: null });
      } finally {
        await engine.stop();
      }
      await withRecords(to, async (store) => assert.equal(await store.get("test/a"), "new"));
      assert.equal(await readFile(join(to, "library/images/0123abcd"), "utf8"), "logo");
      assert.ok((await readdir(join(to, "library"))).includes("records.1.old"));
      assert.ok(!(await readdir(to)).some((name) => name.startsWith("uploaded")));
    }),
);

test(
  "an engine that is killed while it restores has either all former records or all of the backup",
  SLOW,
  () =>
    inFolder(async (folder) => {
      const [from, file] = [join(folder, "from"), join(folder, "kept.backup")];
      const keys = Array.from({ length: 5_000 }, (_, i) => `test/${i}`);
      const write = (dataDir: string, value: string) =>
        withRecords(dataDir, async (store) => {
          for (let at = 0; at < keys.length; at += 500)
            await store.commit({ set: keys.slice(at, at + 500).map((key) => [key, value] as const) });
        });
      await write(from, "new".repeat(50));
      await sluice(from, "backup", file);
      const bytes = new Uint8Array(await readFile(file));
      // The steps of a restore by the file with which each begins; the last one stays.
      const last = "records.1.old";
      for (const step of ["records.building", "records.ready", last]) {
        const to = join(folder, step);
        await write(to, "old".repeat(50));
        const engine = await startEngine({ dataDir: to });
        try {
          assert.equal((await upload(engine, bytes)).error, null);
          await control(engine, "restore_backup");
          for (let names: string[] = []; !names.includes(step) && !names.includes(last); )
            names = await readdir(join(to, "library"));
        } finally {
          engine.child.kill("SIGKILL");
          await engine.stop();
        }
        await withRecords(
          to,
          async (store) => {
            const values = new Set<unknown>();
            for (const key of keys) values.add(await store.get(key));
            assert.deepEqual([values.size, typeof [...values][0]], [1, "string"], step);
          },
          (message) => assert.match(message, /was being replaced when the last run ended/),
        );
      }
    }),
);

test("restore refuses to replace a database, except with --force", SLOW, () =>
  inFolder(async (folder) => {
    const [from, to, file] = [join(folder, "from"), join(folder, "to"), join(folder, "kept.backup")];
    await withRecords(from, (store) => store.commit({ set: [["a", "new"]] }));
    await sluice(from, "backup", file);
    await withRecords(to, (store) =>
      store.commit({
        set: [
          ["a", "old"],
          ["b", 1],
        ],
      }),
    );
    const refused = await sluice(to, "restore", file);
    assert.equal(refused.code, 2);
    assert.match(refused.output, /^sluice: the store already has records; --force replaces them/);
    await withRecords(to, async (store) => assert.equal(await store.get("a"), "old"));
    assert.equal((await sluice(to, "restore", file, "--force")).code, 0);
    await withRecords(to, async (store) => {
      assert.equal(await store.get("a"), "new");
      assert.equal(await store.get("b"), undefined);
    });
    assert.ok((await readdir(join(to, "library"))).includes("records.1.old"));
  }),
);

test("restore refuses while an engine uses the database", SLOW, () =>
  inFolder(async (folder) => {
    const file = join(folder, "kept.backup");
    await withRecords(folder, async () => {
      assert.equal((await sluice(folder, "backup", file)).code, 0);
      const refused = await sluice(folder, "restore", file, "--force");
      assert.equal(refused.code, 2);
      assert.match(refused.output, /^sluice: another Sluice uses /);
    });
  }),
);

test("restore refuses an incomplete backup, and a backup with unexpected files", SLOW, () =>
  inFolder(async (folder) => {
    const [from, to, file] = [join(folder, "from"), join(folder, "to"), join(folder, "kept.backup")];
    await mkdir(join(from, "library/images"), { recursive: true });
    await writeFile(join(from, "library/images/..hidden"), "x");
    await withRecords(from, (store) => store.commit({ set: [["a", 1]] }));
    await sluice(from, "backup", file);
    const named = await sluice(to, "restore", file);
    assert.equal(named.code, 1);
    assert.match(named.output, /contains an unexpected file: library\/images\/\.\.hidden/);
    const whole = await readFile(file);
    const flipped = Buffer.from(whole);
    flipped[whole.length - 20]! ^= 1;
    const wrong = [
      whole.subarray(0, -1),
      whole.subarray(0, 60),
      Buffer.from("no backup\n"),
      flipped,
      Buffer.alloc(0),
    ];
    for (const bytes of [...wrong, Buffer.concat([whole, whole])]) {
      await writeFile(file, bytes);
      const { code, output } = await sluice(to, "restore", file);
      assert.equal(code, 1, output);
      assert.match(output, /^sluice: this is not a complete Sluice backup: .*nothing was changed$/);
    }
    await withRecords(to, async (store) => assert.equal(await store.get("a"), undefined));
  }),
);
