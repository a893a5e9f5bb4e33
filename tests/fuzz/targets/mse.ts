import { concatBytes } from "../../../src/base/bytes.ts";
import { DecodeError } from "../../../src/base/errors.ts";
import type { MseHandshake, MseOutcome } from "../../../src/protocol/mse/contract.ts";
import { initiator, responder, runHandshake, seededDependencies } from "../../protocol/mse/handshake-pair.ts";
import { seededRandom } from "../../seeded-random.ts";
import type { FuzzTarget } from "../contract.ts";

// The tested side always uses the same key, so that a recorded handshake can be replayed.
const makeAnswerer = () => responder(seededDependencies(seededRandom(1)));
const makeCaller = () => initiator(seededDependencies(seededRandom(2)));

/** Bytes that the other side sent in recorded handshakes. */
function recorded(side: 0 | 1): Uint8Array[] {
  return Array.from({ length: 8 }, (_, i) => {
    const other = seededDependencies(seededRandom(10 + i));
    const talk =
      side === 0
        ? runHandshake(initiator(other), makeAnswerer(), 4096)
        : runHandshake(makeCaller(), responder(other), 4096);
    return concatBytes(talk.sent[side]);
  });
}

/** Feeds one side in parts of `step` bytes, and bytes after the handshake through its stream. */
function feed(end: MseHandshake, bytes: Uint8Array, step: number): MseOutcome | undefined {
  let outcome: MseOutcome | undefined;
  for (let at = 0; at < bytes.length; at += step) {
    const part = bytes.slice(at, at + step);
    if (outcome) outcome.stream.decrypt(part, part);
    else outcome = end.receive(part);
    end.take();
  }
  return outcome;
}

function fate(make: () => MseHandshake, bytes: Uint8Array, step: number): string {
  try {
    return String(feed(make(), bytes, step)?.method);
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    return "refused";
  }
}

function target(name: string, side: 0 | 1, make: () => MseHandshake): FuzzTarget {
  return {
    name,
    maxBytes: 4096,
    corpus: () => recorded(side),
    extremes: () => [new Uint8Array(4096).fill(1), concatBytes([recorded(side)[0]!, new Uint8Array(60_000)])],
    run(bytes) {
      const outcome = feed(make(), bytes, 4096);
      // The result does not depend on how the bytes are split.
      if (bytes.length % 16 === 0) {
        const other = fate(make, bytes, 61);
        if (other !== String(outcome?.method)) throw new Error(`in parts it is ${other}`);
      }
      return outcome;
    },
  };
}

export const targets: readonly FuzzTarget[] = [
  target("MseResponder", 0, makeAnswerer),
  target("MseInitiator", 1, makeCaller),
];
