import type { PresentedDiagnosis } from "../../routes/diagnosis.ts";
import { printable } from "./log.ts";
import { bytesText } from "./units.ts";

type Row = PresentedDiagnosis["rows"][number];
type Stream = PresentedDiagnosis["streams"][number];

const SIGNS = { ok: "✓", note: "·", warn: "!", fail: "✗" } as const;
const COLORS = { ok: 32, note: 2, warn: 33, fail: 31 } as const;
/** At most this many peers of a stream are listed, fastest first. */
const SHOWN_PEERS = 20;

/** Returns the output of `sluice doctor`. */
export function doctorText({ rows, streams }: PresentedDiagnosis, hasColors: boolean): string {
  const width = Math.max(...rows.map(({ name }) => name.length)) + 2;
  const lines = rows.flatMap((row) => rowLines(row, width, hasColors));
  for (const stream of streams) lines.push("", ...streamLines(stream));
  lines.push("", verdict(rows));
  return `${lines.join("\n")}\n`;
}

function rowLines({ name, level, text, advice }: Row, width: number, hasColors: boolean): string[] {
  const sign = hasColors ? `\x1b[${COLORS[level]}m${SIGNS[level]}\x1b[0m` : SIGNS[level];
  const lines = [`${sign} ${name.padEnd(width)}${printable(text)}`];
  if (advice !== null) lines.push(`  ${" ".repeat(width)}→ ${advice}`);
  return lines;
}

function streamLines({ name, players, peers }: Stream): string[] {
  const lines = [printable(name)];
  for (const { buffering } of players)
    lines.push(buffering ? `  buffering: ${printable(buffering.text)}` : "  plays without buffering");
  const sorted = [...peers].sort((a, b) => b.bytes_per_second_down - a.bytes_per_second_down);
  for (const peer of sorted.slice(0, SHOWN_PEERS)) {
    const rate = `${bytesText(peer.bytes_per_second_down)}/s`.padStart(10);
    const why = peer.slow === null ? "" : ` · ${peer.slow}`;
    lines.push(`  ${rate}  ${printable(`${peer.address} ${peer.client}`)}${why}`);
  }
  if (sorted.length > SHOWN_PEERS) lines.push(`  … and ${sorted.length - SHOWN_PEERS} more`);
  return lines;
}

function verdict(rows: readonly Row[]): string {
  const count = (level: Row["level"]) => rows.filter((row) => row.level === level).length;
  const [fails, warns] = [count("fail"), count("warn")];
  if (fails + warns === 0) return "No problems found.";
  const parts = [
    ...(fails > 0 ? [`${fails} ${fails === 1 ? "check" : "checks"} failed`] : []),
    ...(warns > 0 ? [`${warns} ${warns === 1 ? "warning" : "warnings"}`] : []),
  ];
  return `${parts.join(", ")}.`;
}
