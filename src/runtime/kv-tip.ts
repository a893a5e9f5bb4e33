import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { messageOf } from "../base/errors.ts";
import { checksumOf } from "./kv-checksum.ts";

const NAME = "tip";
const DIGITS = 16;

/**
 * A file with the number of acknowledged commits. It reveals a truncated write-ahead log, which otherwise looks intact.
 * It is written after each durable commit and not synced, so it may be behind the database but never ahead of it.
 */
export class Tip {
  readonly #path: string;
  readonly #warn: (message: string) => void;
  #file: number | undefined;

  constructor(path: string, warn: (message: string) => void) {
    this.#path = path;
    this.#warn = warn;
  }

  /** Writes the number; a failure is only a warning. */
  write(sequence: number): void {
    const digits = String(sequence).padStart(DIGITS, "0");
    try {
      this.#file ??= openSync(this.#path, openingFlags(this.#path), 0o600);
      // Bytes, because Deno ignores the position if it writes a string.
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

/** Reads the number; returns undefined if the file is missing or damaged. */
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

/** An existing file is opened without truncation, because a crash could leave a truncated file empty. */
function openingFlags(path: string): string {
  try {
    closeSync(openSync(path, "r"));
    return "r+";
  } catch {
    return "w"; // Missing or unreadable; opening it reports the latter.
  }
}
