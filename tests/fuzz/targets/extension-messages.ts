import { assert } from "../../../src/base/assert.ts";
import { latin1Bytes } from "../../../src/base/bytes.ts";
import { infohashOf } from "../../../src/base/ids.ts";
import {
  decodeExtensionHandshake,
  encodeExtensionHandshake,
} from "../../../src/wire/peer/extension-handshake.ts";
import { decodeHandshake, encodeHandshake } from "../../../src/wire/peer/handshake.ts";
import { decodeMetadataMessage, encodeMetadataMessage } from "../../../src/wire/peer/metadata-message.ts";
import { clientName, makePeerId } from "../../../src/wire/peer/peer-id.ts";
import { decodePexMessage, encodePexMessage } from "../../../src/wire/peer/pex-message.ts";
import type { FuzzTarget } from "../contract.ts";
import { repeated } from "../extremes.ts";
import { mutateBencode } from "../mutate-bencode.ts";

const PEER_ID = makePeerId(new Uint8Array(12));
const HANDSHAKE = {
  infohash: infohashOf(new Uint8Array(20)),
  peerId: PEER_ID,
  extensions: true,
  fast: true,
  dht: true,
};

const handshake: FuzzTarget = {
  name: "handshake",
  corpus: () => [encodeHandshake(HANDSHAKE)],
  run(bytes) {
    const decoded = decodeHandshake(bytes);
    return [decoded, clientName(decoded.peerId)];
  },
};

const extensionHandshake: FuzzTarget = {
  name: "extension-handshake",
  corpus: () => [
    encodeExtensionHandshake({ messages: new Map() }),
    encodeExtensionHandshake({
      messages: new Map([
        ["ut_metadata", 3],
        ["ut_pex", 1],
        ["lt_donthave", 7],
      ]),
      version: "Sluice 0.1.0 é",
      listenPort: 6881,
      requestQueue: 500,
      metadataBytes: 31_235,
      yourAddress: "2001:db8::1",
      uploadOnly: true,
    }),
    encodeExtensionHandshake({
      messages: new Map([["sl_live", 9]]),
      live: { role: "relay", uploadBytesPerSecond: 1e6, challenge: new Uint8Array(16) },
    }),
  ],
  extremes: () => [
    repeated("d1:v60000:", "\xc3", "e", 60_011),
    repeated("d1:xl", "le", "ee", 5000),
    repeated("d1:xl", "1:a", "ee", 9000),
  ],
  words: ["1:m", "d6:ut_pexi1ee", "4:reqqi-1e", "1:v0:", "2:sld", "4:rolei2e"].map(latin1Bytes),
  mutate: mutateBencode,
  run(bytes) {
    const decoded = decodeExtensionHandshake(bytes);
    assert(decoded.messages.size <= 64, "few extensions");
    const { challenge } = decoded.live ?? {};
    assert(challenge === undefined || challenge.length === 16, "a challenge of 16 bytes");
    return decoded;
  },
};

const metadata: FuzzTarget = {
  name: "metadata-message",
  corpus: () => [
    encodeMetadataMessage({ kind: "request", piece: 0 }),
    encodeMetadataMessage({ kind: "reject", piece: 7 }),
    encodeMetadataMessage({ kind: "data", piece: 1, totalBytes: 16_484, bytes: new Uint8Array(100) }),
  ],
  mutate: mutateBencode,
  run: decodeMetadataMessage,
};

const PEERS = ["1.2.3.4", "2001:db8::1"].map((host) => ({ address: { host, port: 6881 }, flags: 0x12 }));
const pex: FuzzTarget = {
  name: "pex-message",
  corpus: () => [
    encodePexMessage({ added: [], dropped: [] }),
    encodePexMessage({ added: PEERS, dropped: PEERS.map(({ address }) => address) }),
    encodePexMessage({ added: Array.from({ length: 60 }, () => PEERS[0]!), dropped: [] }),
  ],
  extremes: () => [repeated("d5:added60000:", "\x01\x02\x03", "e", 60_015)],
  mutate: mutateBencode,
  run(bytes) {
    const { added, dropped } = decodePexMessage(bytes);
    assert(added.length <= 100 && dropped.length <= 100, "few peers");
    return [added, dropped];
  },
};

export const targets = [handshake, extensionHandshake, metadata, pex];
