import * as v from "valibot";
import { followRecords } from "../async/records.ts";
import type { Log } from "../base/log.ts";
import type { UnixSeconds } from "../base/time.ts";
import type { KeyValueStore } from "../runtime/contract.ts";
import type { ChannelHealth, Health, ProbeResult } from "./health-contract.ts";

const PREFIX = "health/";
/** More channels than can be visited in a day. The record that was written longest ago is removed first. */
const MAX_RECORDS = 20_000;
/** Visits that count for the availability. */
const MAX_VISITS = 8;
/** A stream counts as weak if it arrives at less than this share of its bitrate. */
const MIN_SPEED = 0.9;
const MAX_PROBLEM = 200;

const amount = v.pipe(v.number(), v.minValue(0));
const names = v.pipe(v.array(v.pipe(v.string(), v.maxLength(40))), v.maxLength(32));
const record = v.object({
  at: amount,
  /** One digit for each of the last visits, the newest last: 1 if the channel played. */
  visits: v.pipe(v.string(), v.regex(/^[01]{1,8}$/)),
  problem: v.optional(v.pipe(v.string(), v.maxLength(MAX_PROBLEM))),
  last: v.optional(
    v.object({
      isAlive: v.literal(true),
      startMs: amount,
      receivedPerSecond: amount,
      facts: v.object({
        bytesPerSecond: amount,
        codecs: names,
        width: amount,
        height: amount,
        languages: names,
        isMoving: v.optional(v.boolean()),
      }),
    }),
  ),
});
type HealthRecord = v.InferOutput<typeof record>;

/** The stored results of all visits. */
export class HealthRecords implements ChannelHealth {
  readonly #store: KeyValueStore;
  /** The one written longest ago first. */
  readonly #records = new Map<string, HealthRecord>();

  private constructor(store: KeyValueStore) {
    this.#store = store;
  }

  /** Loads the records; invalid ones are logged and skipped. */
  static async load(store: KeyValueStore, log: Log): Promise<HealthRecords> {
    const records = new HealthRecords(store);
    const found: [string, HealthRecord][] = [];
    for await (const [key, value] of store.list(PREFIX)) {
      const read = v.safeParse(record, value);
      if (read.success) found.push([key.slice(PREFIX.length), read.output]);
      else log.warn("skipped an invalid record of a channel's health", { key });
    }
    for (const [content, read] of found.sort((a, b) => a[1].at - b[1].at))
      records.#records.set(content, read);
    followRecords(store, PREFIX, (key, value) => {
      const read = v.safeParse(record, value);
      records.#records.delete(key.slice(PREFIX.length));
      if (read.success) records.#records.set(key.slice(PREFIX.length), read.output);
    });
    return records;
  }

  get(content: string): Health | undefined {
    const found = this.#records.get(content);
    if (found === undefined) return undefined;
    const { at, visits, problem, last } = found;
    return {
      status: statusOf(found),
      availability: [...visits].filter((visit) => visit === "1").length / visits.length,
      checkedAt: at as UnixSeconds,
      last: last && { ...last, facts: { ...last.facts, isMoving: last.facts.isMoving } },
      problem,
    };
  }

  async add(content: string, at: UnixSeconds, result: ProbeResult): Promise<void> {
    const before = this.#records.get(content);
    const visits = `${before?.visits ?? ""}${result.isAlive ? 1 : 0}`.slice(-MAX_VISITS);
    const last = result.isAlive ? result : before?.last;
    const problem = result.isAlive ? undefined : result.problem.slice(0, MAX_PROBLEM).toWellFormed();
    const made = { at, visits, ...(problem !== undefined && { problem }), ...(last && { last }) };
    this.#records.delete(content);
    this.#records.set(content, made as HealthRecord);
    const [oldest] = this.#records.size > MAX_RECORDS ? this.#records.keys() : [];
    if (oldest !== undefined) this.#records.delete(oldest);
    await this.#store.commit({
      set: [[PREFIX + content, made]],
      ...(oldest !== undefined && { delete: [PREFIX + oldest] }),
    });
  }
}

function statusOf({ visits, last }: HealthRecord): Health["status"] {
  if (visits.endsWith("00")) return "dead";
  if (visits.endsWith("0") || last === undefined) return "weak";
  return last.receivedPerSecond < MIN_SPEED * last.facts.bytesPerSecond ? "weak" : "alive";
}
