import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import { subtitleFormat } from "../media/subtitle-file.ts";
import { type TextCue, writeCues, writeSubrip } from "../media/webvtt.ts";
import { type Access, acquire, fileAt } from "./access.ts";
import type { FilmSubtitle, ReadOptions, SubtitleLease } from "./contract.ts";
import { filmPictures, picturesAt } from "./film-pictures.ts";
import { filmSubtitles, parseSubtitleFile, subtitleAt } from "./film-subtitles.ts";
import { pictureJson } from "./picture-json.ts";
import { withDataTimeout } from "./timeouts.ts";

/** Opens the text subtitles of a file; see `Engine.subtitles`. Rejects with `SluiceError`. */
export async function openSubtitles(
  access: Access,
  infohash: Infohash,
  fileIndex: number,
  { signal, isForeign = false }: ReadOptions = {},
): Promise<SubtitleLease> {
  const { transfer, release } = await acquire(access, { kind: "infohash", infohash }, { signal, isForeign });
  const ended = new AbortController();
  try {
    const file = fileAt(transfer, fileIndex);
    const open = (stop: AbortSignal) => transfer.media(fileIndex, {}, stop);
    const media = await withDataTimeout(access, transfer, open, signal ?? ended.signal);
    const subtitles = filmSubtitles(transfer, file, media);
    const listed = (stop: AbortSignal) => filmPictures(transfer, file, media, stop);
    const pictures = await withDataTimeout(access, transfer, listed, signal ?? ended.signal);
    return {
      subtitles,
      pictures,
      async statesOf(number, seconds) {
        try {
          const loaded = (stop: AbortSignal) => picturesAt(pictures, number).states(seconds, stop);
          const states = await withDataTimeout(access, transfer, loaded, signal ?? ended.signal);
          return states.map(pictureJson);
        } finally {
          release();
        }
      },
      open(number, format, delaySeconds) {
        const one = subtitleAt(subtitles, number);
        const cues: FilmSubtitle["cues"] = async (index, stop) => {
          const loaded = (late: AbortSignal) => one.cues(index, late);
          return delayed(await withDataTimeout(access, transfer, loaded, stop ?? ended.signal), delaySeconds);
        };
        return subtitleStream({ ...one, cues }, format, release);
      },
      release,
    };
  } catch (thrown) {
    release();
    throw thrown;
  }
}

/** Converts a subtitle file to WebVTT; see `Engine.convertSubtitles`. */
export async function convertSubtitles(name: string, file: Uint8Array): Promise<string> {
  const format = subtitleFormat(name);
  if (format === undefined)
    throw new SluiceError("bad_parameter", "expected a file name that ends in .srt, .ass, .ssa or .vtt");
  const cues = await parseSubtitleFile(file, format);
  if (cues.length === 0) throw new SluiceError("unsupported_content", "the file contains no subtitles");
  return `WEBVTT\n${writeCues(cues)}`;
}

/** Moves cues in time, without those that would end before the film begins. */
function delayed(cues: readonly TextCue[], seconds: number): readonly TextCue[] {
  if (seconds === 0) return cues;
  return cues
    .map((cue) => ({
      ...cue,
      startSeconds: cue.startSeconds + seconds,
      endSeconds: cue.endSeconds + seconds,
    }))
    .filter(({ endSeconds }) => endSeconds > 0);
}

/** Writes subtitles as they are pulled; calls `ended` once, however the stream ends. */
function subtitleStream(
  { segments, cues }: Pick<FilmSubtitle, "segments" | "cues">,
  format: "vtt" | "srt",
  ended: () => void,
): ReadableStream<Uint8Array> {
  const stopped = new AbortController();
  let index = 0;
  let written = 0;
  let text = format === "vtt" ? "WEBVTT\n" : "";
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          while (text === "" && index < segments) {
            const next = await cues(index++, stopped.signal);
            text = format === "vtt" ? writeCues(next) : writeSubrip(next, written + 1);
            written += next.length;
          }
        } catch (thrown) {
          ended();
          throw thrown;
        }
        if (text !== "") controller.enqueue(encodeUtf8(text));
        text = "";
        if (index < segments) return;
        ended();
        controller.close();
      },
      cancel(reason) {
        stopped.abort(reason);
        ended();
      },
    },
    { highWaterMark: 0 },
  );
}
