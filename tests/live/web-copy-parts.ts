import { readFile } from "node:fs/promises";
import { runtime } from "#runtime";
import { SILENT_LOG } from "../../src/base/log.ts";
import { after, type Instant } from "../../src/base/time.ts";
import { PieceSigner } from "../../src/live/broadcast/piece-signer.ts";
import type { DrivenLiveSwarm } from "../../src/live/live-setup.ts";
import { WebFallback, type WebFallbackOptions } from "../../src/live/web-fallback/web-fallback.ts";
import { PieceCutter } from "../../src/media/live-cut.ts";
import { createOutbound } from "../../src/outbound/outbound.ts";
import type { LiveOutput, LiveSetup } from "../../src/protocol/live/contract.ts";
import { LiveSwarm } from "../../src/protocol/live/live-swarm.ts";
import type { SignedHeader } from "../../src/protocol/live/messages.ts";
import type { Page } from "../engine/web-pages.ts";
import { fixture, fixturePath } from "../parts/media-fixtures.ts";
import { type LoopbackPeer, type SomeStream, someStream } from "./driver-parts.ts";

const SECONDS = 24;
const START_MS = 1_700_000_000_000;
/** Seconds of media per second, to shorten the tests. Programs see only differences of media clocks. */
export const PACE = 3;

/** A stream of 24 s as HLS made by ffmpeg, and the bytes of its segments. */
export async function hlsCopy(): Promise<{
  readonly pages: Record<string, Page>;
  readonly segments: readonly Uint8Array[];
}> {
  const bytes = await fixture("hls.mpegts");
  let list = "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:0\n";
  const pages: Record<string, Page> = {};
  const segments: Uint8Array[] = [];
  const ranged = await readFile(fixturePath("hls.m3u8"), "utf8");
  for (const [, length, at] of ranged.matchAll(/BYTERANGE:(\d+)@(\d+)/g)) {
    const segment = bytes.subarray(Number(at), Number(at) + Number(length));
    const name = `live${segments.length}.ts`;
    list += `#EXTINF:2.000000,\n${name}\n`;
    pages[`/${name}`] = { body: segment };
    segments.push(segment);
  }
  pages["/live.m3u8"] = { body: list };
  return { pages, segments };
}

/** The stream made from these bytes. */
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

/** The pieces that a source of 16 stripes makes of these bytes in twelve seconds at a constant rate. */
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

/** Sends the bytes as a source does, at three times their speed; resolves at the end. */
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

/** A swarm that withholds chunks while `keeps` returns true. */
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
      mayAdmit: (address) => swarm.mayAdmit(address),
    };
  };
}

/** A fallback with real web servers, for a driver. */
export function webFallback(stream: SomeStream, changes: Partial<WebFallbackOptions>) {
  const { clock, sha256 } = runtime;
  return {
    fallback: (swarm: ConstructorParameters<typeof WebFallback>[1]) =>
      new WebFallback(
        {
          ...{
            clock,
            sha256,
            outbound: createOutbound(runtime, SILENT_LOG),
            log: SILENT_LOG,
            random: Math.random,
          },
          ...{ info: stream.file.info, urls: [], allowPrivate: true, lagMs: 3_000 },
          ...changes,
        },
        swarm,
      ),
  };
}

/** Pieces that a viewer received with wrong bytes. */
export function wrongPieces(viewer: LoopbackPeer, made: ReadonlyMap<number, Uint8Array>): number[] {
  return viewer.sink.pieces
    .filter(({ seq, bytes }) => Buffer.compare(bytes, made.get(seq)!) !== 0)
    .map(({ seq }) => seq);
}

/** The last piece sent. */
export function lastOf(made: ReadonlyMap<number, Uint8Array>): number {
  return Math.max(...made.keys());
}
