import type { Infohash } from "../../base/ids.ts";
import type { Ed25519VerifierOf } from "../../base/signature.ts";
import { CHALLENGE_BYTES } from "../../wire/live/peer-info.ts";
import { encodeProof, provedRole, type RoleKey } from "../../wire/live/role-proof.ts";

/** What proofs of one stream depend on. */
export interface RoleProofsSetup {
  readonly infohash: Infohash;
  /** Our peer id. */
  readonly peerId: Uint8Array;
  readonly streamKey: Uint8Array;
  readonly verifierOf: Ed25519VerifierOf;
  readonly randomBytes: (length: number) => Uint8Array;
  readonly unixMs: () => number;
  /** Proves our own role; absent for a viewer. */
  readonly key?: RoleKey;
}

/** Proves our role to peers, and checks the proofs of peers (live protocol: Roles). */
export class RoleProofs {
  readonly #setup: RoleProofsSetup;

  constructor(setup: RoleProofsSetup) {
    this.#setup = setup;
  }

  /** A challenge for one connection. */
  challenge(): Uint8Array {
    return this.#setup.randomBytes(CHALLENGE_BYTES);
  }

  /** Returns the PROOF for a peer that sent this challenge; undefined for a viewer. */
  prove(peerId: Uint8Array, challenge: Uint8Array): Uint8Array | undefined {
    const { infohash, peerId: prover, key } = this.#setup;
    return key && encodeProof(key, { infohash, prover, verifier: peerId, challenge });
  }

  /** Returns the role that the PROOF of a peer proves; undefined for none. Throws `DecodeError`. */
  proved(payload: Uint8Array, peerId: Uint8Array, challenge: Uint8Array): RoleKey["role"] | undefined {
    const { infohash, peerId: verifier, streamKey, verifierOf, unixMs } = this.#setup;
    const parties = { infohash, prover: peerId, verifier, challenge };
    return provedRole(payload, parties, streamKey, verifierOf, unixMs());
  }
}
