import type { Outbound } from "../../outbound/outbound.ts";
import type { Clock } from "../../runtime/contract.ts";
import type { DiagnosisRow } from "./contract.ts";

/** Servers round to seconds, and answers take their time. */
const TOLERATED_SECONDS = 5;
/** Live streams are joined across such a difference, but certificates and tokens may fail beyond it. */
const BAD_SECONDS = 120;
/** The middle of the last answers counts: one server may be wrong. */
const MAX_ANSWERS = 9;

/** Compares our clock with those of servers that are asked anyway, by the Date that they answer with (RFC 9110 6.6.1). */
export class ClockCheck {
  readonly #clock: Clock;
  readonly #behindSeconds: number[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The same client, of whose answers the dates are noted. */
  watch(outbound: Outbound): Outbound {
    return {
      get: async (url, options) => this.#noted(await outbound.get(url, options)),
      open: async (url, options) => this.#noted(await outbound.open(url, options)),
    };
  }

  /** What has come out; undefined where nobody has told the time yet. */
  row(): DiagnosisRow | undefined {
    const sorted = [...this.#behindSeconds].sort((a, b) => a - b);
    const behind = sorted[sorted.length >> 1];
    if (behind === undefined) return undefined;
    const off = Math.abs(behind);
    const name = "Clock";
    if (off <= TOLERATED_SECONDS)
      return { name, level: "ok", text: "Our clock agrees with those of servers." };
    return {
      name,
      level: off > BAD_SECONDS ? "fail" : "warn",
      text: `Our clock is ${Math.round(off)} s ${behind > 0 ? "behind" : "ahead of"} those of servers.`,
      advice: "Let the system set its clock over the network (NTP).",
    };
  }

  #noted<T extends { readonly headers: Headers }>(answer: T): T {
    const at = Date.parse(answer.headers.get("date") ?? "");
    if (Number.isFinite(at)) {
      this.#behindSeconds.push(at / 1000 - this.#clock.unixSeconds());
      if (this.#behindSeconds.length > MAX_ANSWERS) this.#behindSeconds.shift();
    }
    return answer;
  }
}
