import assert from "node:assert/strict";
import { test } from "node:test";
import { ABOUT, CHUNK_BYTES, chunk, header, Scripted, STRIPES } from "./scripted.ts";

const PIECE_MS = 125;
const BYTES_PER_SECOND = (STRIPES * CHUNK_BYTES * 1_000) / PIECE_MS;
const ABOUT_SOURCE = { ...ABOUT, role: "source", digest: 9 } as const;

/** A source whose chunks have the size that its rate promises. */
class Broadcast extends Scripted {
  #seq = 100;

  constructor() {
    const layout = { stripes: STRIPES, pieceMs: PIECE_MS, maxPieceBytes: 100_000 };
    super({ about: ABOUT_SOURCE, layout: { ...layout, bytesPerSecond: BYTES_PER_SECOND } });
  }

  /** Makes pieces for a time; `after` runs after each. */
  play(seconds: number, after: (seq: number) => void = () => {}): void {
    for (let i = 0; i < (1_000 * seconds) / PIECE_MS; i++) {
      const seq = this.#seq++;
      const chunks = Array.from({ length: STRIPES }, (_, stripe) => chunk(seq, stripe).bytes);
      this.input({ kind: "produced", header: header(seq), chunks });
      after(seq);
      this.pass(PIECE_MS);
    }
  }

  /** Connects a peer that asks for all stripes from now on. */
  child(host?: string): number {
    const child = this.peer(undefined, {}, host);
    this.ask(child);
    return child;
  }

  ask(child: number): void {
    const have = new Array<number>(STRIPES).fill(0);
    const wanted = { stripes: 2 ** STRIPES - 1, epoch: 1, startSeq: this.#seq, backfillPieces: 0, have };
    this.receive(child, { kind: "subscribe", ...wanted, isDesperate: true });
  }

  /** Keeps the connection open, without a receipt. */
  ping(child: number): void {
    this.receive(child, { kind: "ping", token: 1, clockMs: 0 });
  }

  /** Requests the newest pieces once more. */
  pull(child: number): void {
    const chunks = Array.from({ length: 8 * STRIPES }, (_, i) => ({
      seq: this.#seq - 1 - Math.floor(i / STRIPES),
      stripe: i % STRIPES,
      withinMs: 3_000,
    }));
    this.receive(child, { kind: "request", epoch: 1, chunks });
  }

  /** How much of the stream a child has received, in seconds. */
  receivedSeconds(child: number): number {
    return (this.sent("chunk", child).length * PIECE_MS) / STRIPES / 1_000;
  }
}

test("Receipts: a child without a WIN gets four seconds of the stream; one that confirms gets all of it", () => {
  const source = new Broadcast();
  source.play(1);
  const [silent, honest] = [source.child(), source.child()];
  source.play(20, (seq) => {
    source.ping(silent);
    source.receiveWindow(honest, seq);
    if (seq % 8 === 0) source.ask(silent);
  });
  const seconds = source.receivedSeconds(silent);
  assert.ok(seconds >= 4 && seconds <= 4.5, `${seconds} s`);
  assert.equal(source.receivedSeconds(honest), 20);
});

test("Receipts: strangers of one network that come back get half a minute of the stream, another network is served", () => {
  const source = new Broadcast();
  source.play(1);
  let seconds = 0;
  for (let i = 0; i < 20; i++) {
    const stranger = source.child("11.7.7.7");
    source.play(4, () => source.ping(stranger));
    seconds += source.receivedSeconds(stranger);
    source.input({ kind: "closed", connection: stranger });
  }
  // 32 s at once, and an eighth of the 80 s.
  assert.ok(seconds >= 32 && seconds <= 32 + 10 + 4, `${seconds} s`);
  const other = source.child();
  source.play(2, (seq) => source.receiveWindow(other, seq));
  assert.equal(source.receivedSeconds(other), 2);
});

test("Children gives a child no more stripes than its connection carries, and one more each three seconds", () => {
  const source = new Broadcast();
  source.play(1);
  const child = source.child();
  // 0.88 of it are two of the four stripes.
  source.input({ kind: "backlog", connection: child, waitMs: 201, bytesPerSecond: 0.6 * BYTES_PER_SECOND });
  assert.deepEqual(
    source.sent("unsubscribe", child).map(({ reason, stripes }) => [reason, stripes]),
    [["slow", 0b1100]],
  );
  source.ask(child);
  assert.equal(source.sent("subscribed", child).at(-1)!.stripes, 0b0011);
  source.play(4, (seq) => source.receiveWindow(child, seq));
  source.ask(child);
  assert.equal(source.sent("subscribed", child).at(-1)!.stripes, 0b0111);
});

test("StreamShare: a viewer that requests each chunk again gets a quarter more than the stream, and eight seconds", () => {
  const source = new Broadcast();
  source.play(1);
  const greedy = source.child();
  source.play(60, (seq) => {
    source.receiveWindow(greedy, seq);
    source.pull(greedy);
  });
  const seconds = source.receivedSeconds(greedy);
  assert.ok(seconds > 75 && seconds <= 1.25 * 61 + 8.5, `${seconds} s`);
  const reasons = new Set(
    source.sent("lacking", greedy).flatMap(({ chunks }) => chunks.map((c) => c.reason)),
  );
  assert.deepEqual([...reasons], ["busy"]);
  // Others are served meanwhile.
  const other = source.child("12.1.1.1");
  source.pull(other);
  assert.ok(source.sent("chunk", other).length >= STRIPES);
});

test("StreamShare: a viewer that connects again and again has the allowance of its public network", () => {
  const source = new Broadcast();
  source.play(1);
  let seconds = 0;
  for (let i = 0; i < 30; i++) {
    const greedy = source.child(`11.7.7.${i}`);
    source.play(2, (seq) => {
      source.receiveWindow(greedy, seq);
      source.pull(greedy);
    });
    seconds += source.receivedSeconds(greedy);
    source.input({ kind: "closed", connection: greedy });
  }
  // Four connections, each with a quarter more than the stream, and eight seconds.
  assert.ok(seconds > 150 && seconds <= 4 * (1.25 * 61 + 8), `${seconds} s`);
});
