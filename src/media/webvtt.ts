/** A subtitle cue. */
export interface TextCue {
  readonly startSeconds: number;
  readonly endSeconds: number;
  /** WebVTT cue text: escaped, lines separated by single line feeds. */
  readonly text: string;
  /** Shown at the top of the picture. */
  readonly isTop?: boolean;
}

/**
 * Writes cues as a WebVTT segment of HLS (RFC 8216 3.5). `offsetTicks` is the media time (90 kHz) of cue time `localSeconds`.
 */
export function writeWebvtt(cues: readonly TextCue[], offsetTicks: number, localSeconds = 0): string {
  return `WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:${offsetTicks},LOCAL:${webvttTime(localSeconds)}\n${writeCues(cues)}`;
}

/** Writes cues as the body of a WebVTT file, each after an empty line. */
export function writeCues(cues: readonly TextCue[]): string {
  return cues
    .map(
      ({ startSeconds, endSeconds, text, isTop }) =>
        `\n${webvttTime(startSeconds)} --> ${webvttTime(endSeconds)}${isTop ? " line:0" : ""}\n${text}\n`,
    )
    .join("");
}

/** Formats a time as `01:02:03.004`; negative times become zero. */
function webvttTime(seconds: number): string {
  const ms = Math.max(0, Math.round(seconds * 1000));
  const pad = (value: number, length: number) => String(value).padStart(length, "0");
  const [hours, minutes] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60];
  return `${pad(hours, 2)}:${pad(minutes, 2)}:${pad(Math.floor(ms / 1000) % 60, 2)}.${pad(ms % 1000, 3)}`;
}

/** Converts plain text to cue text: escapes markup and removes empty lines, which would end the cue. */
export function escapeCueText(text: string): string {
  return cleanLines(escapeMarkup(text));
}

/** Converts SubRip text to cue text: keeps `<b>`, `<i>` and `<u>`, removes other tags, and escapes the rest. */
export function subripToCueText(text: string): string {
  const parts = text.replace(/\{\\[^{}]{0,200}\}/g, "").split(/(<\/?[a-zA-Z][^<>]{0,200}>)/);
  const open: string[] = [];
  let out = "";
  for (const part of parts) {
    const tag = /^<(\/?)([a-zA-Z]+)[^<>]*>$/.exec(part);
    if (!tag) {
      out += escapeMarkup(part);
      continue;
    }
    const name = tag[2]!.toLowerCase();
    if (!"biu".includes(name) || name.length !== 1) continue;
    if (tag[1] === "") {
      if (open.includes(name)) continue;
      open.push(name);
      out += `<${name}>`;
    } else if (open.includes(name)) {
      // WebVTT tags must nest, so tags opened later are closed first.
      while (open.length > 0) {
        const last = open.pop()!;
        out += `</${last}>`;
        if (last === name) break;
      }
    }
  }
  for (const name of open.reverse()) out += `</${name}>`;
  return cleanLines(out);
}

/** Returns true if the text of an ASS event, or of SubRip, which uses the same override tags, is placed at the top of the picture. */
export function isTopText(text: string): boolean {
  return /\{[^{}]{0,200}\\an[789]/.test(text);
}

/** Converts an ASS or SSA event, as Matroska stores it (fields separated by commas), to cue text. */
export function assToCueText(event: string): string {
  // ReadOrder, Layer, Style, Name, MarginL, MarginR, MarginV, Effect, Text.
  return assTextToCueText(event.split(",").slice(8).join(","));
}

/** Converts the text of an ASS or SSA event to cue text, without drawings; of its styles, bold, italic and underlined remain. */
export function assTextToCueText(text: string): string {
  if (/\{[^{}]*\\p[1-9]/.test(text)) return "";
  const plain = text
    // ASS has no tags: a bracket that looks like one is text.
    .replaceAll("<", BRACKET)
    .replace(/\{[^{}]*\}/g, (block) =>
      [...block.matchAll(/\\([biu])(\d+)/g)]
        .map(([, name, value]) => (value === "0" ? `</${name}>` : `<${name}>`))
        .join(""),
    )
    .replace(/\\[Nn]/g, "\n")
    .replaceAll("\\h", "\u00a0");
  return subripToCueText(plain).replaceAll(BRACKET, "&lt;");
}

/** Stands for `<` in text while tags are made; a private character. */
const BRACKET = "\ue000";

/** Makes text that is WebVTT already safe within a cue: an arrow or an empty line would end it. */
export function escapeVttText(text: string): string {
  return cleanLines(text.replaceAll("-->", "--&gt;"));
}

/** Writes cues as a SubRip file. */
export function writeSubrip(cues: readonly TextCue[], firstNumber = 1): string {
  return cues
    .map(({ startSeconds, endSeconds, text }, index) => {
      const [start, end] = [startSeconds, endSeconds].map((seconds) => webvttTime(seconds).replace(".", ","));
      return `${firstNumber + index}\n${start} --> ${end}\n${plainText(text)}\n\n`;
    })
    .join("");
}

/** The text of a cue with the tags that SubRip knows. */
function plainText(text: string): string {
  return text
    .replace(/<(?!\/?[biu]>)[^<>]*>/g, "")
    .replace(/&(lt|gt|nbsp|amp|lrm|rlm);/g, (_, name: string) => ENTITIES[name]!);
}

const ENTITIES: Readonly<Record<string, string>> = {
  lt: "<",
  gt: ">",
  nbsp: "\u00a0",
  amp: "&",
  lrm: "\u200e",
  rlm: "\u200f",
};

function escapeMarkup(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function cleanLines(text: string): string {
  const lines = text.replaceAll("\0", "").split(/\r\n|\r|\n/);
  return lines
    .map((line) => line.trimEnd())
    .filter((line) => line !== "")
    .join("\n");
}
