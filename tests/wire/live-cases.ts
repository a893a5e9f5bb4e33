import { concatBytes, latin1Bytes, toHex, writeU16, writeU32, writeU48 } from "../../src/base/bytes.ts";
import { infohashOf } from "../../src/base/ids.ts";
import { sha256 } from "../../src/runtime/crypto.ts";
import { encodeBencode } from "../../src/wire/bencode-encode.ts";
import { cutPiece } from "../../src/wire/live/chunks.ts";
import { encodeHeader, type PieceHeader } from "../../src/wire/live/header.ts";
import { type LiveInfo, liveInfoDict } from "../../src/wire/live/info.ts";
import { FRAGMENT_BYTES } from "../../src/wire/live/limits.ts";
import { encodeLiveMessage } from "../../src/wire/live/message.ts";
import { makeLiveTransportFile } from "../../src/wire/live/transport-file.ts";
import { chunkHashesOf, liveHash, signHeader } from "../../src/wire/live/trust.ts";
import { encodeMetadataMessage } from "../../src/wire/peer/metadata-message.ts";
import { edgeSignatures, ORDER } from "./edwards.ts";
import {
  INFO,
  INFOHASH,
  KEY,
  PIECES,
  PROOFS,
  plain,
  RECIPE,
  SEED,
  SUCCESSOR_RECORD,
  TRANSPORT_FILE,
  VARIANTS,
} from "./live-vectors.ts";
import { sha1 } from "./make-torrent.ts";

/** Cases of the live protocol on which all implementations decide alike: `tests/fixtures/live/cases.json`. */
export function allCases(): unknown {
  return plain({
    signatures: edgeSignatures(SEED),
    keys: KEYS,
    headers: HEADERS,
    files: fileCases(),
    layouts: [layout(8, 300_000), layout(8, 3_000), layout(16, 60_000), layout(16, 188)],
    chain: CHAIN,
    subscriptions: SUBSCRIPTIONS,
    metadata: METADATA,
    proofs: brokenAt(PROOFS[2]!.bytes, { role: 1, certificate: 40, signature: 160 }),
    variants: variantCases(),
    successors: brokenAt(SUCCESSOR_RECORD, { key: 5, infohash: 40, time: 55, signature: 100 }),
  });
}

const hex = (text: string) => Uint8Array.from(Buffer.from(text.replaceAll(" ", ""), "hex"));

/** Keys of a stream, and whether a transport file may have them. */
const KEYS = [
  { what: "an ordinary key", key: KEY.publicKey, isValid: true },
  { what: "a key with a part of small order", key: edgeSignatures(SEED).at(-1)!.key, isValid: true },
  { what: "the identity", key: hex(`01${"00".repeat(31)}`), isValid: false },
  { what: "the identity with the sign bit", key: hex(`01${"00".repeat(30)}80`), isValid: false },
  { what: "order 4", key: hex("00".repeat(32)), isValid: false },
  { what: "order 2", key: hex(`ec${"ff".repeat(30)}7f`), isValid: false },
  {
    what: "order 8",
    key: hex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85"),
    isValid: false,
  },
  { what: "not reduced", key: hex(`f0${"ff".repeat(30)}7f`), isValid: false },
  { what: "31 bytes", key: KEY.publicKey.subarray(1), isValid: false },
];

type Change = (bytes: Uint8Array) => void;

/** A header like the first one of the vectors, with changed bytes, and a right signature unless `isSigned` is false. */
function changed(what: string, isValid: boolean, change: Change, isSigned = true) {
  const bytes = Uint8Array.from(PIECES[0]!.headerBytes);
  change(bytes);
  if (isSigned) signHeader(bytes, INFOHASH, KEY.sign);
  return { what, bytes, isValid };
}

const flags = (value: number): Change => ((bytes) => (bytes[1] = value)) as Change;
const all =
  (...changes: Change[]): Change =>
  (bytes) => {
    for (const change of changes) change(bytes);
  };
const number =
  (at: number, value: number, write = writeU32): Change =>
  (bytes) =>
    write(bytes, at, value);
const MAX_PCR = 2 ** 33 * 300;
const { bytes: SHORT } = changed("", false, () => {});

/** One header for each rule, and some that are at the limit. The first has flags 1, 2, 4, 16 and 1,504 bytes. */
const HEADERS = [
  changed("an ordinary header", true, () => {}),
  changed("unknown flags", true, flags(0xf7)),
  changed("a reserved byte", true, (bytes) => (bytes[3] = 9)),
  changed("a span of 5,000 ms", true, number(20, 5_000, writeU16)),
  changed("the largest PCR", true, number(22, MAX_PCR - 1, writeU48)),
  changed("no RAP and no PCR", true, all(flags(0), number(28, 0), number(22, 0, writeU48))),
  changed("an empty piece", true, all(flags(0), number(28, 0), number(22, 0, writeU48), number(32, 0))),
  changed("the largest piece", true, number(32, INFO.maxPieceBytes)),
  changed("a timestamp at the start of the epoch", true, number(14, 1_790_000_000_000, writeU48)),
  { what: "a byte too few", bytes: SHORT.subarray(0, -1), isValid: false },
  { what: "a byte too many", bytes: concatBytes([SHORT, new Uint8Array(1)]), isValid: false },
  changed("version 2", false, (bytes) => (bytes[0] = 2)),
  changed("another K", false, (bytes) => (bytes[2] = 8)),
  changed("a wrong signature", false, (bytes) => (bytes[150]! ^= 1), false),
  changed("a signature with S above the order", false, addOrder, false),
  changed("a piece above mx", false, number(32, INFO.maxPieceBytes + 1)),
  changed("a span of 5,001 ms", false, number(20, 5_001, writeU16)),
  changed("a timestamp before the epoch", false, number(14, 1_789_999_999_999, writeU48)),
  changed("a PCR of 2^33 × 300", false, number(22, MAX_PCR, writeU48)),
  changed("a PCR without its flag", false, flags(7)),
  changed("a RAP at the end of the piece", false, number(28, 1_504)),
  changed("a RAP in a packet", false, number(28, 189)),
  changed("a RAP without its flag", false, flags(16)),
  changed("a RAP in an empty piece", false, all(number(32, 0), number(28, 0))),
  changed("a segment that starts without a RAP", false, all(flags(18), number(28, 0))),
];

function addOrder(bytes: Uint8Array): void {
  const at = bytes.length - 32;
  const s = BigInt(`0x${Buffer.from(bytes.subarray(at)).reverse().toString("hex")}`) + ORDER;
  bytes.set(Buffer.from(s.toString(16).padStart(64, "0"), "hex").reverse(), at);
}

/** Transport files that every program accepts, or refuses. */
function fileCases() {
  const order = ["K", "alg", "bps", "ct", "k", "mx", "pd", "seg", "v", "win"];
  const base: Record<string, string> = {
    ...{ K: "i4e", alg: "7:ed25519", bps: "i96256e", ct: "6:mpegts", mx: "i65536e" },
    ...{ pd: "i125e", seg: "i2000e", v: "i1e", win: "i1800e" },
  };
  const key = Buffer.from(KEY.publicKey).toString("latin1");
  const entry = (name: string, value: string) => `${name.length}:${name}${value}`;
  const live = (change: Record<string, string | undefined>) => {
    const members: Record<string, string | undefined> = { ...base, k: `32:${key}`, ...change };
    const entries = order.map((name) => (members[name] === undefined ? "" : entry(name, members[name])));
    return `d${entries.join("")}e`;
  };
  const info = (
    change: Record<string, string | undefined> = {},
    { before = "", name = "4:name4:name", length = "12:piece lengthi65536e" } = {},
  ) => `d${before}${entry("live", live(change))}${name}${length}e`;
  const file = (infoText: string, after = "", before = "") => `d${before}4:info${infoText}${after}e`;
  const good = info();
  const one = (what: string, isValid: boolean, text: string) => ({
    ...{ what, isValid },
    bytes: latin1Bytes(text),
  });
  const without = (what: string, change: Record<string, string | undefined>) =>
    one(what, false, file(info(change)));
  return [
    one("an unsigned file", true, file(good)),
    one("unknown keys", true, file(info({}, { length: "12:piece lengthi65536e5:quota2:no" }), "5:otherle")),
    one("a long name that is not UTF-8", true, file(info({}, { name: `4:name300:${"\u00ff".repeat(300)}` }))),
    one("display data of wrong types", true, file(good, "4:metad4:logoi1e5:titlelee")),
    one("more copies than are read", true, file(good, "", `3:hlsl${"12:http://a.b/c".repeat(9)}e`)),
    { what: "a signed file", isValid: true, bytes: TRANSPORT_FILE },
    {
      what: "a signed file with two qualities",
      isValid: true,
      bytes: makeLiveTransportFile({ ...RECIPE, variants: VARIANTS }, KEY.sign),
    },
    one("an unsigned file whose list of qualities is no list", true, file(good, "3:vari1e")),
    {
      what: "a wrong signature",
      isValid: false,
      bytes: TRANSPORT_FILE.map((byte, i, { length }) => (i === length - 5 ? byte ^ 1 : byte)),
    },
    one("a signature of 63 bytes", false, file(good, `3:sig63:${"x".repeat(63)}`)),
    one("a byte after the end", false, `${file(good)}\n`),
    one("unsorted keys", false, file(good, "1:ai1e")),
    one("a repeated key", false, file(good, "5:otheri1e5:otheri1e")),
    one("a leading zero", false, file(good, "5:otheri01e")),
    one("a negative zero", false, file(good, "5:otheri-0e")),
    one("an integer of 2^53", false, file(good, "5:otheri9007199254740992e")),
    one("the largest integer", true, file(good, "5:otheri9007199254740991e")),
    one("no info", false, "d5:otheri1ee"),
    one("no live", false, file("d4:name4:name12:piece lengthi65536ee")),
    without("version 2", { v: "i2e" }),
    without("no version", { v: undefined }),
    without("another algorithm", { alg: "3:rsa" }),
    without("a short key", { k: `31:${key.slice(1)}` }),
    without("a key of small order", { k: `32:${"\0".repeat(32)}` }),
    without("a key that is not reduced", { k: `32:\u00f0${"\u00ff".repeat(30)}\u007f` }),
    without("5 stripes", { K: "i5e" }),
    without("pieces of 49 ms", { pd: "i49e" }),
    without("pieces of 1,001 ms", { pd: "i1001e" }),
    without("pieces of less than a packet for each stripe", { mx: "i751e" }),
    without("a rate of 0", { bps: "i0e" }),
    without("a rate that is text", { bps: "1:1" }),
    without("segments of 999 ms", { seg: "i999e" }),
    without("a window of more than a day", { win: "i86401e" }),
    without("an unknown container", { ct: "3:ogg" }),
    one("no name", false, file(info({}, { name: "" }))),
    one(
      "another piece length than the smallest",
      false,
      file(info({}, { length: "12:piece lengthi131072e" })),
    ),
    one(
      "pieces of 2 MiB and a byte",
      false,
      file(info({ mx: "i2097153e" }, { length: "12:piece lengthi4194304e" })),
    ),
    one("pieces", false, file(info({}, { length: "12:piece lengthi65536e6:pieces0:" }))),
    one("a length", false, file(`d6:lengthi1e${good.slice(1)}`)),
    one("files", false, file(info({}, { before: "5:filesle" }))),
    one("a file tree", false, file(info({}, { before: "9:file treede" }))),
    one("half a relay", false, file(good, `3:rly9:${"x".repeat(9)}`)),
    one("33 relays", false, file(good, `3:rly594:${"x".repeat(594)}`)),
  ];
}

/** Lists of qualities, and what a program reads of them. */
function variantCases() {
  const own = "d3:bpsi500000ee";
  const id = (byte: string) => `2:ih20:${byte.repeat(20)}`;
  const other = (members = "", byte = "a", after = "") => `d3:bpsi1000e${members}${id(byte)}${after}e`;
  const ownRead = { bps: 500_000 };
  const read = (more: object = {}, byte = "a") => ({
    ...{ ih: toHex(latin1Bytes(byte.repeat(20))), bps: 1_000 },
    ...more,
  });
  const one = (what: string, text: string, variants: readonly object[]) => ({
    ...{ what, variants },
    bytes: latin1Bytes(text),
  });
  return [
    one("two qualities", `l${own}${other()}e`, [ownRead, read()]),
    one(
      "size and codecs",
      `l${own}${other("2:cd11:avc1.640028", "a", "1:wi640e").replace("2:ih", "1:hi360e2:ih")}e`,
      [ownRead, read({ w: 640, h: 360, cd: "avc1.640028" })],
    ),
    one("a width alone is absent", `l${own}${other("", "a", "1:wi640e")}e`, [ownRead, read()]),
    one("codecs with other characters are absent", `l${own}${other('2:cd5:avc1"')}e`, [ownRead, read()]),
    one(
      "entries that are skipped",
      `l${own}i1e${`d3:bpsi0e${id("b")}e`}${`d${id("c")}e`}d3:bpsi1e2:ih2:xxe${other()}e`,
      [ownRead, read()],
    ),
    one("the second entry of one stream is skipped", `l${own}${other()}${other("2:cd4:avc1")}${own}e`, [
      ownRead,
      read(),
    ]),
    one("seven qualities", `l${own}${[..."abcdef"].map((byte) => other("", byte)).join("")}e`, [
      ownRead,
      ...[..."abcde"].map((byte) => read({}, byte)),
    ]),
    one("without the stream itself", `l${other()}${other("", "b")}e`, []),
    one("the stream itself alone", `l${own}e`, []),
    one("no list", "4:text", []),
  ];
}

/** A piece whose byte `i` is `i` modulo 251, in a stream of `stripeCount` stripes: its header, its chunks and their messages. */
function layout(stripeCount: 8 | 16, length: number) {
  const info: LiveInfo = { ...INFO, stripeCount, maxPieceBytes: 524_288, pieceMs: 250 };
  const infoBytes = encodeBencode(liveInfoDict(info));
  const infohash = infohashOf(sha1(infoBytes));
  const piece = Uint8Array.from({ length }, (_, i) => i % 251);
  const { header } = PIECES[1]!;
  const bytes = encodeHeader({
    ...{ ...header, pieceBytes: length, randomAccessOffset: undefined, clockReference: undefined },
    chunkHashes: chunkHashesOf(piece, stripeCount, sha256),
  });
  signHeader(bytes, infohash, KEY.sign);
  const chunks = cutPiece(piece, stripeCount);
  const { epoch, seq } = header;
  return {
    ...{ infoBytes, infohash, length, headerBytes: bytes },
    chunkLengths: chunks.map((chunk) => chunk.length),
    /** The first 14 bytes of each CHUNK, and the number of bytes after them. */
    messages: chunks.flatMap((chunk, stripe) =>
      Array.from({ length: Math.ceil(chunk.length / FRAGMENT_BYTES) }, (_, fragment) => {
        const data = chunk.subarray(fragment * FRAGMENT_BYTES, (fragment + 1) * FRAGMENT_BYTES);
        const isLast = (fragment + 1) * FRAGMENT_BYTES >= chunk.length;
        const message = encodeLiveMessage({
          ...{ kind: "chunk", epoch, seq, stripe, fragment, isLast, isLate: false },
          bytes: data,
        });
        return { head: message.subarray(0, 14), bytes: data.length };
      }),
    ),
  };
}

/** Makes a signed header of 752 bytes. */
function next(previous: Uint8Array | undefined, seq: number, more: Partial<PieceHeader> = {}): Uint8Array {
  const piece = new Uint8Array(752).fill(seq & 255);
  const { header } = PIECES[1]!;
  const bytes = encodeHeader({
    ...{ ...header, seq, timestampMs: header.timestampMs + 125 * (seq - 100), pieceBytes: 752 },
    previousHash: previous ? liveHash(previous, sha256) : new Uint8Array(20),
    chunkHashes: chunkHashesOf(piece, INFO.stripeCount, sha256),
    isDiscontinuity: false,
    ...more,
  });
  signHeader(bytes, INFOHASH, KEY.sign);
  return bytes;
}

/** Headers by name, and what one is to those that a peer knows. `skipped`: the first and last number that was never made. */
const CHAIN = (() => {
  const first = next(undefined, 100);
  const second = next(first, 101);
  const afterSkip = next(second, 120);
  const other = next(first, 101, { segment: 895_000_001 });
  const stranger = next(other, 102);
  const third = next(second, 102);
  const inSkip = next(second, 110);
  const restarted = next(undefined, 100_000, { epoch: 1_790_000_100, timestampMs: 1_790_000_200_000 });
  const headers = { first, second, third, afterSkip, other, stranger, inSkip, restarted };
  type Name = keyof typeof headers;
  const cases: { known: Name[]; header: Name; is: string; skipped?: number[] }[] = [
    { known: ["first"], header: "second", is: "follows" },
    { known: ["first", "second"], header: "afterSkip", is: "follows", skipped: [102, 119] },
    { known: ["first", "second"], header: "other", is: "contradicts" },
    { known: ["first", "second"], header: "stranger", is: "contradicts" },
    { known: ["second", "afterSkip"], header: "inSkip", is: "contradicts" },
    { known: ["first"], header: "third", is: "unrelated" },
    { known: ["first", "second"], header: "restarted", is: "later epoch" },
  ];
  return { headers, cases };
})();

/** SUBs to a parent that has the pieces 1 to 100 and enough upload, and its answer: the first piece of SUBOK, or the reason of SUBNO. */
const SUBSCRIPTIONS = [
  { what: "more than the backlog", first: 80, backlog: 4, granted: 97 },
  { what: "less than the backlog", first: 98, backlog: 8, granted: 98 },
  { what: "no backlog", first: 80, backlog: 0, granted: 101 },
  { what: "the future", first: 105, backlog: 8, granted: 105 },
  { what: "epoch 0", first: 98, backlog: 8, epoch: 0, granted: 98 },
  { what: "another epoch", first: 98, backlog: 8, epoch: 2, reason: 4 },
].map(({ what, first, backlog, epoch = 1, ...answer }) => {
  const stripes = 0b1111;
  const sub = encodeLiveMessage({
    ...{ kind: "subscribe", stripes, epoch, startSeq: first, backfillPieces: backlog, isDesperate: true },
    have: [0, 0, 0, 0],
  });
  return { what, sub, answer };
});

/** A peer that knows only the infohash gets the info dictionary, then introduces itself. */
const METADATA = (() => {
  const infoBytes = encodeBencode(liveInfoDict(INFO));
  return {
    infohash: INFOHASH,
    withoutInfo: latin1Bytes("d1:md7:sl_livei3e11:ut_metadatai1eee"),
    withInfo: latin1Bytes(
      `d1:md7:sl_livei3e11:ut_metadatai1ee13:metadata_sizei${infoBytes.length}e2:sld1:n16:0123456789abcdef4:rolei0e2:upi0e1:vi1eee`,
    ),
    request: encodeMetadataMessage({ kind: "request", piece: 0 }),
    data: encodeMetadataMessage({ kind: "data", piece: 0, totalBytes: infoBytes.length, bytes: infoBytes }),
  };
})();

/** Copies of signed bytes, each with one changed bit, which are all invalid. */
function brokenAt(bytes: Uint8Array, places: Record<string, number>) {
  return Object.entries(places).map(([what, at]) => ({
    what: `another ${what}`,
    bytes: bytes.map((byte, i) => (i === at ? byte ^ 1 : byte)),
    isValid: false,
  }));
}
