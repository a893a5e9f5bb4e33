import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { runtime } from "#runtime";
import { SluiceError } from "../../src/base/errors.ts";
import { createTransfers } from "../../src/engine/transfers.ts";
import type { Runtime } from "../../src/runtime/contract.ts";
import { parseTransportFile } from "../../src/wire/torrent/metainfo.ts";
import { keepingLog, someSettings } from "../engine/parts.ts";
import { startLibtorrent } from "../parts/libtorrent.ts";
import { NO_REACH } from "../parts/no-reach.ts";
import { randomFile, sha1OfFile, sha1OfStream, tempFolder, torrentOf } from "../parts/torrent-files.ts";

/** How libtorrent and our transfers connect on this machine. */
export interface Meeting {
  readonly sizeBytes: number;
  /** The address on which our transfers and libtorrent listen. */
  readonly host: string;
  readonly utp: boolean;
  readonly flags: readonly string[];
  /** The machine as our transfers see it. */
  readonly machine: Runtime;
}

/** libtorrent seeds and transfers of this process download; then libtorrent stops and a new libtorrent peer
 * downloads from them. */
export async function bothWaysHere({ sizeBytes, host, utp, flags, machine }: Meeting): Promise<void> {
  const scratch = await tempFolder("interop-here");
  const ends: (() => Promise<unknown>)[] = [];
  try {
    await Promise.all(["seed", "leech", "data"].map((name) => mkdir(scratch.file(name))));
    const path = scratch.file("seed/film.bin");
    await randomFile(path, sizeBytes);
    const torrent = await torrentOf(path, 256 * 1024, scratch.file("film.torrent"));
    const wanted = await sha1OfFile(path);
    const file = parseTransportFile(new Uint8Array(await readFile(torrent.path)), runtime.sha1);
    const seeder = await startLibtorrent("seed", torrent.path, scratch.file("seed"), { flags });
    ends.push(seeder.stop);

    const settings = someSettings(scratch.file("data"), { p2pHost: host, reach: { ...NO_REACH, utp } });
    const transfers = await createTransfers(machine, settings, keepingLog(), noMedia);
    ends.push(() => transfers.close());
    const transfer = transfers.open({
      infohash: file.infohash,
      transportFile: file,
      trackers: [],
      peers: [{ host, port: seeder.port }],
    });
    await transfer.ready();
    const got = await sha1OfStream(transfer.source(0).open({ start: 0, end: sizeBytes }));
    assert.deepEqual(got, { sha1: wanted, bytes: sizeBytes });
    await seeder.stop();

    const peers = [`${host}:${transfers.p2pPort}`];
    const leecher = await startLibtorrent("leech", torrent.path, scratch.file("leech"), { peers, flags });
    ends.push(leecher.stop);
    await leecher.line((line) => line.includes('"complete"'));
    assert.equal(await sha1OfFile(scratch.file("leech/film.bin")), wanted);
  } finally {
    for (const end of ends.reverse()) await end();
    await scratch.remove();
  }
}

const noMedia = () => Promise.reject(new SluiceError("unsupported_container", "none here"));
