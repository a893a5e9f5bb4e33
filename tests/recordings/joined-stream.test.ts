import assert from "node:assert/strict";
import { test } from "node:test";
import { readPesHeader } from "../../src/media/pes.ts";
import { PAT_PID } from "../../src/media/psi.ts";
import { isUnitStartAt, payloadStartAt, pidAt } from "../../src/media/ts-packet.ts";
import { JoinedStream } from "../../src/recordings/joined-stream.ts";
import { renumbered } from "../parts/renumbered-ts.ts";
import { framesOf, newMuxer } from "../playback/fake-channel-source.ts";

/** The seconds `[from, to)` of a source, as a new encoder sends them. */
function media(from: number, to: number): Uint8Array[] {
  const muxer = newMuxer();
  return Array.from({ length: to - from }, (_, i) => muxer.segment(framesOf(from + i, from + i)));
}

/** Appends streams one after another, as the recorder does. */
async function recording(...streams: readonly (readonly Uint8Array[])[]): Promise<Buffer> {
  let file = Buffer.alloc(0);
  for (const [count, chunks] of streams.entries()) {
    const whole = file;
    const read = async (at: number, into: Uint8Array) => into.set(whole.subarray(at, at + into.length));
    const joined = await JoinedStream.after({ read }, whole.length, count);
    for (const chunk of chunks) file = Buffer.concat([file, joined.push(chunk)]);
  }
  return file;
}

/** The decode times of a PID in seconds, and how often its counter does not continue. */
function timesOf(file: Uint8Array, wanted: number): { times: number[]; breaks: number } {
  const times: number[] = [];
  let [breaks, last] = [0, undefined as number | undefined];
  for (let at = 0; at < file.length; at += 188) {
    if (pidAt(file, at) !== wanted) continue;
    const counter = file[at + 3]! & 15;
    if (last !== undefined && counter !== ((last + 1) & 15)) breaks++;
    last = counter;
    if (isUnitStartAt(file, at) && wanted !== PAT_PID)
      times.push(readPesHeader(file, payloadStartAt(file, at), at + 188).dts! / 90_000);
  }
  return { times, breaks };
}

test("JoinedStream: streams of other times and encoders have the duration of their media", async () => {
  const file = await recording(media(10, 13), media(95_000, 95_002), media(2, 4));
  for (const pid of [256, 257]) {
    const { times, breaks } = timesOf(file, pid);
    assert.equal(breaks, 0);
    // A unit of sound lasts up to a second.
    const seconds = times.at(-1)! - times[0]!;
    assert.ok(seconds > 5.9 && seconds < 7.1, `${pid} ${seconds}`);
    for (const [i, time] of times.entries()) assert.ok(i === 0 || time > times[i - 1]!, `${pid} ${i}`);
  }
  assert.equal(timesOf(file, PAT_PID).breaks, 0);
});

test("JoinedStream: a stream with other PIDs gets those of the file", async () => {
  const pids = new Map([
    [256, 300],
    [257, 256],
  ]);
  const file = await recording(
    media(10, 12),
    media(50, 52).map((packets) => renumbered(packets, pids)),
  );
  for (const pid of [256, 257]) assert.ok(timesOf(file, pid).times.at(-1)! > 13, String(pid));
  assert.deepEqual(timesOf(file, 300).times, []);
});

test("JoinedStream: a stream that begins without a key frame is kept from its first one on", async () => {
  const later = media(50, 53);
  // The pattern has one key frame each second.
  const cut = [later[0]!.subarray(188 * 20), ...later.slice(1)];
  const { times } = timesOf(await recording(media(0, 2), cut), 256);
  assert.ok(Math.abs(times.at(-1)! - times[0]! - 4) < 0.3);
});
