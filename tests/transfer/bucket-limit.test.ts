import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { Bucket } from "../../src/outbound/bucket.ts";
import { createOutbound } from "../../src/outbound/outbound.ts";
import { limitBucket } from "../../src/transfer/bucket-limit.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { keepingLog } from "../engine/parts.ts";
import { startS3Server } from "../parts/s3-server.ts";
import { until } from "./web-seeds/seeded-transfer.ts";

test("limitBucket: above the limit, the least recently opened content is removed, and nothing else", async () => {
  const server = await startS3Server();
  const [old, opened, fresh] = ["a", "b", "c"].map((letter) => letter.repeat(40));
  const put = (key: string, seconds: number, bytes = 100) =>
    server.objects.set(`pieces/${key}`, { bytes: new Uint8Array(bytes), modified: new Date(seconds * 1000) });
  for (let piece = 0; piece < 4; piece++) {
    put(`${opened}/${piece}`, 1_000);
    put(`${old}/${piece}`, 2_000);
    put(`${fresh}/${piece}`, 3_000);
  }
  put(`${opened}/content.torrent`, 4_000, 10);
  put("other/program", 1, 5_000);
  const log = keepingLog();
  const end = new AbortController();
  const outbound = createOutbound(runtime, log);
  const { clock, sha256 } = runtime;
  const bucket = new Bucket({ outbound, clock, sha256 }, { ...server.place, limitBytes: 1_000 });
  const limiting = limitBucket(bucket, new FakeClock(), log, end.signal);
  try {
    await until(() => server.objects.size === 10);
    const left = new Set([...server.objects.keys()].map((key) => key.split("/")[1]));
    assert.deepEqual(left, new Set([opened, fresh, "other"]));
  } finally {
    end.abort();
    await limiting;
    await server.close();
  }
});
