import assert from "node:assert/strict";
import { test } from "node:test";
import type { UtpId } from "../../../src/protocol/utp/contract.ts";
import { decodeUtpPacket } from "../../../src/wire/utp-packet.ts";
import {
  type PathShape,
  PatternReader,
  patternBytes,
  type UtpEvents,
  type UtpHost,
  UtpWorld,
} from "./world.ts";

const CALLER = { host: "1.0.0.1", port: 1_000 };
const CALLED = { host: "1.0.0.2", port: 2_000 };
const SEED = Number(process.env.SLUICE_SIM_SEED ?? 1);
const MEGABYTE = 1_000_000;

/** Records the events of one end of a connection. */
class RecordedEvents implements UtpEvents {
  readonly reader = new PatternReader();
  isOpened = false;
  drains = 0;
  reasons: string[] = [];

  opened(): void {
    this.isOpened = true;
  }
  received(bytes: Uint8Array): void {
    assert.deepEqual(this.reasons, [], "no event follows the close");
    this.reader.take(bytes);
  }
  drained(): void {
    this.drains++;
  }
  closed(reason: string): void {
    this.reasons.push(reason);
  }
}

/** Two engines, a path in each direction, and a connection between them. */
function pair(seed: number, there: PathShape, back: PathShape = { delayMs: there.delayMs }, drift = 0) {
  const world = new UtpWorld(seed);
  const paths = { there: world.path(there), back: world.path(back) };
  world.pathOf = (from) => (from.host === CALLER.host ? paths.there : paths.back);
  const caller = world.host(CALLER, 5_000);
  const called = world.host(CALLED, 99_999_999, drift);
  const ends = { caller: new RecordedEvents(), called: new RecordedEvents() };
  const accepted: UtpId[] = [];
  called.accept = (id) => {
    accepted.push(id);
    return ends.called;
  };
  const id = caller.connect(CALLED, ends.caller);
  return { world, paths, caller, called, ends, id, accepted };
}

/** Writes a pattern whenever there is buffer space, up to `total` bytes. */
function writePattern(
  host: UtpHost,
  id: UtpId,
  events: RecordedEvents,
  total = Number.POSITIVE_INFINITY,
): () => void {
  let written = 0;
  const more = () => {
    while (written < total && host.table.bufferedBytes(id) < 64 * 1024) {
      const size = Math.min(16 * 1024, total - written);
      written += size;
      host.write(id, patternBytes(written - size, size));
    }
  };
  events.drained = more;
  events.opened = more;
  return more;
}

test("UtpTable: bytes arrive complete and in order over a path that loses, duplicates and reorders packets", () => {
  for (let seed = SEED; seed < SEED + 5; seed++) {
    const shape = { delayMs: 20, loss: 0.05, duplicates: 0.05, reordered: 0.1 };
    const { world, caller, ends, id } = pair(seed, shape, shape);
    writePattern(caller, id, ends.caller, MEGABYTE);
    world.queue.run(60_000, () => ends.called.reader.bytes >= MEGABYTE);
    const { bytes, isRight } = ends.called.reader;
    assert.deepEqual({ seed, bytes, isRight }, { seed, bytes: MEGABYTE, isRight: true });
  }
});

/** Mbit/s of a connection in the `seconds` after its first two. */
function megabitsOf({ world, caller, ends, id }: ReturnType<typeof pair>, seconds: number): number {
  writePattern(caller, id, ends.caller);
  world.queue.run(2_000);
  const before = ends.called.reader.bytes;
  world.queue.run(2_000 + seconds * 1_000);
  return ((ends.called.reader.bytes - before) * 8) / seconds / 1e6;
}

test("UtpTable: carries 50 Mbit/s with 100 ms round trip and 2 % loss, or most of a narrower path", () => {
  const wide = megabitsOf(pair(SEED, { delayMs: 50, loss: 0.02 }), 4);
  assert.ok(wide >= 50, `seed ${SEED}: ${wide.toFixed(1)} Mbit/s`);
  const narrow = { delayMs: 50, loss: 0.02, bitsPerSecond: 20_000_000, queueBytes: 500_000 };
  const megabits = megabitsOf(pair(SEED, narrow), 6);
  assert.ok(megabits >= 15, `seed ${SEED}: ${megabits.toFixed(1)} of 20 Mbit/s`);
});

test("UtpTable: a peer that buffers 512 packets behind a gap is found out, and sent no more", () => {
  const shape = { delayMs: 50, loss: 0.02 };
  const both = pair(SEED, shape);
  const { paths, called } = both;
  let acked: number | undefined;
  let dropped = 0;
  const carry = paths.back.carry.bind(paths.back);
  paths.back.carry = (bytes, arrive) => {
    acked = decodeUtpPacket(bytes).ack;
    carry(bytes, arrive);
  };
  const take = called.datagram.bind(called);
  called.datagram = (bytes, from) => {
    const { kind, sequence } = decodeUtpPacket(bytes);
    const ahead = acked === undefined ? 0 : (sequence - acked) & 0xffff;
    if (kind === "data" && ahead > 512 && ahead < 0x8000) dropped++;
    else take(bytes, from);
  };
  const megabits = megabitsOf(both, 6);
  assert.ok(megabits >= 18, `seed ${SEED}: ${megabits.toFixed(1)} Mbit/s`);
  assert.ok(dropped < 300, `${dropped} packets that the peer dropped`);
});

test("UtpTable: the first megabyte of a stream arrives within 1 s at 20 ms, within 1.5 s at 100 ms", () => {
  for (const [delayMs, withinMs] of [
    [10, 1_000],
    [50, 1_500],
  ] as const) {
    const { world, caller, ends, id } = pair(SEED, {
      delayMs,
      bitsPerSecond: 50_000_000,
      queueBytes: 500_000,
    });
    writePattern(caller, id, ends.caller, MEGABYTE);
    world.queue.run(60_000, () => ends.called.reader.bytes >= MEGABYTE);
    assert.ok(world.queue.now <= withinMs, `seed ${SEED}: ${world.queue.now} ms at ${delayMs} ms each way`);
  }
});

test("UtpTable: uses the full bandwidth, and keeps the queueing delay at the target", () => {
  const { world, paths, caller, ends, id } = pair(SEED, {
    delayMs: 20,
    bitsPerSecond: 10_000_000,
    queueBytes: 2_000_000,
  });
  writePattern(caller, id, ends.caller);
  world.queue.run(5_000);
  const before = ends.called.reader.bytes;
  let longestMs = 0;
  for (let at = 5_000; at < 35_000; at += 50) {
    world.queue.run(at);
    longestMs = Math.max(longestMs, paths.there.waitMs);
  }
  const megabits = ((ends.called.reader.bytes - before) * 8) / 30 / 1e6;
  assert.ok(megabits > 9, `${megabits} of 10 Mbit/s`);
  assert.ok(longestMs < 130, `packets wait up to ${longestMs} ms`);
});

test("UtpTable: yields to other traffic that fills the queue, and recovers when it stops", () => {
  const { world, paths, caller, ends, id } = pair(SEED, {
    delayMs: 20,
    bitsPerSecond: 10_000_000,
    queueBytes: 400_000,
  });
  writePattern(caller, id, ends.caller);
  const megabits = (untilMs: number, seconds: number) => {
    const before = ends.called.reader.bytes;
    world.queue.run(untilMs);
    return ((ends.called.reader.bytes - before) * 8) / seconds / 1e6;
  };
  world.queue.run(5_000);
  // Traffic that fills any queue, as a TCP download does.
  let greedy = true;
  const fill = () => {
    while (greedy && paths.there.waitMs < 250) paths.there.carry(new Uint8Array(1_400), () => {});
    if (greedy) world.queue.after(10, fill);
  };
  fill();
  world.queue.run(8_000);
  const beside = megabits(13_000, 5);
  assert.ok(beside < 1, `${beside.toFixed(2)} Mbit/s beside traffic that fills the queue`);
  greedy = false;
  world.queue.run(18_000);
  const alone = megabits(28_000, 10);
  assert.ok(alone > 8, `${alone.toFixed(2)} of 10 Mbit/s when alone again`);
});

test("UtpTable: two connections share a path fairly, regardless of which started first", () => {
  const world = new UtpWorld(SEED);
  const there = world.path({ delayMs: 20, bitsPerSecond: 10_000_000, queueBytes: 1_000_000 });
  const back = world.path({ delayMs: 20 });
  world.pathOf = (from) => (from.host === CALLED.host ? back : there);
  const called = world.host(CALLED, 1_000_000);
  const events = [new RecordedEvents(), new RecordedEvents()];
  called.accept = (_, remote) => events[remote.host.endsWith("10") ? 0 : 1]!;
  for (const [i, atMs] of [0, 15_000].entries()) {
    world.queue.at(atMs, () => {
      const host = world.host({ host: `1.0.0.${10 + i}`, port: 1 }, 500 * i);
      const own = new RecordedEvents();
      const id = host.connect(CALLED, own);
      writePattern(host, id, own);
    });
  }
  world.queue.run(60_000);
  const before = events.map(({ reader }) => reader.bytes);
  world.queue.run(90_000);
  const [first, second] = events.map(({ reader }, i) => ((reader.bytes - before[i]!) * 8) / 30 / 1e6);
  assert.ok(first! + second! > 8.5, `${first} and ${second} of 10 Mbit/s`);
  assert.ok(Math.min(first!, second!) > 3, `${first} and ${second} Mbit/s`);
});

test("UtpTable: a clock drift of 500 µs a second is not taken for a queue", () => {
  for (const drift of [0.0005, -0.0005]) {
    const { world, caller, ends, id } = pair(
      SEED,
      { delayMs: 20, bitsPerSecond: 1_000_000, queueBytes: 50_000 },
      { delayMs: 20 },
      drift,
    );
    writePattern(caller, id, ends.caller);
    world.queue.run(300_000);
    const before = ends.called.reader.bytes;
    world.queue.run(360_000);
    const megabits = ((ends.called.reader.bytes - before) * 8) / 60 / 1e6;
    assert.ok(megabits > 0.7, `${megabits.toFixed(2)} of 1 Mbit/s after five minutes at ${drift}`);
  }
});

test("UtpTable: uses small packets on a path that drops large ones", () => {
  const { world, caller, ends, id } = pair(SEED, { delayMs: 20, maxBytes: 548 });
  writePattern(caller, id, ends.caller, MEGABYTE);
  world.queue.run(20_000, () => ends.called.reader.bytes >= MEGABYTE);
  assert.equal(ends.called.reader.bytes, MEGABYTE);
});

test("UtpTable: a paused reader is sent no more than its window, and the rest after it resumes", () => {
  const { world, caller, called, ends, id, accepted } = pair(SEED, { delayMs: 20, loss: 0.01 });
  const total = 4 * MEGABYTE;
  writePattern(caller, id, ends.caller, total);
  world.queue.run(200);
  called.control(accepted[0]!, "pause");
  const atPause = ends.called.reader.bytes;
  world.queue.run(60_000);
  assert.equal(ends.called.reader.bytes, atPause);
  assert.deepEqual(ends.caller.reasons, []);
  assert.ok(caller.table.bufferedBytes(id) > 0);
  called.control(accepted[0]!, "resume");
  world.queue.run(90_000, () => ends.called.reader.bytes >= total);
  assert.deepEqual([ends.called.reader.bytes, ends.called.reader.isRight], [total, true]);
});

test("UtpTable: a close reaches the peer after all data, and leaves no state", () => {
  const shape = { delayMs: 20, loss: 0.1 };
  for (let seed = SEED; seed < SEED + 5; seed++) {
    const { world, caller, called, ends, id } = pair(seed, shape, shape);
    caller.write(id, patternBytes(0, 30_000));
    world.queue.run(30_000, () => caller.table.bufferedBytes(id) === 0 && ends.caller.isOpened);
    caller.control(id, "close");
    assert.deepEqual(ends.caller.reasons, ["closed by this engine"]);
    world.queue.run(60_000);
    assert.deepEqual(ends.called.reasons, ["closed by the peer"], `seed ${seed}`);
    assert.equal(ends.called.reader.bytes, 30_000);
    assert.deepEqual([caller.table.size, called.table.size], [0, 0]);
  }
});

test("UtpTable: connecting to an unreachable peer is retried, and times out", () => {
  const world = new UtpWorld(SEED);
  const caller = world.host(CALLER);
  const events = new RecordedEvents();
  caller.connect(CALLED, events, 4_000);
  world.queue.run(3_900);
  assert.deepEqual([events.reasons, caller.sentPackets], [[], 3]);
  world.queue.run(4_200);
  assert.deepEqual([events.reasons, caller.table.size], [["connect timeout"], 0]);
});

test("UtpTable: an unreachable peer is detected, and a restarted one sends a reset at once", () => {
  const gone = pair(SEED, { delayMs: 20 });
  gone.world.queue.run(1_000);
  gone.caller.write(gone.id, patternBytes(0, 1_000));
  gone.world.queue.run(2_000);
  gone.paths.there.shape = { delayMs: 20, loss: 1 };
  gone.caller.write(gone.id, patternBytes(1_000, 1_000));
  gone.world.queue.run(40_000);
  assert.deepEqual(gone.ends.caller.reasons, ["no answer in 30 s"]);

  const anew = pair(SEED, { delayMs: 20 });
  anew.caller.write(anew.id, patternBytes(0, 1_000));
  anew.world.queue.run(1_000);
  anew.world.host(CALLED, 77);
  anew.caller.write(anew.id, patternBytes(1_000, 1_000));
  anew.world.queue.run(2_000);
  assert.deepEqual(anew.ends.caller.reasons, ["reset by the peer"]);
});

test("UtpTable: an idle connection sends keep-alives for NATs", () => {
  const { world, paths, caller, id } = pair(SEED, { delayMs: 20 });
  caller.write(id, patternBytes(0, 100));
  world.queue.run(5_000);
  const before = paths.there.carriedBytes;
  world.queue.run(65_000);
  assert.ok(paths.there.carriedBytes - before >= 40);
  assert.ok(paths.there.carriedBytes - before <= 100);
});
