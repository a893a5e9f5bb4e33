import { runtime } from "#runtime";
import type { Files } from "../../src/runtime/contract.ts";

/** A disk whose pieces are written when the test says so. Everything else it does at once. */
export class GatedDisk {
  readonly #waiting: (() => void)[] = [];
  #isOpen = false;

  /** Writes that wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  readonly files: Files = {
    ...runtime.files,
    open: async (path) => {
      const file = await runtime.files.open(path);
      return {
        ...file,
        write: async (at, bytes) => {
          if (!this.#isOpen) await new Promise<void>((resolve) => this.#waiting.push(resolve));
          return file.write(at, bytes);
        },
      };
    },
  };

  /** Lets the write that waits longest go on. */
  write(): void {
    this.#waiting.shift()?.();
  }

  /** Lets all of them go on, and those to come. */
  open(): void {
    this.#isOpen = true;
    for (const go of this.#waiting.splice(0)) go();
  }
}

/** Resolves as soon as `is` says so; fails after a minute. */
export async function soon(is: () => boolean | Promise<boolean>): Promise<void> {
  for (let turns = 0; turns < 30_000; turns++) {
    if (await is()) return;
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  throw new Error(`waited in vain for ${is}`);
}
