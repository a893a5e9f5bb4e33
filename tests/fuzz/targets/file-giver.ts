import { assert } from "../../../src/base/assert.ts";
import { concatBytes, equalBytes } from "../../../src/base/bytes.ts";
import { DecodeError } from "../../../src/base/errors.ts";
import { infohashOf } from "../../../src/base/ids.ts";
import { readKnownFile } from "../../../src/engine/known-file.ts";
import { FileGiver } from "../../../src/engine/live/file-giver.ts";
import { encodeExtensionHandshake } from "../../../src/wire/extension-handshake.ts";
import { encodeHandshake } from "../../../src/wire/handshake.ts";
import { encodeMetadataMessage } from "../../../src/wire/metadata-message.ts";
import { parseTransportFile } from "../../../src/wire/metainfo.ts";
import { PeerMessageWriter } from "../../../src/wire/peer-message-writer.ts";
import { KEY, TRANSPORT_FILE } from "../../wire/live-vectors.ts";
import { makeTorrent } from "../../wire/make-torrent.ts";
import type { FuzzTarget } from "../contract.ts";
import { mutateBencode } from "../mutate-bencode.ts";

const INFOHASH = infohashOf(new Uint8Array(20).fill(0x61));
const FILE = new Uint8Array(20_000);
const PEER_ID = new Uint8Array(20).fill(0x41);
/** Two pieces, each at most twice and eight besides, and the hello. */
const MOST_BYTES = 12 * (16_384 + 64) + 512;

const GREETING = encodeHandshake({
  infohash: INFOHASH,
  peerId: PEER_ID,
  extensions: true,
  fast: true,
  dht: false,
});

function asking(pieces: readonly number[]): Uint8Array {
  const writer = new PeerMessageWriter();
  const messages = new Map([["ut_metadata", 3]]);
  writer.extended(0, encodeExtensionHandshake({ messages, metadataBytes: 20_000 }));
  for (const piece of pieces) writer.extended(1, encodeMetadataMessage({ kind: "request", piece }));
  return concatBytes([GREETING, writer.take()!]);
}

/** All that is answered before the end, and whether the bytes were refused. */
function hear(bytes: Uint8Array, step: number): { answered: Uint8Array; fault: unknown } {
  const giver = new FileGiver({ infohash: INFOHASH, peerId: PEER_ID, bytes: FILE });
  const parts: Uint8Array[] = [];
  try {
    for (let at = 0; at < bytes.length; at += step) {
      const answer = giver.received(bytes.subarray(at, at + step));
      if (answer) parts.push(answer);
    }
    return { answered: concatBytes(parts), fault: undefined };
  } catch (fault) {
    return { answered: concatBytes(parts), fault };
  }
}

const giver: FuzzTarget = {
  name: "file-giver",
  corpus: () => [GREETING, asking([0, 1, 2]), asking([7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])],
  maxBytes: 8192,
  run(bytes) {
    const whole = hear(bytes, Math.max(1, bytes.length));
    const parts = hear(bytes, 7);
    assert((whole.fault === undefined) === (parts.fault === undefined), "a fault must not depend on reads");
    assert(parts.answered.length <= MOST_BYTES, "an asker gets the file a few times, and no more");
    if (whole.fault !== undefined) throw whole.fault;
    assert(equalBytes(whole.answered, parts.answered), "where reads are cut must not matter");
    return whole.answered.length;
  },
};

/** The hash and the signature are no part of the decoder: cheap ones will do. */
const CHECKS = {
  sha1: () => new Uint8Array(20),
  sha256: () => new Uint8Array(32),
  ed25519Verifier: () => () => true,
};
const FILM = makeTorrent({
  name: "a",
  files: [{ path: "a", bytes: new Uint8Array(9) }],
  pieceLength: 16_384,
}).bytes;

const knownFile: FuzzTarget = {
  name: "known-file",
  corpus: () => [TRANSPORT_FILE, FILM],
  mutate: mutateBencode,
  run(bytes) {
    const known = readKnownFile(bytes, CHECKS);
    // A stream that others would take for files could have two swarms under one infohash.
    assert(known.kind === "vod" || !isReadAsFiles(bytes), "of one kind and no other");
    assert(known.kind === "vod" || known.file.info.publicKey.length === KEY.publicKey.length, "a key");
    return known;
  },
};

function isReadAsFiles(bytes: Uint8Array): boolean {
  try {
    parseTransportFile(bytes, CHECKS.sha1);
    return true;
  } catch (thrown) {
    if (thrown instanceof DecodeError) return false;
    throw thrown;
  }
}

export const targets = [giver, knownFile];
