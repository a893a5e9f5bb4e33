/** A subtitle cue. */
export interface TextCue {
  readonly startSeconds: number;
  readonly endSeconds: number;
  /** WebVTT cue text: escaped, lines separated by single line feeds. */
  readonly text: string;
}

/**
 * Writes cues as a WebVTT segment of HLS (RFC 8216 3.5). `offsetTicks` is the media time (90 kHz) of cue time 0.
 */
export function writeWebvtt(cues: readonly TextCue[], offsetTicks: number): string {
  const blocks = [`WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:${offsetTicks},LOCAL:00:00:00.000`];
  for (const { startSeconds, endSeconds, text } of cues) {
    blocks.push(`${webvttTime(startSeconds)} --> ${webvttTime(endSeconds)}\n${text}`);
  }
  return `${blocks.join("\n\n")}\n`;
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
  const parts = text.replace(/\{\\[^}]{0,200}\}/g, "").split(/(<\/?[a-zA-Z][^<>]{0,200}>)/);
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

/** Converts an ASS or SSA event, as Matroska stores it (fields separated by commas), to cue text without drawings and styles. */
export function assToCueText(event: string): string {
  // ReadOrder, Layer, Style, Name, MarginL, MarginR, MarginV, Effect, Text.
  const text = event.split(",").slice(8).join(",");
  if (/\{[^}]*\\p[1-9]/.test(text)) return "";
  const plain = text
    .replace(/\{[^}]*\}/g, "")
    .replace(/\\[Nn]/g, "\n")
    .replaceAll("\\h", "\u00a0");
  return escapeCueText(plain);
}

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
