import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import type { Infohash } from "../../../src/base/ids.ts";
import { ContentIdSwarms } from "../../../src/engine/live/content-id-swarms.ts";
import { encodeHandshake } from "../../../src/wire/handshake.ts";
import { parseLiveTransportFile } from "../../../src/wire/live-transport.ts";
import type { AnnounceRequest } from "../../../src/wire/tracker.ts";
import { NO_FINDER } from "../../parts/no-reach.ts";
import { TRANSPORT_FILE } from "../../wire/live-vectors.ts";
import { sha1 } from "../../wire/make-torrent.ts";
import { FakeClock, settled } from "../fake-clock.ts";
import { keepingLog } from "../parts.ts";

const FILE = parseLiveTransportFile(TRANSPORT_FILE, sha1, runtime.ed25519Verifier);
const ID = FILE.contentId as string as Infohash;

function make() {
  const clock = new FakeClock();
  const { randomBytes } = runtime;
  const announces: AnnounceRequest[] = [];
  const announcer = {
    announce: async (request: AnnounceRequest) => {
      announces.push(request);
      return { ok: true as const, peers: [], intervalSeconds: 1800 };
    },
    scrape: async () => undefined,
  };
  const swarms = new ContentIdSwarms({
    clock,
    log: keepingLog(),
    random: Math.random,
    randomBytes,
    listenPort: 8621,
    finder: NO_FINDER,
  });
  return { clock, announces, announcer, swarms };
}

/** An incoming connection that notes what is done to it. */
function connection(port = 1) {
  const notes = { isClosed: false, written: 0, isPaused: false, takesMore: true };
  const socket = {
    remote: { host: "192.0.2.1", port },
    bufferedBytes: 0,
    write(bytes: Uint8Array) {
      notes.written += bytes.length;
      return notes.takesMore;
    },
    pause() {
      notes.isPaused = true;
    },
    resume() {
      notes.isPaused = false;
    },
    close() {
      notes.isClosed = true;
    },
  };
  return { notes, socket };
}

function greeting(infohash = ID) {
  const peerId = new Uint8Array(20).fill(0x42);
  return encodeHandshake({ infohash, peerId, extensions: true, fast: true, dht: false });
}

test("ContentIdSwarms.accept: those that ask for a file that is served, while it is served", async () => {
  const { swarms } = make();
  assert.equal(swarms.accept(ID, connection().socket, greeting()), undefined);
  const stop = swarms.serve(FILE);
  assert.equal(swarms.accept(FILE.infohash, connection().socket, greeting(FILE.infohash)), undefined);
  const { notes, socket } = connection();
  assert.ok(swarms.accept(ID, socket, greeting()));
  assert.ok(notes.written > 68);
  await stop();
  assert.equal(swarms.accept(ID, connection().socket, greeting()), undefined);
});

test("ContentIdSwarms.accept: who is at fault, stays too long, or is the oldest of too many is closed", async () => {
  const { swarms, clock } = make();
  swarms.serve(FILE);
  const faulty = connection();
  swarms.accept(ID, faulty.socket, greeting(FILE.infohash));
  assert.equal(faulty.notes.isClosed, true);
  const all = Array.from({ length: 40 }, (_, i) => connection(i + 1));
  const handlers = all.map(({ socket }) => swarms.accept(ID, socket, greeting())!);
  assert.equal(all.filter(({ notes }) => notes.isClosed).length, 8);
  assert.equal(all[7]!.notes.isClosed, true);
  assert.equal(all[8]!.notes.isClosed, false);
  await clock.advance(29_999);
  assert.equal(all[39]!.notes.isClosed, false);
  await clock.advance(1);
  assert.ok(all.every(({ notes }) => notes.isClosed));
  for (const each of handlers) each.closed("over");
  await swarms.close();
  assert.equal(clock.waiting, 0);
});

test("ContentIdSwarms.accept: who takes nothing is not read from meanwhile", () => {
  const { swarms } = make();
  swarms.serve(FILE);
  const { notes, socket } = connection();
  notes.takesMore = false;
  const handlers = swarms.accept(ID, socket, greeting())!;
  assert.equal(notes.isPaused, true);
  handlers.drained();
  assert.equal(notes.isPaused, false);
});

test("ContentIdSwarms.serve: no goodbye where the same file is served again at once", async () => {
  const { swarms, clock, announces, announcer } = make();
  await swarms.serve(FILE, announcer)(true);
  const stop = swarms.serve(FILE, announcer);
  await settled();
  assert.deepEqual(new Set(announces.map(({ event }) => event)), new Set(["started"]));
  await stop();
  assert.equal(announces.filter(({ event }) => event === "stopped").length, FILE.trackers.length);
  assert.equal(clock.waiting, 0);
});

test("ContentIdSwarms.serve: tells trackers at once, as often as they wish, and goodbye; without an announcer nobody", async () => {
  const { swarms, clock, announces, announcer } = make();
  const stop = swarms.serve(FILE, announcer);
  await settled();
  // One tracker of each tier.
  assert.equal(announces.length, FILE.trackers.length);
  assert.ok(
    announces.every(({ infohash, port, event }) => infohash === ID && port === 8621 && event === "started"),
  );
  await clock.advance(1_790_000);
  assert.equal(announces.length, FILE.trackers.length);
  await clock.advance(30_000);
  assert.equal(announces.length, 2 * FILE.trackers.length);
  // The same again is the same.
  await swarms.serve(FILE, announcer)();
  assert.equal(announces.length, 2 * FILE.trackers.length);
  await stop();
  assert.equal(announces.filter(({ event }) => event === "stopped").length, FILE.trackers.length);
  assert.equal(clock.waiting, 0);
  const before = announces.length;
  swarms.serve(FILE);
  await clock.advance(60_000);
  await swarms.close();
  assert.equal(announces.length, before);
});
