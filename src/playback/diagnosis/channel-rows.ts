import type { DiagnosisRow } from "../../base/diagnosis.ts";
import type { SwarmFigures } from "../../protocol/swarm/contract.ts";
import type { Clock } from "../../runtime/contract.ts";
import type { ChannelState, ChannelWatch } from "../../transfer/channel-contract.ts";

/** Channels that the diagnosis shows; the session limit bounds those that are played. */
const MAX_ROWS = 50;

/** The channels that are played and which of their sources each plays. */
export class PlayedChannels {
  readonly #clock: Pick<Clock, "unixSeconds">;
  readonly #channels = new Set<ChannelReport>();

  constructor(clock: Pick<Clock, "unixSeconds">) {
    this.#clock = clock;
  }

  /** Returns the report of a channel, which is shown while the channel is played. */
  report(title: string, sourceCount: number): ChannelReport {
    return new ChannelReport(this.#clock, title, sourceCount, this.#channels);
  }

  /** One finding for each channel. */
  rows(): DiagnosisRow[] {
    return [...this.#channels].slice(0, MAX_ROWS).map((channel) => channel.row());
  }
}

/** What one channel reports about its sources. */
export class ChannelReport implements ChannelWatch {
  readonly #clock: Pick<Clock, "unixSeconds">;
  readonly #shown: Set<ChannelReport>;
  readonly #listeners = new Set<(state: ChannelState) => void>();
  #state: ChannelState;
  #figures: (() => SwarmFigures | undefined) | undefined;
  /** Index of the source that was played last. */
  #lastIndex: number | undefined;
  /** The first failure since a source was played. */
  #failure: string | undefined;

  constructor(
    clock: Pick<Clock, "unixSeconds">,
    title: string,
    sourceCount: number,
    shown: Set<ChannelReport>,
  ) {
    this.#clock = clock;
    this.#shown = shown;
    this.#state = {
      title,
      sourceCount,
      source: undefined,
      showsPattern: false,
      switches: 0,
      lastSwitch: undefined,
    };
  }

  get state(): ChannelState {
    return this.#state;
  }

  /** The figures of the source that is played. */
  get figures(): SwarmFigures | undefined {
    return this.#figures?.();
  }

  onChange(changed: (state: ChannelState) => void): () => void {
    this.#listeners.add(changed);
    return () => this.#listeners.delete(changed);
  }

  /** The channel is played from now on. */
  open(): void {
    this.#shown.add(this);
  }

  /** The channel is not played any more. */
  close(): void {
    this.#shown.delete(this);
    this.#figures = undefined;
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
    this.#figures = undefined;
    this.#change({ source: undefined, showsPattern: true });
  }

  /** Players see this source. */
  plays(index: number, name: string, figures?: () => SwarmFigures | undefined): void {
    const { source, switches, lastSwitch } = this.#state;
    const before = source?.name ?? "the previous source";
    const reason = this.#failure ?? `${before}: it sent nothing`;
    const isSwitch = this.#lastIndex !== undefined && this.#lastIndex !== index;
    this.#lastIndex = index;
    this.#failure = undefined;
    this.#figures = figures;
    this.#change({
      source: { index, name },
      showsPattern: false,
      switches: switches + (isSwitch ? 1 : 0),
      lastSwitch: isSwitch ? { at: this.#clock.unixSeconds(), reason } : lastSwitch,
    });
  }

  row(): DiagnosisRow {
    const { title: name, source, showsPattern, sourceCount, switches, lastSwitch } = this.#state;
    const title = `“${name}”`;
    if (showsPattern) {
      const why = this.#failure === undefined ? "" : ` (${this.#failure})`;
      const text = `No source of ${title} delivers${why}; players see the test pattern.`;
      return { name: "Channel", level: "warn", text };
    }
    if (source === undefined)
      return { name: "Channel", level: "ok", text: `${title} waits for its first source.` };
    const playing = `${title} plays ${source.name}, source ${source.index + 1} of ${sourceCount}`;
    if (lastSwitch === undefined) return { name: "Channel", level: "ok", text: `${playing}.` };
    const seconds = Math.round(this.#clock.unixSeconds() - lastSwitch.at);
    const count = switches === 1 ? "1 switch" : `${switches} switches`;
    const text = `${playing}, after ${count}, the last one ${seconds} s ago (${lastSwitch.reason}).`;
    return { name: "Channel", level: "note", text };
  }

  #change(changed: Partial<ChannelState>): void {
    this.#state = { ...this.#state, ...changed };
    for (const listener of [...this.#listeners]) listener(this.#state);
  }
}
