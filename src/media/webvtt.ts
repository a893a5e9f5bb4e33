/** One subtitle, to be seen from `startSeconds` to `endSeconds`. */
export interface TextCue {
  readonly startSeconds: number;
  readonly endSeconds: number;
  /** WebVTT cue text: escaped, lines parted by single line feeds. */
  readonly text: string;
  /** WebVTT cue settings, such as `align:start`; none where absent. */
  readonly settings?: string;
}

/**
 * Writes cues as a WebVTT segment of HLS (RFC 8216 3.5): `offsetTicks` is the time of the media (90 kHz) at which the
 * cues' clock shows zero.
 */
export function writeWebvtt(cues: readonly TextCue[], offsetTicks: number): string {
  const blocks = [`WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:${offsetTicks},LOCAL:00:00:00.000`];
  for (const { startSeconds, endSeconds, text, settings } of cues) {
    const arrow = `${webvttTime(startSeconds)} --> ${webvttTime(endSeconds)}`;
    blocks.push(`${settings ? `${arrow} ${settings}` : arrow}\n${text}`);
  }
  return `${blocks.join("\n\n")}\n`;
}

/** Such as `01:02:03.004`; times before zero become zero. */
export function webvttTime(seconds: number): string {
  const ms = Math.max(0, Math.round(seconds * 1000));
  const pad = (value: number, length: number) => String(value).padStart(length, "0");
  const [hours, minutes] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60];
  return `${pad(hours, 2)}:${pad(minutes, 2)}:${pad(Math.floor(ms / 1000) % 60, 2)}.${pad(ms % 1000, 3)}`;
}

/** Makes plain text safe as cue text: escapes, drops empty lines (they would end the cue). */
export function escapeCueText(text: string): string {
  return cleanLines(escapeMarkup(text));
}

/** SubRip text as cue text: its `<b>`, `<i>`, `<u>` stay, every other tag goes, the rest is escaped. */
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
      // WebVTT tags must nest: whatever was opened later is closed first.
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

/** The text of an ASS or SSA event as Matroska stores it (fields parted by commas), its drawing and styling left out. */
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
    .map((one) => one.trimEnd())
    .filter((one) => one !== "")
    .join("\n");
}
