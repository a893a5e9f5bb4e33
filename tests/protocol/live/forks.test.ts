import assert from "node:assert/strict";
import { test } from "node:test";
import type { SignedHeader } from "../../../src/protocol/live/messages.ts";
import { header, Scripted, STRIPES } from "./scripted.ts";

const PIECE_MS = 125;

/** One of several programs that sign with the key of the stream: its headers form a chain of their own from `seq` on. */
class Signer {
  readonly #version: number;
  readonly #epoch: number;
  seq: number;
  #previous: SignedHeader | undefined;

  constructor(version: number, seq: number, previous?: SignedHeader, epoch = 1) {
    this.#version = version;
    this.#epoch = epoch;
    this.seq = seq;
    this.#previous = previous;
  }

  /** The header of the next piece. */
  next(seq = this.seq): SignedHeader {
    this.seq = seq + 1;
    const previousHash = this.#previous ? hash(this.#previous.bytes) : new Uint8Array(20);
    const bytes = new Uint8Array([1, seq & 255, this.#version, this.#epoch, seq >>> 8]);
    const { value } = header(seq, { previousHash, epoch: this.#epoch });
    this.#previous = { bytes, value };
    return this.#previous;
  }
}

function hash(bytes: Uint8Array): Uint8Array {
  const made = new Uint8Array(20);
  made.set(bytes);
  return made;
}

function viewer(): Scripted {
  return new Scripted({
    hash,
    isValidChunk: ({ bytes }, _, chunk) => chunk[0] === bytes[2] && chunk[1] === bytes[1],
  });
}

/** Connects a peer of depth 1 that holds the stream up to `head`. */
function holder(swarm: Scripted, head: SignedHeader): number {
  const connection = swarm.peer(head);
  swarm.receiveWindow(connection, head.value.seq, head.value.epoch);
  const paths = Array.from({ length: STRIPES }, (_, stripe) => ({ stripe, depth: 1, ancestors: [9] }));
  swarm.receive(connection, { kind: "paths", paths });
  return connection;
}

function sendHeader(swarm: Scripted, from: number, of: SignedHeader): void {
  swarm.receive(from, { kind: "header", isAnswer: false, header: of });
}

function sendChunks(swarm: Scripted, from: number, { value, bytes: head }: SignedHeader): void {
  const { seq, epoch } = value;
  const bytes = Uint8Array.of(head[2]!, head[1]!);
  for (let stripe = 0; stripe < STRIPES; stripe++)
    swarm.receive(from, { kind: "chunk", epoch, seq, stripe, isLate: false, bytes });
}

function send(swarm: Scripted, from: number, of: SignedHeader): void {
  sendHeader(swarm, from, of);
  sendChunks(swarm, from, of);
}

/** A viewer that has played ten pieces of `source`, with `parent` as the parent of all stripes. */
function playing(source: Signer): { swarm: Scripted; parent: number; last: SignedHeader } {
  const swarm = viewer();
  let last = source.next();
  const parent = holder(swarm, last);
  swarm.receive(parent, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: last.value.seq - 7 });
  swarm.pass(200);
  for (let i = 0; i < 10; i++) {
    last = source.next();
    send(swarm, parent, last);
    swarm.receiveWindow(parent, last.value.seq);
    swarm.pass(PIECE_MS);
  }
  return { swarm, parent, last };
}

/** The version and number of each played piece from `from` on. */
function played(swarm: Scripted, from: number): string[] {
  return swarm
    .of("piece")
    .filter(({ header: { value } }) => value.seq >= from)
    .map(({ header: { bytes, value } }) => `${bytes[2]}:${value.seq}`);
}

function versions(version: number, from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, i) => `${version}:${from + i}`);
}

test("LiveSwarm plays on if the key signs other headers for the next pieces, and bans only their sender", () => {
  const source = new Signer(7, 1_000);
  const { swarm, parent, last } = playing(source);
  const thief = swarm.peer(undefined);
  const forger = new Signer(8, source.seq, last);
  const from = source.seq;
  for (let i = 0; i < 19; i++) sendHeader(swarm, thief, forger.next());
  for (let i = 0; i < 60; i++) {
    const made = source.next();
    send(swarm, parent, made);
    swarm.receiveWindow(parent, made.value.seq);
    swarm.pass(PIECE_MS);
  }
  assert.deepEqual(played(swarm, from), versions(7, from, from + 60));
  assert.deepEqual(swarm.of("skip"), []);
  assert.deepEqual(swarm.of("banned"), []);
  assert.ok(swarm.of("forked").length > 0);
});

test("LiveSwarm passes the header of the followed version to children that received the other one", () => {
  const source = new Signer(7, 1_000);
  const { swarm, parent, last } = playing(source);
  const child = swarm.peer(undefined);
  const subscription = { stripes: 15, epoch: 1, startSeq: source.seq, backfillPieces: 0, have: [0, 0, 0, 0] };
  swarm.receive(child, { kind: "subscribe", ...subscription, isDesperate: true });
  sendHeader(swarm, swarm.peer(undefined), new Signer(8, source.seq, last).next());
  const made = source.next();
  send(swarm, parent, made);
  const marks = swarm.sent("header", child).map((sent) => sent.header.bytes[2]);
  assert.deepEqual(marks.slice(-2), [8, 7]);
  assert.equal(swarm.sent("chunk", child).filter(({ seq }) => seq === made.value.seq).length, STRIPES);
});

test("LiveSwarm does not pass over pieces that a forged header declares as never made", () => {
  const source = new Signer(7, 1_000);
  const { swarm, parent, last } = playing(source);
  const from = source.seq;
  sendHeader(swarm, swarm.peer(undefined), new Signer(8, from + 50, last).next());
  for (let i = 0; i < 60; i++) {
    send(swarm, parent, source.next());
    swarm.pass(PIECE_MS);
  }
  assert.deepEqual(played(swarm, from), versions(7, from, from + 60));
  assert.deepEqual(swarm.of("banned"), []);
});

test("LiveSwarm stays with one of two complete versions, bans none of their senders, and changes when it stops", () => {
  for (const lead of [-10, 0, 1, 10]) {
    const source = new Signer(7, 1_000);
    const { swarm, parent } = playing(source);
    const second = swarm.peer(undefined);
    const other = new Signer(8, source.seq + lead);
    const from = source.seq;
    const both = (isOn: boolean) => {
      const copy = other.next();
      sendHeader(swarm, second, copy);
      const made = source.next();
      if (isOn) send(swarm, parent, made);
      sendChunks(swarm, second, copy);
      swarm.receiveWindow(second, copy.value.seq);
      swarm.pass(PIECE_MS);
    };
    for (let i = 0; i < 24; i++) both(true);
    const until = source.seq;
    assert.deepEqual(played(swarm, from), versions(7, from, until), `lead ${lead}`);
    for (let i = 0; i < 80; i++) both(false);
    const late = played(swarm, until + 1);
    assert.ok(late.length > 20 && late.slice(-20).every((piece) => piece.startsWith("8:")), `lead ${lead}`);
    assert.ok(
      swarm.of("banned").every(({ address }) => address.host !== "11.0.1.7"),
      `lead ${lead}`,
    );
  }
});

test("LiveSwarm returns to a stream that goes on, within 10 s after headers of a later epoch without data", () => {
  const source = new Signer(7, 1_000);
  const { swarm, parent, last } = playing(source);
  const thief = swarm.peer(undefined);
  const forger = new Signer(8, source.seq, last, 2);
  for (let i = 0; i < 80; i++) {
    if (i < 3) sendHeader(swarm, thief, forger.next());
    send(swarm, parent, source.next());
    swarm.pass(PIECE_MS);
  }
  const from = source.seq;
  // More forged epochs have no effect while the stream flows.
  for (let i = 0; i < 20; i++) {
    sendHeader(swarm, thief, new Signer(9, source.seq, undefined, 3 + i).next());
    send(swarm, parent, source.next());
    swarm.pass(PIECE_MS);
  }
  assert.deepEqual(played(swarm, from), versions(7, from, from + 20));
  assert.deepEqual(swarm.of("banned"), []);
});

test("LiveSwarm returns to a stream that goes on, within 10 s after a signed header far ahead without data", () => {
  const source = new Signer(7, 1_000);
  const { swarm, parent, last } = playing(source);
  const thief = swarm.peer(undefined);
  const produce = (pieces: number) => {
    const from = source.seq;
    for (let i = 0; i < pieces; i++) {
      send(swarm, parent, source.next());
      swarm.pass(PIECE_MS);
    }
    return from;
  };
  sendHeader(swarm, thief, new Signer(8, source.seq + 5_000, last).next());
  produce(80);
  sendHeader(swarm, thief, new Signer(8, source.seq + 5_000, last).next());
  const from = produce(20);
  assert.deepEqual(played(swarm, from), versions(7, from, from + 20));
  assert.deepEqual(swarm.of("banned"), []);
});
