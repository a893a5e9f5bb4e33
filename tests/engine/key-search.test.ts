import assert from "node:assert/strict";
import { test } from "node:test";
import { latin1Bytes, toHex } from "../../src/base/bytes.ts";
import { SluiceError } from "../../src/base/errors.ts";
import type { Infohash } from "../../src/base/ids.ts";
import { parseLink } from "../../src/base/link.ts";
import { KeySearch } from "../../src/engine/key-search.ts";
import { headRecord } from "../../src/live/broadcast/broadcast-content.ts";
import type { MutableItem } from "../../src/net/contract.ts";
import { ed25519Key } from "../../src/runtime/crypto.ts";
import type { LiveTransportFile } from "../../src/wire/live/transport-file.ts";
import { parseMagnet } from "../../src/wire/torrent/magnet.ts";
import { FakeClock, settled } from "./fake-clock.ts";

const INFOHASH = "61".repeat(20) as Infohash;
const ITEM = { sequence: 1, value: latin1Bytes(`d2:ih20:${"a".repeat(20)}e`) };
const NAME = { key: new Uint8Array(32).fill(7), salt: latin1Bytes("x") };

/** A search over a DHT whose replies the test decides. */
function bench(answer: (asked: number, signal: AbortSignal | undefined) => Promise<MutableItem | undefined>) {
  const clock = new FakeClock();
  const asked: string[] = [];
  const dht = {
    getMutable(key: Uint8Array, salt: Uint8Array, signal?: AbortSignal) {
      asked.push(`${toHex(key)} ${toHex(salt)}`);
      return answer(asked.length, signal);
    },
  };
  return { clock, asked, search: new KeySearch({ clock, dht }) };
}

const never = (_asked: number, signal: AbortSignal | undefined) =>
  new Promise<undefined>((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));

test("KeySearch.find: returns the infohash in the item of the key and salt (BEP 46)", async () => {
  const { search, asked, clock } = bench(async () => ITEM);
  assert.equal(await search.find(NAME), INFOHASH);
  assert.deepEqual(asked, [`${"07".repeat(32)} 78`]);
  assert.equal(clock.waiting, 0);
});

test("KeySearch.find: the key of a live stream resolves through its head record and salt", async () => {
  const { publicKey, sign } = ed25519Key(new Uint8Array(32).fill(8));
  const file = { infohash: INFOHASH, info: { publicKey } };
  const record = headRecord(file as unknown as LiveTransportFile, sign, 1_700_000_000);
  const { search, asked } = bench(async () => record);
  const link = `magnet:?xs=urn:btpk:${toHex(publicKey)}&s=6c697665`;
  assert.equal(parseLink(link)?.kind, "magnet");
  const magnet = parseMagnet(link);
  assert.ok(magnet.infohash === undefined);
  assert.equal(await search.find(magnet.item), INFOHASH);
  assert.deepEqual(asked, [`${toHex(record.key)} ${toHex(record.salt)}`]);
});

test("KeySearch.find: without the DHT it fails at once with advice", async () => {
  const search = new KeySearch({ clock: new FakeClock() });
  await assert.rejects(search.find(NAME), { code: "content_id_unknown", message: /turn on --dht/ });
});

test("KeySearch.find: asks again each second, because a new DHT node knows few others", async () => {
  const { search, asked, clock } = bench(async (times) => (times > 3 ? ITEM : undefined));
  const found = search.find(NAME);
  await clock.advance(2_999);
  assert.equal(asked.length, 3);
  await clock.advance(1);
  assert.equal(await found, INFOHASH);
  assert.equal(clock.waiting, 0);
});

test("KeySearch.find: fails after 8 s if no node has the item or no node replies", async () => {
  for (const answer of [async () => undefined, never]) {
    const { search, clock } = bench(answer);
    const lost = assert.rejects(search.find(NAME), {
      code: "content_id_unknown",
      message: /key 07070707/,
    });
    let isOver = false;
    void lost.then(() => (isOver = true));
    await clock.advance(7_999);
    assert.equal(isOver, false);
    await clock.advance(1);
    await lost;
    assert.equal(clock.waiting, 0);
  }
});

test("KeySearch.find: an item without an infohash fails with a reason", async () => {
  const { search } = bench(async () => ({ sequence: 1, value: latin1Bytes("2:hi") }));
  await assert.rejects(search.find(NAME), { code: "content_id_unknown", message: /contains no infohash/ });
});

test("KeySearch.find: equal searches are shared, a fifth fails with too_many, and aborting one caller leaves the others", async () => {
  const { search, asked, clock } = bench(never);
  const name = (byte: number) => ({ key: new Uint8Array(32).fill(byte), salt: NAME.salt });
  const stop = new AbortController();
  const left = assert.rejects(search.find(name(1), stop.signal), { code: "cancelled" });
  const others = [1, 2, 3, 4].map((byte) =>
    assert.rejects(search.find(name(byte)), { code: "cancelled", message: /stopping/ }),
  );
  await settled();
  assert.equal(asked.length, 4);
  await assert.rejects(search.find(name(5)), { code: "too_many" });
  stop.abort(new SluiceError("cancelled", "gone"));
  await left;
  await search.close();
  await Promise.all(others);
  assert.equal(clock.waiting, 0);
});
