import { assert } from "../../../src/base/assert.ts";
import { equalBytes, latin1Bytes, latin1Text, toHex } from "../../../src/base/bytes.ts";
import type { Infohash } from "../../../src/base/ids.ts";
import { type Random, randomBelow } from "../../../src/base/random.ts";
import { encodeBencode } from "../../../src/wire/bencode-encode.ts";
import { ChunkAssembler } from "../../../src/wire/live/fragments.ts";
import { decodeHeader, encodeHeader } from "../../../src/wire/live/header.ts";
import { liveInfoDict, parseLiveInfo } from "../../../src/wire/live/info.ts";
import { decodeLiveMessage, encodeLiveMessage } from "../../../src/wire/live/message.ts";
import { LIVE_KIND } from "../../../src/wire/live/message-kind.ts";
import { makeLiveTransportFile, parseLiveTransportFile } from "../../../src/wire/live/transport-file.ts";
import type { LiveVariant } from "../../../src/wire/live/variants.ts";
import { emptyWindow } from "../../../src/wire/live/window.ts";
import { INFO, KEY, type LiveMessage, MESSAGES, PIECES, PROOFS, RECIPE } from "../../wire/live-vectors.ts";
import type { FuzzTarget } from "../contract.ts";
import { repeated } from "../extremes.ts";
import { mutateBencode } from "../mutate-bencode.ts";

/** Hash and signature are not part of the decoder, so trivial ones suffice. */
const noHash = () => new Uint8Array(20);
const anySignature = () => () => true;

const VARIANTS: readonly LiveVariant[] = [
  { bytesPerSecond: 500_000, width: 1280, height: 720, codecs: ["avc1.640028", "mp4a.40.2"] },
  { infohash: "ab".repeat(20) as Infohash, bytesPerSecond: 100_000, codecs: [] },
];
const FILE = makeLiveTransportFile(RECIPE, KEY.sign);
const FILE_TEXT = latin1Text(makeLiveTransportFile({ ...RECIPE, meta: {} })).slice(0, -1);

const transportFile: FuzzTarget = {
  name: "live-transport-file",
  corpus: () => [
    FILE,
    makeLiveTransportFile({ ...RECIPE, manifests: [], relays: [], trackers: [], meta: {} }),
    makeLiveTransportFile({ ...RECIPE, meta: {}, variants: VARIANTS }),
  ],
  extremes: () => [
    repeated(`${FILE_TEXT.replace(/4:metade.*$/s, "")}4:metad4:tagsl`, "1:a", "eee"),
    repeated(`${FILE_TEXT.replace(/4:metade.*$/s, "")}4:metad5:title60000:`, "\xc3\xa9", "ee", 60_000),
  ],
  words: [
    "4:metade",
    "3:rly0:",
    "3:sig0:",
    "1:Ki16e",
    "2:mxi0e",
    "4:tagslee",
    "3:hlsle",
    "3:varle",
    "2:ih20:",
    "1:hi-1e",
  ].map(latin1Bytes),
  mutate: mutateBencode,
  run(bytes) {
    const file = parseLiveTransportFile(bytes, noHash, anySignature);
    assert(file.relays.length <= 32 && file.manifests.length <= 8, "few relays and manifests");
    assert((file.variants ?? []).length <= 6, "few variants");
    for (const text of [file.meta.title ?? "", file.meta.description ?? ""]) {
      assert(!/[\p{Cc}\p{Cf}]/u.test(text) && text.length <= 4096, "text that may be shown");
    }
    // Display texts may differ from the input, but a second round trip must not change the file.
    const again = makeLiveTransportFile(file);
    const third = makeLiveTransportFile(parseLiveTransportFile(again, noHash, anySignature));
    assert(equalBytes(again, third), "what is made stays as it is");
    return file;
  },
};

const info: FuzzTarget = {
  name: "live-info",
  corpus: () => [encodeBencode(liveInfoDict(INFO))],
  mutate: mutateBencode,
  run(bytes) {
    const parsed = parseLiveInfo(bytes);
    parseLiveInfo(encodeBencode(liveInfoDict(parsed)));
    return parsed;
  },
};

const header: FuzzTarget = {
  name: "live-header",
  corpus: () => PIECES.map(({ headerBytes }) => headerBytes),
  maxBytes: 512,
  mutate: changedBytes,
  run(bytes) {
    const decoded = decodeHeader(bytes, INFO);
    const again = decodeHeader(encodeHeader(decoded), INFO);
    assert(equalBytes(encodeHeader(decoded), encodeHeader(again)), "what is read can be written");
    assert(
      decoded.pieceBytes <= INFO.maxPieceBytes && (decoded.randomAccessOffset ?? -1) < decoded.pieceBytes,
      "no place outside the piece",
    );
    return decoded;
  },
};

/** Changes bytes after the first, so that kind and length stay the same. */
function changedBytes(random: Random, seed: Uint8Array): Uint8Array {
  const bytes = seed.slice();
  const count = 1 + randomBelow(random, 4);
  for (let i = 0; i < count && bytes.length > 1; i++) {
    const at = 1 + randomBelow(random, bytes.length - 1);
    bytes[at] = random() < 0.5 ? randomBelow(random, 8) : randomBelow(random, 256);
  }
  return bytes;
}

const SHARED_WINDOW = emptyWindow(4);

function runMessage(bytes: Uint8Array): unknown {
  const message = decodeLiveMessage(bytes, 4, SHARED_WINDOW);
  decodeLiveMessageOf16(bytes);
  if (!message) return undefined;
  checkBounds(message);
  if (message.kind === "stat") return message;
  const written = encodeLiveMessage(message);
  const again = decodeLiveMessage(written, 4)!;
  assert(again.kind === message.kind, "the kind stays");
  const rewritten = encodeLiveMessage(again);
  assert(equalBytes(written, rewritten), `what is read can be written: ${toHex(written.subarray(0, 40))}`);
  return message.kind === "window" ? undefined : message;
}

/** Decodes the same bytes for a stream with more stripes; most are refused. */
function decodeLiveMessageOf16(bytes: Uint8Array): void {
  try {
    decodeLiveMessage(bytes, 16);
  } catch (thrown) {
    if (!(thrown instanceof Error) || thrown.name !== "DecodeError") throw thrown;
  }
}

function checkBounds(message: LiveMessage): void {
  if ("stripes" in message) assert(message.stripes > 0 && message.stripes < 16, "stripes that are there");
  if ("candidates" in message) assert(message.candidates.length <= 8, "few candidates");
  if ("chunks" in message) {
    assert(message.chunks.length >= 1 && message.chunks.length <= 128, "few chunks");
    for (const { stripe, seq } of message.chunks) {
      assert(stripe < 4 || (stripe === 255 && message.kind === "lacking"), "a stripe that is there");
      assert(Number.isSafeInteger(seq) && seq < 2 ** 48, "a number that is exact");
    }
  }
  if (message.kind === "chunk")
    assert(message.bytes.length <= 16_384 && message.stripe < 4, "a chunk that fits");
  if (message.kind === "stat")
    assert(message.relays.length <= 32 && message.trackers.length <= 8, "few relays and trackers");
}

/** One target per kind, so that each gets as many inputs. */
const messages = Object.entries(LIVE_KIND).map(
  ([name, kind]): FuzzTarget => ({
    name: `live-message-${name}`,
    corpus: () => [...MESSAGES, ...PROOFS].filter(({ bytes }) => bytes[0] === kind).map(({ bytes }) => bytes),
    maxBytes: 32_768,
    ...(name === "stat" && { words: ["3:bpsi1e", "3:endi1e", "3:rly0:"].map(latin1Bytes) }),
    mutate: changedBytes,
    run: runMessage,
  }),
);

/** Three bytes define a fragment: flags and piece, stripe and number, length. */
const fragments: FuzzTarget = {
  name: "live-fragments",
  corpus: () => [
    Uint8Array.of(0x00, 0x00, 64, 0x00, 0x01, 64, 0x80, 0x02, 9),
    Uint8Array.of(0x00, 0x10, 64, 0x01, 0x20, 64, 0x82, 0x00, 3, 0x80, 0x11, 5, 0x81, 0x21, 64),
  ],
  maxBytes: 96,
  run(bytes) {
    const assembler = new ChunkAssembler(INFO);
    const whole: unknown[] = [];
    for (let at = 0; at + 3 <= bytes.length; at += 3) {
      const [piece, place, length] = [bytes[at]!, bytes[at + 1]!, bytes[at + 2]!];
      const chunk = assembler.take({
        kind: "chunk",
        epoch: 1,
        seq: piece & 0x0f,
        stripe: (place >> 4) & 3,
        fragment: place & 0x0f,
        isLast: piece >= 0x80,
        isLate: false,
        bytes: new Uint8Array(piece >= 0x80 ? 1 + length : 16_384),
      });
      if (chunk) whole.push(chunk.bytes.length);
      assert((chunk?.bytes.length ?? 0) <= 16_544, "no chunk beyond the stream's largest");
    }
    return whole;
  },
};

export const targets = [transportFile, info, header, fragments, ...messages];
