import assert from "node:assert/strict";
import { test } from "node:test";
import { instant } from "../../src/base/time.ts";
import {
  ALONE_MS,
  SILENCE_MS,
  START_MS,
  type StandbyObservation,
  StandbyWatch,
} from "../../src/live/broadcast/standby-watch.ts";
import type { PieceHeader } from "../../src/wire/live/header.ts";
import { header } from "../protocol/live/scripted.ts";

type Verdict = ReturnType<StandbyWatch["update"]>;

/** A watch that is updated ten times a second. */
class Watched {
  readonly watch = new StandbyWatch({ silenceMs: SILENCE_MS, startMs: START_MS }, instant(0));
  atMs = 0;
  newest: PieceHeader | undefined;
  /** Peers send messages all the time. */
  hasPeers = true;
  isReady = true;

  /** Updates for this long, or until the result is not "wait"; returns the result and the time. */
  pass(ms: number, onEach: () => void = () => {}): { readonly result: Verdict; readonly atMs: number } {
    for (const end = this.atMs + ms; this.atMs < end; this.atMs += 100) {
      onEach();
      const sight: StandbyObservation = {
        newest: this.newest,
        heardAt: this.hasPeers ? instant(this.atMs) : undefined,
        isReady: this.isReady,
      };
      const result = this.watch.update(sight, instant(this.atMs));
      if (result !== "wait") return { result, atMs: this.atMs };
    }
    return { result: "wait", atMs: this.atMs };
  }

  /** Another source is on air. */
  follow(ms: number): void {
    let seq = this.newest?.seq ?? 100;
    const { result } = this.pass(ms, () => {
      this.newest = header(++seq).value;
    });
    assert.equal(result, "wait");
  }
}

test("StandbyWatch.update: takes over 2 s after the last header, and not before", () => {
  const watched = new Watched();
  watched.follow(60_000);
  assert.equal(watched.watch.state, "follow");
  const goneAtMs = watched.atMs - 100;
  const { result, atMs } = watched.pass(5000);
  assert.deepEqual([result, atMs - goneAtMs], ["take over", SILENCE_MS]);
  assert.equal(watched.watch.state, "silent");
});

test("StandbyWatch.update: goes on air if no source is found at the start, with or without peers", () => {
  for (const hasPeers of [true, false]) {
    const watched = new Watched();
    watched.hasPeers = hasPeers;
    assert.deepEqual(watched.pass(60_000), { result: "take over", atMs: START_MS });
  }
});

test("StandbyWatch.update: a repeated old header is not a sign of life", () => {
  const watched = new Watched();
  watched.newest = header(100).value;
  assert.deepEqual(watched.pass(60_000), { result: "take over", atMs: START_MS }, "the first one");
  const other = new Watched();
  other.follow(5000);
  const [newest, goneAtMs] = [other.newest!, other.atMs - 100];
  let seq = newest.seq;
  const replay = () => {
    other.newest = header(--seq).value;
  };
  assert.deepEqual(other.pass(5000, replay), { result: "take over", atMs: goneAtMs + SILENCE_MS });
  assert.deepEqual(other.watch.seen, newest);
});

test("StandbyWatch.update: waits longer if no peer sends anything, because our network may be down", () => {
  const watched = new Watched();
  watched.follow(5000);
  const goneAtMs = watched.atMs - 100;
  watched.hasPeers = false;
  assert.equal(watched.pass(ALONE_MS - 1000).result, "wait");
  assert.equal(watched.watch.state, "alone");
  watched.follow(1000);
  assert.equal(watched.watch.state, "follow");
  assert.ok(watched.atMs - goneAtMs >= ALONE_MS - 1000);
  const lastMs = watched.atMs - 100;
  assert.deepEqual(watched.pass(60_000), { result: "take over", atMs: lastMs + ALONE_MS });
});

test("StandbyWatch.update: peers that fell silent with the stream confirm nothing", () => {
  const watched = new Watched();
  watched.follow(5000);
  const heardAt = instant(watched.atMs + 500);
  const looks = [500, 1500, 2500, 4000].map((ms) =>
    watched.watch.update({ newest: watched.newest, heardAt, isReady: true }, instant(watched.atMs + ms)),
  );
  assert.deepEqual(looks, ["wait", "wait", "wait", "wait"]);
  const beforeMs = instant(watched.atMs + 4500);
  const gone = instant(watched.atMs + 6200);
  assert.equal(
    watched.watch.update({ newest: watched.newest, heardAt: beforeMs, isReady: true }, gone),
    "wait",
    "a peer that spoke once and left",
  );
  const back = instant(watched.atMs + 7000);
  assert.equal(
    watched.watch.update({ newest: watched.newest, heardAt: back, isReady: true }, back),
    "take over",
  );
});

test("StandbyWatch.update: never takes over while its own source is silent", () => {
  const watched = new Watched();
  watched.follow(5000);
  watched.isReady = false;
  assert.equal(watched.pass(120_000).result, "wait");
  watched.isReady = true;
  assert.equal(watched.pass(1000).result, "take over");
});

test("StandbyWatch.update: ends with the stream, but not by a repeated old end", () => {
  const watched = new Watched();
  watched.follow(5000);
  watched.newest = header(watched.newest!.seq + 1, { isEnd: true }).value;
  assert.equal(watched.pass(1000).result, "over");
  const late = new Watched();
  late.newest = header(500, { isEnd: true }).value;
  assert.deepEqual(late.pass(60_000), { result: "take over", atMs: START_MS });
});
