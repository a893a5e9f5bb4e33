import { orAborted } from "../async/abort.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { ProbeResult, ProbeTarget } from "./health-contract.ts";
import { StreamSurvey } from "./stream-survey.ts";

/** A channel that has not sent media after this time does not play: viewers leave earlier. */
const START_MS = 20_000;
/** A visit ends when it has this much media, or this long after the first media, or at this many bytes: 3 s of 16 Mbit/s. */
const MEDIA_MS = 4_000;
const WATCH_MS = 6_000;
const MAX_BYTES = 6 * 1024 * 1024;
/** Less media than this in a whole visit means that the channel does not play. */
const MIN_MEDIA_MS = 500;
/** Speed cannot be told from less time: the first data often arrives at once. */
const MIN_MEASURED_MS = 250;

/**
 * Plays a channel for a few seconds and describes it. Resolves to undefined if its URL may only be fetched for a user. Rejects with
 * the reason of `signal` only.
 */
export async function visit(
  clock: Clock,
  open: ProbeTarget["open"],
  signal: AbortSignal,
): Promise<ProbeResult | undefined> {
  const ended = new AbortController();
  const survey = new StreamSurvey();
  const startAt = clock.now();
  let firstAt: typeof startAt | undefined;
  let problem = "";
  const outOfTime = () => ended.abort(new SluiceError("start_timeout", "no media arrived in time"));
  let cancelTimer = clock.at(after(startAt, START_MS), outOfTime);
  const stop = AbortSignal.any([signal, ended.signal]);
  const isDone = () => survey.mediaMs >= MEDIA_MS || survey.mediaBytes >= MAX_BYTES;
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  const opening = open(stop);
  try {
    reader = (await orAborted(opening, stop)).getReader();
    for (;;) {
      const { done, value } = await orAborted(reader.read(), stop);
      if (done) break;
      survey.push(value);
      if (firstAt === undefined && survey.mediaBytes > 0) {
        firstAt = clock.now();
        cancelTimer();
        cancelTimer = clock.at(after(firstAt, WATCH_MS), outOfTime);
      }
      if (isDone()) break;
    }
    problem = "the stream has too little media";
  } catch (thrown) {
    signal.throwIfAborted();
    if (thrown instanceof SluiceError && thrown.code === "url_refused") return undefined;
    problem = messageOf(thrown);
  } finally {
    cancelTimer();
    ended.abort(new SluiceError("cancelled", "the visit is over"));
    // Closing a stream that failed may fail.
    if (reader) reader.cancel().catch(() => {});
    else opening.then((late) => late.cancel()).catch(() => {});
  }
  if (firstAt === undefined || survey.mediaMs < MIN_MEDIA_MS) return { isAlive: false, problem };
  const measuredMs = Math.max(MIN_MEASURED_MS, clock.now() - firstAt);
  return {
    isAlive: true,
    startMs: Math.round(firstAt - startAt),
    receivedPerSecond: Math.round((1000 * survey.mediaBytes) / measuredMs),
    facts: survey.facts(),
  };
}
