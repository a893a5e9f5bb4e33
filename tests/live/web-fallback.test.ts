import assert from "node:assert/strict";
import { servePages } from "../engine/web-pages.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { inRealTime } from "../parts/real-time.ts";
import { loopbackPeer } from "./driver-parts.ts";
import {
  broadcastBytes,
  copiedStream,
  hlsCopy,
  lastOf,
  PACE,
  stingySwarm,
  webFallback,
  wrongPieces,
} from "./web-copy-parts.ts";

const { test } = await testsThatNeed("time");

const WITH = { timeout: 60_000 };
/** Headers of 442 bytes: one per 125 ms, a copy to each of two viewers. */
const HEADER_BYTES_PER_SECOND = 8 * 442 * 2;

/** A source that withholds some stripes from the second piece `from` on, and its web copy. */
async function lateSwarm(t: { after(run: () => unknown): void }, keeps: (stripe: number) => boolean) {
  const copy = await hlsCopy();
  const server = await servePages(copy.pages);
  const stream = copiedStream();
  let isKeeping = false;
  const makeSwarm = stingySwarm((stripe) => isKeeping && keeps(stripe));
  const source = await loopbackPeer(stream, "source", { makeSwarm });
  t.after(() => Promise.all([source.close(), server.close()]));
  const { made, done, stop } = broadcastBytes(source, stream, Buffer.concat(copy.segments));
  t.after(stop);
  const keep = () => {
    isKeeping = true;
  };
  return { server, stream, source, made, done, copy, keep };
}

for (const [name, keeps] of [
  ["three of four stripes", (stripe: number) => stripe > 0],
  ["all stripes", () => true],
] as const) {
  test(
    `WebFallback: a viewer whom the swarm stops giving ${name} misses nothing, and asked the web for nothing before`,
    WITH,
    inRealTime(async (t) => {
      const { server, stream, source, made, done, keep } = await lateSwarm(t, keeps);
      const urls = [`${server.base}/live.m3u8`];
      const viewer = await loopbackPeer(stream, "viewer", webFallback(stream, { urls }));
      t.after(() => viewer.close());
      viewer.driver.found([source.address]);
      await viewer.sink.until(({ pieces }) => pieces.length >= 20);
      assert.equal(server.asked.length, 0);
      keep();
      await done;
      const last = lastOf(made);
      await viewer.sink.until(({ pieces, skipped }) => pieces.at(-1)?.seq === last || skipped.includes(last));
      assert.deepEqual(viewer.sink.skipped, []);
      assert.deepEqual(wrongPieces(viewer, made), []);
      const segments = server.asked.filter((path) => path.endsWith(".ts"));
      // The first segment may be one that is needed later.
      assert.ok(segments.length <= new Set(segments).size + 1, "no segment twice");
      assert.ok(segments.length > 4);
    }),
  );
}

test(
  "WebFallback: two viewers of a source with too little upload receive most pieces",
  WITH,
  inRealTime(async (t) => {
    const copy = await hlsCopy();
    const server = await servePages(copy.pages);
    const stream = copiedStream();
    const bytes = Buffer.concat(copy.segments);
    // Three quarters of the stream's rate for two viewers, and the headers, which are larger than the media of this small fixture.
    const uplink = Math.floor((0.75 * PACE * bytes.length) / 24) + HEADER_BYTES_PER_SECOND;
    const source = await loopbackPeer(stream, "source", {
      uploadBytesPerSecond: uplink,
      uploadLimit: uplink,
    });
    const urls = [`${server.base}/live.m3u8`];
    const viewers = await Promise.all(
      [1, 2].map((i) =>
        loopbackPeer(stream, "viewer", { host: `127.0.${i}.1`, ...webFallback(stream, { urls }) }),
      ),
    );
    t.after(() => Promise.all([source, ...viewers, server].map((one) => one.close())));
    const { made, done, stop } = broadcastBytes(source, stream, bytes);
    t.after(stop);
    for (const viewer of viewers)
      viewer.driver.found([source.address, ...viewers.map(({ address }) => address)]);
    await done;
    // The uplink drops headers too, and nothing follows the last ones that could replace them.
    const nearEnd = lastOf(made) - 4;
    for (const viewer of viewers) {
      await viewer.sink.until(
        ({ pieces, skipped }) => (pieces.at(-1)?.seq ?? 0) >= nearEnd || (skipped.at(-1) ?? 0) >= nearEnd,
      );
      // Without the web they would miss every second piece. Pieces fetched at the last moment may be late on a busy machine.
      assert.ok(viewer.sink.skipped.length <= made.size / 4, `missed ${viewer.sink.skipped}`);
      assert.deepEqual(wrongPieces(viewer, made), []);
    }
    assert.ok(server.asked.length > 0);
  }),
);
