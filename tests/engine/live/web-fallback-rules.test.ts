import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { after, instant } from "../../../src/base/time.ts";
import { WebFallback, type WebFallbackParts } from "../../../src/engine/live/web-fallback.ts";
import { createOutbound } from "../../../src/outbound/outbound.ts";
import type { Clock } from "../../../src/runtime/contract.ts";
import type { FetchedChunks, LateMedia, MissingPiece } from "../../../src/swarm/live/fetched.ts";
import { hasFfmpeg } from "../../remux/make-media.ts";
import { SILENT } from "../fake-house.ts";
import { keepingLog } from "../parts.ts";
import { servePages } from "../web-pages.ts";
import { someStream } from "./driver-parts.ts";
import { FakeWorld } from "./source-parts.ts";
import { hlsCopy, type Piece, signedPieces } from "./web-copy-parts.ts";

const WITH = { skip: (await hasFfmpeg()) ? false : "ffmpeg is not installed", timeout: 60_000 };
const LAG_MS = 3_000;
const URL = "http://tv.example/live.m3u8";
const COPY = (await hasFfmpeg()) ? await hlsCopy() : { pages: {}, segments: [] };
const PIECES = signedPieces(Buffer.concat(COPY.segments));

/** A swarm that never brings more than headers: one piece each 125 ms. */
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

/** A fallback whose clock and web the test holds. */
function lateWorld(changes: Partial<WebFallbackParts> = {}) {
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
  /** Lets time pass; peers give something all the while unless they are silent. */
  const pass = async (ms: number, isSilent = false) => {
    for (let passed = 0; passed < ms; passed += 100) {
      if (!isSilent) swarm.receivedBytes++;
      fallback.round(clock.now());
      await world.clock.advance(100);
    }
  };
  return { world, swarm, fallback, log, pass };
}

test(
  "WebFallback: the web is asked when 1.5 times a fetch is left of a piece, and later where it is another's turn",
  WITH,
  async () => {
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
  },
);

test("WebFallback: where peers give nothing at all, a whole lag is used", WITH, async () => {
  const { world, swarm, pass } = lateWorld({ random: () => 0.99 });
  swarm.neighbours = 10;
  await pass(1_000, true);
  assert.equal(world.asked.length, 0);
  await pass(300, true);
  assert.ok(world.asked.length > 0);
});

test(
  "WebFallback: each piece is found before it is late, one fetch serves many, and all is let go in the end",
  WITH,
  async () => {
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
  },
);

test("WebFallback: a copy with other bytes is given up, which is told once", WITH, async () => {
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

test("WebFallback: a server that fails is asked less and less, another one in its place", WITH, async () => {
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

test(
  "WebFallback: a server that says nothing is left after a while, and nothing of it stays",
  WITH,
  async () => {
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
  },
);

test(
  "WebFallback: one that leads to itself, or lists what it has not, costs a few fetches",
  WITH,
  async () => {
    const { world, swarm, pass, log } = lateWorld();
    const { answer } = world;
    const [first] = Object.keys(COPY.pages).filter((path) => path.endsWith(".ts"));
    // Every segment is the same one.
    world.answer = (url, count) => answer(url.endsWith(".ts") ? `http://tv.example${first}` : url, count);
    await pass(12_000);
    assert.ok(world.asked.length < 30, `${world.asked.length}`);
    assert.ok(swarm.given.length < PIECES.length / 4);
    assert.ok(log.warnings.length <= 2);
  },
);

test(
  "WebFallback: a copy may be a transport stream without end, which is left when it is of no use any more",
  WITH,
  async () => {
    const { world, swarm, log, pass } = lateWorld({ urls: ["http://tv.example/live.ts"] });
    let isLeft = false;
    // What a server sends to one who comes in the middle, in parts as of a socket.
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
  },
);

test("WebFallback: what may not be asked, or has no end, is not", WITH, async () => {
  const endless = { isEndless: true, body: COPY.segments[0]! };
  const pages = { ...COPY.pages };
  for (const path of Object.keys(pages)) if (path.endsWith(".ts")) pages[path] = endless;
  const server = await servePages(pages);
  const outbound = createOutbound(runtime, SILENT);
  try {
    const urls = [`${server.base}/live.m3u8`];
    const home = lateWorld({ urls, outbound, clock: fromNow(runtime.clock) });
    const heard = new Promise<void>((resolve) => {
      home.log.warn = () => void resolve();
    });
    await lateUntil(home, heard);
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

/** A clock that begins now, as that of the swarm does: this process may have run for long. */
function fromNow({ now, unixSeconds, at }: Clock): Clock {
  const start = now();
  return {
    now: () => instant(now() - start),
    unixSeconds,
    at: (then, run) => at(after(start, then), run),
  };
}

/** Lets the time of the swarm pass, and that of the network stand still in between, until something is told. */
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
