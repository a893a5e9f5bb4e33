import { createHash } from "node:crypto";
import { equalBytes } from "../../../src/base/bytes.ts";
import { type Random, randomBelow } from "../../../src/base/random.ts";
import type { MseDependencies, MseHandshake, MseOutcome } from "../../../src/protocol/mse/contract.ts";
import { MseInitiator } from "../../../src/protocol/mse/initiator.ts";
import { MseResponder } from "../../../src/protocol/mse/responder.ts";
import { MSE_BOTH, MSE_METHOD, type MseMethod, req2Hash } from "../../../src/wire/peer/mse.ts";

export const INFOHASH = new Uint8Array(20).fill(0xab);
export const INITIAL = new Uint8Array(68).fill(0x13);

export const sha1 = (bytes: Uint8Array) => new Uint8Array(createHash("sha1").update(bytes).digest());

/** Dependencies with a seeded random generator. */
export function seededDependencies(random: Random): MseDependencies {
  return { sha1, randomBytes: (length) => Uint8Array.from({ length }, () => randomBelow(random, 256)) };
}

export function initiator(
  dependencies: MseDependencies,
  offered: number = MSE_BOTH,
  infohash = INFOHASH,
): MseInitiator {
  return new MseInitiator({ infohash, initial: INITIAL.slice(), offered }, dependencies);
}

export function responder(
  dependencies: MseDependencies,
  methods: readonly MseMethod[] = [MSE_METHOD.rc4, MSE_METHOD.plain],
): MseResponder {
  const find = (hash: Uint8Array) =>
    equalBytes(hash, req2Hash(INFOHASH, sha1)) ? Uint8Array.from(INFOHASH) : undefined;
  return new MseResponder({ find, methods }, dependencies);
}

/** The outcomes of both sides, and all bytes that each has sent. */
export interface HandshakeResult {
  readonly call: MseOutcome | undefined;
  readonly answer: MseOutcome | undefined;
  readonly sent: readonly [call: Uint8Array[], answer: Uint8Array[]];
}

/** Passes bytes between two sides, `step` at a time, until both have nothing to send. */
export function runHandshake(call: MseHandshake, answer: MseHandshake, step: number): HandshakeResult {
  const ends = [call, answer] as const;
  const outcomes: (MseOutcome | undefined)[] = [undefined, undefined];
  const sent: [Uint8Array[], Uint8Array[]] = [[], []];
  for (let from = 0, idle = 0; idle < 2; from = 1 - from) {
    const bytes = ends[from]!.take();
    idle = bytes ? 0 : idle + 1;
    if (!bytes) continue;
    sent[from]!.push(bytes.slice());
    for (let at = 0; at < bytes.length; at += step) {
      const part = bytes.slice(at, at + step);
      const known = outcomes[1 - from];
      // Bytes behind the handshake belong to the stream.
      if (known) outcomes[1 - from] = { ...known, rest: Uint8Array.from([...known.rest, ...part]) };
      else outcomes[1 - from] = ends[1 - from]!.receive(part);
      part.fill(0);
    }
  }
  return { call: outcomes[0], answer: outcomes[1], sent };
}
