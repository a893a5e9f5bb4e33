import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { concatBytes, fromHex, latin1Bytes, latin1Text } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import { parseLink } from "../../src/base/link.ts";
import { isValidPublicKey } from "../../src/base/signature.ts";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import { ed25519Key, ed25519Verifier } from "../../src/runtime/crypto.ts";
import { type BencodeInput, bencodeDict, encodeBencode } from "../../src/wire/bencode-encode.ts";
import { type LiveInfo, parseLiveInfo } from "../../src/wire/live/info.ts";
import { displayText } from "../../src/wire/live/text.ts";
import { makeLiveTransportFile, parseLiveTransportFile } from "../../src/wire/live/transport-file.ts";
import { liveLink, magnetLink, parseMagnet } from "../../src/wire/torrent/magnet.ts";
import { parseInfo, parseTransportFile } from "../../src/wire/torrent/metainfo.ts";
import { PYTHON } from "../parts/libtorrent.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { INFO, INFOHASH, KEY, RECIPE, TRANSPORT_FILE } from "./live-vectors.ts";
import { makeTorrent, sha1 } from "./make-torrent.ts";

const { test: peersTest } = await testsThatNeed("libtorrent", "transmission");

type Members = Readonly<Record<string, BencodeInput | undefined>>;

const parse = (bytes: Uint8Array) => parseLiveTransportFile(bytes, sha1, ed25519Verifier);

/** Returns an info dictionary with changes to its members and those of `live`. */
function info(live: Members = {}, outer: Members = {}): Uint8Array {
  const members = {
    K: 16,
    alg: "ed25519",
    bps: 1_000_000,
    ct: "mpegts",
    k: KEY.publicKey,
    mx: 262_144,
    pd: 125,
    seg: 2000,
    v: 1,
    win: 1800,
    ...live,
  };
  return encodeBencode(
    bencodeDict({ live: bencodeDict(members), name: "x", "piece length": 262_144, ...outer }),
  );
}

const withInfo = (infoBytes: Uint8Array, tail = "e") =>
  concatBytes([latin1Bytes("d4:info"), infoBytes, latin1Bytes(tail)]);

test("makeLiveTransportFile produces the expected sizes", () => {
  const file = parse(TRANSPORT_FILE);
  assert.ok(file.infoBytes.length < 200, `info of ${file.infoBytes.length} bytes`);
  // Larger files do not fit into a DHT item (BEP 44).
  assert.ok(TRANSPORT_FILE.length < 1000, `a file of ${TRANSPORT_FILE.length} bytes`);
});

test("changes outside the info dictionary change the file hash, not the infohash", () => {
  const file = parse(TRANSPORT_FILE);
  const other = parse(makeLiveTransportFile({ ...RECIPE, meta: { title: "b" }, trackers: [] }, KEY.sign));
  assert.equal(other.infohash, file.infohash);
  assert.notEqual(other.fileHash, file.fileHash);
  const otherKey = { ...INFO, publicKey: ed25519Key(new Uint8Array(32)).publicKey };
  assert.notEqual(parse(makeLiveTransportFile({ ...RECIPE, info: otherKey })).infohash, file.infohash);
});

test("parseLiveTransportFile accepts an unsigned file and reports it as unsigned", () => {
  const file = parse(makeLiveTransportFile(RECIPE));
  assert.equal(file.isSigned, false);
  assert.equal(file.infohash, INFOHASH);
});

test("parseLiveTransportFile refuses a signature after any one-bit change of file or signature", () => {
  const signatureAt = TRANSPORT_FILE.length - 65;
  for (const at of [30, 300, 500, signatureAt, signatureAt + 63]) {
    const changed = TRANSPORT_FILE.slice();
    changed[at]! ^= 1;
    assert.throws(() => parse(changed), DecodeError, `byte ${at}`);
  }
  const stranger = ed25519Key(new Uint8Array(32).fill(1));
  assert.throws(() => parse(makeLiveTransportFile(RECIPE, stranger.sign)), /does not match the key/);
  const noPurpose = (message: Uint8Array) => KEY.sign(message.subarray("sluice-transport:".length));
  assert.throws(() => parse(makeLiveTransportFile(RECIPE, noPurpose)), /does not match the key/);
});

test("parseLiveTransportFile verifies a signature that is followed by other members", () => {
  const made = latin1Text(makeLiveTransportFile(RECIPE));
  const unsigned = `${made.slice(0, -1)}8:url-list0:e`;
  const signature = KEY.sign(latin1Bytes(`sluice-transport:${unsigned}`));
  const signed = `${made.slice(0, -1)}3:sig64:${latin1Text(signature)}8:url-list0:e`;
  assert.equal(parse(latin1Bytes(signed)).isSigned, true);
  assert.throws(
    () => parse(latin1Bytes(signed.replace("8:url-list0:", "8:url-list1:a"))),
    /does not match the key/,
  );
});

const BAD: readonly (readonly [string, Uint8Array, RegExp])[] = [
  ["no live", info({}, { live: undefined }), /dictionary with live/],
  ["live is text", info({}, { live: "x" }), /dictionary with live/],
  ["pieces as well", info({}, { pieces: new Uint8Array(20) }), /dictionary with live/],
  ["another version", info({ v: 2 }), /version 2/],
  ["another algorithm", info({ alg: "rsa" }), /alg to be ed25519, not rsa/],
  ["no key", info({ k: undefined }), /valid Ed25519 public key/],
  ["a short key", info({ k: new Uint8Array(31).fill(9) }), /valid Ed25519 public key/],
  ["a key of small order", info({ k: new Uint8Array(32) }), /valid Ed25519 public key/],
  ["5 stripes", info({ K: 5 }), /4, 8 or 16 stripes/],
  ["32 stripes", info({ K: 32 }), /K from 4 to 16/],
  ["pieces of 0 ms", info({ pd: 0 }), /pd from 50 to 1000/],
  ["pieces of 2 s", info({ pd: 2000 }), /pd from 50/],
  ["pieces of no bytes", info({ mx: 0 }), /mx from 3008/],
  ["pieces of 4 MiB", info({ mx: 4_194_304 }, { "piece length": 4_194_304 }), /mx from 3008/],
  ["a piece length below mx", info({}, { "piece length": 131_072 }), /piece length from 262144/],
  ["an odd piece length", info({}, { "piece length": 300_000 }), /piece length from 262144/],
  ["a piece length above need", info({}, { "piece length": 524_288 }), /piece length from 262144/],
  ["a length as well", info({}, { length: 1 }), /no length/],
  ["files as well", info({}, { files: [] }), /no files/],
  ["a file tree as well", info({}, { "file tree": new Map() }), /no file tree/],
  ["no rate", info({ bps: 0 }), /bps from 1/],
  ["a window of a year", info({ win: 31_536_000 }), /win from 0/],
  ["a negative window", info({ win: -1 }), /win from 0/],
  ["segments of 1 ms", info({ seg: 1 }), /seg from 1000/],
  ["an unknown container", info({ ct: "ogg" }), /unknown container ogg/],
  ["no name", info({}, { name: undefined }), /no name/],
];

test("parseLiveInfo refuses values out of range and states the reason", () => {
  assert.equal(parseLiveInfo(info()).stripeCount, 16);
  for (const [what, bytes, message] of BAD) {
    const refused = (error: unknown) => error instanceof DecodeError && message.test(error.message);
    assert.throws(() => parseLiveInfo(bytes), refused, what);
    assert.throws(() => parse(withInfo(bytes)), refused, what);
  }
  assert.throws(() => parseLiveInfo(new Uint8Array(65_537)), /larger than 65536/);
});

test("parseLiveTransportFile refuses malformed and oversized files", () => {
  for (const text of ["", "de", "le", "d4:infoi1ee", "<html>"]) {
    assert.throws(() => parse(latin1Bytes(text)), DecodeError, text);
  }
  assert.throws(() => parse(withInfo(info(), "3:rly17:aaaaaaaaaaaaaaaaae")), /endpoints/);
  assert.throws(() => parse(withInfo(info(), `3:rly594:${"a".repeat(33 * 18)}e`)), /at most 32 entries/);
  assert.throws(() => parse(withInfo(info(), "3:rlyi1ee")), /relays as bytes/);
  assert.throws(() => parse(withInfo(info(), "3:sig63:x")), DecodeError);
  assert.throws(() => parse(withInfo(info(), "3:sig1:xe")), /signature of 64 bytes/);
  assert.throws(() => parse(new Uint8Array(65_537)), /larger than 65536/);
});

test("makeLiveTransportFile refuses contents that parseLiveTransportFile would refuse", () => {
  const broken: readonly Partial<LiveInfo>[] = [
    { pieceMs: 10 },
    { publicKey: new Uint8Array(32) },
    { maxPieceBytes: 2 ** 22 },
  ];
  for (const change of broken) {
    assert.throws(() => makeLiveTransportFile({ ...RECIPE, info: { ...INFO, ...change } }), DecodeError);
  }
  for (const url of ["gopher://a.example/", "udp://каналы.example:1", "x"]) {
    assert.throws(() => makeLiveTransportFile({ ...RECIPE, trackers: [[url]] }), /tracker URLs in ASCII/);
  }
  const manifests = ["https://a.example/".padEnd(70_000, "a")];
  assert.throws(() => makeLiveTransportFile({ ...RECIPE, manifests }), /larger than 65536/);
});

test("liveInfoDict refuses a name that displayText would change", () => {
  const names = ["", "a\nb", " a", "a\u202eb", "a  b", "x".repeat(257)];
  for (const name of names) {
    assert.throws(
      () => makeLiveTransportFile({ ...RECIPE, info: { ...INFO, name } }),
      /would be displayed as/,
      name,
    );
    const shown = displayText(encodeUtf8(name), 256) || "unnamed";
    const once = parse(makeLiveTransportFile({ ...RECIPE, info: { ...INFO, name: shown } }));
    assert.equal(parse(makeLiveTransportFile(once)).infohash, once.infohash);
  }
  assert.equal(displayText(encodeUtf8("BBC: One / \u202ea\0 \x01 b"), 256), "BBC: One / a b");
  assert.equal(displayText(encodeUtf8("ab \u{1f600}"), 4), "ab");
});

test("parseLiveTransportFile ignores invalid descriptive metadata", () => {
  const meta = encodeBencode(
    bencodeDict({
      title: latin1Bytes("a\0\x1b[31m\n b\xff"),
      description: new Uint8Array(9000).fill(0x78),
      tags: ["a", 5, "", "b"],
      lang: "eng",
      logo: "javascript:alert(1)",
      permanent: "yes",
      "date-start": -5,
      timeshift: 60,
    }),
  );
  const text = `4:meta${latin1Text(meta)}3:hlsl5:x://y15:http://a.exampleee`;
  const file = parse(
    latin1Bytes(
      `d3:hlsl4:x://16:http://a.example${"16:http://b.example".repeat(9)}e4:info${latin1Text(info())}${text.slice(0, 6 + meta.length)}e`,
    ),
  );
  assert.deepEqual(file.meta, {
    title: "a[31m b\ufffd",
    description: "x".repeat(4096),
    tags: ["a", "b"],
    timeShiftSeconds: 60,
  });
  assert.deepEqual(file.manifests, ["http://a.example/", "http://b.example/"]);
});

test("parseTransportFile refuses streams, parseLiveTransportFile refuses files", () => {
  const film = makeTorrent({
    name: "a",
    files: [{ path: "a", bytes: new Uint8Array(9) }],
    pieceLength: 16_384,
  });
  assert.throws(() => parseTransportFile(TRANSPORT_FILE, sha1), /a live stream; it has no files/);
  assert.throws(() => parseInfo(parse(TRANSPORT_FILE).infoBytes), /a live stream; it has no files/);
  assert.throws(() => parse(film.bytes), /dictionary with live/);
});

peersTest("other BitTorrent programs refuse the transport file of a stream", () => {
  const path = fileURLToPath(new URL("../fixtures/live/example.sluice", import.meta.url));
  const script = "import libtorrent, sys\nlibtorrent.torrent_info(sys.argv[1])";
  const libtorrent = spawnSync(PYTHON, ["-c", script, path], { encoding: "utf8" });
  assert.match(libtorrent.stderr, /RuntimeError: (invalid length of torrent|missing or invalid)/);
  assert.equal(libtorrent.status, 1);
  const transmission = spawnSync("transmission-show", [path], { encoding: "utf8" });
  assert.match(transmission.stderr, /Error parsing .torrent file/);
  assert.equal(transmission.status, 1);
});

test("isValidPublicKey refuses points of small order with either sign, and non-canonical keys", () => {
  assert.ok(isValidPublicKey(KEY.publicKey));
  const bad = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "efffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "00",
    "",
  ];
  for (const hex of [...bad, `${bad[0]}00`]) assert.equal(isValidPublicKey(fromHex(hex)!), false, hex);
  const near = "ebffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f";
  assert.ok(isValidPublicKey(fromHex(near)!));
});

test("ed25519Verifier refuses a non-canonical signature on every runtime (RFC 8032 5.1.7)", () => {
  const message = latin1Bytes("sluice");
  const signature = KEY.sign(message);
  const verify = ed25519Verifier(KEY.publicKey);
  assert.ok(verify(message, signature));
  // S and S + L are equivalent unless the verifier checks that S is below L, the order of the group.
  const order = fromHex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010")!;
  const other = signature.slice();
  for (let i = 0, carry = 0; i < 32; i++, carry >>= 8) {
    carry += signature[32 + i]! + order[i]!;
    other[32 + i] = carry & 0xff;
  }
  assert.notDeepEqual(other, signature);
  assert.equal(verify(message, other), false);
  for (const length of [0, 63, 65]) assert.equal(verify(message, new Uint8Array(length)), false);
});

test("parseMagnet and parseLink read magnetLink and liveLink", () => {
  const parts = {
    infohash: INFOHASH,
    displayName: "Канал & co",
    trackers: ["udp://tracker.example:6969/announce", "http://tracker.example/announce?a=1&b=2"],
    peers: [
      { host: "192.0.2.7", port: 8621 },
      { host: "2001:db8::7", port: 8621 },
    ],
    transportFileUrl: "https://example.org/a.sluice?x=1&y=2",
  };
  const magnet = parseMagnet(magnetLink(parts));
  assert.equal(magnet.infohash, INFOHASH);
  assert.equal(magnet.displayName, parts.displayName);
  assert.deepEqual(magnet.trackers, parts.trackers);
  assert.deepEqual(magnet.peers, parts.peers);
  assert.deepEqual(magnet.exactSources, [parts.transportFileUrl]);
  const link = parseLink(liveLink(parts));
  assert.deepEqual(link, { kind: "magnet", magnet: magnetLink(parts), infohash: INFOHASH });
  assert.deepEqual(
    magnetLink({ infohash: INFOHASH, trackers: [], peers: [] }),
    `magnet:?xt=urn:btih:${INFOHASH}`,
  );
});

test("isValidPublicKey does not modify a key, also not a Buffer", () => {
  const key = Buffer.alloc(32, 0x81);
  assert.equal(isValidPublicKey(key), true);
  assert.deepEqual(key, Buffer.alloc(32, 0x81));
});
