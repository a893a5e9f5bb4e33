import { mp4Box, rewriteMoov, withEdits } from "./rewrite-mp4.ts";

/** What the engine does with a variant. */
export type Outcome =
  /** Carried in MPEG-TS: all video and audio of the file, or the streams with these numbers. */
  | { readonly ts: "all" | readonly number[] }
  /** Not in MPEG-TS; carried in fragmented MP4: the video and the first audio. */
  | { readonly fmp4: true }
  /** Players get the file itself, with this MIME type. */
  | { readonly raw: string }
  /** Refused with this message. */
  | { readonly refused: RegExp };

/** One file of the corpus. */
export interface Variant {
  /** The file name; its extension selects ffmpeg's muxer. */
  readonly name: string;
  /** Arguments of ffmpeg after the picture (input 0) and the tone (input 1). */
  readonly args: string;
  readonly outcome: Outcome;
  /** Changes the bytes that ffmpeg wrote. */
  readonly change?: (bytes: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>;
  /** True if only the beginning of the file is left: the output may end early. */
  readonly isCut?: boolean;
}

/** An edit that plays `seconds` of the media from a time on. */
const cut = (fromSeconds: number, seconds: number) => ({ fromSeconds, seconds });

const H264 = "-c:v libx264 -preset ultrafast -threads 1 -g 25 -pix_fmt yuv420p";
const B_FRAMES = `${H264} -bf 3 -b_strategy 0`;
const HEVC = "-c:v libx265 -preset ultrafast -pix_fmt yuv420p -x265-params log-level=none:pools=1:keyint=25";
const AV1 = "-c:v libaom-av1 -cpu-used 8 -usage realtime -g 25";
const VP9 = "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 25";
const AAC = "-c:a aac -b:a 48k";
const TWO = "-map 0:v -map 1:a -map 1:a";
const FRAGMENTS = "-movflags +frag_keyframe+empty_moov+default_base_moof";
const SILENT = "-map 0:v";
const SOUND = "-map 1:a";
/** 1.7 s before the 33-bit clock of a transport stream wraps. */
const BEFORE_WRAP = "-output_ts_offset 95440";

const ALL = { ts: "all" } as const;
const PICTURE = { ts: [0] } as const;
const FMP4 = { fmp4: true } as const;

function variant(name: string, args: string, outcome: Outcome = ALL, more: Partial<Variant> = {}): Variant {
  return { name, args, outcome, ...more };
}

/** Codecs, containers and oddities; see docs/design/remux.md. */
export const VARIANTS: readonly Variant[] = [
  // MP4: structure
  variant("front.mp4", `${B_FRAMES} ${AAC} -movflags +faststart`),
  variant("end.mp4", `${B_FRAMES} ${AAC}`),
  variant("co64.mp4", `${B_FRAMES} ${AAC}`, ALL, { change: withLongOffsets }),
  variant("no-b-frames.mp4", `${H264} -bf 0 ${AAC}`),
  variant("pyramid.mp4", `${H264} -bf 8 -b_strategy 0 -x264-params b-pyramid=normal ${AAC}`),
  variant("headers-in-band.mp4", `${B_FRAMES} -x264-params aud=1:repeat-headers=1 ${AAC}`),
  variant("headers-in-band-hevc.mp4", `${HEVC}:aud=1:repeat-headers=1:bframes=3 -tag:v hev1 ${AAC}`),
  variant("open-gop.mp4", `${B_FRAMES} -x264-params open-gop=1 ${AAC}`),
  variant("one-gop.mp4", `${B_FRAMES} -g 250 ${AAC}`),
  variant("intra.mp4", `${H264} -g 1 ${AAC}`),
  variant("interlaced.mp4", `-s 96x64 ${B_FRAMES} -flags +ilme+ildct ${AAC}`),
  variant(
    "vfr.mp4",
    `-vf setpts=if(mod(N\\,3)\\,N\\,N+0.4)/25/TB -fps_mode vfr ${B_FRAMES} -video_track_timescale 90000 ${AAC}`,
  ),
  variant("film-rate.mp4", `-r 24000/1001 ${B_FRAMES} ${AAC}`),
  variant("60-fps.mp4", `-r 60 ${B_FRAMES} ${AAC}`),
  variant("edit-late-audio.mp4", `-af adelay=700,asetpts=PTS+0.7/TB ${B_FRAMES} ${AAC}`),
  variant("edit-late-video.mp4", `-vf setpts=PTS+0.5/TB ${B_FRAMES} ${AAC}`),
  variant(
    "edits-with-a-cut.mp4",
    `${B_FRAMES} ${AAC}`,
    { raw: "video/mp4" },
    { change: (bytes) => withEdits(bytes, [cut(0, 2), cut(3, 2)]) },
  ),
  variant("no-edit-list.mp4", `${B_FRAMES} ${AAC} -use_editlist 0 -avoid_negative_ts make_zero`),
  variant("negative-offsets.mp4", `${B_FRAMES} ${AAC} -movflags +negative_cts_offsets`),
  variant("hours.mp4", `${B_FRAMES} ${AAC} -output_ts_offset 7200`),
  variant("fragments.mp4", `${B_FRAMES} ${AAC} ${FRAGMENTS}`),
  variant("fragments-late-head.mp4", `${B_FRAMES} ${AAC} ${FRAGMENTS}+delay_moov`),
  variant(
    "fragments-sidx.mp4",
    `${B_FRAMES} ${AAC} -movflags +dash+global_sidx+frag_keyframe+delay_moov+skip_trailer`,
  ),
  variant("fragments-no-index.mp4", `${B_FRAMES} ${AAC} ${FRAGMENTS}+skip_trailer`),
  variant(
    "fragments-no-offset.mp4",
    `${B_FRAMES} ${AAC} -movflags +frag_keyframe+empty_moov+omit_tfhd_offset`,
  ),
  variant("fragments-of-half-a-second.mp4", `${B_FRAMES} ${AAC} ${FRAGMENTS} -frag_duration 500000`),
  variant("timecode.mov", `${B_FRAMES} ${AAC} -timecode 01:00:00:00`, { ts: [0, 1] }),
  variant("itunes.m4v", `${B_FRAMES} ${AAC} -brand M4V`),
  variant("subtitle.mp4", `-map 0:v -map 1:a -map 2:s ${B_FRAMES} ${AAC} -c:s mov_text`, { ts: [0, 1] }),
  // MP4: codecs
  variant("mp3.mp4", `${B_FRAMES} -c:a libmp3lame`),
  variant("ac3.mp4", `${B_FRAMES} -c:a ac3`),
  variant("eac3.mp4", `${B_FRAMES} -c:a eac3`),
  variant("dts.mp4", `${B_FRAMES} -c:a dca -strict -2`),
  variant("opus.mp4", `${B_FRAMES} -c:a libopus`, PICTURE),
  variant("flac.mp4", `${B_FRAMES} -c:a flac -strict -2`, PICTURE),
  variant("alac.mov", `${B_FRAMES} -c:a alac`, PICTURE),
  variant("pcm.mov", `${B_FRAMES} -c:a pcm_s16le`, PICTURE),
  variant("no-audio.mp4", `${SILENT} ${B_FRAMES}`),
  variant(
    "two-audio.mp4",
    `${TWO} ${B_FRAMES} ${AAC} -metadata:s:a:0 language=eng -metadata:s:a:1 language=ger`,
  ),
  variant("aac-and-opus.mp4", `${TWO} ${B_FRAMES} -c:a:0 libopus -c:a:1 aac`, { ts: [0, 2] }),
  variant("hevc-hvc1.mp4", `${HEVC}:bframes=3:open-gop=0 -tag:v hvc1 ${AAC}`),
  variant("hevc-hev1.mp4", `${HEVC}:bframes=3:open-gop=0 -tag:v hev1 ${AAC}`),
  variant("hevc-open-gop.mp4", `${HEVC}:bframes=3 -tag:v hvc1 ${AAC}`),
  variant("av1.mp4", `${AV1} ${AAC}`, FMP4),
  variant("vp9.mp4", `${VP9} ${AAC}`, FMP4),
  variant("mpeg4.mp4", `-c:v mpeg4 ${AAC}`, { refused: /MPEG-4 Part 2 video .* request the raw file/ }),
  variant("mjpeg.mov", `-c:v mjpeg ${AAC}`, { refused: /video .* request the raw file/ }),
  // Matroska
  variant("plain.mkv", `${B_FRAMES} ${AAC}`),
  variant("cues-at-front.mkv", `${B_FRAMES} ${AAC} -reserve_index_space 4096`),
  variant("streamed.mkv", `${B_FRAMES} ${AAC} -live 1 -f matroska`),
  variant("small-clusters.mkv", `${B_FRAMES} ${AAC} -cluster_time_limit 200`),
  variant("hours.mkv", `${B_FRAMES} ${AAC} -output_ts_offset 7200`),
  variant("vfr.mkv", `-vf setpts=if(mod(N\\,3)\\,N\\,N+0.4)/25/TB -fps_mode vfr ${B_FRAMES} ${AAC}`),
  variant("hevc-open-gop.mkv", `${HEVC}:bframes=3 ${AAC}`),
  variant("dts.mkv", `${B_FRAMES} -c:a dca -strict -2`),
  variant("mp2.mkv", `${B_FRAMES} -c:a mp2`),
  variant("truehd.mkv", `${B_FRAMES} -c:a truehd -strict -2`, PICTURE),
  variant("vorbis.mkv", `${B_FRAMES} -c:a libvorbis`, PICTURE),
  variant("three-audio.mkv", `${TWO} -map 1:a ${B_FRAMES} -c:a:0 ac3 -c:a:1 flac -c:a:2 aac`, {
    ts: [0, 1, 3],
  }),
  variant("subtitle.mkv", `-map 0:v -map 1:a -map 2:s ${B_FRAMES} ${AAC} -c:s srt`, { ts: [0, 1] }),
  variant("av1.webm", `${AV1} -c:a libopus`, FMP4),
  variant("vp9.webm", `${VP9} -c:a libopus`, FMP4),
  variant("vp8.webm", "-c:v libvpx -c:a libvorbis", { refused: /VP8 video .* request the raw file/ }),
  variant("mpeg2.mkv", "-c:v mpeg2video -c:a ac3", { refused: /MPEG-2 video .* request the raw file/ }),
  variant("cut.mkv", `${B_FRAMES} ${AAC} -reserve_index_space 4096`, ALL, {
    change: firstTwoThirds,
    isCut: true,
  }),
  // MPEG-TS
  variant("plain.ts", `${B_FRAMES} ${AAC}`),
  variant("ac3-dvb.ts", `${B_FRAMES} -c:a ac3 -mpegts_flags +system_b`),
  variant("mp2.ts", `${B_FRAMES} -c:a mp2`),
  variant("dts.ts", `${B_FRAMES} -c:a dca -strict -2`),
  variant("mpeg2.ts", "-c:v mpeg2video -bf 2 -g 25 -c:a mp2"),
  variant("hevc.ts", `${HEVC}:bframes=3 ${AAC}`),
  variant("latm.ts", `${B_FRAMES} ${AAC} -mpegts_flags +latm`),
  variant("two-audio.ts", `${TWO} ${B_FRAMES} -c:a:0 aac -c:a:1 ac3`),
  variant("sound.ts", `${SOUND} ${AAC}`),
  variant("192-byte-packets.m2ts", `${B_FRAMES} -c:a ac3 -mpegts_m2ts_mode 1`),
  variant("hours.ts", `${B_FRAMES} ${AAC} -output_ts_offset 36000`),
  variant("clock-wrap.ts", `${B_FRAMES} ${AAC} ${BEFORE_WRAP}`),
  variant("garbage-before.ts", `${B_FRAMES} ${AAC}`, ALL, { change: afterGarbage }),
  variant("cut.ts", `${B_FRAMES} ${AAC}`, ALL, { change: firstTwoThirds, isCut: true }),
  // Played as the file itself
  variant("music.mp3", `${SOUND} -c:a libmp3lame`, { raw: "audio/mpeg" }),
  variant("music.flac", SOUND, { raw: "audio/flac" }),
  variant("music.ogg", `${SOUND} -c:a libvorbis`, { raw: "audio/ogg" }),
  variant("music.opus", `${SOUND} -c:a libopus`, { raw: "audio/ogg" }),
  variant("music.m4a", `${SOUND} ${AAC}`, { raw: "audio/mp4" }),
  variant("music.wav", SOUND, { raw: "audio/wav" }),
  variant("music.aac", `${SOUND} ${AAC}`, { raw: "audio/aac" }),
  variant("music.wma", SOUND, { raw: "audio/x-ms-wma" }),
  variant("film.avi", "-c:v mpeg4 -c:a libmp3lame", { raw: "video/x-msvideo" }),
  variant("film.flv", "-c:v flv -c:a libmp3lame -ar 44100", { raw: "video/x-flv" }),
  variant("film.wmv", "-c:v wmv2 -c:a wmav2", { raw: "video/x-ms-wmv" }),
  variant("film.mpg", "-c:v mpeg2video -c:a mp2", { raw: "video/mpeg" }),
  // Refused
  variant(
    "cut-before-index.mp4",
    `${B_FRAMES} ${AAC}`,
    { refused: /the MP4 file has no moov box/ },
    { change: firstTwoThirds },
  ),
  variant("text.nut", `${B_FRAMES} ${AAC}`, { refused: /this media format is not supported/ }),
];

function firstTwoThirds(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  return bytes.slice(0, Math.floor((bytes.length * 2) / 3));
}

function afterGarbage(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(100 + bytes.length).fill(0x11);
  out.set(bytes, 100);
  return out;
}

/** Replaces `stco` by `co64` (ISO 14496-12 8.7.5). */
function withLongOffsets(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  return rewriteMoov(bytes, (type, content) =>
    type === "stco" ? mp4Box("co64", [longOffsets(content)]) : undefined,
  );
}

function longOffsets(stco: DataView): Uint8Array {
  const count = stco.getUint32(4);
  const long = new DataView(new ArrayBuffer(8 + 8 * count));
  long.setUint32(4, count);
  for (let i = 0; i < count; i++) long.setBigUint64(8 + 8 * i, BigInt(stco.getUint32(8 + 4 * i)));
  return new Uint8Array(long.buffer);
}
