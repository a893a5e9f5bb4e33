import type { DiagnosisRow } from "../../base/diagnosis.ts";
import type { Instant } from "../../base/time.ts";
import type { Clock } from "../../runtime/contract.ts";

/** Channels that the diagnosis shows; the session limit bounds those that are played. */
const MAX_ROWS = 50;

/** The channels that are played and which of their sources each plays. */
export class PlayedChannels {
  readonly #clock: Pick<Clock, "now">;
  readonly #channels = new Set<ChannelReport>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** Adds a channel; its report removes it. */
  open(title: string, sourceCount: number): ChannelReport {
    const report = new ChannelReport(this.#clock, title, sourceCount, () => this.#channels.delete(report));
    this.#channels.add(report);
    return report;
  }

  /** One finding for each channel. */
  rows(): DiagnosisRow[] {
    return [...this.#channels].slice(0, MAX_ROWS).map((channel) => channel.row());
  }
}

/** What one channel reports about its sources. */
export class ChannelReport {
  readonly #clock: Pick<Clock, "now">;
  readonly title: string;
  readonly #sourceCount: number;
  /** Removes the channel. */
  readonly close: () => void;
  /** The source that was played last; its index counts from 0. */
  #source: { readonly index: number; readonly name: string } | undefined;
  #showsPattern = false;
  /** The first failure since a source was played. */
  #failure: string | undefined;
  #switches = 0;
  #lastSwitch: { readonly at: Instant; readonly reason: string } | undefined;

  constructor(clock: Pick<Clock, "now">, title: string, sourceCount: number, close: () => void) {
    this.#clock = clock;
    this.title = title;
    this.#sourceCount = sourceCount;
    this.close = close;
  }

  /** A source failed. */
  failed(name: string, reason: string): void {
    this.#failure ??= `${name}: ${reason}`;
  }

  /** The next source is played for this reason. */
  switches(reason: string): void {
    this.#failure = reason;
  }

  /** Players see the test pattern. */
  showsPattern(): void {
    this.#showsPattern = true;
  }

  /** Players see this source. */
  plays(index: number, name: string): void {
    const previous = this.#source;
    if (previous && previous.index !== index) {
      this.#switches++;
      const reason = this.#failure ?? `${previous.name} sent nothing`;
      this.#lastSwitch = { at: this.#clock.now(), reason };
    }
    this.#source = { index, name };
    this.#showsPattern = false;
    this.#failure = undefined;
  }

  row(): DiagnosisRow {
    const title = `“${this.title}”`;
    if (this.#showsPattern) {
      const why = this.#failure === undefined ? "" : ` (${this.#failure})`;
      const text = `No source of ${title} delivers${why}; players see the test pattern.`;
      return { name: "Channel", level: "warn", text };
    }
    if (this.#source === undefined)
      return { name: "Channel", level: "ok", text: `${title} waits for its first source.` };
    const { index, name } = this.#source;
    const playing = `${title} plays ${name}, source ${index + 1} of ${this.#sourceCount}`;
    if (this.#lastSwitch === undefined) return { name: "Channel", level: "ok", text: `${playing}.` };
    const { at, reason } = this.#lastSwitch;
    const seconds = Math.round((this.#clock.now() - at) / 1000);
    const count = this.#switches === 1 ? "1 switch" : `${this.#switches} switches`;
    const text = `${playing}, after ${count}, the last one ${seconds} s ago (${reason}).`;
    return { name: "Channel", level: "note", text };
  }
}
