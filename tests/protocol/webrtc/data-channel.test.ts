import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes } from "../../../src/base/bytes.ts";
import { DecodeError } from "../../../src/base/errors.ts";
import type { Random } from "../../../src/base/random.ts";
import { after, type Instant, instant } from "../../../src/base/time.ts";
import { DataChannel } from "../../../src/protocol/webrtc/data-channel.ts";
import { seededRandom } from "../../seeded-random.ts";

/** Two channels over a simulated network that loses, delays and repeats packets. */
class Pair {
  readonly ends: readonly [End, End];
  now: Instant = instant(0);
  readonly #random: Random;
  readonly #loss: number;
  readonly #inFlight: { at: number; to: 0 | 1; bytes: Uint8Array }[] = [];
  packets = 0;

  constructor(random: Random, loss: number, bothOpen = false) {
    this.#random = random;
    this.#loss = loss;
    const end = (opens: boolean, isDtlsClient: boolean) =>
      new End(
        new DataChannel({
          ...{ opens, isDtlsClient, port: { local: 5000, remote: 5000 } },
          tag: 1 + Math.floor(random() * 1e9),
          firstTsn: 0xffff_fff0 + Math.floor(random() * 16),
          cookie: new Uint8Array(16).fill(opens ? 1 : 2),
        }),
      );
    this.ends = [end(true, false), end(bothOpen, true)];
  }

  /** Runs until `isDone`, at most `limitMs` of simulated time. */
  run(isDone: () => boolean, limitMs = 600_000): void {
    const until = after(this.now, limitMs);
    this.#drain();
    while (!isDone() && this.now < until) {
      const wakes = this.ends.flatMap(({ channel }) => channel.nextWake() ?? []);
      const next = Math.min(...wakes, ...this.#inFlight.map(({ at }) => at));
      if (!Number.isFinite(next)) return;
      this.now = instant(Math.max(this.now, next));
      for (const end of this.ends) end.guard(() => end.channel.wake(this.now));
      this.#drain();
      const due = this.#inFlight.filter(({ at }) => at <= this.now);
      for (const packet of due) {
        this.#inFlight.splice(this.#inFlight.indexOf(packet), 1);
        const end = this.ends[packet.to];
        end.guard(() => end.channel.received(packet.bytes, this.now));
        this.#drain();
      }
    }
  }

  #drain(): void {
    for (const [from, end] of this.ends.entries()) {
      for (let output = end.channel.poll(); output; output = end.channel.poll()) {
        if (output.kind === "send") this.#sent(from === 0 ? 1 : 0, output.bytes);
        else if (output.kind === "received") end.received.push(output.bytes.slice());
        else end.events.push(output.kind === "closed" ? output.reason : output.kind);
      }
    }
  }

  #sent(to: 0 | 1, bytes: Uint8Array): void {
    assert.ok(bytes.length <= 1160, "a packet fits into one datagram");
    this.packets++;
    const copies = this.#random() < this.#loss / 4 ? 2 : 1;
    for (let i = 0; i < copies; i++)
      if (this.#random() >= this.#loss)
        this.#inFlight.push({ at: this.now + 20 + (this.#loss > 0 ? 15 * this.#random() : 0), to, bytes });
  }
}

class End {
  readonly received: Uint8Array[] = [];
  readonly events: string[] = [];
  readonly channel: DataChannel;

  constructor(channel: DataChannel) {
    this.channel = channel;
  }

  get bytes(): Uint8Array {
    return concatBytes(this.received);
  }

  guard(run: () => void): void {
    try {
      run();
    } catch (thrown) {
      if (!(thrown instanceof DecodeError)) throw thrown;
      this.events.push(thrown.message);
    }
  }
}

function lengthOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0);
}

function randomBytes(random: Random, length: number): Uint8Array {
  return Uint8Array.from({ length }, () => 256 * random());
}

function opened(pair: Pair): void {
  for (const { channel } of pair.ends) channel.start(pair.now);
  pair.run(() => pair.ends.every(({ events }) => events.includes("opened")));
  assert.deepEqual(
    pair.ends.map(({ events }) => events),
    [["opened"], ["opened"]],
  );
}

for (const loss of [0, 0.1, 0.3]) {
  test(`data channel: both streams arrive whole with a loss of ${100 * loss} %`, () => {
    const random = seededRandom(7);
    const pair = new Pair(random, loss);
    opened(pair);
    const sent = pair.ends.map(() => randomBytes(random, 300_000));
    for (const [i, { channel }] of pair.ends.entries())
      for (let at = 0; at < 300_000; ) {
        const length = 1 + Math.floor(30_000 * random());
        channel.write(sent[i]!.slice(at, at + length), pair.now);
        at += length;
      }
    pair.run(() => pair.ends.every(({ received }) => lengthOf(received) === 300_000));
    for (const [i, { bytes }] of pair.ends.entries()) assert.deepEqual(bytes, sent[1 - i]);
  });
}

test("data channel: opens if both sides send INIT at the same time, as browsers do", () => {
  const pair = new Pair(seededRandom(1), 0, true);
  for (const { channel } of pair.ends) channel.start(pair.now);
  pair.run(() => pair.ends.every(({ events }) => events.includes("opened")));
  assert.ok(pair.ends.every(({ events }) => events[0] === "opened"));
});

test("data channel: a paused reader stops the sender within its window, and loses nothing", () => {
  const random = seededRandom(3);
  const pair = new Pair(random, 0);
  opened(pair);
  const [writer, reader] = pair.ends;
  reader.channel.pause();
  const sent = randomBytes(random, 2_000_000);
  writer.channel.write(sent, pair.now);
  pair.run(() => false, 20_000);
  assert.equal(reader.bytes.length, 0);
  const accepted = sent.length - writer.channel.bufferedBytes;
  assert.ok(accepted > 100_000 && accepted <= 512 * 1024, `accepted ${accepted} bytes`);
  reader.channel.resume();
  pair.run(() => lengthOf(reader.received) === sent.length);
  assert.deepEqual(reader.bytes, sent);
});

test("data channel: small messages cannot fill the memory of a reader that pauses for long, and none is lost", () => {
  const pair = new Pair(seededRandom(3), 0);
  opened(pair);
  const [writer, reader] = pair.ends;
  reader.channel.pause();
  for (let i = 0; i < 10_000; i++) {
    writer.channel.write(new Uint8Array(1), pair.now);
    // Each byte is a message of its own, as long as there is room for it.
    pair.run(() => false, 50);
  }
  reader.channel.resume();
  pair.run(() => true);
  assert.ok(reader.received.length < 4_200, `${reader.received.length} buffers`);
  pair.run(() => lengthOf(reader.received) === 10_000);
  assert.equal(lengthOf(reader.received), 10_000);
});

test("data channel: the peer learns of a close", () => {
  const pair = new Pair(seededRandom(5), 0);
  opened(pair);
  pair.ends[0].channel.close();
  pair.run(() => pair.ends[1].events.length > 1);
  assert.deepEqual(pair.ends[1].events, ["opened", "closed by the peer"]);
  assert.equal(pair.ends[1].channel.nextWake(), undefined);
});

test("data channel: a peer that is silent is given up", () => {
  const pair = new Pair(seededRandom(5), 1);
  pair.ends[0].channel.start(pair.now);
  pair.run(() => pair.ends[0].events.length > 0);
  assert.equal(pair.ends[0].events.length, 1);
  assert.ok(pair.now <= 60_000);
});
