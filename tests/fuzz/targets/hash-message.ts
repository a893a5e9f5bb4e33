import { assert } from "../../../src/base/assert.ts";
import { concatBytes } from "../../../src/base/bytes.ts";
import { DecodeError } from "../../../src/base/errors.ts";
import { Merkle } from "../../../src/base/merkle.ts";
import { layerRanges } from "../../../src/protocol/swarm/layer-ranges.ts";
import { LayerTree } from "../../../src/protocol/swarm/layer-tree.ts";
import { decodeHashMessage, encodeHashRange, proofHashCount } from "../../../src/wire/peer/hash-message.ts";
import { MESSAGE } from "../../../src/wire/peer/peer-message.ts";
import { PeerMessageWriter } from "../../../src/wire/peer/peer-message-writer.ts";
import { parseV2Info, parseV2TransportFile } from "../../../src/wire/torrent/v2-metainfo.ts";
import { type Content, ScriptedSwarm } from "../../protocol/swarm/scripted.ts";
import { someLimits } from "../../protocol/swarm/some-limits.ts";
import { sha1, sha256 } from "../../wire/make-torrent.ts";
import { makeV2Torrent } from "../../wire/make-v2-torrent.ts";
import type { FuzzTarget } from "../contract.ts";

const PIECE = 16_384;
const FILM = Uint8Array.from({ length: 5 * PIECE - 100 }, (_, i) => i * 7);
const MADE = makeV2Torrent({ name: "film.mkv", files: { "film.mkv": FILM }, pieceLength: PIECE });
const FILE = parseV2TransportFile(MADE.bytes, sha1, sha256);
const CONTENT: Content = { bytes: FILM, layout: FILE.info };
const [LAYER] = FILE.info.layers!;
const RANGE = layerRanges(LAYER!, PIECE)[0]!;
const TREE = new LayerTree(FILE.info.pieceHashes, 0, new Merkle(sha256));
const HASHES = TREE.answer(RANGE)!;

/** Id and payload of a message. */
const decoder: FuzzTarget = {
  name: "hash-message",
  corpus: () => [
    concatBytes([Uint8Array.of(MESSAGE.hashRequest), encodeHashRange(RANGE)]),
    concatBytes([Uint8Array.of(MESSAGE.hashes), encodeHashRange(RANGE), HASHES]),
    concatBytes([Uint8Array.of(MESSAGE.hashReject), encodeHashRange(RANGE)]),
  ],
  run(bytes) {
    const message = decodeHashMessage(bytes[0] ?? 0, bytes.subarray(1));
    const { range } = message;
    if (message.kind === "hashes")
      assert(
        message.hashes.length === 32 * (range.length + proofHashCount(range)),
        "as many hashes as it says",
      );
    const answer = TREE.answer(range);
    assert(!answer || answer.length <= 32 * (512 + 40), "an answer that fits a message");
    return message;
  },
};

function messages(write: (writer: PeerMessageWriter) => void): Uint8Array {
  const writer = new PeerMessageWriter();
  write(writer);
  return writer.take()!;
}

/** A swarm that lacks piece layers, with an honest peer, and a hostile one that is asked first. */
const swarm: FuzzTarget = {
  name: "swarm-hashes",
  corpus: () => [
    messages((to) => to.hash(MESSAGE.hashes, encodeHashRange(RANGE), HASHES)),
    messages((to) => to.hash(MESSAGE.hashReject, encodeHashRange(RANGE))),
    messages((to) => {
      to.haveAll();
      to.hash(MESSAGE.hashRequest, encodeHashRange(RANGE));
      to.unchoke();
    }),
  ],
  maxBytes: 4096,
  run(bytes) {
    const readInfo = (info: Uint8Array) => parseV2Info(info, sha256);
    const it = new ScriptedSwarm(CONTENT, { info: undefined, readInfo, infohash: MADE.infohash });
    const hostile = it.peer();
    it.input({ kind: "info", infoBytes: MADE.infoBytes });
    const good = it.peer().seed();
    hostile.raw(bytes);
    // The hostile peer may not answer; its requests then time out.
    it.pass(10_000);
    if (good.hashes.length > 0) good.send((to) => to.hash(MESSAGE.hashes, encodeHashRange(RANGE), HASHES));
    assert(good.closed === undefined, "a hostile peer must not cost another its connection");
    const known = it.outputs.find(({ kind }) => kind === "metadata");
    assert(known?.kind === "metadata", "a hostile peer must not keep the layers from coming");
    const hashes = known.layout.pieceHashes;
    assert(
      hashes.every((byte, i) => byte === FILE.info.pieceHashes[i]),
      "the right hashes",
    );
    if (hostile.closed !== undefined) throw new DecodeError("swarm", 0, hostile.closed);
  },
};

const LARGE = makeV2Torrent({ name: "film.mkv", files: { "film.mkv": FILM }, pieceLength: 2 * PIECE });
const LARGE_FILE = parseV2TransportFile(LARGE.bytes, sha1, sha256);
const [LARGE_LAYER] = LARGE_FILE.info.layers!;
const LEAVES = { root: LARGE_LAYER!.root, baseLayer: 0, index: 2, length: 2, proofLayers: 2 };

/** A swarm that has all pieces, and serves the requests of a hostile peer, then those of an honest one. */
const serving: FuzzTarget = {
  name: "swarm-hash-requests",
  corpus: () => [
    messages((to) => {
      to.hash(MESSAGE.hashRequest, encodeHashRange(layerRanges(LARGE_LAYER!, 2 * PIECE)[0]!));
      to.hash(MESSAGE.hashRequest, encodeHashRange(LEAVES));
    }),
    messages((to) => {
      for (let index = 0; index < 6; index++)
        to.hash(MESSAGE.hashRequest, encodeHashRange({ ...LEAVES, index, length: 1 }));
    }),
  ],
  maxBytes: 4096,
  run(bytes) {
    const content: Content = { bytes: FILM, layout: LARGE_FILE.info };
    const info = { layout: LARGE_FILE.info, infoBytes: LARGE.infoBytes };
    const it = new ScriptedSwarm(content, {
      info,
      held: [0, 1, 2],
      limits: someLimits({ uploadLimit: 1e6 }),
    });
    const read = () => {
      for (const { kind, length, ...block } of it.outputs.splice(0).filter((each) => each.kind === "read")) {
        const at = block.piece * 2 * PIECE + block.begin;
        it.input({ ...block, kind: "block", bytes: FILM.slice(at, at + length) });
      }
    };
    const hostile = it.peer();
    hostile.raw(bytes);
    const good = it.peer();
    good.send((to) => to.hash(MESSAGE.hashRequest, encodeHashRange(LEAVES)));
    for (let i = 0; i < 100; i++) {
      read();
      it.pass(100);
    }
    const [answer] = good.hashes;
    assert(answer?.id === MESSAGE.hashes, "a hostile peer must not keep others from their hashes");
    if (hostile.closed !== undefined) throw new DecodeError("swarm", 0, hostile.closed);
  },
};

export const targets = [decoder, swarm, serving];
