import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes } from "../../src/base/bytes.ts";
import { adtsPrefix, parseAacConfig, setAdtsLength } from "../../src/media/aac.ts";
import { pidAt, TS_PACKET_BYTES } from "../../src/media/ts-packet.ts";
import { nextUnit } from "../../src/media/ts-units.ts";
import { packedAudioToTs } from "../../src/remux/packed-audio.ts";
import { firstTicks, interleaveTs } from "../../src/remux/ts-interleave.ts";
import { TsMuxer } from "../../src/remux/ts-muxer.ts";
import { id3Tag, timeFrame } from "../media/id3-tags.ts";
import { AAC_CONFIG, SYNTHETIC_TRACKS, syntheticPackets } from "./synthetic-ts.ts";
import { checkTs } from "./ts-checker.ts";

const only = (track: number, seconds: number, start = 0) =>
  new TsMuxer([{ ...SYNTHETIC_TRACKS[track]!, language: "und" }]).segment(
    syntheticPackets(seconds, start)
      .filter((packet) => packet.track === track)
      .map((packet) => ({ ...packet, track: 0 })),
  );

/** AAC frames with ADTS headers. */
function adts(count: number): Uint8Array {
  const prefix = adtsPrefix(parseAacConfig(AAC_CONFIG));
  const frame = concatBytes([prefix, new Uint8Array(50).fill(0x21)]);
  setAdtsLength(frame, 0, frame.length);
  return concatBytes(Array.from({ length: count }, () => frame));
}

const unitsOf = (ts: Uint8Array, pid: number) => {
  const stream = { pid, kind: "data", codec: "", language: "und" } as const;
  const found = [];
  for (let unit = nextUnit(ts, 0, stream); unit; unit = nextUnit(ts, unit.at + TS_PACKET_BYTES, stream))
    found.push(unit);
  return found;
};

test("interleaveTs: keeps both streams complete, on separate PIDs, in time order", () => {
  const [picture, sound] = [only(0, 2), only(1, 2)];
  const ts = interleaveTs(picture, [sound], "deu");
  assert.deepEqual(checkTs(ts, { isPassThrough: true, isSegment: true }).faults, []);
  const [seen, heard] = [unitsOf(ts, 0x100), unitsOf(ts, 0x1a0)];
  assert.equal(seen.length, unitsOf(picture, 0x100).length);
  assert.equal(heard.length, unitsOf(sound, 0x100).length);
  const all = [...seen, ...heard].sort((a, b) => a.at - b.at).map(({ dts }) => dts);
  assert.deepEqual(
    all,
    [...all].sort((a, b) => a - b),
  );
  assert.ok(Buffer.from(ts).includes("deu"));
});

test("interleaveTs: separate audio replaces the audio of the video segment; without separate audio it stays", () => {
  const both = new TsMuxer(SYNTHETIC_TRACKS).segment(syntheticPackets(1));
  const pids = (ts: Uint8Array) => {
    const found = new Set<number>();
    for (let at = 0; at < ts.length; at += TS_PACKET_BYTES) found.add(pidAt(ts, at));
    return [...found].sort((a, b) => a - b);
  };
  assert.deepEqual(pids(interleaveTs(both, [only(1, 1)], "und")), [0, 0x100, 0x1a0, 0x1000]);
  assert.deepEqual(pids(interleaveTs(both, [], "und")), [0, 0x100, 0x101, 0x1000]);
});

test("packedAudioToTs: starts at the time of the ID3 tag, else at the fallback time, and has every frame", () => {
  const tagged = packedAudioToTs(concatBytes([id3Tag(4, timeFrame(900_000n)), adts(20)]), 77, "und")!;
  assert.equal(firstTicks(tagged), 900_000);
  assert.deepEqual(checkTs(tagged, { isSegment: true }).faults, []);
  const [first, second] = unitsOf(tagged, 0x100);
  assert.equal(first!.pts, 900_000);
  assert.ok(!second || second.pts > 900_000);
  assert.equal(firstTicks(packedAudioToTs(adts(20), 2, "und")!), 12 * 90_000);
});

test("packedAudioToTs: returns undefined for other data, and rejects audio with too many invalid bytes", () => {
  for (const bytes of [new Uint8Array(0), new Uint8Array(500), only(0, 1), adts(1).subarray(0, 20)])
    assert.equal(packedAudioToTs(bytes, 0, "und"), undefined);
  const damaged = concatBytes([adts(2), new Uint8Array(100), adts(2)]);
  assert.ok(packedAudioToTs(damaged, 0, "und"));
  const spoilt = concatBytes([adts(2), new Uint8Array(100_000)]);
  assert.throws(() => packedAudioToTs(spoilt, 0, "und"), { code: "broken_media" });
  const header = adts(1).slice(0, 7);
  setAdtsLength(header, 0, 7);
  const empty = new Uint8Array(7 * 20_001);
  for (let at = 0; at < empty.length; at += 7) empty.set(header, at);
  assert.throws(() => packedAudioToTs(empty, 0, "und"), { code: "broken_media" });
});

test("interleaveTs: rejects segments without tables", () => {
  assert.throws(() => interleaveTs(new Uint8Array(1880), [], "und"), { code: "broken_media" });
});
