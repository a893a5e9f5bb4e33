import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fromHex, latin1Bytes, toHex } from "../../src/base/bytes.ts";
import { contentIdOf } from "../../src/base/ids.ts";
import { ed25519Verifier, sha256 } from "../../src/runtime/crypto.ts";
import { cutPiece } from "../../src/wire/live/chunks.ts";
import { decodeHeader, encodeHeader } from "../../src/wire/live/header.ts";
import { decodeLiveMessage, encodeLiveMessage } from "../../src/wire/live/message.ts";
import { LIVE_EXTENSION } from "../../src/wire/live/peer-info.ts";
import { isSignedStat } from "../../src/wire/live/stat.ts";
import { makeLiveTransportFile, parseLiveTransportFile } from "../../src/wire/live/transport-file.ts";
import { isChunkOf, isSignedHeader } from "../../src/wire/live/trust.ts";
import {
  decodeExtensionHandshake,
  encodeExtensionHandshake,
} from "../../src/wire/peer/extension-handshake.ts";
import { chainProblem } from "./header-chain.ts";
import {
  allVectors,
  INFO,
  INFOHASH,
  KEY,
  MESSAGES,
  PIECES,
  plain,
  RECIPE,
  TRANSPORT_FILE,
  VERIFY,
} from "./live-vectors.ts";
import { sha1 } from "./make-torrent.ts";

const FOLDER = new URL("../fixtures/live/", import.meta.url);

interface Vectors {
  readonly transportFile: { readonly bytes: string; readonly infohash: string; readonly contentId: string };
  readonly handshake: string;
  readonly pieces: readonly {
    readonly piece: string;
    readonly header: unknown;
    readonly headerBytes: string;
  }[];
  readonly messages: readonly { readonly name: string; readonly message: unknown; readonly bytes: string }[];
}
const VECTORS = JSON.parse(readFileSync(new URL("vectors.json", FOLDER), "utf8")) as Vectors;

test("the encoders reproduce the test vectors", () => {
  assert.deepEqual(VECTORS, allVectors());
  assert.deepEqual(new Uint8Array(readFileSync(new URL("example.sluice", FOLDER))), TRANSPORT_FILE);
});

test("makeLiveTransportFile and parseLiveTransportFile agree with the test vectors", () => {
  const bytes = fromHex(VECTORS.transportFile.bytes)!;
  const file = parseLiveTransportFile(bytes, sha1, ed25519Verifier);
  assert.equal(file.infohash, VECTORS.transportFile.infohash);
  assert.equal(contentIdOf(file.infohash), VECTORS.transportFile.contentId);
  assert.equal(file.isSigned, true);
  const { info, trackers, meta, relays, manifests } = file;
  assert.deepEqual({ info, trackers, meta, relays, manifests }, { ...RECIPE, info: INFO });
  assert.deepEqual(makeLiveTransportFile({ info, trackers, meta, relays, manifests }, KEY.sign), bytes);
});

test("headers and chunks agree with the test vectors, each signed, chained and hashed", () => {
  for (const [i, vector] of VECTORS.pieces.entries()) {
    const bytes = fromHex(vector.headerBytes)!;
    const header = decodeHeader(bytes, INFO);
    assert.deepEqual(plain(header), vector.header);
    const unsigned = encodeHeader(header);
    assert.deepEqual(unsigned.subarray(0, -64), bytes.subarray(0, -64));
    assert.ok(isSignedHeader(bytes, INFOHASH, VERIFY));
    if (i > 0)
      assert.equal(
        chainProblem(PIECES[i - 1]!.headerBytes, PIECES[i - 1]!.header, header, sha256),
        undefined,
      );
    const piece = fromHex(vector.piece)!;
    assert.equal(piece.length, header.pieceBytes);
    const chunks = cutPiece(piece, INFO.stripeCount);
    for (const [stripe, chunk] of chunks.entries()) assert.ok(isChunkOf(header, stripe, chunk, sha256));
  }
});

test("decodeLiveMessage and encodeLiveMessage agree with the test vectors", () => {
  assert.equal(VECTORS.messages.length, MESSAGES.length);
  for (const vector of VECTORS.messages) {
    const bytes = fromHex(vector.bytes)!;
    const message = decodeLiveMessage(bytes, INFO.stripeCount)!;
    assert.deepEqual(plain(message), vector.message, vector.name);
    if (message.kind === "stat") assert.ok(isSignedStat(bytes, INFOHASH, VERIFY));
    else assert.equal(toHex(encodeLiveMessage(message)), vector.bytes, vector.name);
  }
});

test("decodeExtensionHandshake reads the live peer info of the test vectors", () => {
  const live = {
    role: "relay",
    uploadBytesPerSecond: 2_621_440,
    challenge: latin1Bytes("0123456789abcdef"),
  } as const;
  const { live: read, messages } = decodeExtensionHandshake(latin1Bytes(VECTORS.handshake));
  assert.deepEqual([read, [...messages]], [live, [[LIVE_EXTENSION, 3]]]);
  const written = encodeExtensionHandshake({ messages, live });
  assert.deepEqual(written, latin1Bytes(VECTORS.handshake));
});

test("decodeExtensionHandshake accepts a peer whose versions include ours, and no other", () => {
  const accepts = (sl: string) =>
    decodeExtensionHandshake(latin1Bytes(`d1:md7:sl_livei3ee2:sl${sl}e`)).live !== undefined;
  for (const sl of ["d1:vi1ee", "d3:mini1e1:vi3ee", "d3:mini0e1:vi1ee"]) assert.ok(accepts(sl), sl);
  for (const sl of ["de", "d1:vi2ee", "d3:mini2e1:vi3ee", "d1:vi0ee", "d3:mini1ee", "d1:v1:1e"])
    assert.ok(!accepts(sl), sl);
});
