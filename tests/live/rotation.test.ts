import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { SluiceError } from "../../src/base/errors.ts";
import type { Infohash } from "../../src/base/ids.ts";
import { decodeSuccessor } from "../../src/wire/live/successor.ts";
import { settled } from "../engine/fake-clock.ts";
import { FakeStudio, someRequest } from "./broadcast-parts.ts";

const DAY_MS = 24 * 3600_000;

/** Where the STATs of the stream send its viewers; undefined if they send them nowhere. */
function successorOf(studio: FakeStudio, infohash: Infohash): Infohash | undefined {
  const file = studio.opened.findLast((content) => content.infohash === infohash)!.live!.file;
  const verify = runtime.ed25519Verifier(file.info.publicKey);
  for (const { value } of studio.told) {
    if (!value.successor) continue;
    try {
      return decodeSuccessor(value.successor, infohash, verify).infohash;
    } catch {} // The record of another stream.
  }
  return undefined;
}

/** A studio whose stream "One" was on air, with the infohash of that stream. */
async function afterFirstRun() {
  const studio = new FakeStudio();
  const old = await studio.within(studio.broadcasts().start(someRequest()));
  await studio.world.clock.advance(3000);
  await old.stop();
  return { studio, old };
}

test("rotate: a new key and link; the old stream sends its viewers there, also after a restart", async () => {
  const { studio, old } = await afterFirstRun();
  const key = studio.files.kept.get("/data/broadcasts/One/key")!.bytes;
  const first = studio.broadcasts();
  const rotated = await studio.within(first.start(someRequest({ isRotated: true })));
  await studio.world.clock.advance(3000);
  assert.notEqual(rotated.infohash, old.infohash);
  assert.equal(successorOf(studio, old.infohash), rotated.infohash);
  assert.deepEqual(studio.files.kept.get("/data/broadcasts/One.old-1/key")!.bytes, key);
  await studio.within(first.close());
  assert.equal(studio.locked.size, 0);

  studio.told.length = 0;
  const second = studio.broadcasts();
  const again = await studio.within(second.start(someRequest()));
  await studio.world.clock.advance(3000);
  assert.equal(again.infohash, rotated.infohash);
  assert.equal(successorOf(studio, old.infohash), rotated.infohash);
  // The stream that tells it ends with the broadcast.
  await again.stop();
  await settled();
  await studio.world.clock.advance(1000);
  assert.deepEqual(second.all(), []);
  assert.equal(studio.locked.size, 0);
});

test("rotate: after 30 days the old stream is no longer shown", async () => {
  const { studio, old } = await afterFirstRun();
  const first = studio.broadcasts();
  await studio.within(first.start(someRequest({ isRotated: true })));
  await studio.within(first.close());
  studio.told.length = 0;
  studio.world.epochMs += 31 * DAY_MS;
  const later = studio.broadcasts();
  await studio.within(later.start(someRequest()));
  await studio.world.clock.advance(3000);
  assert.equal(later.all().length, 1);
  assert.equal(successorOf(studio, old.infohash), undefined);
  await studio.within(later.close());
});

test("rotate: refused without a key, twice in a day, and while another process uses the key", async () => {
  const refused = (expected: RegExp) => (error: unknown) =>
    error instanceof SluiceError && expected.test(error.message);
  const empty = new FakeStudio();
  await assert.rejects(
    empty.within(empty.broadcasts().start(someRequest({ isRotated: true }))),
    refused(/never on air/),
  );
  const { studio } = await afterFirstRun();
  const broadcasts = studio.broadcasts();
  const rotated = await studio.within(broadcasts.start(someRequest({ isRotated: true })));
  await studio.within(broadcasts.close());
  const link = studio.files.kept.get(rotated.transportFilePath)!.bytes;
  await assert.rejects(
    studio.within(studio.broadcasts().start(someRequest({ isRotated: true }))),
    refused(/within the last 24 hours/),
  );
  assert.deepEqual(studio.files.kept.get(rotated.transportFilePath)!.bytes, link);
  studio.world.epochMs += 2 * DAY_MS;
  studio.locked.add("/data/broadcasts/One/lock");
  await assert.rejects(
    studio.within(studio.broadcasts().start(someRequest({ isRotated: true }))),
    refused(/another Sluice process/),
  );
  await assert.rejects(
    studio.within(studio.broadcasts().start(someRequest({ isRotated: true, isStandby: true }))),
    refused(/not together with standby/),
  );
});
