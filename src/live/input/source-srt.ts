import { addressText } from "../../base/address.ts";
import { messageOf, SluiceError } from "../../base/errors.ts";
import {
  type LiveFeed,
  type LiveInputFacts,
  type RunEncoder,
  type WebFeedDependencies,
  waitForRetry,
} from "./source-feed.ts";
import type { SrtPlace } from "./source-place.ts";
import { StreamFeed } from "./source-stream.ts";

/** What SRT sources depend on. */
export interface SrtDependencies extends Pick<WebFeedDependencies, "clock" | "log"> {
  /** Finds ffmpeg. Rejects with `bad_configuration`. */
  openEncoder(): Promise<RunEncoder>;
}

/** Messages of an ffmpeg that was built without SRT. */
const WITHOUT_SRT = /protocol not found/i;

/** The MPEG-TS of an SRT connection, which ffmpeg receives and passes on unchanged. After each connection it listens or connects again. */
export class SrtFeed implements LiveFeed {
  readonly #place: SrtPlace;
  readonly #streamKey: string;
  readonly #dependencies: SrtDependencies;
  readonly #facts: LiveInputFacts;
  readonly #closed = new AbortController();
  #feed: LiveFeed | undefined;
  #hasWorked = false;
  /** Consecutive attempts without data. */
  #failures = 0;

  /** `streamKey` encrypts connections to this machine, unless the place has a passphrase. */
  constructor(place: SrtPlace, streamKey: string, dependencies: SrtDependencies, facts: LiveInputFacts) {
    this.#place = place;
    this.#streamKey = streamKey;
    this.#dependencies = dependencies;
    this.#facts = facts;
  }

  async next(): Promise<Uint8Array | undefined> {
    const { signal } = this.#closed;
    const { isListener } = this.#place;
    while (!signal.aborted) {
      let isNew = false;
      try {
        if (!this.#feed) {
          if (isListener) this.#facts.problem ??= "no program publishes to this address yet";
          this.#feed = await this.#open();
          isNew = true;
        }
        const packets = await this.#feed.next();
        if (packets) {
          if (isNew) this.#begin();
          return packets;
        }
        this.#facts.problem = isListener
          ? "the publishing program has disconnected"
          : "the server ended the connection";
      } catch (thrown) {
        if (signal.aborted) return undefined;
        this.#noteFailure(thrown);
      }
      this.#drop();
      await waitForRetry(this.#dependencies, this.#facts.problem, ++this.#failures, signal);
    }
    return undefined;
  }

  close(): void {
    this.#closed.abort(new SluiceError("cancelled", "the broadcast ended"));
    this.#drop();
  }

  #begin(): void {
    this.#hasWorked = true;
    this.#failures = 0;
    this.#facts.starts++;
    this.#facts.problem = undefined;
  }

  /** Throws if a retry cannot help: this machine cannot listen, or ffmpeg is missing or lacks SRT. */
  #noteFailure(thrown: unknown): void {
    if (!(thrown instanceof SluiceError) || thrown.code === "bad_configuration") throw thrown;
    const reason = messageOf(thrown);
    if (WITHOUT_SRT.test(reason))
      throw new SluiceError(
        "bad_configuration",
        "the program ffmpeg was built without SRT; install another one",
      );
    if (this.#place.isListener && !this.#hasWorked)
      throw new SluiceError(
        "bad_parameter",
        `cannot receive SRT at ${addressText(this.#place.address)} (${reason}); name an address of this machine, or 0.0.0.0, and a free port`,
      );
    this.#facts.problem = reason;
  }

  async #open(): Promise<LiveFeed> {
    const run = await this.#dependencies.openEncoder();
    const { signal } = this.#closed;
    signal.throwIfAborted();
    return new StreamFeed(
      run(srtArguments(this.#place, this.#streamKey), new Blob().stream(), signal),
      this.#facts,
    );
  }

  #drop(): void {
    this.#feed?.close();
    this.#feed = undefined;
  }
}

/** Arguments of ffmpeg that receive a connection. Values are separate arguments, so they cannot change the meaning of others. */
function srtArguments({ address, isListener, passphrase, streamId }: SrtPlace, streamKey: string): string[] {
  const key = passphrase ?? (isListener ? streamKey : undefined);
  return [
    ...["-loglevel", "error", "-protocol_whitelist", "srt", "-f", "data"],
    ...["-mode", isListener ? "listener" : "caller"],
    ...(key === undefined ? [] : ["-passphrase", key]),
    ...(streamId === undefined ? [] : ["-srt_streamid", streamId]),
    ...["-i", `srt://${addressText(address)}`],
    // As raw data: the packets stay as they are.
    ...["-map", "0", "-c", "copy", "-f", "data", "-flush_packets", "1"],
  ];
}
