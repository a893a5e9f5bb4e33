import assert from "node:assert/strict";
import { test } from "node:test";
import { latin1Bytes } from "../../src/base/bytes.ts";
import { SuccessorSearch } from "../../src/live/successor-search.ts";
import type { MutableItem } from "../../src/net/contract.ts";
import { encodeBencode } from "../../src/wire/bencode-encode.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { keepingLog } from "../engine/parts.ts";

const RECORD = Uint8Array.of(1, 2, 3);
const MINUTE_MS = 60_000;

/** A search whose DHT holds `item`, or fails without one. */
function searching(item: MutableItem | undefined) {
  const clock = new FakeClock();
  const seen = { asked: 0, found: [] as Uint8Array[], seq: 1 };
  const search = new SuccessorSearch({
    dht: {
      getMutable: async (_, salt) => {
        seen.asked++;
        assert.deepEqual(salt, latin1Bytes("next"));
        if (!item) throw new Error("no nodes");
        return item;
      },
    },
    clock,
    log: keepingLog(),
    key: new Uint8Array(32),
    newestSeq: () => seen.seq,
    found: (record) => seen.found.push(Uint8Array.from(record)),
  });
  return { clock, seen, search };
}

test("SuccessorSearch: finds the record at the start, and again if the source is silent for a minute", async () => {
  const { clock, seen, search } = searching({ sequence: 1, value: encodeBencode(RECORD) });
  await Promise.resolve();
  assert.deepEqual(seen.found, [RECORD]);
  seen.seq = 2;
  await clock.advance(MINUTE_MS);
  assert.equal(seen.asked, 1, "the stream goes on");
  await clock.advance(MINUTE_MS);
  assert.equal(seen.asked, 2, "silent");
  search.stop();
  await clock.advance(10 * MINUTE_MS);
  assert.equal(seen.asked, 2);
});

test("SuccessorSearch: a fork starts a search once a minute, and a failed or malformed one finds nothing", async () => {
  for (const item of [undefined, { sequence: 1, value: latin1Bytes("3:ab") }]) {
    const { clock, seen, search } = searching(item);
    search.suspect();
    assert.equal(seen.asked, 1);
    seen.seq++;
    await clock.advance(MINUTE_MS);
    search.suspect();
    search.suspect();
    await Promise.resolve();
    assert.equal(seen.asked, 2);
    assert.deepEqual(seen.found, []);
    search.stop();
  }
});
