import { concatBytes } from "../../../src/base/bytes.ts";
import { DecodeError } from "../../../src/base/errors.ts";
import { seededRandom } from "../../../src/base/random.ts";
import type { MseHandshake, MseOutcome } from "../../../src/swarm/mse/contract.ts";
import { answerer, caller, meet, toolsOf } from "../../swarm/mse/ends.ts";
import type { FuzzTarget } from "../contract.ts";

// The tested end has always the same key, so that a recorded talk goes on however often it is played.
const makeAnswerer = () => answerer(toolsOf(seededRandom(1)));
const makeCaller = () => caller(toolsOf(seededRandom(2)));

/** What the other end of recorded talks said. */
function recorded(side: 0 | 1): Uint8Array[] {
  return Array.from({ length: 8 }, (_, i) => {
    const other = toolsOf(seededRandom(10 + i));
    const talk =
      side === 0 ? meet(caller(other), makeAnswerer(), 4096) : meet(makeCaller(), answerer(other), 4096);
    return concatBytes(talk.sent[side]);
  });
}

/** Feeds an end in parts of `step` bytes, what follows the handshake through its stream. */
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
      // How the bytes are cut changes nothing.
      if (bytes.length % 16 === 0) {
        const other = fate(make, bytes, 61);
        if (other !== String(outcome?.method)) throw new Error(`in parts it is ${other}`);
      }
      return outcome;
    },
  };
}

export const targets: readonly FuzzTarget[] = [
  target("MseAnswerer", 0, makeAnswerer),
  target("MseCaller", 1, makeCaller),
];
