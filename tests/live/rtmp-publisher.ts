import { concatBytes, writeU32 } from "../../src/base/bytes.ts";
import { annexBNals } from "../../src/media/nal.ts";
import { PATTERN_SOUND_CONFIG } from "../../src/media/test-pattern/sound.ts";
import { TestPattern } from "../../src/media/test-pattern/test-pattern.ts";
import { type AmfValue, decodeAmf, encodeAmf } from "../../src/wire/rtmp/amf0.ts";
import { encodeRtmpMessage, RTMP_TYPE, RtmpChunkReader } from "../../src/wire/rtmp/chunks.ts";

/** A message as a program publishes it. */
export interface Published {
  readonly type: number;
  readonly timestamp: number;
  readonly payload: Uint8Array;
}

/** Everything before the media: handshake, `connect`, `createStream`, `publish`. */
export function publishRequest(app: string, key: string): Uint8Array {
  const command = (...values: AmfValue[]) => message(RTMP_TYPE.command, 0, encodeAmf(values));
  return concatBytes([
    new Uint8Array(1 + 2 * 1536).fill(3, 0, 1),
    command("connect", 1, { app, type: "nonprivate", tcUrl: `rtmp://localhost/${app}` }),
    command("releaseStream", 2, null, key),
    command("createStream", 3, null),
    command("publish", 4, null, key, "live"),
  ]);
}

/** One message in chunks of 128 bytes. */
export function message(type: number, timestamp: number, payload: Uint8Array): Uint8Array {
  return encodeRtmpMessage({ type, streamId: 1, timestamp, payload }, 4, 128);
}

/** The codes and names of the answers to a publisher. */
export function answersIn(received: readonly Uint8Array[]): string[] {
  const chunks = new RtmpChunkReader(65_536);
  return chunks.push(concatBytes(received).subarray(1 + 2 * 1536)).flatMap(({ type, payload }) => {
    if (type !== RTMP_TYPE.command) return [];
    const [name, , , details] = decodeAmf(payload);
    const { code, description } = (details ?? {}) as Record<string, AmfValue>;
    return [
      [name, code, code === "NetStream.Publish.BadName" ? description : undefined].filter(Boolean).join(" "),
    ];
  });
}

/** Seconds of the test pattern as a program publishes them, sorted by time, with the timestamps from `firstMs` on. */
export function patternMessages(seconds: number, firstMs: number): Published[] {
  const pattern = new TestPattern();
  const start = 1_700_000_000;
  const frames = Array.from({ length: seconds }, (_, i) => pattern.second(start + i)).flat();
  const units = (data: Uint8Array) =>
    annexBNals(data).map(({ start: from, end }) => data.subarray(from, end));
  const sets = units(frames[0]!.data).filter((unit) => [7, 8].includes(unit[0]! & 31));
  const media = frames.map(({ track, ptsSeconds, isKey, data }) => {
    const timestamp = (firstMs + Math.round(1000 * (ptsSeconds - start))) >>> 0;
    if (track === "audio")
      return { type: 8, timestamp, payload: concatBytes([Uint8Array.of(0xaf, 1), data]) };
    const nals = units(data).filter((unit) => (unit[0]! & 31) <= 5);
    const head = Uint8Array.of(isKey ? 0x17 : 0x27, 1, 0, 0, 0);
    return {
      type: 9,
      timestamp,
      payload: concatBytes([head, ...nals.flatMap((nal) => [lengthOf(nal), nal])]),
    };
  });
  const at = (each: Published) => (each.timestamp - firstMs) | 0;
  return [
    { type: 9, timestamp: firstMs, payload: concatBytes([Uint8Array.of(0x17, 0, 0, 0, 0), avcConfig(sets)]) },
    { type: 8, timestamp: firstMs, payload: concatBytes([Uint8Array.of(0xaf, 0), PATTERN_SOUND_CONFIG]) },
    ...media.sort((a, b) => at(a) - at(b)),
  ];
}

function avcConfig([sps, pps]: readonly Uint8Array[]): Uint8Array {
  const size = (unit: Uint8Array) => Uint8Array.of(unit.length >> 8, unit.length & 255);
  return concatBytes([
    Uint8Array.of(1, sps![1]!, sps![2]!, sps![3]!, 0xff, 0xe1),
    size(sps!),
    sps!,
    Uint8Array.of(1),
    size(pps!),
    pps!,
  ]);
}

function lengthOf(unit: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(4);
  writeU32(bytes, 0, unit.length);
  return bytes;
}
