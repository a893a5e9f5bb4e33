import { sleep } from "../async/sleep.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Bucket } from "../outbound/bucket.ts";
import type { Clock } from "../runtime/contract.ts";

/** The bucket may exceed its limit by what is uploaded in this time. */
const INTERVAL_MS = 3_600_000;
/** If the limit is exceeded, content is removed until this share of it is left. */
const KEPT_SHARE = 0.9;

/** Size of one content in the bucket. */
interface Stored {
  bytes: number;
  /** When its latest object was written: each engine that opens the content writes the transport file again. */
  usedMs: number;
}

/** Keeps the bucket below its limit until the signal fires: each hour the least recently opened content is removed. Several engines may
 * do this for one bucket. Without a limit it only asks the server once, so that the log tells at the start if the bucket cannot be used. */
export async function limitBucket(
  bucket: Bucket,
  clock: Clock,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  const { limitBytes } = bucket.place;
  while (!signal.aborted) {
    try {
      if (limitBytes === undefined) await bucket.list("", signal).next();
      else await removeOldest(bucket, limitBytes, log, signal);
    } catch (error) {
      if (!signal.aborted) log.warn("cannot list the bucket", { reason: messageOf(error) });
    }
    if (limitBytes === undefined) return;
    await sleep(clock, INTERVAL_MS, signal);
  }
}

async function removeOldest(
  bucket: Bucket,
  limitBytes: number,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  const contents = new Map<string, Stored>();
  let bytes = 0;
  for await (const object of bucket.list("", signal)) {
    // Objects of other programs are neither counted nor removed.
    const infohash = /^([0-9a-f]{40})\//.exec(object.key)?.[1];
    if (infohash === undefined) continue;
    const stored = contents.get(infohash) ?? { bytes: 0, usedMs: 0 };
    stored.bytes += object.bytes;
    stored.usedMs = Math.max(stored.usedMs, object.modifiedMs);
    contents.set(infohash, stored);
    bytes += object.bytes;
  }
  if (bytes <= limitBytes) return;
  const oldestFirst = [...contents].sort(([, a], [, b]) => a.usedMs - b.usedMs);
  for (const [infohash, stored] of oldestFirst) {
    if (bytes <= KEPT_SHARE * limitBytes) return;
    for await (const { key } of bucket.list(`${infohash}/`, signal)) await bucket.remove(key, signal);
    bytes -= stored.bytes;
    log.info("removed content from the bucket", { infohash, bytes: stored.bytes });
  }
}
