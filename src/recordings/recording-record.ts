import * as v from "valibot";
import type { UnixSeconds } from "../base/time.ts";
import type { RecordedProgramme } from "./recording-contract.ts";

/** Longest text of a record, in UTF-16 units. */
export const MAX_TEXT = 300;
const MAX_DESCRIPTION = 2_000;
/** Longest padding: some programmes of sports end hours late. */
export const MAX_PADDING_SECONDS = 3 * 3_600;
const NO_PADDING = { before: 0, after: 0 };
/** Longest name of a file without its id, in UTF-16 units: file systems allow 255 bytes. */
const MAX_FILE_NAME = 80;

const seconds = v.pipe(
  v.number(),
  v.safeInteger(),
  v.minValue(0),
  v.transform((value) => value as UnixSeconds),
);
const text = v.pipe(v.string(), v.maxLength(MAX_TEXT));
const paddingSeconds = v.pipe(v.number(), v.safeInteger(), v.minValue(0), v.maxValue(MAX_PADDING_SECONDS));
/** The schema of `Padding`. */
export const storedPadding = v.object({ before: paddingSeconds, after: paddingSeconds });

/** The schema of a recording in the store. Records of earlier versions have no programme, padding, series or file. */
export const storedRecording = v.object({
  id: v.pipe(v.number(), v.safeInteger(), v.minValue(1)),
  itemId: v.pipe(v.number(), v.safeInteger()),
  title: text,
  channel: text,
  start: seconds,
  stop: seconds,
  state: v.picklist(["planned", "recording", "done", "failed"]),
  problem: v.nullable(text),
  allowPrivateUrls: v.boolean(),
  programme: v.optional(
    v.nullable(
      v.object({
        ...{ start: seconds, stop: seconds, title: text, subtitle: text, episode: text },
        description: v.pipe(v.string(), v.maxLength(MAX_DESCRIPTION)),
      }),
    ),
    null,
  ),
  padding: v.optional(storedPadding, NO_PADDING),
  seriesId: v.optional(v.nullable(v.pipe(v.number(), v.safeInteger())), null),
  /** The name of the file without its ending; absent: the id. */
  file: v.optional(v.nullable(v.string()), null),
  /** The time of the first media, in UNIX milliseconds, if the file is a copy of what is kept for catch-up. */
  keptFromMs: v.optional(v.nullable(v.number()), null),
  /** True if its copy in Matroska is complete. */
  hasMatroska: v.optional(v.boolean(), false),
});
export type StoredRecording = Readonly<v.InferOutput<typeof storedRecording>>;

/** Cuts the texts of a programme to the lengths of a record. */
export function boundedProgramme(programme: RecordedProgramme): RecordedProgramme {
  const { start, stop, title, subtitle, description, episode } = programme;
  return {
    ...{ start, stop, title: title.slice(0, MAX_TEXT), subtitle: subtitle.slice(0, MAX_TEXT) },
    ...{ description: description.slice(0, MAX_DESCRIPTION), episode: episode.slice(0, MAX_TEXT) },
  };
}

/** Builds the name of a file without its ending, such as `Show - S02E05 - The end - News - 2026-11-23 20-15 [7]`, safe on every system. */
export function fileNameOf(
  { title, channel, start, programme }: Pick<StoredRecording, "title" | "channel" | "start" | "programme">,
  id: number,
): string {
  const day = new Date(1000 * start).toISOString().slice(0, 16).replace("T", " ").replace(":", "-");
  const parts = [title, programme?.episode ?? "", programme?.subtitle ?? "", channel];
  const names = [...new Set(parts.map(safeText).filter((part) => part !== ""))].join(" - ");
  return `${names.slice(0, MAX_FILE_NAME).toWellFormed().trim()} - ${day} [${id}]`;
}

/** Drops the characters that a file system or a shell treats specially, and dots at the start. */
function safeText(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Cf}/\\:*?"<>|]+/gu, " ")
    .replace(/^[.\s]+/, "")
    .replace(/\s+/g, " ")
    .trim();
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

/**
 * Writes the description file (.nfo) that Kodi, Jellyfin and Plex read beside a media file: an episode if the guide names an
 * episode or a subtitle, else a film.
 */
export function nfoOf({ title, channel, start, programme }: StoredRecording): string {
  const { subtitle = "", description = "", episode = "" } = programme ?? {};
  const isEpisode = subtitle !== "" || episode !== "";
  const [, season, number] = /^S(\d{1,4})\s*E(\d{1,5})$/i.exec(episode.trim()) ?? [];
  const element = (name: string, value: string | undefined) =>
    value === undefined || value === "" ? "" : `  <${name}>${escaped(value)}</${name}>\n`;
  const kind = isEpisode ? "episodedetails" : "movie";
  return [
    `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<${kind}>\n`,
    element("title", isEpisode ? subtitle || episode : title),
    element("showtitle", isEpisode ? title : ""),
    element("season", season && String(Number(season))),
    element("episode", number && String(Number(number))),
    element("plot", description),
    element("studio", channel),
    element("aired", new Date(1000 * start).toISOString().slice(0, 10)),
    `</${kind}>\n`,
  ].join("");
}

function escaped(text: string): string {
  const allowed = text.replace(/(?![\t\n\r])[\p{Cc}\p{Cs}\ufffe\uffff]/gu, "");
  return allowed.replace(/[&<>]/g, (character) => ENTITIES[character]!);
}
