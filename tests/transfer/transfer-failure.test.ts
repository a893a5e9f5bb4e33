import assert from "node:assert/strict";
import { test } from "node:test";
import type { SluiceError } from "../../src/base/errors.ts";
import type { SwarmFigures, SwarmOutput } from "../../src/protocol/swarm/contract.ts";
import type { DrivenSwarm } from "../../src/transfer/driver.ts";
import { SwarmTransfer } from "../../src/transfer/transfer.ts";
import { inFolder } from "../contract/folder.ts";
import { someContent } from "../engine/parts.ts";
import { transferDependencies } from "./transfer-dependencies.ts";

/** A swarm with only these outputs. */
function scriptedSwarm(...outputs: SwarmOutput[]): DrivenSwarm {
  return {
    handle() {},
    wake() {},
    poll: () => outputs.shift(),
    nextWake: () => undefined,
    figures: () => ({}) as SwarmFigures,
  };
}

test("SwarmTransfer.ready: rejects with bad_transport_file if the metadata is invalid", () =>
  inFolder(async (folder) => {
    const { infohash } = someContent(1, 16_384).file;
    const makeSwarm = () => scriptedSwarm({ kind: "failed", reason: "metainfo: no name (at 3)", peers: [] });
    const parts = await transferDependencies(folder, { makeSwarm });
    const content = { infohash, trackers: [], peers: [] };
    const transfer = new SwarmTransfer(parts, content, Promise.resolve(), () => {});
    await assert.rejects(transfer.ready(), (error: SluiceError) => {
      assert.equal(error.code, "bad_transport_file");
      assert.match(error.message, /no name/);
      return true;
    });
    await transfer.stop();
    await parts.kept.close();
  }));
