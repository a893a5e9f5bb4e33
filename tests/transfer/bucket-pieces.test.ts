import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { Bucket, type BucketPlace } from "../../src/outbound/bucket.ts";
import { createOutbound } from "../../src/outbound/outbound.ts";
import type { TransferContent } from "../../src/transfer/contract.ts";
import { SwarmTransfer } from "../../src/transfer/transfer.ts";
import { parseTransportFile } from "../../src/wire/torrent/metainfo.ts";
import { keepingLog, someBytes } from "../engine/parts.ts";
import { startS3Server } from "../parts/s3-server.ts";
import { tempFolder } from "../parts/torrent-files.ts";
import { makeTorrent, sha1 } from "../wire/make-torrent.ts";
import { transferDependencies } from "./transfer-dependencies.ts";
import { startSeedServer } from "./web-seeds/seed-server.ts";
import { until } from "./web-seeds/seeded-transfer.ts";

const PIECE = 64 * 1024;
const FILM = someBytes(6 * PIECE + 77);
const PIECES = 7;
const MADE = makeTorrent({
  name: "film.mp4",
  files: [{ path: "film.mp4", bytes: FILM }],
  pieceLength: PIECE,
});
const WHOLE = { start: 0, end: FILM.length };

/** Starts a transfer with a bucket. With `seed`, the transport file and a web seed are known, else only the infohash. */
async function transferWithBucket(place: BucketPlace, seed?: string) {
  const folder = await tempFolder("bucket");
  const log = keepingLog();
  const outbound = createOutbound(runtime, log);
  const bucket = new Bucket({ outbound, clock: runtime.clock, sha256: runtime.sha256 }, place);
  const dependencies = await transferDependencies(folder.path, { log, outbound, bucket });
  const content: TransferContent = {
    infohash: MADE.infohash,
    trackers: [],
    peers: [],
    ...(seed && {
      transportFile: parseTransportFile(MADE.bytes, sha1),
      webSeeds: [{ url: `${seed}/`, kind: "files" }],
      localWebSeeds: [`${seed}/`],
    }),
  };
  const transfer = new SwarmTransfer(dependencies, content, Promise.resolve(), () => {});
  const stop = async () => {
    await transfer.stop();
    await dependencies.kept.close();
    await folder.remove();
  };
  return { transfer, log, stop };
}

test("BucketPieces: another engine plays content from the bucket, knowing only the infohash and no peers", async () => {
  const server = await startS3Server();
  const seed = await startSeedServer({ "/film.mp4": FILM });
  const first = await transferWithBucket(server.place, seed.url);
  try {
    await first.transfer.ready();
    assert.deepEqual(await first.transfer.source(0).read(WHOLE), FILM);
    await until(() => server.objects.size === PIECES + 1);
    await first.stop();
    const puts = server.asked.filter((asked) => asked.startsWith("PUT")).length;
    const second = await transferWithBucket(server.place);
    try {
      await second.transfer.ready();
      assert.deepEqual(await second.transfer.source(0).read(WHOLE), FILM);
      const { host } = new URL(server.place.endpoint);
      assert.equal(second.transfer.figures.peers[0]?.client, `bucket ${host}`);
      assert.deepEqual(second.log.warnings, []);
    } finally {
      await second.stop();
    }
    // What the bucket has is not uploaded again.
    assert.equal(server.asked.filter((asked) => asked.startsWith("PUT")).length, puts);
  } finally {
    await first.stop();
    await seed.close();
    await server.close();
  }
});

test("BucketPieces: a damaged object costs a download from elsewhere, and is replaced", async () => {
  const server = await startS3Server();
  const seed = await startSeedServer({ "/film.mp4": FILM });
  for (let piece = 0; piece < PIECES; piece++) {
    const bytes = FILM.slice(piece * PIECE, (piece + 1) * PIECE);
    if (piece === 2) bytes[5]! ^= 1;
    server.objects.set(`pieces/${MADE.infohash}/${piece}`, { bytes, modified: new Date() });
  }
  const { transfer, log, stop } = await transferWithBucket(server.place);
  try {
    await until(() => server.asked.length > 0);
    transfer.learn(parseTransportFile(MADE.bytes, sha1));
    await transfer.ready();
    const read = transfer.source(0).read(WHOLE);
    // The only source is the bucket until it has sent the damaged piece.
    await until(() => log.warnings.some((line) => /bucket is not used any more/.test(line)));
    transfer.addWebSeeds({
      infohash: MADE.infohash,
      trackers: [],
      peers: [],
      webSeeds: [{ url: `${seed.url}/`, kind: "files" }],
      localWebSeeds: [`${seed.url}/`],
    });
    assert.deepEqual(await read, FILM);
    const key = `pieces/${MADE.infohash}/2`;
    await until(() => sha1Of(server.objects.get(key)!.bytes) === sha1Of(FILM.slice(2 * PIECE, 3 * PIECE)));
  } finally {
    await stop();
    await seed.close();
    await server.close();
  }
});

test("BucketPieces: a bucket that never answers does not delay playback, nor the end of the transfer", async () => {
  const server = await startS3Server(() => true);
  const seed = await startSeedServer({ "/film.mp4": FILM });
  const { transfer, stop } = await transferWithBucket(server.place, seed.url);
  try {
    await transfer.ready();
    assert.deepEqual(await transfer.source(0).read(WHOLE), FILM);
    assert.equal(server.objects.size, 0);
  } finally {
    await stop();
    await seed.close();
    await server.close();
  }
});

test("BucketPieces: a refused key is reported once, and playback continues without the bucket", async () => {
  const server = await startS3Server();
  const seed = await startSeedServer({ "/film.mp4": FILM });
  const { transfer, log, stop } = await transferWithBucket({ ...server.place, secret: "wrong" }, seed.url);
  try {
    await transfer.ready();
    assert.deepEqual(await transfer.source(0).read(WHOLE), FILM);
    await until(() => log.warnings.length > 0);
    assert.deepEqual(log.warnings, ["cannot use the bucket; playback continues without it"]);
  } finally {
    await stop();
    await seed.close();
    await server.close();
  }
});

function sha1Of(bytes: Uint8Array): string {
  return Buffer.from(sha1(bytes)).toString("hex");
}
