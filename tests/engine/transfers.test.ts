import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { SluiceError } from "../../src/base/errors.ts";
import { createTransfers } from "../../src/engine/transfers.ts";
import type { Media, OpenMedia } from "../../src/remux/contract.ts";

import type {
  ActiveTransfer,
  EngineSettings,
  TransferContent,
  Transfers,
} from "../../src/transfer/contract.ts";
import type { TransportFile } from "../../src/wire/torrent/metainfo.ts";
import { inFolder } from "../contract/folder.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { keepingLog, putPieces, someCache, someContent, someSettings, someStore } from "./parts.ts";

const { test: ipv6Test } = await testsThatNeed("ipv6");

const MIB = 1024 * 1024;
const noMedia: OpenMedia = () => Promise.reject(new SluiceError("unsupported_container", "none here"));

async function withTransfers<T>(
  dataDir: string,
  work: (transfers: Transfers) => Promise<T>,
  changes: Partial<EngineSettings> = {},
  openMedia = noMedia,
): Promise<T> {
  const transfers = await createTransfers(runtime, someSettings(dataDir, changes), keepingLog(), openMedia);
  try {
    return await work(transfers);
  } finally {
    await transfers.close();
  }
}

/** Writes the content to the cache of a data folder, so that a transfer there seeds it. */
async function fillCache(dataDir: string, file: TransportFile, content: Uint8Array): Promise<void> {
  const parts = await someCache(`${dataDir}/cache`, { memory: 2 * content.length, disk: 256 * MIB });
  const { store, folder } = await someStore(parts, file);
  putPieces(store, parts.pool, content, Array(file.info.pieceCount).keys());
  await folder.close();
}

function link(file: TransportFile, changes: Partial<TransferContent> = {}): TransferContent {
  return { infohash: file.infohash, transportFile: file, trackers: [], peers: [], ...changes };
}

async function readAll(stream: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Runs `work` with a local seeder of the content. */
async function withSeeder(
  size: number,
  pieceLength: number,
  work: (seed: { file: TransportFile; content: Uint8Array; port: number }, folder: string) => Promise<void>,
  changes: Partial<EngineSettings> = {},
) {
  await inFolder(async (folder) => {
    const { file, content } = someContent(size, pieceLength);
    await fillCache(`${folder}/seed`, file, content);
    const seed = async (seeder: Transfers) => {
      const seeding = seeder.open(link(file));
      await seeding.ready();
      assert.equal(seeding.progress(0), 100);
      await work({ file, content, port: seeder.p2pPort }, folder);
    };
    await withTransfers(`${folder}/seed`, seed, changes);
  });
}

ipv6Test("Transfers: listening on :: is reached over IPv6 and IPv4, each under its own address", async () => {
  await withSeeder(
    MIB,
    256 * 1024,
    async ({ file, content, port }, folder) => {
      for (const host of ["::1", "127.0.0.1"]) {
        await withTransfers(`${folder}/${host.length}`, async (transfers) => {
          const transfer = transfers.open(link(file, { peers: [{ host, port }] }));
          await transfer.ready();
          const bytes = await readAll(transfer.source(0).open({ start: 0, end: content.length }));
          assert.deepEqual(bytes, content);
          assert.deepEqual(
            transfer.figures.peers.map(({ address }) => address),
            [{ host, port }],
          );
        });
      }
    },
    { p2pHost: "::" },
  );
});

test("Transfers: content is fetched from a peer, and read from the cache after a restart", () =>
  withSeeder(9 * MIB + 777, 256 * 1024, async ({ file, content, port }, folder) => {
    const peers = [{ host: "127.0.0.1", port }];
    await withTransfers(`${folder}/play`, async (transfers) => {
      const transfer = transfers.open(link(file, { peers }));
      await transfer.ready();
      assert.deepEqual(await readAll(transfer.source(0).open({ start: 0, end: content.length })), content);
      assert.equal(transfer.progress(0), 100);
      assert.equal(transfer.headBytes(0), content.length);
      assert.equal(await transfers.infohashOfFile(file.fileHash), file.infohash);
    });
    await withTransfers(`${folder}/play`, async (transfers) => {
      const known = await transfers.knownTransportFile(file.infohash);
      assert.equal(known?.file.fileHash, file.fileHash);
      const transfer = transfers.open({ infohash: file.infohash, trackers: [], peers: [] });
      await transfer.ready();
      assert.equal(transfer.transportFile()?.fileHash, file.fileHash);
      const range = { start: 100, end: 5 * MIB };
      assert.deepEqual(await transfer.source(0).read(range), content.slice(range.start, range.end));
      assert.ok((await transfers.cacheFigures()).activeInUse >= content.length);
    });
  }));

test("Transfers.open: a magnet without metadata continues with a transport file given later", () =>
  withSeeder(MIB, 64 * 1024, async ({ file, content, port }, folder) => {
    await withTransfers(`${folder}/late`, async (transfers) => {
      const waiting = transfers.open({ infohash: file.infohash, trackers: [], peers: [] });
      assert.equal(transfers.open(link(file, { peers: [{ host: "127.0.0.1", port }] })), waiting);
      await waiting.ready();
      assert.equal(waiting.transportFile(), file);
      assert.deepEqual(await readAll(waiting.source(0).open({ start: 0, end: content.length })), content);
    });
  }));

test("Transfers: a magnet fetches its metadata from a peer and stores it", () =>
  withSeeder(3 * MIB, 64 * 1024, async ({ file, content, port }, folder) => {
    await withTransfers(
      `${folder}/play`,
      async (transfers) => {
        const transfer = transfers.open({
          infohash: file.infohash,
          trackers: [],
          peers: [],
          displayName: "dn",
        });
        assert.equal(transfer.name, "dn");
        assert.deepEqual(transfer.files, []);
        transfer.addPeers([{ host: "127.0.0.1", port }], "magnet");
        await transfer.ready();
        assert.equal(transfer.name, "film.mp4");
        const range = { start: 2 * MIB, end: 3 * MIB };
        assert.deepEqual(await transfer.source(0).read(range), content.slice(range.start));
        assert.deepEqual(transfer.transportFile()?.infoBytes, file.infoBytes);
      },
      { cacheLimitBytes: 0 },
    );
    await withTransfers(`${folder}/play`, async (transfers) => {
      assert.equal((await transfers.knownTransportFile(file.infohash))?.file.infohash, file.infohash);
    });
  }));

test("Transfers: content larger than the memory limit reaches many readers complete without a disk cache", () =>
  withSeeder(24 * MIB, 256 * 1024, async ({ file, content, port }, folder) => {
    const changes = { cacheLimitBytes: 0, memoryLimitBytes: 4 * MIB };
    await withTransfers(
      `${folder}/play`,
      async (transfers) => {
        const transfer = transfers.open(link(file, { peers: [{ host: "127.0.0.1", port }] }));
        await transfer.ready();
        const source = transfer.source(0);
        const starts = [0, 1, 5 * MIB, 20 * MIB];
        const read = (start: number) => readAll(source.open({ start, end: content.length }));
        const all = await Promise.all(starts.map(read));
        for (const [i, start] of starts.entries()) assert.deepEqual(all[i], content.subarray(start));
        assert.ok((await transfers.cacheFigures()).memoryInUse <= 5 * MIB);
      },
      changes,
    );
  }));

test("ByteSource.open: hundreds of stalled or closed readers do not disturb a running reader", () =>
  withSeeder(12 * MIB, 256 * 1024, async ({ file, content, port }, folder) => {
    await withTransfers(`${folder}/play`, async (transfers) => {
      const transfer = transfers.open(link(file, { peers: [{ host: "127.0.0.1", port }] }));
      await transfer.ready();
      const source = transfer.source(0);
      const open = (start: number) => source.open({ start, end: content.length }).getReader();
      const others = Array.from({ length: 300 }, (_, i) => open((i * 37_000) % content.length));
      await Promise.all(others.map((reader) => reader.read()));
      await Promise.all(others.slice(0, 150).map((reader) => reader.cancel()));
      assert.deepEqual(await readAll(source.open({ start: 0, end: content.length })), content);
      await Promise.all(others.slice(150).map((reader) => reader.cancel()));
    });
  }));

test("ActiveTransfer.stop ends readers with session_stopped, and the same content can be opened again", () =>
  inFolder(async (folder) => {
    const { file } = someContent(MIB, 64 * 1024);
    await withTransfers(folder, async (transfers) => {
      const transfer = transfers.open(link(file));
      await transfer.ready();
      const stream = transfer.source(0).open({ start: 0, end: 10 }).getReader();
      const waiting = [stream.read(), transfer.source(0).read({ start: 5, end: 9 })];
      const stopped = transfer.stop();
      for (const read of waiting) await assert.rejects(read, { code: "session_stopped" });
      const again = transfers.open(link(file));
      assert.notEqual(again, transfer);
      await stopped;
      await again.ready();
      assert.equal(transfers.get(file.infohash), again);
      await assert.rejects(transfer.source(0).read({ start: 0, end: 1 }), { code: "session_stopped" });
    });
  }));

test("ActiveTransfer.ready and ByteSource.read reject when their signal is aborted", () =>
  inFolder(async (folder) => {
    const { file } = someContent(MIB, 64 * 1024);
    await withTransfers(folder, async (transfers) => {
      const bare = transfers.open({ infohash: file.infohash, trackers: [], peers: [] });
      await assert.rejects(bare.ready(AbortSignal.abort(new Error("enough"))), /enough/);
      const abort = new AbortController();
      const ready = bare.ready(abort.signal);
      abort.abort(new Error("enough"));
      await assert.rejects(ready, /enough/);
      await bare.stop();
      const transfer: ActiveTransfer = transfers.open(link(file));
      await transfer.ready();
      const second = new AbortController();
      const read = transfer.source(0).read({ start: 0, end: 9 }, { signal: second.signal });
      second.abort(new Error("gone"));
      await assert.rejects(read, /gone/);
      assert.throws(() => transfer.source(7), { code: "no_such_file" });
      await assert.rejects(transfer.source(0).read({ start: 0, end: 2 * MIB }), RangeError);
    });
  }));

test("Transfer.media is opened once for all callers, and again after a failure", () =>
  inFolder(async (folder) => {
    const { file } = someContent(MIB, 64 * 1024);
    let opened = 0;
    let closed = 0;
    const media = { close: () => closed++ } as unknown as Media;
    const openMedia: OpenMedia = async () => {
      opened++;
      if (opened === 1) throw new SluiceError("broken_media", "first time");
      return media;
    };
    await withTransfers(
      folder,
      async (transfers) => {
        const transfer = transfers.open(link(file));
        await transfer.ready();
        await assert.rejects(transfer.media(0, {}), { code: "broken_media" });
        const all = await Promise.all([1, 2, 3].map(() => transfer.media(0, {})));
        assert.deepEqual(all, [media, media, media]);
        assert.equal(opened, 2);
        await transfer.media(0, { language: "fr" });
        assert.equal(opened, 3);
      },
      {},
      openMedia,
    );
    assert.equal(closed, 2);
  }));

test("createTransfers: with any port, takes another one if TCP has the one that is free for UDP in use", () =>
  inFolder(async (path) => {
    const tried: number[] = [];
    const listen: typeof runtime.net.listen = (address, accept) => {
      tried.push(address.port);
      if (tried.length < 3)
        return Promise.reject(new SluiceError("port_busy", `TCP port ${address.port} is in use`));
      return runtime.net.listen(address, accept);
    };
    const machine = { ...runtime, net: { ...runtime.net, listen } };
    const settings = someSettings(path);
    const reach = { ...settings.reach, utp: true };
    const transfers = await createTransfers(machine, { ...settings, reach }, keepingLog(), noMedia);
    // Another program may use the third port as well.
    assert.ok(tried.length >= 3);
    assert.ok(tried.every((port) => port > 0));
    assert.equal(transfers.p2pPort, tried.at(-1));
    await transfers.close();
    const busy = () => Promise.reject(new SluiceError("port_busy", "in use"));
    const never = { ...runtime, net: { ...runtime.net, listen: busy } };
    await assert.rejects(createTransfers(never, { ...settings, reach }, keepingLog(), noMedia), /in use/);
  }));
