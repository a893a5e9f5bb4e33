import { yieldToLoop } from "../async/event-loop.ts";
import { SluiceError } from "../base/errors.ts";
import { languageCode } from "../media/language.ts";
import { readSubtitles, type SubtitleFormat, subtitleFormat } from "../media/subtitle-file.ts";
import type { TextCue } from "../media/webvtt.ts";
import type { Media } from "../remux/contract.ts";
import type { ContentFile, Transfer } from "../transfer/contract.ts";
import type { FilmSubtitle } from "./contract.ts";

/** A larger file is not a subtitle file: two hours of karaoke take 3 MB. */
const FILE_LIMIT_BYTES = 8 * 1024 * 1024;
/** More files are not listed, because each one is a line in manifests and menus. */
export const FILES_LIMIT = 100;
/** Steps of parsing without a pause: 16 cues of the worst markup take 30 ms. */
const STEPS_AT_ONCE = 16;
/** A folder that contains only subtitles: `Subs`, `Subtitles`, `sub`. */
const SUBTITLE_FOLDER = /^(?:subs?|subtitles?)$/i;
/** English names in file names, where ISO codes are rarer. */
const NAMED_LANGUAGES: Readonly<Record<string, string>> = {
  arabic: "ara", bulgarian: "bul", chinese: "zho", croatian: "hrv", czech: "ces", danish: "dan", dutch: "nld",
  english: "eng", estonian: "est", finnish: "fin", french: "fra", german: "deu", greek: "ell", hebrew: "heb",
  hindi: "hin", hungarian: "hun", indonesian: "ind", italian: "ita", japanese: "jpn", korean: "kor", latvian: "lav",
  lithuanian: "lit", norwegian: "nor", persian: "fas", polish: "pol", portuguese: "por", romanian: "ron",
  russian: "rus", serbian: "srp", slovak: "slk", slovenian: "slv", spanish: "spa", swedish: "swe", thai: "tha",
  turkish: "tur", ukrainian: "ukr", vietnamese: "vie",
}; // biome-ignore format: a table

/**
 * Returns the text subtitles of a film: the tracks in its file, then the subtitle files of the same content that belong to it. Full
 * subtitles precede those for people with impaired hearing.
 */
export function filmSubtitles(transfer: Transfer, film: ContentFile, media: Media): FilmSubtitle[] {
  const own = [...media.tracks.entries()].flatMap(([number, track]): FilmSubtitle[] => {
    if (track.kind !== "subtitle" || track.isOpaque) return [];
    const { codec, language, title, isForced = false } = track;
    const cues: FilmSubtitle["cues"] = (index, signal) => media.cues(number, index, signal);
    return [{ number, codec, language, title, isForced, segments: media.segments.length, cues }];
  });
  const files = textFiles(transfer.files, film).map(({ file, format, label }, nth) => {
    const parsed = new ParsedFile(transfer, file, format);
    return {
      number: media.tracks.length + nth,
      codec: format,
      ...describeLabel(label),
      // A film that is not remuxed has no segments.
      segments: Math.max(1, media.segments.length),
      cues: async (index: number, signal: AbortSignal | undefined) => {
        const from = index === 0 ? Number.NEGATIVE_INFINITY : media.segments[index]!.startSeconds;
        const to = media.segments[index + 1]?.startSeconds ?? Number.POSITIVE_INFINITY;
        const cues = await parsed.get(signal);
        return cues.filter((cue) => cue.startSeconds >= from && cue.startSeconds < to);
      },
    };
  });
  return [...own, ...files];
}

function textFiles(files: readonly ContentFile[], film: ContentFile): SidecarFile<SubtitleFormat>[] {
  const small = files.filter((file) => file === film || file.isPlayable || file.size <= FILE_LIMIT_BYTES);
  return sidecarFiles(small, film, subtitleFormat);
}

/** A subtitle file, read and parsed once. */
class ParsedFile {
  readonly #transfer: Transfer;
  readonly #file: ContentFile;
  readonly #format: SubtitleFormat;
  #cues: readonly TextCue[] | undefined;

  constructor(transfer: Transfer, file: ContentFile, format: SubtitleFormat) {
    this.#transfer = transfer;
    this.#file = file;
    this.#format = format;
  }

  async get(signal: AbortSignal | undefined): Promise<readonly TextCue[]> {
    if (this.#cues) return this.#cues;
    const { index, size } = this.#file;
    const bytes = await this.#transfer.source(index).read({ start: 0, end: size }, signal ? { signal } : {});
    this.#cues ??= await parseSubtitleFile(bytes, this.#format);
    return this.#cues;
  }
}

/** Parses a subtitle file without blocking the engine. Returns the cues in order of their times. */
export async function parseSubtitleFile(bytes: Uint8Array, format: SubtitleFormat): Promise<TextCue[]> {
  const steps = readSubtitles(bytes, format);
  for (let count = 1; ; count++) {
    const next = steps.next();
    if (next.done) return next.value;
    if (count % STEPS_AT_ONCE === 0) await yieldToLoop();
  }
}

interface SidecarFile<F> {
  readonly file: ContentFile;
  readonly format: F;
  /** The part of the name that describes the subtitles, such as `en.forced`. */
  readonly label: string;
}

/**
 * Finds the subtitle files of a film. CHOICE(sidecar-subtitles): a file belongs to the film whose name its own name begins with, or whose
 * name its folder has (`Subs/<film>/2_English.srt`); other files in the film's folder or in a `Subs` folder below it belong to the film
 * if that is the only large video there. `formatOf` returns the format of a file by its name; undefined if it is not wanted.
 */
export function sidecarFiles<F>(
  files: readonly ContentFile[],
  film: ContentFile,
  formatOf: (name: string) => F | undefined,
): SidecarFile<F>[] {
  const [folder, name] = splitName(film.name);
  const stem = withoutExtension(name).toLowerCase();
  const isAlone = !files.some(
    (file) =>
      file !== film && file.isPlayable && splitName(file.name)[0] === folder && file.size >= film.size / 4,
  );
  const found: SidecarFile<F>[] = [];
  for (const file of files) {
    const format = formatOf(file.name);
    if (!format || file.size === 0) continue;
    const [place, own] = splitName(file.name);
    if (place !== folder && !place.startsWith(folder === "" ? "" : `${folder}/`)) continue;
    const below = place.slice(folder.length).split("/").filter(Boolean);
    const label = withoutExtension(own);
    if (below.length > 0 && !SUBTITLE_FOLDER.test(below[0]!)) continue;
    const isNamed = label.toLowerCase().startsWith(stem);
    const isInNamedFolder = below.some((part) => part.toLowerCase() === stem);
    if (isNamed) found.push({ file, format, label: label.slice(stem.length) });
    else if (isInNamedFolder || (isAlone && below.length < 2)) found.push({ file, format, label });
  }
  return found.slice(0, FILES_LIMIT);
}

/** Returns language, title and kind from a label such as `.en.forced` or `2_English`. */
export function describeLabel(label: string): Pick<FilmSubtitle, "language" | "title" | "isForced"> {
  const words = label.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  const languages = words.map((word) => languageOf(word.toLowerCase()));
  const at = languages.findLastIndex((code) => code !== "und");
  // Language and number are no title.
  const title = words.filter((word, index) => index !== at && !/^\d+$/.test(word)).join(" ");
  const isForced = words.some((word) => word.toLowerCase() === "forced");
  return { language: languages[at] ?? "und", title: title.slice(0, 80) || undefined, isForced };
}

/** A word of three letters is a code only if it is known: `the` is not. */
function languageOf(word: string): string {
  const named = NAMED_LANGUAGES[word];
  if (named) return named;
  const code = languageCode(word);
  return word.length === 2 || Object.values(NAMED_LANGUAGES).includes(code) ? code : "und";
}

function splitName(path: string): [folder: string, name: string] {
  const at = path.lastIndexOf("/");
  return at < 0 ? ["", path] : [path.slice(0, at), path.slice(at + 1)];
}

function withoutExtension(name: string): string {
  const dot = name.lastIndexOf(".");
  return dot <= 0 ? name : name.slice(0, dot);
}

/** Returns the subtitles with this number; throws `no_such_segment`. */
export function subtitleAt<S extends Pick<FilmSubtitle, "number">>(all: readonly S[], number: number): S {
  const found = all.find((one) => one.number === number);
  if (found) return found;
  throw new SluiceError("no_such_segment", `the film has no text subtitles ${number}`);
}
