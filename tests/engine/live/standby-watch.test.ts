import assert from "node:assert/strict";
import { test } from "node:test";
import { instant } from "../../../src/base/time.ts";
import {
  ALONE_MS,
  SILENCE_MS,
  START_MS,
  type StandbySight,
  StandbyWatch,
} from "../../../src/engine/live/standby-watch.ts";
import type { PieceHeader } from "../../../src/wire/live-header.ts";
import { header } from "../../swarm/live/scripted.ts";

type Verdict = ReturnType<StandbyWatch["look"]>;

/** A watch that looks ten times a second. */
class Watched {
  readonly watch = new StandbyWatch({ silenceMs: SILENCE_MS, startMs: START_MS }, instant(0));
  atMs = 0;
  newest: PieceHeader | undefined;
  /** Peers speak all the time. */
  hasPeers = true;
  isReady = true;

  /** Looks for so long, or until there is something to do; says when that was. */
  pass(ms: number, onEach: () => void = () => {}): { readonly verdict: Verdict; readonly atMs: number } {
    for (const end = this.atMs + ms; this.atMs < end; this.atMs += 100) {
      onEach();
      const sight: StandbySight = {
        newest: this.newest,
        heardAt: this.hasPeers ? instant(this.atMs) : undefined,
        isReady: this.isReady,
      };
      const verdict = this.watch.look(sight, instant(this.atMs));
      if (verdict !== "wait") return { verdict, atMs: this.atMs };
    }
    return { verdict: "wait", atMs: this.atMs };
  }

  /** Somebody is on air. */
  follow(ms: number): void {
    let seq = this.newest?.seq ?? 100;
    const { verdict } = this.pass(ms, () => {
      this.newest = header(++seq).value;
    });
    assert.equal(verdict, "wait");
  }
}

test("StandbyWatch.look: takes over 2 s after the last header, and not before", () => {
  const watched = new Watched();
  watched.follow(60_000);
  assert.equal(watched.watch.state, "follow");
  const goneAtMs = watched.atMs - 100;
  const { verdict, atMs } = watched.pass(5000);
  assert.deepEqual([verdict, atMs - goneAtMs], ["take over", SILENCE_MS]);
  assert.equal(watched.watch.state, "silent");
});

test("StandbyWatch.look: with nobody on air at the start it goes on air after a while, peers or not", () => {
  for (const hasPeers of [true, false]) {
    const watched = new Watched();
    watched.hasPeers = hasPeers;
    assert.deepEqual(watched.pass(60_000), { verdict: "take over", atMs: START_MS });
  }
});

test("StandbyWatch.look: a header that is told again from long ago is no sign of life", () => {
  const watched = new Watched();
  watched.newest = header(100).value;
  assert.deepEqual(watched.pass(60_000), { verdict: "take over", atMs: START_MS }, "the first one");
  const other = new Watched();
  other.follow(5000);
  const [newest, goneAtMs] = [other.newest!, other.atMs - 100];
  let seq = newest.seq;
  const replay = () => {
    other.newest = header(--seq).value;
  };
  assert.deepEqual(other.pass(5000, replay), { verdict: "take over", atMs: goneAtMs + SILENCE_MS });
  assert.deepEqual(other.watch.seen, newest);
});

test("StandbyWatch.look: where no peer says anything the network may be what is gone, and it waits", () => {
  const watched = new Watched();
  watched.follow(5000);
  const goneAtMs = watched.atMs - 100;
  watched.hasPeers = false;
  assert.equal(watched.pass(ALONE_MS - 1000).verdict, "wait");
  assert.equal(watched.watch.state, "alone");
  watched.follow(1000);
  assert.equal(watched.watch.state, "follow");
  assert.ok(watched.atMs - goneAtMs >= ALONE_MS - 1000);
  const lastMs = watched.atMs - 100;
  assert.deepEqual(watched.pass(60_000), { verdict: "take over", atMs: lastMs + ALONE_MS });
});

test("StandbyWatch.look: peers that fell silent with the stream are no witnesses", () => {
  const watched = new Watched();
  watched.follow(5000);
  const heardAt = instant(watched.atMs + 500);
  const looks = [500, 1500, 2500, 4000].map((ms) =>
    watched.watch.look({ newest: watched.newest, heardAt, isReady: true }, instant(watched.atMs + ms)),
  );
  assert.deepEqual(looks, ["wait", "wait", "wait", "wait"]);
  const beforeMs = instant(watched.atMs + 4500);
  const gone = instant(watched.atMs + 6200);
  assert.equal(
    watched.watch.look({ newest: watched.newest, heardAt: beforeMs, isReady: true }, gone),
    "wait",
    "who spoke once, and is gone",
  );
  const back = instant(watched.atMs + 7000);
  assert.equal(
    watched.watch.look({ newest: watched.newest, heardAt: back, isReady: true }, back),
    "take over",
  );
});

test("StandbyWatch.look: who has nothing to show takes over from nobody", () => {
  const watched = new Watched();
  watched.follow(5000);
  watched.isReady = false;
  assert.equal(watched.pass(120_000).verdict, "wait");
  watched.isReady = true;
  assert.equal(watched.pass(1000).verdict, "take over");
});

test("StandbyWatch.look: a stream that its source has ended is over; an end that is told again is not", () => {
  const watched = new Watched();
  watched.follow(5000);
  watched.newest = header(watched.newest!.seq + 1, { isEnd: true }).value;
  assert.equal(watched.pass(1000).verdict, "over");
  const late = new Watched();
  late.newest = header(500, { isEnd: true }).value;
  assert.deepEqual(late.pass(60_000), { verdict: "take over", atMs: START_MS });
});
