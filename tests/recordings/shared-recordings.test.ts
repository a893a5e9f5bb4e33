import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { SILENT_LOG } from "../../src/base/log.ts";
import { SharedRecordings } from "../../src/recordings/shared-recordings.ts";
import { files } from "../../src/runtime/files.ts";
import type { Hold } from "../../src/transfer/contract.ts";
import { parseMagnet } from "../../src/wire/torrent/magnet.ts";
import type { TransportFile } from "../../src/wire/torrent/metainfo.ts";
import { until } from "../library/until.ts";
import { tempFolder } from "../parts/torrent-files.ts";

const sha1 = (bytes: Uint8Array) => new Uint8Array(createHash("sha1").update(bytes).digest());
const PEER = { host: "192.168.1.5", port: 7_000 };

/** A recording of `size` bytes with the id 1, and what is shared of it. */
async function house(t: { after(run: () => unknown): void }, size: number) {
  const folder = await tempFolder("shares");
  t.after(() => folder.remove());
  const [path, torrentPath] = [folder.file("Show [1].ts"), folder.file("Show [1].torrent")];
  const bytes = Uint8Array.from({ length: size }, (_, i) => (i * 7) >> 3);
  await writeFile(path, bytes);
  const shared: TransportFile[] = [];
  let released = 0;
  const open = () =>
    new SharedRecordings({
      ...{ files, sha1, log: SILENT_LOG, peerAddresses: () => [PEER] },
      share(file, of) {
        assert.equal(of, path);
        shared.push(file);
        const transfer = { figures: { uploaded: 5 } };
        return { transfer, release: () => void released++, rest() {} } as unknown as Hold;
      },
      find: () => ({ path, torrentPath, bytes: size }),
    });
  return { open, bytes, path, torrentPath, shared, released: () => released };
}

test("SharedRecordings: a recording is a private torrent of its file, named by a link with the addresses of this machine", async (t) => {
  const { open, bytes, torrentPath, shared, released } = await house(t, 600_000);
  const shares = open();
  assert.equal(shares.get(1), undefined);
  shares.start(1);
  assert.equal(shares.get(1)?.state, "preparing");
  await until(() => shares.get(1)?.state === "shared");
  const [file] = shared;
  const { info } = file!;
  assert.deepEqual([info.name, info.length, info.isPrivate], ["Show [1].ts", bytes.length, true]);
  const pieces = [0, 1, 2].map((i) => sha1(bytes.subarray(i * info.pieceLength, (i + 1) * info.pieceLength)));
  assert.deepEqual(Buffer.from(info.pieceHashes), Buffer.concat(pieces));
  const { magnet, uploadedBytes } = shares.get(1)!;
  const link = parseMagnet(magnet!);
  assert.deepEqual([link.infohash, link.displayName, link.peers], [file!.infohash, info.name, [PEER]]);
  assert.equal(uploadedBytes, 5);
  // The next run shares it again, with the same infohash.
  await shares.close();
  const later = open();
  await later.load(1);
  assert.deepEqual([later.get(1)?.magnet, shared[1]?.infohash], [magnet, file!.infohash]);
  await later.stop(1);
  assert.deepEqual([later.get(1), released(), await files.stat(torrentPath)], [undefined, 1, undefined]);
  await later.load(1);
  assert.equal(later.get(1), undefined);
});

test("SharedRecordings: reports why a recording cannot be shared, and tries again when it is asked to", async (t) => {
  const { open, path, bytes } = await house(t, 300_000);
  await writeFile(path, bytes.subarray(0, 1_000));
  const shares = open();
  shares.start(1);
  await until(() => shares.get(1)?.state === "failed");
  assert.ok(shares.get(1)?.problem);
  await writeFile(path, bytes);
  shares.start(1);
  await until(() => shares.get(1)?.state === "shared");
  await shares.stop(1);
});

test("SharedRecordings: ending the work leaves nothing", async (t) => {
  const { open, torrentPath, shared } = await house(t, 5_000_000);
  const shares = open();
  shares.start(1);
  await shares.stop(1);
  assert.deepEqual([shares.get(1), shared.length, await files.stat(torrentPath)], [undefined, 0, undefined]);
});
