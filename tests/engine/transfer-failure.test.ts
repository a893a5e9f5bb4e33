import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { SluiceError } from "../../src/base/errors.ts";
import type { DrivenSwarm } from "../../src/engine/driver.ts";
import { PieceBufferPool } from "../../src/engine/piece-buffers.ts";
import { PieceMemory } from "../../src/engine/piece-memory.ts";
import { SwarmTransfer, type TransferHouse } from "../../src/engine/transfer.ts";
import { TransportFiles } from "../../src/engine/transport-files.ts";
import type { SwarmFigures, SwarmOutput } from "../../src/swarm/contract.ts";
import { inFolder } from "../contract/folder.ts";
import { keepingLog, someContent, someSettings } from "./parts.ts";

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

async function house(folder: string, makeSwarm: () => DrivenSwarm): Promise<TransferHouse> {
  const pool = new PieceBufferPool(1 << 20);
  const log = keepingLog();
  const { files, sha1, ed25519Verifier } = runtime;
  return {
    runtime,
    settings: someSettings(folder),
    log,
    openMedia: () => Promise.reject(new SluiceError("unsupported_container", "none here")),
    announcer: {
      announce: () => Promise.resolve({ ok: false, reason: "none" }),
      scrape: () => Promise.resolve(undefined),
    },
    pool,
    memory: new PieceMemory(pool),
    cache: undefined,
    kept: await TransportFiles.open({
      files,
      sha1,
      ed25519Verifier,
      log,
      folder: `${folder}/transport-files`,
    }),
    connections: { open: 0, limit: 10 },
    random: Math.random,
    p2pPort: 0,
    makeSwarm,
  };
}

test("SwarmTransfer.ready: rejects with bad_transport_file where the metadata is of no use", () =>
  inFolder(async (folder) => {
    const { infohash } = someContent(1, 16_384).file;
    const parts = await house(folder, () =>
      sayingSwarm({ kind: "failed", reason: "metainfo: no name (at 3)", peers: [] }),
    );
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
