import assert from "node:assert/strict";
import { test } from "node:test";
import { instant } from "../../../src/base/time.ts";
import { Chunks } from "../../../src/protocol/live/chunks.ts";
import { Conduct } from "../../../src/protocol/live/conduct.ts";
import { MAX_QUARANTINE_BYTES } from "../../../src/protocol/live/limits.ts";
import { LivePeer } from "../../../src/protocol/live/peer.ts";
import { LiveState } from "../../../src/protocol/live/state.ts";
import { ABOUT, header, STRIPES, setupOf } from "./scripted.ts";

const NOW = instant(1_000);
const BYTES = 16 * 1024;

function makeChunks(): { state: LiveState; chunks: Chunks; peer: (i: number) => LivePeer; added: number[] } {
  const state = new LiveState(setupOf({ isValidChunk: () => true }), NOW);
  state.epoch = 1;
  state.window.addHeader(header(100), NOW);
  const conduct = new Conduct(
    state,
    (peer) => state.peers.delete(peer.connection),
    (_, forMs) => forMs,
  );
  const added: number[] = [];
  const chunks = new Chunks(
    state,
    conduct,
    ({ piece, from }) => added.push(piece.seq, from?.connection ?? -1),
    () => false,
    () => undefined,
  );
  const peer = (i: number) => {
    const made = { address: { host: `11.0.${i}.7`, port: 1 }, isReachable: true, about: ABOUT, rttMs: 10 };
    const opened = new LivePeer(i, made, STRIPES, NOW);
    state.peers.set(i, opened);
    return opened;
  };
  return { state, chunks, peer, added };
}

function waiting(seq: number, stripe: number) {
  return { kind: "chunk", epoch: 1, seq, stripe, isLate: false, bytes: new Uint8Array(BYTES) } as const;
}

test("Chunks keeps at most 1 MiB of chunks without a header, and a quarter of it for one peer", () => {
  const { chunks, peer } = makeChunks();
  const first = peer(1);
  for (let seq = 101; seq < 116; seq++)
    for (let stripe = 0; stripe < STRIPES; stripe++) chunks.take(waiting(seq, stripe), first);
  assert.equal(chunks.quarantinedBytes, MAX_QUARANTINE_BYTES / 4);
  for (let i = 2; i < 12; i++) {
    const other = peer(i);
    for (let seq = 101; seq < 116; seq++)
      for (let stripe = 0; stripe < STRIPES; stripe++) chunks.take(waiting(seq, stripe), other);
    assert.ok(chunks.quarantinedBytes <= MAX_QUARANTINE_BYTES, `${chunks.quarantinedBytes} bytes`);
  }
});

test("Chunks verifies waiting chunks when their header arrives, if their sender is still connected", () => {
  const { state, chunks, peer, added } = makeChunks();
  const [first, second] = [peer(1), peer(2)];
  chunks.take(waiting(101, 0), first);
  chunks.take(waiting(101, 1), second);
  state.peers.delete(1);
  state.window.addHeader(header(101), NOW);
  chunks.headerAdded(header(101));
  assert.deepEqual(added, [101, 2]);
  assert.equal(chunks.quarantinedBytes, 0);
});

test("Chunks accepts sequence numbers as far ahead as the source has paused, and no further", () => {
  const { state, chunks, peer } = makeChunks();
  const first = peer(1);
  chunks.take(waiting(160, 0), first);
  assert.equal(chunks.quarantinedBytes, 0);
  state.now = instant(NOW + 10_000);
  chunks.take(waiting(160, 0), first);
  assert.equal(chunks.quarantinedBytes, BYTES);
  chunks.take(waiting(300, 0), first);
  assert.equal(chunks.quarantinedBytes, BYTES);
});
