import { concatBytes, latin1Bytes } from "../../src/base/bytes.ts";

const OWNER = latin1Bytes("com.apple.streaming.transportStreamTimestamp\0");

/** A frame of an ID3 tag below 128 bytes, for which both versions write the size alike. */
export function id3Frame(name: string, data: Uint8Array): Uint8Array {
  return concatBytes([latin1Bytes(name), Uint8Array.of(0, 0, 0, data.length, 0, 0), data]);
}

/** The frame with the PTS of the audio, in 90 kHz ticks (RFC 8216 3.4). */
export function timeFrame(ticks: bigint): Uint8Array {
  const time = new Uint8Array(8);
  new DataView(time.buffer).setBigUint64(0, ticks);
  return id3Frame("PRIV", concatBytes([OWNER, time]));
}

/** A tag below 128 bytes. */
export function id3Tag(version: 3 | 4, frames: Uint8Array): Uint8Array {
  return concatBytes([latin1Bytes("ID3"), Uint8Array.of(version, 0, 0, 0, 0, 0, frames.length), frames]);
}
