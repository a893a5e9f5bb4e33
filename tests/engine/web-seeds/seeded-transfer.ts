import type { TransferContent } from "../../../src/engine/contract.ts";
import { SwarmTransfer } from "../../../src/engine/transfer.ts";
import { parseTransportFile } from "../../../src/wire/metainfo.ts";
import type { WebSeed } from "../../../src/wire/web-seeds.ts";
import { tempFolder } from "../../parts/torrent-files.ts";
import { type MadeTorrent, sha1 } from "../../wire/make-torrent.ts";
import { keepingLog } from "../parts.ts";
import { someHouse } from "../transfer-house.ts";

/** A transfer of made content whose web seeds are at `urls`, at home where not said otherwise. */
export async function seededTransfer(
  made: MadeTorrent,
  urls: readonly string[],
  changes: Partial<TransferContent> = {},
  kind: WebSeed["kind"] = "files",
) {
  const folder = await tempFolder("web-seeds");
  const log = keepingLog();
  const house = await someHouse(folder.path, { log });
  const transportFile = parseTransportFile(made.bytes, sha1);
  const transfer = new SwarmTransfer(
    house,
    {
      infohash: made.infohash,
      transportFile,
      trackers: [],
      peers: [],
      webSeeds: urls.map((url) => ({ url, kind })),
      homeWebSeeds: urls,
      ...changes,
    },
    Promise.resolve(),
    () => {},
  );
  const stop = async () => {
    await transfer.stop();
    await house.kept.close();
    await folder.remove();
  };
  return { transfer, house, log, stop };
}

/** Waits until something is so, for at most a minute. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await isSo()); tries++) {
    if (tries > 6000) throw new Error("it never came to be");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
