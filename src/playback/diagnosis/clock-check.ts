import type { DiagnosisRow } from "../../base/diagnosis.ts";
import type { Outbound } from "../../outbound/outbound.ts";
import type { Clock } from "../../runtime/contract.ts";

/** Servers round to seconds, and a response takes time. */
const TOLERATED_SECONDS = 5;
/** Certificates and tokens may fail beyond this difference; live streams tolerate more. */
const BAD_SECONDS = 120;
/** The median of this many responses counts, because one server may be wrong. */
const MAX_RESPONSES = 9;

/** Compares our clock with the `Date` headers (RFC 9110 6.6.1) of servers that are contacted anyway. */
export class ClockCheck {
  readonly #clock: Clock;
  readonly #behindSeconds: number[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Wraps an HTTP client and records the dates of its responses. */
  watch(outbound: Outbound): Outbound {
    return {
      get: async (url, options) => this.#record(await outbound.get(url, options)),
      open: async (url, options) => this.#record(await outbound.open(url, options)),
    };
  }

  /** Returns the result; undefined before the first date. */
  row(): DiagnosisRow | undefined {
    const sorted = [...this.#behindSeconds].sort((a, b) => a - b);
    const behind = sorted[sorted.length >> 1];
    if (behind === undefined) return undefined;
    const differenceSeconds = Math.abs(behind);
    const name = "Clock";
    if (differenceSeconds <= TOLERATED_SECONDS)
      return { name, level: "ok", text: "The clock of this machine agrees with those of servers." };
    return {
      name,
      level: differenceSeconds > BAD_SECONDS ? "fail" : "warn",
      text: `The clock of this machine is ${Math.round(differenceSeconds)} s ${behind > 0 ? "behind" : "ahead of"} those of servers.`,
      advice: "Let the system set its clock over the network (NTP).",
    };
  }

  #record<T extends { readonly headers: Headers }>(response: T): T {
    const at = Date.parse(response.headers.get("date") ?? "");
    if (Number.isFinite(at)) {
      this.#behindSeconds.push(at / 1000 - this.#clock.unixSeconds());
      if (this.#behindSeconds.length > MAX_RESPONSES) this.#behindSeconds.shift();
    }
    return response;
  }
}
