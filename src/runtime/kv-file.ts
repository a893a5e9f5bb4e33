import { createHash } from "node:crypto";
import { type FileHandle, mkdir, open, readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { KeyValueChange, KeyValueStore } from "./contract.ts";
import { files, syncFolder } from "./files.ts";
import { lockFile } from "./lock-file.ts";

/** One value as JSON text. */
const MAX_VALUE_BYTES = 1024 * 1024;
/** A journal is rewritten when it is this much larger than what it says, and not before it is worth the work. */
const COMPACT_FACTOR = 4;
const MIN_COMPACT_BYTES = 1024 * 1024;
const CHECKSUM_DIGITS = 16;

/** How a store tells what it found: damage that it left out. */
export interface KeyValueFileOptions {
  readonly warn: (message: string) => void;
}

/**
 * Opens a store that lives in one file: a journal of changes, each a line with a checksum. Every change is synced to
 * disk before `commit` resolves. A torn last line (a crash) is dropped; a damaged line ends what is believed, is kept
 * beside as `.damaged`, and told to `warn`. One process at a time: others are refused with `bad_configuration`.
 */
export async function openKeyValueFile(path: string, options: KeyValueFileOptions): Promise<KeyValueStore> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const unlock = await lockFile(`${path}.lock`);
  try {
    const { state, goodBytes, text } = await load(path);
    if (goodBytes < text.length && text.subarray(goodBytes).includes(0x0a)) {
      await files.replace(`${path}.damaged`, text);
      options.warn(
        `${path} is damaged at byte ${goodBytes}: what came before is used, a copy is kept beside`,
      );
    }
    const handle = await open(path, "a", 0o600);
    await handle.truncate(goodBytes);
    return new KeyValueFile(path, handle, state, goodBytes, unlock, options.warn);
  } catch (error) {
    await unlock();
    throw error;
  }
}

class KeyValueFile implements KeyValueStore {
  readonly #path: string;
  readonly #state: Map<string, string>;
  readonly #unlock: () => Promise<void>;
  readonly #warn: (message: string) => void;
  #handle: FileHandle;
  /** Bytes of the journal that are whole and synced. */
  #goodBytes: number;
  #liveBytes = 0;
  #isTorn = false;
  #isClosed = false;
  /** Commits happen one after another. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(
    path: string,
    handle: FileHandle,
    state: Map<string, string>,
    goodBytes: number,
    unlock: () => Promise<void>,
    warn: (message: string) => void,
  ) {
    this.#warn = warn;
    this.#path = path;
    this.#handle = handle;
    this.#state = state;
    this.#goodBytes = goodBytes;
    this.#unlock = unlock;
    for (const [key, json] of state) this.#liveBytes += key.length + json.length;
  }

  async get(key: string): Promise<unknown> {
    return parse(this.#state.get(key));
  }

  async *list(prefix: string): AsyncIterable<readonly [key: string, value: unknown]> {
    const keys = [...this.#state.keys()].filter((key) => key.startsWith(prefix)).sort();
    for (const key of keys) {
      const json = this.#state.get(key);
      if (json !== undefined) yield [key, JSON.parse(json)];
    }
  }

  commit(change: KeyValueChange): Promise<boolean> {
    const done = this.#last.then(() => this.#commit(change));
    // The next commit must not fail because this one did.
    this.#last = done.catch(() => {});
    return done;
  }

  async close(): Promise<void> {
    await this.#last;
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#handle.close();
    await this.#unlock();
  }

  async #commit({ check = [], set = [], delete: gone = [] }: KeyValueChange): Promise<boolean> {
    if (this.#isClosed) throw new Error("the store is closed");
    for (const [key, value] of check) if (!sameJson(parse(this.#state.get(key)), value)) return false;
    const entries = set.map(([key, value]) => [key, jsonOf(key, value)] as const);
    if (entries.length === 0 && gone.length === 0) return true;
    await this.#append(line(entries, gone));
    for (const key of gone) this.#forget(key);
    for (const [key, json] of entries) {
      this.#forget(key);
      this.#state.set(key, json);
      this.#liveBytes += key.length + json.length;
    }
    if (this.#goodBytes > Math.max(MIN_COMPACT_BYTES, COMPACT_FACTOR * this.#liveBytes))
      await this.#compact();
    return true;
  }

  #forget(key: string): void {
    const json = this.#state.get(key);
    if (json === undefined) return;
    this.#state.delete(key);
    this.#liveBytes -= key.length + json.length;
  }

  async #append(bytes: Uint8Array): Promise<void> {
    try {
      if (this.#isTorn) await this.#handle.truncate(this.#goodBytes);
      this.#isTorn = true;
      for (let put = 0; put < bytes.length; ) {
        put += (await this.#handle.write(bytes, put, bytes.length - put)).bytesWritten;
      }
      await this.#handle.sync();
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== "ENOSPC" && code !== "EDQUOT") throw error;
      throw new SluiceError("disk_full", "the disk is full", { cause: error });
    }
    this.#isTorn = false;
    this.#goodBytes += bytes.length;
  }

  /** Writes what is alive beside, and lets it take the journal's place. Where that fails the journal goes on. */
  async #compact(): Promise<void> {
    const beside = `${this.#path}.new`;
    try {
      const lines = [...this.#state].map((entry) => line([entry], []));
      await files.replace(beside, new Uint8Array(Buffer.concat(lines)));
      const fresh = await open(beside, "a", 0o600);
      await rename(beside, this.#path).catch(async (error: unknown) => {
        await fresh.close();
        throw error;
      });
      const old = this.#handle;
      this.#handle = fresh;
      this.#goodBytes = lines.reduce((sum, bytes) => sum + bytes.length, 0);
      await old.close();
      await syncFolder(dirname(this.#path));
    } catch (error) {
      this.#warn(`${this.#path} could not be made smaller: ${messageOf(error)}`);
    }
  }
}

/** Reads the journal up to its first line that is not whole. */
async function load(
  path: string,
): Promise<{ state: Map<string, string>; goodBytes: number; text: Uint8Array }> {
  const text = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return Buffer.alloc(0);
    throw error;
  });
  const state = new Map<string, string>();
  let goodBytes = 0;
  for (;;) {
    const end = text.indexOf(0x0a, goodBytes);
    if (end < 0 || !apply(state, text.subarray(goodBytes, end))) break;
    goodBytes = end + 1;
  }
  return { state, goodBytes, text };
}

/** One line: a checksum, a space, and the change as JSON: `{"s": [[key, json text], …], "d": [key, …]}`. */
function line(set: readonly (readonly [string, string])[], gone: readonly string[]): Uint8Array {
  const body = Buffer.from(JSON.stringify({ s: set, d: gone }));
  return Buffer.concat([Buffer.from(`${checksum(body)} `), body, Buffer.from("\n")]);
}

function apply(state: Map<string, string>, bytes: Uint8Array): boolean {
  const text = Buffer.from(bytes);
  const body = text.subarray(CHECKSUM_DIGITS + 1);
  if (text.toString("latin1", 0, CHECKSUM_DIGITS) !== checksum(body)) return false;
  const { s, d } = JSON.parse(body.toString()) as { s: [string, string][]; d: string[] };
  for (const key of d) state.delete(key);
  for (const [key, json] of s) state.set(key, json);
  return true;
}

function checksum(body: Uint8Array): string {
  return createHash("sha256").update(body).digest("hex").slice(0, CHECKSUM_DIGITS);
}

function jsonOf(key: string, value: unknown): string {
  const json = JSON.stringify(value);
  if (json === undefined) throw new TypeError(`expected a JSON value for ${key}; to remove a key, delete it`);
  const size = Buffer.byteLength(json);
  if (size > MAX_VALUE_BYTES)
    throw new RangeError(`expected at most ${MAX_VALUE_BYTES} bytes for ${key}, got ${size}`);
  return json;
}

function parse(json: string | undefined): unknown {
  return json === undefined ? undefined : JSON.parse(json);
}

function sameJson(held: unknown, expected: unknown): boolean {
  if (expected === undefined || held === undefined) return held === expected;
  return isDeepStrictEqual(held, JSON.parse(JSON.stringify(expected)));
}
