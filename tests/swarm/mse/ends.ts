import { createHash } from "node:crypto";
import { equalBytes } from "../../../src/base/bytes.ts";
import { type Random, randomBelow } from "../../../src/base/random.ts";
import { MseAnswerer } from "../../../src/swarm/mse/answerer.ts";
import { MseCaller } from "../../../src/swarm/mse/caller.ts";
import type { MseHandshake, MseOutcome, MseTools } from "../../../src/swarm/mse/contract.ts";
import { MSE_BOTH, MSE_METHOD, type MseMethod, req2Hash } from "../../../src/wire/mse.ts";

export const INFOHASH = new Uint8Array(20).fill(0xab);
export const INITIAL = new Uint8Array(68).fill(0x13);

export const sha1 = (bytes: Uint8Array) => new Uint8Array(createHash("sha1").update(bytes).digest());

/** Tools whose chance follows from a generator. */
export function toolsOf(random: Random): MseTools {
  return { sha1, randomBytes: (length) => Uint8Array.from({ length }, () => randomBelow(random, 256)) };
}

export function caller(tools: MseTools, offered: number = MSE_BOTH, infohash = INFOHASH): MseCaller {
  return new MseCaller({ infohash, initial: INITIAL.slice(), offered }, tools);
}

export function answerer(
  tools: MseTools,
  methods: readonly MseMethod[] = [MSE_METHOD.rc4, MSE_METHOD.plain],
): MseAnswerer {
  const find = (hash: Uint8Array) =>
    equalBytes(hash, req2Hash(INFOHASH, sha1)) ? Uint8Array.from(INFOHASH) : undefined;
  return new MseAnswerer({ find, methods }, tools);
}

/** What two ends came to, and all that each has sent. */
export interface Meeting {
  readonly call: MseOutcome | undefined;
  readonly answer: MseOutcome | undefined;
  readonly sent: readonly [call: Uint8Array[], answer: Uint8Array[]];
}

/** Lets two ends talk, `step` bytes at a time, until neither has anything to say. */
export function meet(call: MseHandshake, answer: MseHandshake, step: number): Meeting {
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
      // What comes behind the handshake is the stream's.
      if (known) outcomes[1 - from] = { ...known, rest: Uint8Array.from([...known.rest, ...part]) };
      else outcomes[1 - from] = ends[1 - from]!.receive(part);
      part.fill(0);
    }
  }
  return { call: outcomes[0], answer: outcomes[1], sent };
}
