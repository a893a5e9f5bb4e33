import assert from "node:assert/strict";
import { test } from "node:test";
import { type Infohash, infohashBytes } from "../../src/base/ids.ts";
import { ed25519Verifier } from "../../src/runtime/crypto.ts";
import { type BencodeInput, bencodeDict, encodeBencode } from "../../src/wire/bencode-encode.ts";
import { viewBencode } from "../../src/wire/bencode-view.ts";
import { decodeStat, encodeStat } from "../../src/wire/live/stat.ts";
import { makeLiveTransportFile, parseLiveTransportFile } from "../../src/wire/live/transport-file.ts";
import { readVariants } from "../../src/wire/live/variants.ts";
import { INFOHASH, KEY, RECIPE, VARIANTS } from "./live-vectors.ts";
import { sha1 } from "./make-torrent.ts";

const OTHER = "ab".repeat(20) as Infohash;

const read = (list: BencodeInput) => readVariants(viewBencode(encodeBencode(list)));
const entry = (members: Record<string, BencodeInput | undefined>) =>
  bencodeDict({ bps: 1, ih: infohashBytes(OTHER), ...members });
const OWN = bencodeDict({ bps: 1 });

test("LiveVariant: transport file and STAT carry the same description, and the infohash does not depend on it", () => {
  const file = makeLiveTransportFile({ ...RECIPE, variants: VARIANTS }, KEY.sign);
  const parsed = parseLiveTransportFile(file, sha1, ed25519Verifier);
  assert.deepEqual(parsed.variants, VARIANTS);
  assert.equal(parsed.infohash, INFOHASH);
  assert.equal(parsed.isSigned, true);
  const stat = {
    epoch: 1,
    number: 1,
    timestampMs: 1,
    isEnd: false,
    relays: [],
    trackers: [],
    variants: VARIANTS,
  };
  assert.deepEqual(decodeStat(encodeStat(stat, INFOHASH, KEY.sign)).variants, VARIANTS);
});

test("LiveVariant: a changed description makes the signature of the file wrong", () => {
  const file = makeLiveTransportFile({ ...RECIPE, variants: VARIANTS }, KEY.sign);
  file[file.indexOf(0xab, file.length - 60)]! ^= 1;
  assert.throws(() => parseLiveTransportFile(file, sha1, ed25519Verifier), /signature/);
});

test("readVariants: invalid entries are skipped, and invalid members are absent", () => {
  const valid = entry({ w: 640, h: 360 });
  for (const wrong of [
    entry({ bps: 0 }),
    entry({ bps: 2 ** 40 }),
    entry({ ih: new Uint8Array(19) }),
    entry({ ih: 5 }),
    "text",
    [],
    OWN,
    valid,
  ])
    assert.equal(read([OWN, wrong, valid]).length, 2, JSON.stringify(wrong));
  assert.deepEqual(read([OWN, entry({ w: 640 })])[1], { infohash: OTHER, bytesPerSecond: 1, codecs: [] });
  assert.equal(read([OWN, entry({ w: 1 << 20, h: 360 })])[1]?.width, undefined);
  for (const codecs of ['avc1",x', "a".repeat(500), "", "a,b,c,d,e"])
    assert.deepEqual(read([OWN, entry({ cd: codecs })])[1]?.codecs, [], codecs);
});

test("readVariants: at most six; none without the stream itself, or without another one", () => {
  const many = Array.from({ length: 40 }, (_, index) => entry({ ih: new Uint8Array(20).fill(index) }));
  assert.equal(read([OWN, ...many]).length, 6);
  assert.deepEqual(read(many), []);
  assert.deepEqual(read([OWN]), []);
  assert.deepEqual(read("text"), []);
});
