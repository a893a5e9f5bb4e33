import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { runtime } from "#runtime";
import type { UnixSeconds } from "../../../src/base/time.ts";
import { GuideFile } from "../../../src/library/guide/guide-file.ts";
import { createWorkerReader } from "../../../src/library/guide/guide-reading.ts";
import { tempFolder } from "../../parts/torrent-files.ts";

const readGuide = createWorkerReader(runtime.startWorker);
const [from, to] = [1_700_000_000, 1_800_000_000] as [UnixSeconds, UnixSeconds];
const TIMES = 'start="20261128200000 +0000" stop="20261128210000 +0000"';

/** A stream that ends after the last part, or fails if it is an error. */
function bodyOf(...parts: readonly (Uint8Array | Error)[]): ReadableStream<Uint8Array> {
  const left = [...parts];
  return new ReadableStream({
    pull(controller) {
      const part = left.shift();
      if (part === undefined) controller.close();
      else if (part instanceof Error) controller.error(part);
      else controller.enqueue(part);
    },
  });
}

function guide(count: number, end = "</tv>"): Uint8Array {
  const programmes = Array.from(
    { length: count },
    (_, i) => `<programme channel="c${i}" ${TIMES}><title>Show ${i}</title></programme>`,
  );
  return gzipSync(`<tv>${programmes.join("")}${end}`);
}

test("createWorkerReader: a worker reads a guide in parts, and reports its progress", async (t) => {
  const folder = await tempFolder("guide-worker");
  t.after(() => folder.remove());
  const path = folder.file("guide.jsonl");
  const packed = guide(5_000);
  const counts: number[] = [];
  await readGuide(bodyOf(packed.subarray(0, 1), packed.subarray(1, 900), packed.subarray(900)), path, {
    ...{ from, to, signal: new AbortController().signal },
    onProgrammes: (count) => counts.push(count),
  });
  const file = await GuideFile.open(runtime.files, path);
  t.after(() => file.close());
  assert.equal(file.programmeCount, 5_000);
  assert.equal(counts.at(-1), 5_000);
  const [shown] = await file.between("c4999", from, to, 1);
  assert.equal(shown?.title, "Show 4999");
});

test("createWorkerReader: errors of the guide, of its body, and cancelling end the worker", async (t) => {
  const folder = await tempFolder("guide-worker");
  t.after(() => folder.remove());
  const options = { from, to, onProgrammes: () => {} };
  const { signal } = new AbortController();
  const read = (body: ReadableStream<Uint8Array>, given = signal) =>
    readGuide(body, folder.file("guide.jsonl"), { ...options, signal: given });
  await assert.rejects(read(bodyOf(guide(10, ""))), /the guide is truncated/);
  const packed = guide(10);
  await assert.rejects(
    read(bodyOf(packed.subarray(0, 40), new Error("the line is dead"))),
    /the line is dead/,
  );
  const stop = new AbortController();
  let isCancelled = false;
  const silent = new ReadableStream<Uint8Array>({
    pull: () => new Promise(() => stop.abort(new Error("not needed"))),
    cancel: () => {
      isCancelled = true;
    },
  });
  await assert.rejects(read(silent, stop.signal), /not needed/);
  assert.ok(isCancelled);
});
