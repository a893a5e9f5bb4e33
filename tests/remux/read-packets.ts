import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { ALL_FORMATS, BufferSource, EncodedPacketSink, Input } from "mediabunny";
import { readMpegAudioHeader } from "../../src/media/audio-headers.ts";
import { reorderTicks } from "../../src/media/timestamps.ts";
import type { TsCodec, TsMuxPacket, TsMuxTrack } from "../../src/remux/ts-mux-input.ts";

const CODECS: Record<string, TsCodec> = {
  avc: "h264",
  hevc: "hevc",
  aac: "aac",
  mp3: "mp3",
  ac3: "ac3",
  eac3: "eac3",
};

/** Reads all tracks and packets of a file in the form that the transport stream writer takes. */
export async function readPackets(path: string): Promise<{ tracks: TsMuxTrack[]; packets: TsMuxPacket[] }> {
  const input = new Input({ formats: ALL_FORMATS, source: new BufferSource(await readFile(path)) });
  const tracks: TsMuxTrack[] = [];
  const packets: TsMuxPacket[] = [];
  for (const [index, track] of (await input.getTracks()).entries()) {
    const own: TsMuxPacket[] = [];
    for await (const packet of new EncodedPacketSink(track).packets()) {
      own.push({
        track: index,
        ptsSeconds: packet.timestamp,
        durationSeconds: packet.duration,
        isKey: packet.type === "key",
        data: packet.data,
      });
    }
    assert(track.isVideoTrack() || track.isAudioTrack());
    const config = (await track.getDecoderConfig())?.description as Uint8Array | undefined;
    let codec = CODECS[track.codec!]!;
    if (codec === "mp3" && readMpegAudioHeader(own[0]!.data, 0)?.layer === 2) codec = "mp2";
    tracks.push({
      codec,
      language: track.languageCode,
      ...(config && { config: new Uint8Array(config) }),
      ...(track.isVideoTrack() && { reorderSeconds: reorderTicks(own.map((packet) => packet.ptsSeconds)) }),
    });
    packets.push(...own);
  }
  input.dispose();
  return { tracks, packets };
}

/** Cuts packets at key frames at least `seconds` apart (by time if there is no video). */
export function cutPackets(
  tracks: readonly TsMuxTrack[],
  packets: readonly TsMuxPacket[],
  seconds: number,
): TsMuxPacket[][] {
  const video = tracks.findIndex((track) => track.codec === "h264" || track.codec === "hevc");
  const borders = [Number.NEGATIVE_INFINITY];
  let last = 0;
  for (const packet of packets) {
    if (packet.track !== Math.max(0, video) || !packet.isKey || packet.ptsSeconds - last < seconds) continue;
    borders.push(packet.ptsSeconds);
    last = packet.ptsSeconds;
  }
  const segments: TsMuxPacket[][] = borders.map(() => []);
  let inVideo = 0;
  for (const packet of packets) {
    if (packet.track === video) {
      if (packet.isKey && packet.ptsSeconds === borders[inVideo + 1]) inVideo++;
      segments[inVideo]!.push(packet);
    } else {
      segments[borders.findLastIndex((border) => packet.ptsSeconds >= border)]!.push(packet);
    }
  }
  return segments;
}
