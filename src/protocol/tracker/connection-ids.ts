import { addressBytes } from "../../base/address.ts";
import { concatBytes, equalBytes, writeU32 } from "../../base/bytes.ts";
import type { Sha256 } from "../../base/signature.ts";
import type { Instant } from "../../base/time.ts";

/** An id is valid for at least two minutes (BEP 15), and at most three. */
const WINDOW_MS = 60_000;
const WINDOWS = 3;
const ID_BYTES = 8;

/**
 * Connection ids of the UDP tracker (BEP 15): a client with a valid id receives datagrams at its address. An id is a hash of
 * the address, the minute and a secret, so requests from forged addresses use no memory.
 */
export class ConnectionIds {
  readonly #sha256: Sha256;
  readonly #secret: Uint8Array;

  /** `secret`: 32 random bytes, new in each run. */
  constructor(sha256: Sha256, secret: Uint8Array) {
    this.#sha256 = sha256;
    this.#secret = secret;
  }

  /** Returns the current id for a client at this address. */
  issue(host: string, now: Instant): Uint8Array {
    return this.#idOf(host, Math.floor(now / WINDOW_MS));
  }

  /** Whether this id was recently issued to this address. */
  isValid(id: Uint8Array, host: string, now: Instant): boolean {
    const window = Math.floor(now / WINDOW_MS);
    for (let age = 0; age < WINDOWS; age++) if (equalBytes(id, this.#idOf(host, window - age))) return true;
    return false;
  }

  #idOf(host: string, window: number): Uint8Array {
    const time = new Uint8Array(4);
    writeU32(time, 0, window >>> 0);
    const address = addressBytes(host) ?? new Uint8Array(0);
    const id = this.#sha256(concatBytes([this.#secret, time, address])).slice(0, ID_BYTES);
    // Requests begin with the id, which must not look like another protocol of the port (`udpProtocol`).
    id[0] = 0;
    return id;
  }
}
