import { addressText } from "../../base/address.ts";
import { messageOf, SluiceError } from "../../base/errors.ts";
import type { LiveFeed, LiveInputFacts, RunEncoder, WebFeedDependencies } from "./source-feed.ts";
import type { SrtPlace } from "./source-place.ts";
import { ReopenedFeed } from "./source-reopened.ts";
import { StreamFeed } from "./source-stream.ts";

/** What SRT sources depend on. */
export interface SrtDependencies extends Pick<WebFeedDependencies, "clock" | "log"> {
  /** Finds ffmpeg. Rejects with `bad_configuration`. */
  openEncoder(): Promise<RunEncoder>;
}

/** Messages of an ffmpeg that was built without SRT. */
const WITHOUT_SRT = /protocol not found/i;

/** The MPEG-TS of an SRT connection, which ffmpeg receives and passes on unchanged. After each connection it listens or connects again. */
export class SrtFeed extends ReopenedFeed {
  readonly #place: SrtPlace;
  readonly #streamKey: string;
  readonly #dependencies: SrtDependencies;

  /** `streamKey` encrypts connections to this machine, unless the place has a passphrase. */
  constructor(place: SrtPlace, streamKey: string, dependencies: SrtDependencies, facts: LiveInputFacts) {
    super(dependencies, facts);
    this.#place = place;
    this.#streamKey = streamKey;
    this.#dependencies = dependencies;
  }

  protected began(): void {
    this.facts.starts++;
    this.facts.problem = undefined;
  }

  protected ended(): string {
    return this.#place.isListener
      ? "the publishing program has disconnected"
      : "the server ended the connection";
  }

  /** Throws also if this machine cannot listen, or if ffmpeg is missing or lacks SRT. */
  protected failed(thrown: unknown, hasWorked: boolean): string {
    if (!(thrown instanceof SluiceError) || thrown.code === "bad_configuration") throw thrown;
    const reason = messageOf(thrown);
    if (WITHOUT_SRT.test(reason))
      throw new SluiceError(
        "bad_configuration",
        "the program ffmpeg was built without SRT; install another one",
      );
    if (this.#place.isListener && !hasWorked)
      throw new SluiceError(
        "bad_parameter",
        `cannot receive SRT at ${addressText(this.#place.address)} (${reason}); name an address of this machine, or 0.0.0.0, and a free port`,
      );
    return reason;
  }

  protected async open(signal: AbortSignal): Promise<LiveFeed> {
    if (this.#place.isListener) this.facts.problem ??= "no program publishes to this address yet";
    const run = await this.#dependencies.openEncoder();
    signal.throwIfAborted();
    return new StreamFeed(
      run(srtArguments(this.#place, this.#streamKey), new Blob().stream(), signal),
      this.facts,
    );
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
