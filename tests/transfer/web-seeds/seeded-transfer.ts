import type { TransferContent } from "../../../src/transfer/contract.ts";
import { SwarmTransfer } from "../../../src/transfer/transfer.ts";
import { parseTransportFile } from "../../../src/wire/torrent/metainfo.ts";
import type { WebSeed } from "../../../src/wire/torrent/web-seeds.ts";
import { keepingLog } from "../../engine/parts.ts";
import { tempFolder } from "../../parts/torrent-files.ts";
import { type MadeTorrent, sha1 } from "../../wire/make-torrent.ts";
import { transferDependencies } from "../transfer-dependencies.ts";

/** Starts a transfer of generated content with web seeds at `urls`, which may have private addresses. */
export async function seededTransfer(
  made: MadeTorrent,
  urls: readonly string[],
  changes: Partial<TransferContent> = {},
  kind: WebSeed["kind"] = "files",
) {
  const folder = await tempFolder("web-seeds");
  const log = keepingLog();
  const dependencies = await transferDependencies(folder.path, { log });
  const transportFile = parseTransportFile(made.bytes, sha1);
  const transfer = new SwarmTransfer(
    dependencies,
    {
      infohash: made.infohash,
      transportFile,
      trackers: [],
      peers: [],
      webSeeds: urls.map((url) => ({ url, kind })),
      localWebSeeds: urls,
      ...changes,
    },
    Promise.resolve(),
    () => {},
  );
  const stop = async () => {
    await transfer.stop();
    await dependencies.kept.close();
    await folder.remove();
  };
  return { transfer, dependencies, log, stop };
}

/** Polls until the condition is true; throws after a minute. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await condition()); tries++) {
    if (tries > 6000) throw new Error("the condition did not become true within a minute");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
