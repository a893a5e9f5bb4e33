import { addressBytes } from "../../base/address.ts";
import { concatBytes, equalBytes, writeU32 } from "../../base/bytes.ts";
import type { Sha256 } from "../../base/signature.ts";
import type { Instant } from "../../base/time.ts";

/** An id that was given is taken for two minutes at least (BEP 15), and for three at most. */
const WINDOW_MS = 60_000;
const WINDOWS = 3;
const ID_BYTES = 8;

/**
 * The connection ids of UDP trackers (BEP 15): who has one has heard us at its address. Nothing is kept for it: an id is a
 * hash of the address, the minute and a secret, so that a million questions from made-up addresses cost no memory.
 */
export class ConnectionIds {
  readonly #sha256: Sha256;
  readonly #secret: Uint8Array;

  /** `secret`: 32 bytes by chance, new for each run. */
  constructor(sha256: Sha256, secret: Uint8Array) {
    this.#sha256 = sha256;
    this.#secret = secret;
  }

  /** The id for an asker at this address. */
  give(host: string, now: Instant): Uint8Array {
    return this.#idOf(host, Math.floor(now / WINDOW_MS));
  }

  /** Whether an asker at this address was given that id not long ago. */
  isOurs(id: Uint8Array, host: string, now: Instant): boolean {
    const window = Math.floor(now / WINDOW_MS);
    for (let age = 0; age < WINDOWS; age++) if (equalBytes(id, this.#idOf(host, window - age))) return true;
    return false;
  }

  #idOf(host: string, window: number): Uint8Array {
    const time = new Uint8Array(4);
    writeU32(time, 0, window >>> 0);
    const address = addressBytes(host) ?? new Uint8Array(0);
    const id = this.#sha256(concatBytes([this.#secret, time, address])).slice(0, ID_BYTES);
    // A question begins with it, and must look like none of the other protocols of the port (`udpProtocol`).
    id[0] = 0;
    return id;
  }
}
