import { DecodeError, messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Files } from "../../runtime/contract.ts";
import { type DhtState, decodeDhtState, encodeDhtState, MAX_DHT_STATE_BYTES } from "../../wire/dht-state.ts";

/** What the DHT node remembers, in a file of the data folder. */
export class DhtFile {
  readonly #path: string;
  readonly #files: Pick<Files, "read" | "replace">;
  readonly #log: Log;

  constructor(dataDir: string, files: Pick<Files, "read" | "replace">, log: Log) {
    this.#path = `${dataDir}/dht.dat`;
    this.#files = files;
    this.#log = log;
  }

  /** What the last run left; undefined where there is nothing of use. */
  async read(): Promise<DhtState | undefined> {
    try {
      const bytes = await this.#files.read(this.#path, MAX_DHT_STATE_BYTES);
      return bytes && decodeDhtState(bytes);
    } catch (thrown) {
      // Whatever is wrong with it: without it the start takes a little longer.
      const reason = thrown instanceof DecodeError ? thrown.message : messageOf(thrown);
      this.#log.warn("the nodes of the last run cannot be read", { path: this.#path, reason });
      return undefined;
    }
  }

  /** Keeps what the next run shall begin with. */
  async write(state: DhtState): Promise<void> {
    try {
      await this.#files.replace(this.#path, encodeDhtState(state));
    } catch (thrown) {
      this.#log.warn("the nodes of the DHT cannot be kept", { path: this.#path, reason: messageOf(thrown) });
    }
  }
}
