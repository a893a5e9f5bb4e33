import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { SluiceError } from "../../src/base/errors.ts";
import type { Infohash } from "../../src/base/ids.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import { KeptRelays } from "../../src/cli/relay-desk.ts";
import { createRelayRecords } from "../../src/library/relay-records.ts";
import type { AcquireOptions, TransferLease } from "../../src/playback/contract.ts";
import { FakeClock, settled } from "../engine/fake-clock.ts";
import { MapStore } from "../library/map-store.ts";

const HASH = "ab".repeat(20) as Infohash;
const LINK = `magnet:?xt=urn:btih:${HASH}&x.pe=127.0.0.1:4000`;
const FIGURES = { peers: 3, children: 2, lagMs: 800, lastSeq: 7, hasEnded: false };

/** Relays on an engine whose streams the test controls, with records that survive them. */
function desk(store = new MapStore()) {
  const clock = new FakeClock();
  const asked: AcquireOptions[] = [];
  const state = {
    failure: undefined as SluiceError | undefined,
    isLive: true,
    released: 0,
    /** Holders of the transfer of the stream; undefined if it is not open. */
    holders: undefined as number | undefined,
    stopped: [] as Infohash[],
  };
  const engine = {
    figures() {
      const { holders } = state;
      return { transfers: holders === undefined ? [] : [{ infohash: HASH, holders }] } as never;
    },
    stopTransfer(infohash: Infohash) {
      state.stopped.push(infohash);
      state.holders = undefined;
    },
    async acquire(_: unknown, options: AcquireOptions = {}): Promise<TransferLease> {
      asked.push(options);
      if (state.failure) throw state.failure;
      const live = state.isLive ? { figures: () => FIGURES, isForked: false } : undefined;
      const figures = { bytesPerSecondDown: 10, bytesPerSecondUp: 20 };
      const transfer = { infohash: HASH, name: "News", live, figures } as never;
      return { transfer, selectedFiles: undefined, release: () => state.released++, rest() {} };
    },
  };
  const { ed25519Key } = runtime;
  const relays = new KeptRelays({
    engine,
    records: createRelayRecords(store, SILENT_LOG),
    clock,
    log: SILENT_LOG,
    ed25519Key,
  });
  return { relays, store, clock, asked, state };
}

test("KeptRelays: joins as a relay, reports its figures, and starts again with the engine until it is stopped", async () => {
  const { relays, store, asked, state } = desk();
  assert.equal((await relays.start(LINK, undefined)).infohash, HASH);
  await settled();
  assert.equal(asked[0]!.liveRole, "relay");
  const [relay] = relays.list();
  assert.deepEqual(
    [relay!.name, relay!.problem, relay!.peers, relay!.children, relay!.behindMs, relay!.bytesPerSecondUp],
    ["News", "", 3, 2, 800, 20],
  );
  relays.close();
  assert.equal(state.released, 1);
  const next = desk(store);
  await next.relays.restore();
  await settled();
  assert.equal(next.relays.list()[0]!.link, LINK);
  await next.relays.stop(HASH);
  assert.deepEqual([next.relays.list(), next.state.released], [[], 1]);
  const last = desk(store);
  await last.relays.restore();
  assert.deepEqual(last.relays.list(), []);
  await assert.rejects(last.relays.stop(HASH), /does not relay/);
});

test("KeptRelays: a stream without peers is tried again, other content is not", async () => {
  const { relays, clock, asked, state } = desk();
  state.failure = new SluiceError("no_peers", "no peers");
  await relays.start(LINK, undefined);
  await settled();
  assert.deepEqual([relays.list()[0]!.isFailed, relays.list()[0]!.problem], [true, "no peers"]);
  state.failure = undefined;
  state.isLive = false;
  await clock.advance(10_000);
  await settled();
  assert.equal(asked.length, 2);
  assert.match(relays.list()[0]!.problem, /not a live stream/);
  assert.equal(state.released, 1);
});

test("KeptRelays: a refused second start leaves the relay running", async () => {
  const { relays, state } = desk();
  await relays.start(LINK, undefined);
  await settled();
  state.holders = 1;
  await assert.rejects(relays.start(LINK, undefined), /already relays the stream/);
  assert.deepEqual([relays.list().length, relays.list()[0]!.name, state.released], [1, "News", 0]);
});

test("KeptRelays: a stream that no player uses any more can be relayed, also right after its relay was stopped", async () => {
  const { relays, state } = desk();
  state.holders = 0;
  await relays.start(LINK, undefined);
  await settled();
  assert.deepEqual([state.stopped, relays.list()[0]!.name], [[HASH], "News"]);
  state.holders = 0;
  await relays.stop(HASH);
  assert.deepEqual(state.stopped, [HASH, HASH]);
  await relays.start(LINK, undefined);
  assert.equal(relays.list().length, 1);
  state.holders = 2;
  await relays.stop(HASH);
  assert.deepEqual([state.holders, state.stopped.length], [2, 2]);
});

test("KeptRelays: refuses what it cannot relay, and stores nothing", async () => {
  const { relays, store, state } = desk();
  for (const link of ["nothing", "https://tv.example/a.sluice", "https://tv.example/"])
    await assert.rejects(relays.start(link, undefined), /expected the link of a live stream/);
  await assert.rejects(relays.start(LINK, "{}"), /is no relay pass/);
  await assert.rejects(relays.start("m".repeat(16_385), undefined), /got a longer text/);
  await assert.rejects(relays.start(LINK, "{".repeat(4_097)), /got a longer text/);
  state.holders = 1;
  await assert.rejects(relays.start(LINK, undefined), /stop its players first/);
  assert.deepEqual(relays.list(), []);
  await relays.restore();
  assert.deepEqual([relays.list(), (await Array.fromAsync(store.list("relay/"))).length], [[], 0]);
});
