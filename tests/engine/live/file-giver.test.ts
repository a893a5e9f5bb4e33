import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, toHex } from "../../../src/base/bytes.ts";
import { DecodeError } from "../../../src/base/errors.ts";
import { infohashOf } from "../../../src/base/ids.ts";
import { FileGiver } from "../../../src/engine/live/file-giver.ts";
import { decodeExtensionHandshake, encodeExtensionHandshake } from "../../../src/wire/extension-handshake.ts";
import { decodeHandshake, encodeHandshake, HANDSHAKE_BYTES } from "../../../src/wire/handshake.ts";
import {
  decodeMetadataMessage,
  encodeMetadataMessage,
  type MetadataMessage,
} from "../../../src/wire/metadata-message.ts";
import { PeerMessageWriter } from "../../../src/wire/peer-message-writer.ts";
import { sha1 } from "../../wire/make-torrent.ts";
import { someBytes } from "../parts.ts";

/** Two pieces of metadata, the second one short. */
const FILE = someBytes(20_000);
const INFOHASH = infohashOf(sha1(FILE));
const PEER_ID = new Uint8Array(20).fill(0x41);
/** The number that our side wants answers to carry. */
const OUR_ID = 7;

function giver() {
  return new FileGiver({ infohash: INFOHASH, peerId: PEER_ID, bytes: FILE });
}

function handshake(changes: { extensions?: boolean; infohash?: typeof INFOHASH } = {}) {
  const peerId = new Uint8Array(20).fill(0x42);
  return encodeHandshake({
    infohash: INFOHASH,
    peerId,
    extensions: true,
    fast: true,
    dht: false,
    ...changes,
  });
}

function hello(messages = new Map([["ut_metadata", OUR_ID]])) {
  return said((writer) => writer.extended(0, encodeExtensionHandshake({ messages })));
}

function request(piece: number) {
  return said((writer) => writer.extended(1, encodeMetadataMessage({ kind: "request", piece })));
}

function said(say: (writer: PeerMessageWriter) => void): Uint8Array<ArrayBuffer> {
  const writer = new PeerMessageWriter();
  say(writer);
  return writer.take()!;
}

/** The extended messages in `bytes`: id and payload. */
function extended(bytes: Uint8Array): [number, Uint8Array][] {
  const found: [number, Uint8Array][] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(at);
    assert.equal(bytes[at + 4], 20);
    found.push([bytes[at + 5]!, bytes.subarray(at + 6, at + 4 + length)]);
    at += 4 + length;
  }
  return found;
}

function answers(bytes: Uint8Array | undefined): (MetadataMessage | undefined)[] {
  return extended(bytes ?? new Uint8Array(0)).map(([id, payload]) => {
    assert.equal(id, OUR_ID);
    return decodeMetadataMessage(payload);
  });
}

test("FileGiver gives the file as metadata, however the bytes of the asker are cut", () => {
  const asked = concatBytes([handshake(), hello(), request(0), request(1)]);
  for (const step of [1, 67, 68, 69, asked.length]) {
    const one = giver();
    const parts: Uint8Array[] = [];
    for (let at = 0; at < asked.length; at += step) {
      const answer = one.received(asked.subarray(at, at + step));
      if (answer) parts.push(answer);
    }
    const all = concatBytes(parts);
    const { infohash, peerId, extensions } = decodeHandshake(all.slice(0, HANDSHAKE_BYTES));
    assert.deepEqual([infohash, toHex(peerId), extensions], [INFOHASH, toHex(PEER_ID), true]);
    const [first, ...rest] = extended(all.subarray(HANDSHAKE_BYTES));
    assert.equal(first![0], 0);
    const said = decodeExtensionHandshake(first![1]);
    assert.equal(said.metadataBytes, FILE.length);
    assert.ok(said.messages.has("ut_metadata"));
    const data = rest.map(([, payload]) => decodeMetadataMessage(payload));
    assert.deepEqual(
      data.map((message) => message?.kind === "data" && message.piece),
      [0, 1],
    );
    const bytes = data.map((message) => (message?.kind === "data" ? message.bytes : new Uint8Array(0)));
    assert.deepEqual(concatBytes(bytes), FILE);
  }
});

test("FileGiver refuses who asks for another infohash, or cannot ask at all", () => {
  const other = infohashOf(new Uint8Array(20));
  assert.throws(() => giver().received(handshake({ infohash: other })), DecodeError);
  assert.throws(() => giver().received(handshake({ extensions: false })), DecodeError);
  assert.throws(() => giver().received(new Uint8Array(68)), DecodeError);
});

test("FileGiver: messages of other swarms are passed over, hostile ones are a fault", () => {
  const one = giver();
  one.received(concatBytes([handshake(), hello()]));
  const others = said((writer) => {
    writer.keepAlive();
    writer.interested();
    writer.haveNone();
    writer.have(7);
    writer.port(1);
  });
  assert.equal(one.received(others), undefined);
  assert.equal(answers(one.received(request(1))).length, 1);
  const large = new Uint8Array(6);
  new DataView(large.buffer).setUint32(0, 30_000);
  large[4] = 20;
  assert.throws(() => one.received(large), DecodeError);
  const broken = giver();
  broken.received(concatBytes([handshake(), hello()]));
  const nonsense = said((writer) => writer.extended(1, new Uint8Array([0x78])));
  assert.throws(() => broken.received(nonsense), DecodeError);
});

test("FileGiver: pieces that are not there are refused, and a flood of requests is not answered", () => {
  const one = giver();
  one.received(concatBytes([handshake(), hello()]));
  assert.deepEqual(answers(one.received(request(2))), [{ kind: "reject", piece: 2 }]);
  let bytes = 0;
  for (let i = 0; i < 1000; i++) bytes += one.received(request(0))?.length ?? 0;
  assert.ok(bytes <= 12 * 17_000, `${bytes} bytes for requests without end`);
  // Who has not said by what number it wants answers gets none.
  const silent = giver();
  silent.received(concatBytes([handshake(), hello(new Map())]));
  assert.equal(silent.received(request(0)), undefined);
});
