import { runtime } from "#runtime";
import type { Files } from "../../src/runtime/contract.ts";

/** A disk whose piece writes wait for the test. Other operations run at once. */
export class GatedDisk {
  readonly #waiting: (() => void)[] = [];
  #isOpen = false;

  /** Pending writes. */
  get waiting(): number {
    return this.#waiting.length;
  }

  readonly files: Files = {
    ...runtime.files,
    open: async (path) => {
      const file = await runtime.files.open(path);
      return {
        ...file,
        write: async (at, ...parts) => {
          if (!this.#isOpen) await new Promise<void>((resolve) => this.#waiting.push(resolve));
          return file.write(at, ...parts);
        },
      };
    },
  };

  /** Releases the oldest pending write. */
  write(): void {
    this.#waiting.shift()?.();
  }

  /** Releases all pending and later writes. */
  open(): void {
    this.#isOpen = true;
    for (const go of this.#waiting.splice(0)) go();
  }
}

/** Resolves when `is` returns true; rejects after a minute. */
export async function soon(is: () => boolean | Promise<boolean>): Promise<void> {
  for (let turns = 0; turns < 30_000; turns++) {
    if (await is()) return;
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  throw new Error(`timed out waiting for ${is}`);
}
