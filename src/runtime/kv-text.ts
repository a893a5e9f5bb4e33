import { createHash } from "node:crypto";
import type { BackupPart } from "./contract.ts";
import { checksumOf } from "./kv-checksum.ts";
import type { StoredRecord } from "./kv-sqlite-file.ts";

/** The version of this format: one JSON text a line. */
const VERSION = 1;
/** A record of 60 KiB, its key and what stands around them, all of it escaped; longer lines are no lines of ours. */
const MAX_LINE_CHARACTERS = 512 * 1024;
const CHUNK_BYTES = 64 * 1024;

/** What one line holds. Parts of one file follow each other. */
export type TextLine = StoredRecord | BackupPart;

/** What was found in a text of records. */
export interface TextReport {
  /** Header, every line and the end are as they were written. */
  readonly isWhole: boolean;
  /** How many commits the store had seen; undefined where the header cannot be believed. */
  readonly sequence: number | undefined;
  /** Lines that are whole. */
  readonly lines: number;
  /** Lines that are damaged. */
  readonly badLines: number;
}

/** Writes records (and files) as text, in pieces: a header, a line each with a checksum, an end with the SHA-256 of all. */
export async function* writeText(
  sequence: number,
  lines: AsyncIterable<TextLine>,
): AsyncGenerator<Uint8Array> {
  const all = createHash("sha256");
  let waiting = `${JSON.stringify({ sluice: "records", version: VERSION, sequence })}\n`;
  let count = 0;
  const encoded = (text: string) => {
    const bytes = Buffer.from(text);
    all.update(bytes);
    return bytes;
  };
  for await (const line of lines) {
    waiting += lineOf(line);
    count++;
    if (waiting.length < CHUNK_BYTES) continue;
    yield encoded(waiting);
    waiting = "";
  }
  const last = encoded(waiting);
  const end = `${JSON.stringify({ lines: count, sha256: all.digest("hex") })}\n`;
  yield Buffer.concat([last, Buffer.from(end)]);
}

/**
 * Reads such a text, hands each line that is whole to `found`, and says whether all of it was. Never throws for what
 * the text is; a line that is damaged costs that line.
 */
export async function readText(
  chunks: AsyncIterable<Uint8Array>,
  found: (line: TextLine) => void | Promise<void>,
): Promise<TextReport> {
  const all = createHash("sha256");
  let sequence: number | undefined;
  let lines = 0;
  let badLines = 0;
  let isFirst = true;
  let end: string | undefined;
  for await (const line of linesOf(chunks)) {
    // What follows the last line shows that it was not the last: only one line may be held back.
    if (end !== undefined) {
      all.update(end);
      const read = isFirst ? undefined : readLine(end);
      if (isFirst) sequence = readHeader(end);
      else if (read === undefined) badLines++;
      else {
        lines++;
        await found(read);
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
  const { name, base64 } = line;
  return `${JSON.stringify({ c: checksumOf(name, base64), f: name, b: base64 })}\n`;
}

function readLine(text: string): TextLine | undefined {
  const { c: checksum, k: key, f: name, b: base64 } = parsed(text);
  if (typeof key === "string") {
    // The value as it was written: from behind the key to the last brace.
    const start = `{"c":"","k":,"v":`.length + String(checksum).length + JSON.stringify(key).length;
    const value = text.slice(start, -"}\n".length);
    return checksum === checksumOf(key, value) ? { key, value, checksum: String(checksum) } : undefined;
  }
  if (typeof name !== "string" || typeof base64 !== "string") return undefined;
  return checksum === checksumOf(name, base64) ? { name, base64 } : undefined;
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
    return {}; // A line that is no JSON has none of the members that are asked for.
  }
}

/** Lines with their ends, as Latin-1 would not do: bytes that are no UTF-8 make a line that its checksum refuses. */
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
