import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { instant } from "../../src/base/time.ts";
import { Bucket, type BucketPlace } from "../../src/outbound/bucket.ts";
import { createOutbound } from "../../src/outbound/outbound.ts";
import type { Clock } from "../../src/runtime/contract.ts";
import { keepingLog, someBytes } from "../engine/parts.ts";
import { startS3Server } from "../parts/s3-server.ts";

const { signal } = new AbortController();

/** Waits end at once, and are recorded. */
function bucketAt(place: BucketPlace) {
  const waits: number[] = [];
  const clock: Clock = {
    now: () => instant(0),
    unixSeconds: () => runtime.clock.unixSeconds(),
    at: (at, run) => {
      waits.push(at);
      queueMicrotask(run);
      return () => {};
    },
  };
  const outbound = createOutbound(runtime, keepingLog());
  return { bucket: new Bucket({ outbound, clock, sha256: runtime.sha256 }, place), waits };
}

test("Bucket: stores, returns, lists in pages and removes objects; the server verifies each signature", async () => {
  const server = await startS3Server();
  const { bucket } = bucketAt(server.place);
  try {
    const bytes = someBytes(70_000);
    await bucket.put("a/0", bytes, signal);
    assert.deepEqual([...server.objects.keys()], ["pieces/a/0"]);
    assert.deepEqual(await bucket.get("a/0", 100, signal), bytes);
    assert.equal(await bucket.get("a/1", 100, signal), undefined);
    for (let i = 1; i < 1001; i++)
      server.objects.set(`pieces/a/${i}`, { bytes: bytes.subarray(0, i), modified: new Date(1e12) });
    server.objects.set("other/a/5", { bytes, modified: new Date() });
    const listed = new Map<string, number>();
    let modifiedMs = 0;
    for await (const object of bucket.list("a/", signal)) {
      listed.set(object.key, object.bytes);
      ({ modifiedMs } = object);
    }
    assert.deepEqual(
      [listed.size, listed.get("a/0"), listed.get("a/77"), modifiedMs],
      [1001, 70_000, 77, 1e12],
    );
    assert.equal(server.asked.filter((asked) => asked === "GET /films").length, 3);
    await bucket.remove("a/0", signal);
    assert.equal(server.objects.has("pieces/a/0"), false);
  } finally {
    await server.close();
  }
});

test("Bucket: a refused request fails at once, with the reason of the server and without the secret", async () => {
  const server = await startS3Server();
  const { bucket } = bucketAt({ ...server.place, secret: "another secret" });
  try {
    await assert.rejects(bucket.put("a/0", someBytes(10), signal), (error: Error & { code: string }) => {
      assert.equal(error.code, "url_refused");
      assert.match(error.message, /403 SignatureDoesNotMatch \(the reason\)/);
      assert.doesNotMatch(error.message, /another secret/);
      return true;
    });
    assert.equal(server.asked.length, 1);
    const elsewhere = bucketAt({ ...server.place, bucket: "missing" }).bucket;
    await assert.rejects(elsewhere.list("", signal).next(), /there is no bucket missing/);
  } finally {
    await server.close();
  }
});

test("Bucket: a server that is overloaded is asked twice more, with pauses", async () => {
  let failures = 2;
  const server = await startS3Server((_request, response) => {
    if (failures-- <= 0) return false;
    response.writeHead(503).end("<Error><Code>SlowDown</Code></Error>");
    return true;
  });
  const { bucket, waits } = bucketAt(server.place);
  try {
    await bucket.put("a/0", someBytes(10), signal);
    assert.equal(server.objects.size, 1);
    failures = 3;
    await assert.rejects(bucket.put("a/1", someBytes(10), signal), { code: "url_unreachable" });
    assert.equal(server.asked.length, 6);
    assert.deepEqual(
      waits.filter((at) => at === 1_000 || at === 4_000),
      [1_000, 4_000, 1_000, 4_000],
    );
  } finally {
    await server.close();
  }
});

test("Bucket: an answer that is no listing is an error", async () => {
  const server = await startS3Server((_request, response) => {
    response.writeHead(200).end("<html><body>captive portal");
    return true;
  });
  try {
    await assert.rejects(bucketAt(server.place).bucket.list("", signal).next(), /expected the end tag body/);
  } finally {
    await server.close();
  }
});
