import assert from "node:assert/strict";
import { test } from "node:test";
import { inRealTime } from "../../parts/real-time.ts";
import { hasFfmpeg } from "../../remux/make-media.ts";
import { servePages } from "../web-pages.ts";
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

const WITH = { skip: (await hasFfmpeg()) ? false : "ffmpeg is not installed", timeout: 60_000 };

/** A source whose chunks of some stripes stay at home from the second piece `from` on, and its copy on the web. */
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
      // The first guess may be one that is of use later.
      assert.ok(segments.length <= new Set(segments).size + 1, "no segment twice");
      assert.ok(segments.length > 4);
    }),
  );
}

test(
  "WebFallback: of two viewers of a source whose uplink does not do, nobody misses more than a piece now and then",
  WITH,
  inRealTime(async (t) => {
    const copy = await hlsCopy();
    const server = await servePages(copy.pages);
    const stream = copiedStream();
    const bytes = Buffer.concat(copy.segments);
    // Half of one copy for two.
    const uplink = Math.floor((PACE * bytes.length) / 24 / 2);
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
    const last = lastOf(made);
    for (const viewer of viewers) {
      await viewer.sink.until(({ pieces, skipped }) => pieces.at(-1)?.seq === last || skipped.includes(last));
      // Without the web they would miss every second one. What it brings for both at the last moment may come too late.
      assert.ok(viewer.sink.skipped.length <= made.size / 12, `missed ${viewer.sink.skipped}`);
      assert.deepEqual(wrongPieces(viewer, made), []);
    }
    assert.ok(server.asked.length > 0);
  }),
);
