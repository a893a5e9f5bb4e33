import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { messageOf } from "../base/errors.ts";
import { checksumOf } from "./kv-checksum.ts";

const NAME = "tip";
const DIGITS = 16;

/**
 * How many commits were acknowledged, in a file of its own. A write-ahead log that has lost its end looks like one that
 * never had it; this number tells the difference. It is written after a commit is durable and is not synced itself, so
 * it may lag behind, and never runs ahead.
 */
export class Tip {
  readonly #path: string;
  readonly #warn: (message: string) => void;
  #file: number | undefined;

  constructor(path: string, warn: (message: string) => void) {
    this.#path = path;
    this.#warn = warn;
  }

  /** Writes the number. Where that fails the store goes on without it, and says so. */
  write(sequence: number): void {
    const digits = String(sequence).padStart(DIGITS, "0");
    try {
      this.#file ??= openSync(this.#path, openingFlags(this.#path), 0o600);
      // As bytes: of text, Deno does not heed the position.
      const bytes = Buffer.from(`${digits} ${checksumOf(NAME, digits)}\n`);
      writeSync(this.#file, bytes, 0, bytes.length, 0);
    } catch (error) {
      this.#warn(`${this.#path} could not be written: ${messageOf(error)}`);
    }
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }
}

/** The number in the file; undefined where there is none, or none that can be believed. */
export function readTip(path: string): number | undefined {
  let text: string;
  try {
    text = readFileSync(path, "latin1");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const digits = text.slice(0, DIGITS);
  return text === `${digits} ${checksumOf(NAME, digits)}\n` ? Number(digits) : undefined;
}

/** Written in place: a file that is emptied first could be found empty. */
function openingFlags(path: string): string {
  try {
    closeSync(openSync(path, "r"));
    return "r+";
  } catch {
    return "w"; // Not there yet, or not readable, which the opening itself will tell.
  }
}
