import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { concatBytes, latin1Bytes } from "../../src/base/bytes.ts";
import type { SluiceError } from "../../src/base/errors.ts";
import { infohashOf } from "../../src/base/ids.ts";
import { Merkle } from "../../src/base/merkle.ts";
import type { DrivenSwarm } from "../../src/engine/driver.ts";
import { SwarmTransfer } from "../../src/engine/transfer.ts";
import type { SwarmFigures, SwarmOutput, SwarmSetup } from "../../src/swarm/contract.ts";
import { LayerExchange } from "../../src/swarm/layer-exchange.ts";
import { bencodeDict, encodeBencode } from "../../src/wire/bencode-encode.ts";
import { inFolder } from "../contract/folder.ts";
import { sha256 } from "../wire/make-torrent.ts";
import { serveMetadata, someHouse } from "./transfer-house.ts";

const PIECE = 16_384;
/** The hashes of four pieces, and the root above them. */
const HASHES = [1, 2, 3, 4].map((i) => sha256(Uint8Array.of(i)));
const ROOT = new Merkle(sha256).rootOf(HASHES, 0);

/** Metadata of version 2 of files of so many pieces, all of the root above. */
function metadataOf(...pieceCounts: number[]): Uint8Array {
  const tree = new Map(
    pieceCounts.map((count, i) => [
      `${i}`,
      bencodeDict({ "": bencodeDict({ length: count * PIECE, "pieces root": ROOT }) }),
    ]),
  );
  return encodeBencode(
    bencodeDict({ "file tree": tree, "meta version": 2, name: "x", "piece length": PIECE }),
  );
}

/** A swarm whose peers have sent the hashes above for every file, as their root allows; `heard` gets its inputs. */
function swarmOf(infoBytes: Uint8Array, heard: string[]) {
  return (setup: SwarmSetup): DrivenSwarm => {
    const layout = setup.readInfo(infoBytes);
    const exchange = new LayerExchange(layout, new Merkle(sha256));
    exchange.ask([1], runtime.clock.now());
    const kinds: string[] = [];
    for (let output = exchange.poll(); output; output = exchange.poll()) {
      kinds.push(output.kind);
      if (output.kind === "ask") exchange.received(1, output.range, concatBytes(HASHES));
    }
    assert.equal(kinds.at(-1), "complete");
    const outputs: SwarmOutput[] = [{ kind: "metadata", infoBytes, layout }];
    return {
      handle: ({ kind }) => void heard.push(kind),
      wake() {},
      poll: () => outputs.shift(),
      nextWake: () => undefined,
      figures: () => ({}) as SwarmFigures,
    };
  };
}

for (const [what, infoBytes, reason] of [
  ["a root that more pieces lead to than the file has", metadataOf(3), /does not fit the root of its file/],
  ["one root for files of unlike lengths", metadataOf(3, 4), /expected 3 hashes in a piece layer, not 4/],
] as const)
  test(`SwarmTransfer: metadata with ${what} is a bad transport file, in words`, () =>
    inFolder(async (folder) => {
      const heard: string[] = [];
      const house = await someHouse(folder, { makeSwarm: swarmOf(infoBytes, heard) });
      const infohash = infohashOf(sha256(infoBytes).subarray(0, 20));
      const content = { infohash, trackers: [], peers: [] };
      const transfer = new SwarmTransfer(house, content, Promise.resolve(), () => {});
      await assert.rejects(transfer.ready(), (error: SluiceError) => {
        assert.equal(error.code, "bad_transport_file");
        assert.match(error.message, reason);
        return true;
      });
      assert.deepEqual(heard, ["stop"], "nobody is kept busy with it");
      await transfer.stop();
      await house.kept.close();
    }));

test("SwarmTransfer: metadata that is nested as deep as may be is a bad transport file, in words", () =>
  inFolder(async (folder) => {
    const nested = `${"l".repeat(99)}${"e".repeat(99)}`;
    const peer = await serveMetadata(
      latin1Bytes(`d1:a${nested}6:lengthi1e4:name1:x12:piece lengthi16384e6:pieces20:${"x".repeat(20)}e`),
    );
    const house = await someHouse(folder);
    const content = { infohash: peer.infohash, trackers: [], peers: [peer.address] };
    const transfer = new SwarmTransfer(house, content, Promise.resolve(), () => {});
    await assert.rejects(transfer.ready(), { code: "bad_transport_file", message: /nested deeper than 100/ });
    await transfer.stop();
    await house.kept.close();
    await peer.close();
  }));
