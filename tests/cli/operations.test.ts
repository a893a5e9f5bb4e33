import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { SILENT_LOG } from "../../src/base/log.ts";
import { LoopLag } from "../../src/cli/loop-lag.ts";
import { measuredStore } from "../../src/cli/measured-store.ts";
import { Operations, type OperationsDependencies } from "../../src/cli/operations.ts";
import type { FakeClock } from "../engine/fake-clock.ts";
import { fakeEngine } from "../engine/fake-engine.ts";

function operations(changes: Partial<OperationsDependencies> = {}) {
  const { engine, clock, transfers } = fakeEngine();
  const made = new Operations({
    engine,
    clock,
    store: { get: async () => undefined, figures: () => [] },
    files: { freeBytes: async () => 5e9 },
    loopLag: { readSeconds: () => 0.25 },
    log: SILENT_LOG,
    dataDir: "/nowhere",
    version: "1.2.3",
    runtime: "bun 1.0",
    process: () => ({ cpuSeconds: 1.5, residentBytes: 1e8 }),
    ...changes,
  });
  return { operations: made, clock: clock as FakeClock, engine, transfers };
}

const failures = async (of: Operations) => (await of.readiness()).filter(({ isOk }) => !isOk);

test("Operations.readiness: a running engine is ready, a stopping one is not", async () => {
  const { operations: ready } = operations();
  assert.deepEqual(await failures(ready), []);
  ready.closing();
  assert.deepEqual(
    (await failures(ready)).map(({ text }) => text),
    ["the engine is stopping"],
  );
});

test("Operations.readiness: names a full disk and a database that fails or does not answer", async () => {
  const full = operations({ files: { freeBytes: async () => 1e6 } });
  assert.match((await failures(full.operations))[0]!.text, /^1\.0 MB are free\. Free some space/);
  const broken = operations({
    store: { get: () => Promise.reject(new Error("disk I/O error")), figures: () => [] },
  });
  assert.match((await failures(broken.operations))[0]!.text, /cannot be read: disk I\/O error$/);
  const hanging = operations({ store: { get: () => new Promise(() => {}), figures: () => [] } });
  const answer = failures(hanging.operations);
  await hanging.clock.advance(5_000);
  assert.match((await answer)[0]!.text, /did not answer within 5 s$/);
});

test("Operations.metrics: counts responses by class, and each metric has a name of its own", async () => {
  const { operations: counted } = operations();
  for (const status of [200, 206, 404])
    counted.answered({ method: "GET", path: "/", requestId: undefined, status });
  const families = await counted.measure();
  assert.equal(new Set(families.map(({ name }) => name)).size, families.length);
  const text = await counted.metrics();
  for (const line of [
    'sluice_info{version="1.2.3",runtime="bun 1.0"} 1',
    'sluice_http_responses_total{code="2xx"} 2',
    'sluice_http_responses_total{code="4xx"} 1',
    "sluice_disk_free_bytes 5000000000",
    "sluice_event_loop_lag_seconds 0.25",
    "process_cpu_seconds_total 1.5",
  ])
    assert.ok(text.includes(`\n${line}\n`), line);
});

test("docs/operations.md lists every metric, and dashboards and alerts use no others", async () => {
  const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
  const named = (text: string) => new Set(text.match(/\b(?:sluice|process)_[a-z]+_?[a-z_]*\b/g));
  const { operations: measured } = operations();
  const names = new Set((await measured.measure()).map(({ name }) => name));
  const documented = named(read("docs/operations.md"));
  assert.deepEqual(
    [...names].filter((name) => !documented.has(name)),
    [],
  );
  for (const path of [
    "docs/operations.md",
    "deploy/prometheus/alerts.yml",
    "deploy/prometheus/grafana-dashboard.json",
  ])
    assert.deepEqual(
      [...named(read(path))].filter((name) => !names.has(name)),
      [],
      path,
    );
});

test("LoopLag: the largest delay of a timer since the last reading; it stops sampling when it is not read", async () => {
  const { clock } = fakeEngine();
  let lateMs = 0;
  const late: ConstructorParameters<typeof LoopLag>[0] = {
    now: () => clock.now(),
    unixSeconds: () => clock.unixSeconds(),
    at: (at, run) => clock.at((at + lateMs) as typeof at, run),
  };
  const lag = new LoopLag(late);
  assert.equal(lag.readSeconds(), 0);
  lateMs = 80;
  await clock.advance(1_000);
  lateMs = 0;
  await clock.advance(1_000);
  assert.equal(lag.readSeconds(), 0.08);
  assert.equal(lag.readSeconds(), 0);
  await clock.advance(301_000);
  assert.equal(clock.waiting, 0);
});

test("measuredStore: counts and times reads and commits, also those that fail", async () => {
  const { clock } = fakeEngine();
  const store = measuredStore(
    {
      get: async (key) => {
        await clock.advance(250);
        if (key === "bad") throw new Error("no");
        return key;
      },
      commit: async () => true,
      list: async function* () {},
      close: async () => {},
    },
    clock,
  );
  assert.equal(await store.get("a"), "a");
  await assert.rejects(store.get("bad"), /no/);
  assert.equal(await store.commit({}), true);
  assert.deepEqual(store.figures(), [
    { operation: "get", calls: 2, failures: 1, seconds: 0.5 },
    { operation: "commit", calls: 1, failures: 0, seconds: 0 },
  ]);
});
