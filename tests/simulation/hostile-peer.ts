import { latin1Bytes } from "../../src/base/bytes.ts";
import { type Random, randomBelow } from "../../src/base/random.ts";
import { encodeExtensionHandshake } from "../../src/wire/peer/extension-handshake.ts";
import { encodeHandshake, HANDSHAKE_BYTES } from "../../src/wire/peer/handshake.ts";
import { PeerMessageWriter } from "../../src/wire/peer/peer-message-writer.ts";
import { encodePexMessage } from "../../src/wire/peer/pex-message.ts";
import type { SimulatedContent } from "./simulated-content.ts";
import type { Host, SimulatedNet, SimulatedSocket } from "./simulated-net.ts";

/** Sent when the handshakes are done, and every 100 ms while the connection lasts. */
type Behaviour = (writer: PeerMessageWriter, tick: number, content: SimulatedContent, random: Random) => void;

const PEX_ID = 1;
/** The extension number that our engine assigns to `ut_pex`. */
const THEIR_PEX_ID = 2;

const havesAll: Behaviour = (writer, tick) => {
  if (tick === 0) writer.haveAll();
};

/** Kinds of hostile peers, by name. Each handshakes like an ordinary peer, except `garbage` and `silent`. */
const BEHAVIOURS = {
  /** Has everything, and always chokes. */
  chokes: havesAll,
  /** Has everything, unchokes, and answers nothing. */
  mute(writer, tick) {
    if (tick !== 0) return;
    writer.haveAll();
    writer.unchoke();
  },
  /** Chokes and unchokes ten times a second, and answers nothing. */
  flickers(writer, tick) {
    if (tick === 0) writer.haveAll();
    writer.unchoke();
    writer.choke();
  },
  /** Requests the same blocks endlessly, and accepts all of them. */
  floods(writer, tick, content) {
    if (tick === 0) {
      writer.haveNone();
      writer.interested();
    }
    const { pieceCount } = content.layout;
    for (let i = 0; i < 5_000; i++) writer.request(i % pieceCount, 0, 16 * 1024);
  },
  /** Announces a message of 4 GiB. */
  hugeLength(writer, tick) {
    if (tick === 0) writer.raw(new Uint8Array([0xff, 0xff, 0xff, 0xff, 7]));
  },
  /** A bitfield that is one byte too long. */
  longBitfield(writer, tick, content) {
    if (tick === 0) writer.bitfield(new Uint8Array((content.layout.pieceCount >> 3) + 2));
  },
  /** Announces a piece that does not exist. */
  wrongHave(writer, tick, content) {
    if (tick === 0) writer.have(content.layout.pieceCount);
  },
  /** Sends blocks that were not requested. */
  unasked(writer, tick) {
    if (tick === 0) writer.haveAll();
    for (let i = 0; i < 20; i++) writer.block(0, i * 16 * 1024, new Uint8Array(16 * 1024));
  },
  /** Sends keep-alives endlessly. */
  keepsAlive(writer) {
    for (let i = 0; i < 10_000; i++) writer.keepAlive();
  },
  /** Claims 2 GiB of metadata. */
  hugeMetadata(writer, tick) {
    if (tick !== 0) return;
    writer.extended(
      0,
      encodeExtensionHandshake({ messages: new Map([["ut_metadata", 2]]), metadataBytes: 2 ** 31 }),
    );
    writer.haveAll();
  },
  /** Claims the right metadata and the whole content, and answers no request. */
  withholds(writer, tick, content) {
    if (tick !== 0) return;
    const messages = new Map([["ut_metadata", 2]]);
    writer.extended(0, encodeExtensionHandshake({ messages, metadataBytes: content.infoBytes.length }));
    writer.haveAll();
    writer.unchoke();
  },
  /** Sends PEX endlessly, with addresses in our own network and unused ones. */
  badPex(writer, tick, _content, random) {
    if (tick === 0) {
      writer.extended(0, encodeExtensionHandshake({ messages: new Map([["ut_pex", PEX_ID]]) }));
      writer.haveAll();
    }
    for (let i = 0; i < 20; i++) {
      const local = { address: { host: `192.168.1.${randomBelow(random, 250) + 1}`, port: 80 }, flags: 0 };
      const added = Array.from({ length: 49 }, () => ({
        address: { host: `55.${randomBelow(random, 256)}.${randomBelow(random, 256)}.1`, port: 6881 },
        flags: 2,
      }));
      writer.extended(THEIR_PEX_ID, encodePexMessage({ added: [local, ...added], dropped: [] }));
    }
  },
  /** Random bytes instead of a handshake. */
  garbage() {},
  /** Sends nothing at all. */
  silent() {},
} satisfies Record<string, Behaviour>;

export type HostileKind = keyof typeof BEHAVIOURS;
export const HOSTILE_KINDS = Object.keys(BEHAVIOURS) as HostileKind[];

const TICK_MS = 100;
/** A flooder stops while its data is not read, to limit its own memory. */
const MAX_TICKS = 300;

/** Makes `host` a peer that accepts connections and misbehaves on each. */
export function makeHostile(
  net: SimulatedNet,
  host: Host,
  content: SimulatedContent,
  kind: HostileKind,
  random: Random,
): void {
  host.accept = (socket) => {
    let greeted = 0;
    return {
      received(bytes) {
        if (greeted >= HANDSHAKE_BYTES) return;
        greeted += bytes.length;
        if (greeted >= HANDSHAKE_BYTES) begin(socket);
      },
      closed() {},
    };
  };

  function begin(socket: SimulatedSocket): void {
    if (kind === "silent") return;
    if (kind === "garbage") {
      socket.write(Uint8Array.from({ length: 5_000 }, () => randomBelow(random, 256)));
      return;
    }
    const peerId = latin1Bytes("-XX0000-            ");
    for (let i = 8; i < 20; i++) peerId[i] = 48 + randomBelow(random, 75);
    const { infohash } = content;
    socket.write(encodeHandshake({ infohash, peerId, extensions: true, fast: true, dht: false }));
    const behave: Behaviour = BEHAVIOURS[kind];
    const writer = new PeerMessageWriter();
    const tick = (count: number) => {
      if (socket.isOver || count > MAX_TICKS) return;
      behave(writer, count, content, random);
      const bytes = writer.take();
      if (bytes) socket.write(bytes);
      net.events.after(TICK_MS, () => tick(count + 1));
    };
    tick(0);
  }
}
