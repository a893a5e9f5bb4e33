import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { StatSigner } from "../../src/live/broadcast/stat-signer.ts";
import { isSignedStat } from "../../src/wire/live/stat.ts";
import { someStream } from "./driver-parts.ts";

const NOTHING = { relays: [], trackers: [], manifests: [] };
const STREAM = someStream();
const { infohash, info } = STREAM.file;
const news = (request: Partial<ConstructorParameters<typeof StatSigner>[0]>) =>
  new StatSigner({ ...NOTHING, ...request }, { infohash, sign: STREAM.key.sign });

test("StatSigner: signs web copies as far as they fit; makes no empty STAT", () => {
  const short = "https://tv.example/live.m3u8";
  const long = `https://tv.example/${"x".repeat(250)}.m3u8`;
  const stat = news({ manifests: [long, short] }).at(1, 2_000, false)!;
  assert.deepEqual(stat.value.manifests, [short]);
  assert.equal(isSignedStat(stat.bytes, infohash, runtime.ed25519Verifier(info.publicKey)), true);
  assert.equal(news({}).at(1, 2_000, false), undefined);
  assert.equal(news({ manifests: [long] }).at(1, 2_000, false), undefined);
  assert.equal(news({}).at(1, 2_000, true)?.value.isEnd, true);
});

test("StatSigner: the maximum content fits into a STAT", () => {
  const trackers = Array.from({ length: 8 }, (_, i) => `udp://tracker${i}.example.org:6969/announce`);
  const relays = Array.from({ length: 16 }, (_, i) => ({ host: `192.0.2.${i + 1}`, port: 8_621 }));
  const manifests = ["https://a.example/", "https://b.example/"].map((url) => url.padEnd(128, "a"));
  const stat = news({ trackers, relays, manifests }).at(1, 2_000, false)!;
  assert.deepEqual(stat.value.manifests, manifests);
  assert.equal(stat.value.relays.length, 16);
  assert.equal(stat.value.trackers.length, 8);
  const longTrackers = trackers.map((url) => url.padEnd(300, "a"));
  assert.equal(
    news({ trackers: longTrackers, relays, manifests }).at(1, 2_000, false)!.value.trackers.length,
    1,
  );
});
