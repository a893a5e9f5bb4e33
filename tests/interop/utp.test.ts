import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { test } from "node:test";
import { runtime } from "#runtime";
import { SluiceError } from "../../src/base/errors.ts";
import { createTransfers } from "../../src/engine/transfers.ts";
import type { Runtime, TcpSocket } from "../../src/runtime/contract.ts";
import { parseTransportFile } from "../../src/wire/metainfo.ts";
import { keepingLog, someSettings } from "../engine/parts.ts";
import { startLibtorrent } from "../parts/libtorrent.ts";
import { NO_REACH } from "../parts/no-reach.ts";
import { randomFile, sha1OfFile, sha1OfStream, tempFolder, torrentOf } from "../parts/torrent-files.ts";

// Deno takes some 250 µs to receive a datagram.
const SIZE_BYTES = (runtime.name === "deno" ? 2 : 16) * 1024 * 1024 + 12_345;

test("interop with libtorrent over uTP alone: the whole file both ways, hash-equal", {
  timeout: 120_000,
}, async () => {
  const scratch = await tempFolder("interop-utp");
  const ends: (() => Promise<unknown>)[] = [];
  try {
    await Promise.all(["seed", "leech", "data"].map((name) => mkdir(scratch.file(name))));
    const path = scratch.file("seed/film.bin");
    await randomFile(path, SIZE_BYTES);
    const torrent = await torrentOf(path, 256 * 1024, scratch.file("film.torrent"));
    const wanted = await sha1OfFile(path);
    const file = parseTransportFile(new Uint8Array(await readFile(torrent.path)), runtime.sha1);
    const seeder = await startLibtorrent("seed", torrent.path, scratch.file("seed"), { flags: ["--utp"] });
    ends.push(seeder.stop);

    const reach = { ...NO_REACH, utp: true };
    const settings = someSettings(scratch.file("data"), { p2pHost: "127.0.0.1", reach });
    const transfers = await createTransfers(withoutTcp(runtime), settings, keepingLog(), noMedia);
    ends.push(() => transfers.close());
    const peers = [{ host: "127.0.0.1", port: seeder.port }];
    const transfer = transfers.open({
      infohash: file.infohash,
      transportFile: file,
      trackers: [],
      peers,
    });
    await transfer.ready();
    const got = await sha1OfStream(transfer.source(0).open({ start: 0, end: SIZE_BYTES }));
    assert.deepEqual(got, { sha1: wanted, bytes: SIZE_BYTES });
    await seeder.stop();

    const leecher = await startLibtorrent("leech", torrent.path, scratch.file("leech"), {
      peers: [`127.0.0.1:${transfers.p2pPort}`],
      flags: ["--utp"],
    });
    ends.push(leecher.stop);
    await leecher.line((line) => line.includes('"complete"'));
    assert.equal(await sha1OfFile(scratch.file("leech/film.bin")), wanted);
  } finally {
    for (const end of ends.reverse()) await end();
    await scratch.remove();
  }
});

const noMedia = () => Promise.reject(new SluiceError("unsupported_container", "none here"));

/** The machine, from which nobody is reached over TCP: libtorrent accepts there even if it is to use uTP alone. */
function withoutTcp(machine: Runtime): Runtime {
  const nothing = () => {};
  return {
    ...machine,
    net: {
      ...machine.net,
      connect(remote, handlers): TcpSocket {
        queueMicrotask(() => handlers.closed("no TCP here"));
        const rest = { pause: nothing, resume: nothing, close: nothing };
        return { remote, bufferedBytes: 0, write: () => true, ...rest };
      },
    },
  };
}
