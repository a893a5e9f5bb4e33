// Keeps playlists, tokens and accounts in a store of the program's own, here a Map.
// Usage: bun examples/custom-store.ts [data folder]
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type KeyValueChange, type KeyValueStore, startEngine } from "sluice";

/** A store in memory. A real one would be durable when `commit` resolves. */
class MapStore implements KeyValueStore {
  readonly #values = new Map<string, string>();

  async get(key: string): Promise<unknown> {
    const text = this.#values.get(key);
    return text === undefined ? undefined : JSON.parse(text);
  }

  async *list(prefix: string): AsyncGenerator<readonly [string, unknown]> {
    const keys = [...this.#values.keys()].filter((key) => key.startsWith(prefix));
    for (const key of keys.sort()) {
      const text = this.#values.get(key);
      if (text !== undefined) yield [key, JSON.parse(text)];
    }
  }

  async commit(change: KeyValueChange): Promise<boolean> {
    const isUnchanged = ([key, value]: readonly [string, unknown]) =>
      this.#values.get(key) === (value === undefined ? undefined : JSON.stringify(value));
    if (!(change.check ?? []).every(isUnchanged)) return false;
    for (const [key, value] of change.set ?? []) this.#values.set(key, JSON.stringify(value));
    for (const key of change.delete ?? []) this.#values.delete(key);
    return true;
  }

  async close(): Promise<void> {}
}

const settings = {
  "data-dir": process.argv[2] ?? join(tmpdir(), "sluice-example"),
  "p2p-port": 0,
  dht: "off",
  lsd: "off",
};
const store = new MapStore();

const first = await startEngine({ settings, store });
const { token } = (await first.call("get_api_access_token")) as { token: string };
await first.close();

// A second engine with the same store has the same records.
const second = await startEngine({ settings, store });
const again = (await second.call("get_api_access_token")) as { token: string };
console.log(`same token after a restart: ${again.token === token}`);
await second.close();
process.exit(0);
