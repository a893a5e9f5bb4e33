import assert from "node:assert/strict";
import { test } from "node:test";
import { instant } from "../../../src/base/time.ts";
import { SctpSender } from "../../../src/protocol/webrtc/sctp-sender.ts";

test("SctpSender: a peer that never acknowledges the first chunk cannot make the others pile up", () => {
  const sender = new SctpSender(0);
  sender.peerWindowBytes = 2 ** 30;
  sender.write(new Uint8Array(20_000_000));
  let chunks = 0;
  let at = instant(0);
  for (let round = 0; round < 5_000; round++) {
    at = instant(at + 10);
    const before = chunks;
    for (const _ of sender.take(at)) chunks++;
    // Everything but the chunk 0 has arrived, the peer says.
    const gaps: [number, number][] = [[2, 65_535]];
    assert.ok(sender.acknowledged({ cumulativeTsn: 0xffff_ffff, windowBytes: 2 ** 30, gaps }, at));
    if (chunks === before && round > 100) break;
  }
  const unsent = 20_000_000 - sender.queuedBytes;
  assert.ok(unsent > 1e6 && unsent < 3e6, `${unsent} bytes are kept`);
});
