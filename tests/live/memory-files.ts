import type { Files } from "../../src/runtime/contract.ts";

interface Kept {
  bytes: Uint8Array<ArrayBuffer>;
  /** The content after a power cut. */
  safe: Uint8Array<ArrayBuffer> | undefined;
  rights: number;
}

/** A disk in memory with power cuts and failures. */
export class MemoryFiles implements Files {
  readonly kept = new Map<string, Kept>();
  readonly replaced: string[] = [];
  syncs = 0;
  /** Thrown by every write if it is set. */
  failure: Error | undefined;

  /** `disk`: its initial content. */
  constructor(disk?: MemoryFiles) {
    for (const [path, file] of disk?.kept ?? []) this.kept.set(path, { ...file });
  }

  async open(path: string) {
    const file = this.kept.get(path) ?? { bytes: new Uint8Array(0), safe: undefined, rights: 0o600 };
    this.kept.set(path, file);
    return {
      read: async (at: number, into: Uint8Array<ArrayBuffer>) => {
        if (at + into.length > file.bytes.length) throw new Error("the file is shorter");
        into.set(file.bytes.subarray(at, at + into.length));
      },
      write: async (at: number, bytes: Uint8Array) => {
        if (this.failure) throw this.failure;
        const grown = new Uint8Array(Math.max(file.bytes.length, at + bytes.length));
        grown.set(file.bytes);
        grown.set(bytes, at);
        file.bytes = grown;
      },
      truncate: async (bytes: number) => {
        file.bytes = file.bytes.slice(0, bytes);
      },
      sync: async () => {
        this.syncs++;
        file.safe = file.bytes;
      },
      close: async () => {},
    };
  }

  async read(path: string, limitBytes: number) {
    const bytes = this.kept.get(path)?.bytes;
    if (bytes && bytes.length > limitBytes) throw new Error("the file is larger");
    return bytes?.slice();
  }

  async *parts(path: string) {
    const bytes = this.kept.get(path)?.bytes;
    if (!bytes) throw new Error("there is no such file");
    yield bytes.slice();
  }

  async replace(path: string, bytes: Uint8Array) {
    if (this.failure) throw this.failure;
    this.replaced.push(path);
    this.kept.set(path, { bytes: bytes.slice(), safe: bytes.slice(), rights: 0o600 });
  }

  async remove(path: string) {
    for (const name of this.kept.keys())
      if (name === path || name.startsWith(`${path}/`)) this.kept.delete(name);
  }

  async list(path: string) {
    const inside = [...this.kept.keys()].filter((name) => name.startsWith(`${path}/`));
    return [...new Set(inside.map((name) => name.slice(path.length + 1).split("/")[0]!))];
  }

  async stat(path: string) {
    const file = this.kept.get(path);
    return file && { size: file.bytes.length, modifiedMs: 0, permissions: file.rights };
  }

  async freeBytes() {
    return undefined;
  }

  /** Loses everything that was not synced. */
  cutPower(): void {
    for (const [path, file] of this.kept) {
      if (file.safe === undefined) this.kept.delete(path);
      else file.bytes = file.safe;
    }
  }
}
