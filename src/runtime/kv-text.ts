import { createHash } from "node:crypto";
import type { BackupPart } from "./contract.ts";
import { checksumOf } from "./kv-checksum.ts";
import type { StoredRecord } from "./kv-sqlite-file.ts";

/** The version of this format, which has one JSON value per line. */
const VERSION = 1;
/** Longer lines are invalid: a 60 KiB record with its key, all characters escaped, is shorter. */
const MAX_LINE_CHARACTERS = 512 * 1024;
const CHUNK_BYTES = 64 * 1024;

/** The content of a line: a record, or a part of a file. Parts of a file are consecutive. */
export type TextLine = StoredRecord | BackupPart;

/** The result of reading a text. */
export interface TextReport {
  /** The header, every line and the end are intact. */
  readonly isWhole: boolean;
  /** Number of commits of the store; undefined if the header is damaged. */
  readonly sequence: number | undefined;
  /** Number of intact lines. */
  readonly lines: number;
  /** Number of damaged lines. */
  readonly badLines: number;
}

/** Encodes records and file parts: a header, a line with a checksum for each, and an end with the SHA-256 of all. Yields
 * chunks of about 64 KiB. */
export async function* writeText(
  sequence: number,
  lines: AsyncIterable<TextLine>,
): AsyncGenerator<Uint8Array> {
  const all = createHash("sha256");
  let pending = `${JSON.stringify({ sluice: "records", version: VERSION, sequence })}\n`;
  let count = 0;
  const encoded = (text: string) => {
    const bytes = Buffer.from(text);
    all.update(bytes);
    return bytes;
  };
  for await (const line of lines) {
    pending += lineOf(line);
    count++;
    if (pending.length < CHUNK_BYTES) continue;
    yield encoded(pending);
    pending = "";
  }
  const last = encoded(pending);
  const end = `${JSON.stringify({ lines: count, sha256: all.digest("hex") })}\n`;
  yield Buffer.concat([last, Buffer.from(end)]);
}

/** Decodes a text and calls `onLine` for each intact line. Skips and counts damaged lines; never throws for damage. */
export async function readText(
  chunks: AsyncIterable<Uint8Array>,
  onLine: (line: TextLine) => void | Promise<void>,
): Promise<TextReport> {
  const all = createHash("sha256");
  let sequence: number | undefined;
  let lines = 0;
  let badLines = 0;
  let isFirst = true;
  let end: string | undefined;
  for await (const line of linesOf(chunks)) {
    // Holds one line back, because the last line is the end.
    if (end !== undefined) {
      all.update(end);
      const read = isFirst ? undefined : readLine(end);
      if (isFirst) sequence = readHeader(end);
      else if (read === undefined) badLines++;
      else {
        lines++;
        await onLine(read);
      }
      isFirst = false;
    }
    end = line;
  }
  const hasEnd = end !== undefined && isEnd(end, lines, all.digest("hex"));
  if (!hasEnd && end !== undefined && !isFirst) badLines++;
  return { isWhole: hasEnd && sequence !== undefined && badLines === 0, sequence, lines, badLines };
}

function lineOf(line: TextLine): string {
  if ("key" in line) return `{"c":"${line.checksum}","k":${JSON.stringify(line.key)},"v":${line.value}}\n`;
  const { name, base64, isLast } = line;
  return `${JSON.stringify({ c: partChecksum(line), f: name, last: isLast, b: base64 })}\n`;
}

function readLine(text: string): TextLine | undefined {
  const { c: checksum, k: key, f: name, last: isLast, b: base64 } = parsed(text);
  if (typeof key === "string") {
    // The value's original text, from after the key to the last brace.
    const start = `{"c":"","k":,"v":`.length + String(checksum).length + JSON.stringify(key).length;
    const value = text.slice(start, -"}\n".length);
    return checksum === checksumOf(key, value) ? { key, value, checksum: String(checksum) } : undefined;
  }
  if (typeof name !== "string" || typeof base64 !== "string" || typeof isLast !== "boolean") return undefined;
  const part = { name, base64, isLast };
  return checksum === partChecksum(part) ? part : undefined;
}

function partChecksum({ name, base64, isLast }: BackupPart): string {
  return checksumOf(`${name}\0${isLast}`, base64);
}

function readHeader(text: string): number | undefined {
  const { sluice, version, sequence } = parsed(text);
  if (sluice !== "records" || version !== VERSION) return undefined;
  return typeof sequence === "number" && Number.isSafeInteger(sequence) ? sequence : undefined;
}

function isEnd(text: string, count: number, sha256: string): boolean {
  const end = parsed(text);
  return text.endsWith("\n") && end.lines === count && end.sha256 === sha256;
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {}; // A line that is not JSON has no valid members.
  }
}

/** Splits into lines, including their line feeds. Invalid UTF-8 makes a line whose checksum does not match. */
async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let rest = "";
  for await (const chunk of chunks) {
    rest += decoder.decode(chunk, { stream: true });
    let from = 0;
    for (let at = rest.indexOf("\n"); at >= 0; at = rest.indexOf("\n", from)) {
      yield rest.slice(from, at + 1);
      from = at + 1;
    }
    rest = rest.slice(from);
    if (rest.length > MAX_LINE_CHARACTERS) {
      yield rest;
      rest = "";
    }
  }
  rest += decoder.decode();
  if (rest !== "") yield rest;
}
