import type { Instant } from "../base/time.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../media/timestamps.ts";
import { type ScannedUnit, UnitScanner } from "../media/unit-scanner.ts";

/** Time over which the speed is measured. */
const SPEED_MS = 12_000;
/** A source is too slow if the player waits for more than this share of the time, and gets less than that share of its media. */
const WAITING_SHARE = 0.9;
const MIN_SPEED = 0.7;
/** Media time over which the bitrate is measured, and that must be known before it. */
const RATE_SECONDS = 8;
const KNOWN_SECONDS = 24;
/** The bitrate has collapsed below this share of the usual one: the picture is black or still. */
const COLLAPSED_SHARE = 0.12;
/** Weight of a measured bitrate in the usual one. */
const RATE_WEIGHT = 0.2;
/** A source repeats itself after one whole repetition of at least 20 s, or 45 s of a longer one: advertisements are shorter. */
const MIN_REPEATED_SECONDS = 20;
const MAX_REPEATED_SECONDS = 45;
/** A still picture repeats fewer different key frames than this. */
const MIN_DIFFERENT_KEYS = 4;
/** Key frames that are remembered: two hours. */
const MAX_KEYS = 4_096;
const MAX_STEP_TICKS = 3 * TICKS_PER_SECOND;

interface Sample {
  readonly at: Instant;
  readonly waitedMs: number;
  readonly mediaSeconds: number;
}

/** Detects a source that delivers, but is too slow, repeats itself, or whose bitrate collapsed. */
export class SourceWatch {
  readonly #scanner = new UnitScanner();
  #lastDts: number | undefined;
  /** Media time so far. */
  #seconds = 0;
  #samples: Sample[] = [];
  #rateFrom = { seconds: 0, bytes: 0 };
  #usualRate: number | undefined;
  #hasCollapsed = false;
  readonly #repeats = new RepeatDetector();

  /** Takes the next packets, for which the player waited `waitedMs`. */
  push(packets: Uint8Array, now: Instant, waitedMs: number): void {
    for (const unit of this.#scanner.push(packets)) this.#add(unit);
    this.#samples.push({ at: now, waitedMs, mediaSeconds: this.#seconds });
    while (this.#samples.length > 2 && now - this.#samples[1]!.at >= SPEED_MS) this.#samples.shift();
  }

  /** Media time so far, in seconds. */
  get mediaSeconds(): number {
    return this.#seconds;
  }

  /** Why another source is better; undefined if this one plays well. */
  get fault(): string | undefined {
    if (this.#repeats.isRepeating) return "the source repeats itself";
    if (this.#hasCollapsed) return "the bitrate of the source has collapsed";
    return this.#isSlow() ? "the source is slower than it plays" : undefined;
  }

  #isSlow(): boolean {
    const [first, ...others] = this.#samples;
    const last = others.at(-1);
    if (first === undefined || last === undefined || last.at - first.at < SPEED_MS) return false;
    const elapsedMs = last.at - first.at;
    const waitedMs = others.reduce((sum, sample) => sum + sample.waitedMs, 0);
    const speed = (1000 * (last.mediaSeconds - first.mediaSeconds)) / elapsedMs;
    return waitedMs >= WAITING_SHARE * elapsedMs && speed < MIN_SPEED;
  }

  #add(unit: ScannedUnit): void {
    const step = this.#lastDts === undefined ? 0 : deltaTicks(unit.dts, this.#lastDts);
    this.#lastDts = unit.dts;
    if (step > 0 && step < MAX_STEP_TICKS) this.#seconds += step / TICKS_PER_SECOND;
    if (unit.isKey) this.#repeats.add(unit.print, this.#seconds);
    const seconds = this.#seconds - this.#rateFrom.seconds;
    if (seconds < RATE_SECONDS) return;
    this.#addRate((this.#scanner.mediaBytes - this.#rateFrom.bytes) / seconds);
    this.#rateFrom = { seconds: this.#seconds, bytes: this.#scanner.mediaBytes };
  }

  #addRate(rate: number): void {
    const usual = this.#usualRate ?? rate;
    this.#hasCollapsed = this.#seconds > KNOWN_SECONDS && rate < COLLAPSED_SHARE * usual;
    if (!this.#hasCollapsed) this.#usualRate = usual + RATE_WEIGHT * (rate - usual);
  }
}

/** Finds a sequence of key frames that follows itself again. */
class RepeatDetector {
  isRepeating = false;
  /** The key frames so far; older ones are dropped in halves. */
  #keys: { readonly print: number; readonly seconds: number }[] = [];
  readonly #lastPlace = new Map<number, number>();
  /** The distance at which the last key frames repeat earlier ones, in places; the time at which that began; which ones. */
  #distance = 0;
  #since = 0;
  readonly #repeated = new Set<number>();

  add(print: number, seconds: number): void {
    if (this.#keys.length >= MAX_KEYS) this.#forget();
    const place = this.#keys.length;
    const isContinued = this.#distance > 0 && this.#keys[place - this.#distance]?.print === print;
    if (!isContinued) {
      const before = this.#lastPlace.get(print);
      this.#distance = before === undefined ? 0 : place - before;
      this.#since = seconds;
      this.#repeated.clear();
    }
    this.#repeated.add(print);
    const period = this.#distance === 0 ? 0 : seconds - this.#keys[place - this.#distance]!.seconds;
    const needed = Math.min(MAX_REPEATED_SECONDS, Math.max(MIN_REPEATED_SECONDS, period));
    this.isRepeating =
      isContinued && seconds - this.#since >= needed && this.#repeated.size >= MIN_DIFFERENT_KEYS;
    this.#keys.push({ print, seconds });
    this.#lastPlace.set(print, place);
  }

  #forget(): void {
    this.#keys = this.#keys.slice(MAX_KEYS / 2);
    this.#lastPlace.clear();
    for (const [place, { print }] of this.#keys.entries()) this.#lastPlace.set(print, place);
    this.#distance = 0;
  }
}
