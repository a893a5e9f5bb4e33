import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { concatBytes, latin1Bytes } from "../../src/base/bytes.ts";
import type { SluiceError } from "../../src/base/errors.ts";
import { infohashOf } from "../../src/base/ids.ts";
import { Merkle } from "../../src/base/merkle.ts";
import type { SwarmFigures, SwarmOutput, SwarmSetup } from "../../src/protocol/swarm/contract.ts";
import { LayerExchange } from "../../src/protocol/swarm/layer-exchange.ts";
import type { DrivenSwarm } from "../../src/transfer/driver.ts";
import { SwarmTransfer } from "../../src/transfer/transfer.ts";
import { bencodeDict, encodeBencode } from "../../src/wire/bencode-encode.ts";
import { inFolder } from "../contract/folder.ts";
import { sha256 } from "../wire/make-torrent.ts";
import { serveMetadata, transferDependencies } from "./transfer-dependencies.ts";

const PIECE = 16_384;
/** The hashes of four pieces, and the root above them. */
const HASHES = [1, 2, 3, 4].map((i) => sha256(Uint8Array.of(i)));
const ROOT = new Merkle(sha256).rootOf(HASHES, 0);

/** Metadata of version 2 with files of these piece counts, all with the root above. */
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

/** A swarm whose peers have sent the hashes above for each file; `inputs` records its inputs. */
function swarmOf(infoBytes: Uint8Array, inputs: string[]) {
  return (setup: SwarmSetup): DrivenSwarm => {
    const layout = setup.readInfo(infoBytes);
    const exchange = new LayerExchange(layout, new Merkle(sha256));
    exchange.request([1], runtime.clock.now());
    const kinds: string[] = [];
    for (let output = exchange.poll(); output; output = exchange.poll()) {
      kinds.push(output.kind);
      if (output.kind === "request") exchange.received(1, output.range, concatBytes(HASHES));
    }
    assert.equal(kinds.at(-1), "complete");
    const outputs: SwarmOutput[] = [{ kind: "metadata", infoBytes, layout }];
    return {
      handle: ({ kind }) => void inputs.push(kind),
      wake() {},
      poll: () => outputs.shift(),
      nextWake: () => undefined,
      figures: () => ({}) as SwarmFigures,
    };
  };
}

for (const [what, infoBytes, reason] of [
  ["a root of more pieces than the file has", metadataOf(3), /does not match the root of its file/],
  ["one root for files of different lengths", metadataOf(3, 4), /expected 3 hashes in a piece layer, not 4/],
] as const)
  test(`SwarmTransfer: metadata with ${what} is refused with a reason`, () =>
    inFolder(async (folder) => {
      const inputs: string[] = [];
      const dependencies = await transferDependencies(folder, { makeSwarm: swarmOf(infoBytes, inputs) });
      const infohash = infohashOf(sha256(infoBytes).subarray(0, 20));
      const content = { infohash, trackers: [], peers: [] };
      const transfer = new SwarmTransfer(dependencies, content, Promise.resolve(), () => {});
      await assert.rejects(transfer.ready(), (error: SluiceError) => {
        assert.equal(error.code, "bad_transport_file");
        assert.match(error.message, reason);
        return true;
      });
      assert.deepEqual(inputs, ["stop"], "the swarm is stopped");
      await transfer.stop();
      await dependencies.kept.close();
    }));

test("SwarmTransfer: deeply nested metadata is refused with a reason", () =>
  inFolder(async (folder) => {
    const nested = `${"l".repeat(99)}${"e".repeat(99)}`;
    const peer = await serveMetadata(
      latin1Bytes(`d1:a${nested}6:lengthi1e4:name1:x12:piece lengthi16384e6:pieces20:${"x".repeat(20)}e`),
    );
    const dependencies = await transferDependencies(folder);
    const content = { infohash: peer.infohash, trackers: [], peers: [peer.address] };
    const transfer = new SwarmTransfer(dependencies, content, Promise.resolve(), () => {});
    await assert.rejects(transfer.ready(), { code: "bad_transport_file", message: /nested deeper than 100/ });
    await transfer.stop();
    await dependencies.kept.close();
    await peer.close();
  }));
