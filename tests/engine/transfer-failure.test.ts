import assert from "node:assert/strict";
import { test } from "node:test";
import type { SluiceError } from "../../src/base/errors.ts";
import type { DrivenSwarm } from "../../src/engine/driver.ts";
import { SwarmTransfer } from "../../src/engine/transfer.ts";
import type { SwarmFigures, SwarmOutput } from "../../src/swarm/contract.ts";
import { inFolder } from "../contract/folder.ts";
import { someContent } from "./parts.ts";
import { someHouse } from "./transfer-house.ts";

/** A swarm that says `outputs` and nothing else. */
function sayingSwarm(...outputs: SwarmOutput[]): DrivenSwarm {
  return {
    handle() {},
    wake() {},
    poll: () => outputs.shift(),
    nextWake: () => undefined,
    figures: () => ({}) as SwarmFigures,
  };
}

test("SwarmTransfer.ready: rejects with bad_transport_file where the metadata is of no use", () =>
  inFolder(async (folder) => {
    const { infohash } = someContent(1, 16_384).file;
    const makeSwarm = () => sayingSwarm({ kind: "failed", reason: "metainfo: no name (at 3)", peers: [] });
    const parts = await someHouse(folder, { makeSwarm });
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
