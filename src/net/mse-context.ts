import { addressScope, addressText, type PeerAddress } from "../base/address.ts";
import { HouseholdLimit } from "../base/household-limit.ts";
import type { Log } from "../base/log.ts";
import { TokenBucket } from "../base/rate.ts";
import type { Instant } from "../base/time.ts";
import { trimOldest } from "../base/trim-oldest.ts";
import type { MseDependencies } from "../protocol/mse/contract.ts";
import type { InfohashIndex } from "../protocol/mse/infohash-index.ts";
import type { MseStream } from "../protocol/mse/stream.ts";
import type { Clock } from "../runtime/contract.ts";
import type { MseMethod } from "../wire/peer/mse.ts";

/** Whether a connection starts with a plain or an encrypted handshake. */
export type ConnectionMode = "plain" | "encrypted";

/** State that all connections of an encrypted net share. */
export interface MseContext {
  readonly clock: Clock;
  readonly crypto: MseDependencies;
  readonly decryptBuffer: DecryptBuffer;
  readonly log: Log;
  readonly index: InfohashIndex;
  readonly handshakeLimit: HandshakeLimit;
  readonly modes: ModeCache;
  /** Modes of outgoing connections, in order of preference. */
  readonly outgoingModes: readonly ConnectionMode[];
  /** The same for connections that prefer encryption. */
  readonly encryptedModes: readonly ConnectionMode[];
  readonly acceptsPlain: boolean;
  /** Accepted MSE methods, in order of preference. */
  readonly methods: readonly MseMethod[];
  /** The methods offered to peers, as bits. */
  readonly offered: number;
}

/** More than the candidates of one swarm. */
const MAX_CACHED_MODES = 4_000;

/** Remembers the peers that respond only in a mode that is not our first choice, so that the next connection starts with it. */
export class ModeCache {
  readonly #modes = new Map<string, ConnectionMode>();

  /** Returns `preferred` with the cached mode of the peer moved to the front. */
  order(address: PeerAddress, preferred: readonly ConnectionMode[]): readonly ConnectionMode[] {
    const cached = this.#modes.get(addressText(address));
    return cached === undefined || !preferred.includes(cached)
      ? preferred
      : [cached, ...preferred.filter((mode) => mode !== cached)];
  }

  /** Records that a peer responded in `mode`. */
  responded(address: PeerAddress, mode: ConnectionMode, preferred: readonly ConnectionMode[]): void {
    const key = addressText(address);
    this.#modes.delete(key);
    if (mode === preferred[0]) return;
    this.#modes.set(key, mode);
    trimOldest(this.#modes, MAX_CACHED_MODES);
  }
}

/** A handshake takes about 0.3 ms of CPU, so this rate uses 1.5 % of a core. No swarm receives more connections. */
const HANDSHAKES_PER_SECOND = 50;
const HANDSHAKE_BURST = 150;
/** A household can have several peers; each connects once for each content, with occasional retries. */
const PER_HOUSEHOLD = { perSecond: 2, burst: 20, maxHouseholds: 1_000 };

/** Limits incoming encrypted handshakes, which cost this machine as much CPU as the peer. */
export class HandshakeLimit {
  readonly #total = new TokenBucket(HANDSHAKES_PER_SECOND, HANDSHAKE_BURST);
  readonly #households = new HouseholdLimit(PER_HOUSEHOLD);

  /** Returns true if a handshake from `host` is within the limits, and counts it. */
  admits(host: string, now: Instant): boolean {
    // Several engines may run on this machine.
    if (addressScope(host) === "loopback") return this.#total.take(1, now);
    // In this order, a household over its limit uses none of the total.
    return this.#households.take(host, now) && this.#total.take(1, now);
  }
}

/** A socket reads at most this much at once. */
const DECRYPT_BUFFER_BYTES = 64 * 1024;

/** A buffer for decrypted bytes that all connections share. */
export class DecryptBuffer {
  readonly #bytes = new Uint8Array(DECRYPT_BUFFER_BYTES);
  #isInUse = false;

  /** Decrypts `bytes` and passes them to `received`, which must not keep them. Nested calls allocate their own buffer. */
  decrypt(bytes: Uint8Array, stream: MseStream, received: (clear: Uint8Array) => void): void {
    if (stream.isClear) {
      received(bytes);
      return;
    }
    const isOwner = !this.#isInUse && bytes.length <= DECRYPT_BUFFER_BYTES;
    const clear = isOwner ? this.#bytes.subarray(0, bytes.length) : new Uint8Array(bytes.length);
    if (isOwner) this.#isInUse = true;
    try {
      stream.decrypt(bytes, clear);
      received(clear);
    } finally {
      if (isOwner) this.#isInUse = false;
    }
  }
}
