import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { SILENT_LOG } from "../../src/base/log.ts";
import { after, instant } from "../../src/base/time.ts";
import type { WebFallbackOptions } from "../../src/live/web-fallback/web-fallback.ts";
import { WebFallback } from "../../src/live/web-fallback/web-fallback.ts";
import { createOutbound } from "../../src/outbound/outbound.ts";
import type { FetchedChunks } from "../../src/protocol/live/contract.ts";
import type { LateMedia, MissingPiece } from "../../src/protocol/live/fetched.ts";
import type { Clock } from "../../src/runtime/contract.ts";
import { keepingLog } from "../engine/parts.ts";
import { servePages } from "../engine/web-pages.ts";
import { someStream } from "./driver-parts.ts";
import { FakeWorld } from "./source-parts.ts";
import { hlsCopy, type Piece, signedPieces } from "./web-copy-parts.ts";

const LAG_MS = 3_000;
const URL = "http://tv.example/live.m3u8";
const COPY = await hlsCopy();
const PIECES = signedPieces(Buffer.concat(COPY.segments));

/** A swarm that delivers only headers: one piece every 125 ms. */
class HeadersOnly implements LateMedia {
  readonly isPlaying = true;
  receivedBytes = 0;
  neighbours = 0;
  readonly given: FetchedChunks[] = [];
  readonly #pieces: readonly Piece[];
  readonly #first: number;
  readonly #now: () => number;

  constructor(pieces: readonly Piece[], now: () => number) {
    this.#pieces = pieces;
    this.#first = pieces[0]!.header.value.seq;
    this.#now = now;
  }

  missing(withinMs: number): MissingPiece[] {
    const given = new Set(this.given.map(({ seq }) => seq));
    return this.#pieces.flatMap(({ header }, i) => {
      const remainingMs = 1_000 + 125 * i + LAG_MS - this.#now();
      const isHere = remainingMs <= LAG_MS && remainingMs > 0 && !given.has(header.value.seq);
      return isHere && remainingMs < withinMs ? [{ header, missing: 0xffff, remainingMs }] : [];
    });
  }

  header(seq: number) {
    return this.#pieces[seq - this.#first]?.header;
  }
}

/** A fallback with a fake clock and web. */
function lateWorld(changes: Partial<WebFallbackOptions> = {}) {
  const world = new FakeWorld();
  world.answer = (url) => {
    const page = COPY.pages[new globalThis.URL(url).pathname];
    return page ? { body: [Buffer.from(page.body!)] } : { status: 404 };
  };
  const log = keepingLog();
  const swarm = new HeadersOnly(PIECES, () => world.clock.now());
  const { outbound, clock } = world.parts();
  const { info } = someStream({ stripeCount: 16, pieceMs: 125 }).file;
  const fallback = new WebFallback(
    {
      ...{ clock, outbound, log, info, sha256: runtime.sha256, random: () => 0 },
      ...{ urls: [URL], allowPrivate: false, lagMs: LAG_MS, ...changes },
    },
    { late: () => swarm, give: (found) => void swarm.given.push(found) },
  );
  /** Advances the time; peers deliver data meanwhile, unless they are silent. */
  const pass = async (ms: number, isSilent = false) => {
    for (let passed = 0; passed < ms; passed += 100) {
      if (!isSilent) swarm.receivedBytes++;
      fallback.round(clock.now());
      await world.clock.advance(100);
    }
  };
  return { world, swarm, fallback, log, pass };
}

test("WebFallback: fetches when 1.5 × the fetch duration remains, and later if it is a neighbor's turn", async () => {
  const ours = lateWorld();
  await ours.pass(700);
  assert.equal(ours.world.asked.length, 0);
  await ours.pass(500);
  assert.ok(ours.world.asked.length > 0);
  const others = lateWorld({ random: () => 0.5 });
  others.swarm.neighbours = 10;
  await others.pass(1_200);
  assert.equal(others.world.asked.length, 0);
  await others.pass(400);
  assert.ok(others.world.asked.length > 0);
});

test("WebFallback: uses the whole lag if peers deliver nothing", async () => {
  const { world, swarm, pass } = lateWorld({ random: () => 0.99 });
  swarm.neighbours = 10;
  await pass(1_000, true);
  assert.equal(world.asked.length, 0);
  await pass(300, true);
  assert.ok(world.asked.length > 0);
});

test("WebFallback: finds each piece in time, one fetch serves many pieces, and everything is released", async () => {
  const { world, swarm, fallback, log, pass } = lateWorld();
  await pass(14_000);
  assert.deepEqual(
    swarm.given.map(({ seq }) => seq),
    PIECES.slice(0, swarm.given.length).map(({ header }) => header.value.seq),
  );
  assert.ok(swarm.given.length > 80);
  for (const { seq, chunks } of swarm.given) {
    const piece = PIECES.find(({ header }) => header.value.seq === seq)!;
    assert.equal(Buffer.compare(Buffer.concat(chunks.map(({ bytes }) => bytes)), piece.bytes), 0);
  }
  const segments = world.asked.filter(({ url }) => url.endsWith(".ts")).map(({ url }) => url);
  assert.ok(segments.length <= new Set(segments).size + 1);
  assert.deepEqual(log.warnings, []);
  assert.equal(world.asked[0]!.options.allowPrivate, false);
  for (const { options } of world.asked) {
    assert.ok(options.headTimeoutMs <= 5_000 && options.idleTimeoutMs <= 5_000);
  }
  fallback.stop();
  await world.clock.advance(0);
  assert.equal(world.clock.waiting, 0);
});

test("WebFallback: stops using a copy with other bytes, and logs that once", async () => {
  const { world, swarm, log, pass } = lateWorld();
  const { answer } = world;
  world.answer = (url, count) => {
    const given = answer(url, count);
    if (!url.endsWith(".ts")) return given;
    const bytes = Buffer.concat([...given.body!] as Uint8Array[]);
    for (let at = 100; at < bytes.length; at += 188) bytes[at]! ^= 1;
    return { body: [bytes] };
  };
  await pass(3_000);
  assert.equal(swarm.given.length, 0);
  const { length } = world.asked;
  await pass(5_000);
  assert.equal(world.asked.length, length);
  assert.equal(log.warnings.length, 1);
});

test("WebFallback: requests a failing server less and less, and another one instead", async () => {
  const { world, swarm, log, pass } = lateWorld({ urls: [URL, "http://other.example/live.m3u8"] });
  const { answer } = world;
  world.answer = (url, count) => (url === URL ? { status: 503 } : answer(url, count));
  await pass(5_000);
  assert.ok(swarm.given.length > 10);
  assert.deepEqual(world.asked.filter(({ url }) => url === URL).length, 1);
  assert.equal(log.warnings.length, 1);
  const alone = lateWorld();
  alone.world.answer = () => ({ status: 503 });
  await alone.pass(12_000);
  assert.equal(alone.world.asked.length, 3);
  assert.equal(alone.log.warnings.length, 1);
});

test("WebFallback: gives up a silent server, and releases everything", async () => {
  const { world, swarm, fallback, log, pass } = lateWorld();
  world.answer = () => ({ body: [undefined] });
  await pass(14_000);
  assert.equal(world.asked.length, 1);
  assert.equal(log.warnings.length, 0);
  await world.clock.advance(4_000);
  assert.equal(log.warnings.length, 1);
  assert.equal(swarm.given.length, 0);
  fallback.stop();
  await world.clock.advance(0);
  assert.equal(world.clock.waiting, 0);
});

test("WebFallback: limits the fetches from a manifest that refers to itself or lists wrong segments", async () => {
  const { world, swarm, pass, log } = lateWorld();
  const { answer } = world;
  const [first] = Object.keys(COPY.pages).filter((path) => path.endsWith(".ts"));
  // All segments are the same one.
  world.answer = (url, count) => answer(url.endsWith(".ts") ? `http://tv.example${first}` : url, count);
  await pass(12_000);
  assert.ok(world.asked.length < 30, `${world.asked.length}`);
  assert.ok(swarm.given.length < PIECES.length / 4);
  assert.ok(log.warnings.length <= 2);
});

test("WebFallback: reads an endless transport stream, and closes it when it is not needed", async () => {
  const { world, swarm, log, pass } = lateWorld({ urls: ["http://tv.example/live.ts"] });
  let isLeft = false;
  // What a server sends from the middle of a stream, in chunks of a socket.
  const bytes = Buffer.concat(COPY.segments);
  const half = 188 * Math.floor(bytes.length / 376);
  world.answer = () => ({
    body: (function* () {
      try {
        for (let at = half; at < bytes.length; at += 9_400) yield bytes.subarray(at, at + 9_400);
        for (;;) yield undefined;
      } finally {
        isLeft = true;
      }
    })(),
  });
  await pass(12_500);
  assert.equal(world.asked.length, 1);
  assert.ok(swarm.given.length > 30, `${swarm.given.length}`);
  assert.deepEqual(log.warnings, []);
  assert.equal(isLeft, false);
});

test("WebFallback: refuses local URLs and endless segments", async () => {
  const endless = { isEndless: true, body: COPY.segments[0]! };
  const pages = { ...COPY.pages };
  for (const path of Object.keys(pages)) if (path.endsWith(".ts")) pages[path] = endless;
  const server = await servePages(pages);
  const outbound = createOutbound(runtime, SILENT_LOG);
  try {
    const urls = [`${server.base}/live.m3u8`];
    const home = lateWorld({ urls, outbound, clock: fromNow(runtime.clock) });
    const logged = new Promise<void>((resolve) => {
      home.log.warn = () => void resolve();
    });
    await lateUntil(home, logged);
    assert.deepEqual(server.asked, []);
    const named = lateWorld({ urls, outbound, clock: fromNow(runtime.clock), allowPrivate: true });
    const told = new Promise<void>((resolve) => {
      named.log.warn = () => void resolve();
    });
    await lateUntil(named, told);
    assert.equal(named.swarm.given.length, 0);
    assert.ok(server.sentBytes() < 40 * 1024 * 1024, `${server.sentBytes()}`);
  } finally {
    await server.close();
  }
});

/** A clock that starts now, like that of the swarm: this process may have run for long. */
function fromNow({ now, unixSeconds, at }: Clock): Clock {
  const start = now();
  return {
    now: () => instant(now() - start),
    unixSeconds,
    at: (then, run) => at(after(start, then), run),
  };
}

/** Advances the time of the swarm, while the network's clock stands still, until something is logged. */
async function lateUntil(
  { pass, fallback, world }: ReturnType<typeof lateWorld>,
  told: Promise<void>,
): Promise<void> {
  let isTold = false;
  void told.then(() => {
    isTold = true;
  });
  while (!isTold) {
    if (world.clock.now() < 4_000) await pass(100);
    else await new Promise<void>((resolve) => setImmediate(resolve));
  }
  fallback.stop();
}
