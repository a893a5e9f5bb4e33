import { mkdir, readFile } from "node:fs/promises";
import { runtime } from "#runtime";
import { after, type Instant } from "../../../src/base/time.ts";
import type { DrivenLiveSwarm } from "../../../src/engine/live/live-driver.ts";
import { PieceSigner } from "../../../src/engine/live/piece-signer.ts";
import { WebFallback, type WebFallbackParts } from "../../../src/engine/live/web-fallback.ts";
import { PieceCutter } from "../../../src/media/live-cut.ts";
import { createOutbound } from "../../../src/outbound/outbound.ts";
import type { LiveOutput, LiveSetup } from "../../../src/swarm/live/contract.ts";
import { LiveSwarm } from "../../../src/swarm/live/live-swarm.ts";
import type { SignedHeader } from "../../../src/swarm/live/messages.ts";
import { run } from "../../parts/process.ts";
import { tempFolder } from "../../parts/torrent-files.ts";
import { H264, lavfi, makeMedia } from "../../remux/make-media.ts";
import { SILENT } from "../fake-house.ts";
import type { Page } from "../web-pages.ts";
import { type LoopbackPeer, type SomeStream, someStream } from "./driver-parts.ts";

const SECONDS = 24;
const START_MS = 1_700_000_000_000;
/** So many seconds of media go by in one: tests end sooner, and no program sees media clocks but by their differences. */
export const PACE = 3;

/** A stream of 24 s as ffmpeg writes it as HLS, with the bytes of its segments in order. */
export async function hlsCopy(): Promise<{
  readonly pages: Record<string, Page>;
  readonly segments: readonly Uint8Array[];
}> {
  const film = await makeMedia("web-copy.ts", [...lavfi(SECONDS), ...H264, "-g", "25", "-c:a", "aac"]);
  const folder = await tempFolder("web-copy");
  try {
    await mkdir(folder.path, { recursive: true });
    const hls = ["-f", "hls", "-hls_time", "2", "-hls_list_size", "0", folder.file("live.m3u8")];
    await run("ffmpeg", ["-v", "error", "-i", film, "-c", "copy", ...hls]);
    const list = (await readFile(folder.file("live.m3u8"), "utf8")).replace("#EXT-X-ENDLIST\n", "");
    const names = list.split("\n").filter((line) => line.endsWith(".ts"));
    const segments = await Promise.all(names.map((name) => readFile(folder.file(name))));
    const pages: Record<string, Page> = { "/live.m3u8": { body: list } };
    for (const [i, name] of names.entries()) pages[`/${name}`] = { body: segments[i]! };
    return { pages, segments };
  } finally {
    await folder.remove();
  }
}

/** The stream that a source makes of such bytes. */
export function copiedStream(): SomeStream {
  return someStream({
    stripeCount: 4,
    pieceMs: 125,
    bytesPerSecond: 100_000 * PACE,
    maxPieceBytes: 512 * 1024,
  });
}

/** A piece as its source made it. */
export interface Piece {
  readonly header: SignedHeader;
  readonly bytes: Uint8Array;
}

/** What a source of 16 stripes signs that gets these bytes at an even pace within twelve seconds. */
export function signedPieces(bytes: Uint8Array, runPackets = 7): Piece[] {
  const { key, file } = someStream({ stripeCount: 16, pieceMs: 125 });
  const cutter = new PieceCutter({ pieceMs: 125, maxPieceBytes: 256 * 1024, segmentMs: 2_000 });
  const start = { epoch: 1, leastSeq: 0, leastTimestampMs: 0, previousHash: new Uint8Array(20) };
  const signer = new PieceSigner(
    { info: file.info, infohash: file.infohash, sign: key.sign, sha256: runtime.sha256 },
    { ...start, isContinued: false } as never,
  );
  const made = [];
  const run = 188 * runPackets;
  for (let at = 0; at < bytes.length; at += run) {
    const nowMs = START_MS + Math.floor((12_000 * at) / bytes.length);
    for (let wake = cutter.nextWakeMs(); wake !== undefined && wake <= nowMs; wake = cutter.nextWakeMs())
      made.push(...cutter.wake(wake));
    made.push(...cutter.push(bytes.subarray(at, at + run), nowMs));
  }
  made.push(...cutter.finish(START_MS + 12_000));
  return made.map((piece) => ({ header: signer.sign(piece).header, bytes: piece.bytes }));
}

/** Sends the bytes out as a source does, three seconds of media in one; resolves when all is out. */
export function broadcastBytes(source: LoopbackPeer, stream: SomeStream, bytes: Uint8Array) {
  const { key, file } = stream;
  const cutter = new PieceCutter({ pieceMs: 125, maxPieceBytes: 512 * 1024, segmentMs: 1_000 });
  const first = {
    epoch: 1,
    leastSeq: 0,
    leastTimestampMs: 0,
    previousHash: new Uint8Array(20),
    isContinued: false,
  };
  const signer = new PieceSigner(
    { info: file.info, infohash: file.infohash, sign: key.sign, sha256: runtime.sha256 },
    first as never,
  );
  const made = new Map<number, Uint8Array>();
  const { clock } = runtime;
  const startedAt = clock.now();
  let at = 0;
  let cancel = () => {};
  const done = new Promise<void>((resolve) => {
    const next = () => {
      const due = Math.min(
        bytes.length,
        188 * Math.floor(((PACE * (clock.now() - startedAt)) / 1000 / SECONDS) * (bytes.length / 188)),
      );
      const pieces = cutter.push(bytes.subarray(at, due), Date.now());
      at = due;
      if (at === bytes.length) pieces.push(...cutter.finish(Date.now()));
      for (const piece of pieces) {
        const signed = signer.sign(piece);
        made.set(signed.header.value.seq, piece.bytes);
        source.driver.produce(signed.header, signed.chunks);
      }
      if (at === bytes.length) return resolve();
      cancel = clock.at(after(clock.now(), 20), next);
    };
    next();
  });
  return { made, done, stop: () => cancel() };
}

/** A swarm that keeps chunks to itself while it is told so. */
export function stingySwarm(keeps: (stripe: number) => boolean) {
  return (setup: LiveSetup, now: Instant): DrivenLiveSwarm => {
    const swarm = new LiveSwarm(setup, now);
    const poll = (): LiveOutput | undefined => {
      for (;;) {
        const output = swarm.poll();
        if (output?.kind === "send" && output.message.kind === "chunk" && keeps(output.message.stripe))
          continue;
        return output;
      }
    };
    return {
      poll,
      handle: (input, at) => swarm.handle(input, at),
      wake: (at) => swarm.wake(at),
      nextWake: () => swarm.nextWake(),
      figures: (at) => swarm.figures(at),
      late: (at) => swarm.late(at),
    };
  };
}

/** A fallback to real web servers, for a driver. */
export function webFallback(stream: SomeStream, changes: Partial<WebFallbackParts>) {
  const { clock, sha256 } = runtime;
  return {
    fallback: (swarm: ConstructorParameters<typeof WebFallback>[1]) =>
      new WebFallback(
        {
          ...{ clock, sha256, outbound: createOutbound(runtime, SILENT), log: SILENT, random: Math.random },
          ...{ info: stream.file.info, urls: [], allowPrivate: true, lagMs: 3_000 },
          ...changes,
        },
        swarm,
      ),
  };
}

/** Which pieces a viewer got otherwise than they were made. */
export function wrongPieces(viewer: LoopbackPeer, made: ReadonlyMap<number, Uint8Array>): number[] {
  return viewer.sink.pieces
    .filter(({ seq, bytes }) => Buffer.compare(bytes, made.get(seq)!) !== 0)
    .map(({ seq }) => seq);
}

/** The last piece that is out. */
export function lastOf(made: ReadonlyMap<number, Uint8Array>): number {
  return Math.max(...made.keys());
}
