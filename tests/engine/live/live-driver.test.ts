import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { after } from "../../../src/base/time.ts";
import { someBytes } from "../parts.ts";
import { type LoopbackPeer, loopbackPeer, PieceMaker, type SomeStream, someStream } from "./driver-parts.ts";

/** Makes a piece each `pieceMs` until it is stopped; remembers the bytes of each. */
function broadcast(
  source: LoopbackPeer,
  stream: SomeStream,
  maker = new PieceMaker(stream),
  pieceBytes = 20_000,
) {
  const made = new Map<number, Uint8Array>();
  let cancel = () => {};
  const next = () => {
    const bytes = someBytes(pieceBytes, made.size + 1);
    const { header, chunks } = maker.make(bytes);
    made.set(header.value.seq, bytes);
    source.driver.produce(header, chunks);
    const { clock } = runtime;
    cancel = clock.at(after(clock.now(), stream.file.info.pieceMs), next);
  };
  next();
  return { made, stop: () => cancel() };
}

/** That what came is what was made, each in its turn. */
function checkPieces(peer: LoopbackPeer, made: ReadonlyMap<number, Uint8Array>): void {
  const { pieces } = peer.sink;
  for (const [i, piece] of pieces.entries()) {
    assert.equal(piece.seq, pieces[0]!.seq + i);
    assert.deepEqual(Buffer.compare(piece.bytes, made.get(piece.seq)!), 0, `bytes of piece ${piece.seq}`);
  }
}

test("LiveDriver: two viewers get all pieces of a source over real sockets, verified and in order", async (t) => {
  const stream = someStream();
  const source = await loopbackPeer(stream, "source");
  const first = await loopbackPeer(stream, "viewer");
  const second = await loopbackPeer(stream, "viewer");
  t.after(() => Promise.all([source.close(), first.close(), second.close()]));
  const { made, stop } = broadcast(source, stream);
  t.after(stop);
  first.driver.found([source.address]);
  second.driver.found([source.address]);
  for (const viewer of [first, second]) await viewer.sink.until(({ pieces }) => pieces.length >= 40);
  for (const viewer of [first, second]) {
    checkPieces(viewer, made);
    assert.deepEqual(viewer.sink.skipped, []);
  }
});
