import { familyOf, type PeerAddress } from "../../base/address.ts";
import { DecodeError } from "../../base/errors.ts";
import { TokenBucket } from "../../base/rate.ts";
import type { Clock, Runtime } from "../../runtime/contract.ts";
import { ConnectionIds } from "../../swarm/tracker/connection-ids.ts";
import type { Tracker } from "../../swarm/tracker/tracker.ts";
import {
  decodeUdpQuestion,
  encodeUdpAnswer,
  encodeUdpConnected,
  encodeUdpRefusal,
  encodeUdpScrapeAnswer,
  type UdpQuestion,
} from "../../wire/tracker-server-udp.ts";
import type { SharedUdp } from "./contract.ts";

/** What the UDP side of a tracker is made of. */
export interface TrackerUdpParts {
  readonly udp: Pick<SharedUdp, "send" | "listen">;
  readonly tracker: Tracker;
  readonly runtime: Pick<Runtime, "sha256" | "randomBytes"> & { readonly clock: Pick<Clock, "now"> };
}

/** Answers a second to addresses that nobody has proven to be theirs: those of a flood are made up, and each answer goes to
 * a stranger. None is longer than its question. */
const UNPROVEN_PER_SECOND = 500;
const UNPROVEN_BURST = 1000;

/** Answers a tracker's questions on the shared UDP port (BEP 15). What is not understood is not answered. */
export function serveUdpTracker({ udp, tracker, runtime }: TrackerUdpParts): void {
  const ids = new ConnectionIds(runtime.sha256, runtime.randomBytes(32));
  const unproven = new TokenBucket(UNPROVEN_PER_SECOND, UNPROVEN_BURST);
  udp.listen("tracker", (bytes, from) => {
    const question = readQuestion(bytes);
    if (!question) return;
    const now = runtime.clock.now();
    const { transaction } = question;
    if (question.kind === "connect") {
      if (unproven.take(1, now)) udp.send(encodeUdpConnected(transaction, ids.give(from.host, now)), from);
    } else if (ids.isOurs(question.connectionId, from.host, now)) {
      udp.send(answerTo(question, from, tracker, now), from);
    } else if (unproven.take(1, now)) {
      // Who comes again after a restart of ours asks for a new id then. Shorter than any question.
      udp.send(encodeUdpRefusal(transaction, "old id"), from);
    }
  });
}

function readQuestion(bytes: Uint8Array): UdpQuestion | undefined {
  try {
    return decodeUdpQuestion(bytes);
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    return undefined;
  }
}

function answerTo(
  question: Exclude<UdpQuestion, { kind: "connect" }>,
  { host }: PeerAddress,
  tracker: Tracker,
  now: ReturnType<Clock["now"]>,
): Uint8Array {
  const { transaction } = question;
  const asker = { host, isForeign: false };
  const refusal = tracker.admits(asker, now);
  if (refusal) return encodeUdpRefusal(transaction, refusal.refused);
  if (question.kind === "scrape") {
    const counts = question.infohashes.map((infohash) => tracker.counts(infohash, now));
    return encodeUdpScrapeAnswer(transaction, counts);
  }
  const family = familyOf(host);
  const answer = tracker.announce(question.announce, asker, now, family);
  return "refused" in answer
    ? encodeUdpRefusal(transaction, answer.refused)
    : encodeUdpAnswer(transaction, answer, family);
}
