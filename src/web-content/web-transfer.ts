import { orAborted } from "../async/abort.ts";
import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { SwarmFigures } from "../protocol/swarm/contract.ts";
import { NO_FIGURES } from "../protocol/swarm/figures.ts";
import { type AudioRequest, audioKey, type Media, type OpenMedia } from "../remux/contract.ts";
import type {
  ActiveTransfer,
  ByteSource,
  ContentFile,
  EngineSettings,
  WebContent,
} from "../transfer/contract.ts";
import type { SegmentSource, SourceOptions } from "../transfer/segment-source.ts";
import { SharedMedia } from "../transfer/shared-media.ts";
import { HlsStream } from "./hls-programme.ts";
import { openHls } from "./hls-source.ts";
import { RangeFile } from "./range-file.ts";
import { TsSource } from "./ts-source.ts";
import { WebClient, type WebClientDependencies } from "./web-client.ts";

/** Dependencies of every `WebTransfer`. */
export interface WebTransferDependencies extends WebClientDependencies {
  readonly openMedia: OpenMedia;
  readonly settings: Pick<EngineSettings, "segmentSeconds">;
}

/** The transfer of content on a web server: a file read by ranges, or a source of segments. */
export class WebTransfer implements ActiveTransfer {
  readonly infohash: Infohash;
  readonly #deps: WebTransferDependencies;
  readonly #onStop: () => void;
  #version: WebVersion;
  #isStopped = false;

  /** `onStop` is called when it stops. */
  constructor(deps: WebTransferDependencies, infohash: Infohash, content: WebContent, onStop: () => void) {
    this.infohash = infohash;
    this.#deps = deps;
    this.#onStop = onStop;
    this.#version = new WebVersion(deps, infohash, content);
  }

  get name(): string {
    return this.#version.content.name;
  }

  get files(): readonly ContentFile[] {
    return this.#version.files;
  }

  get transportType(): "hls" | "wrapper" {
    return this.#version.content.kind === "hls" ? "hls" : "wrapper";
  }

  /** Web content has no peers; bytes received from the server count as downloaded. */
  get figures(): SwarmFigures {
    const { received, clock } = this.#version.client;
    const bytesPerSecondDown = received.bytesPerSecond(clock.now());
    return { ...NO_FIGURES, hasMetadata: true, bytesPerSecondDown, downloaded: received.total };
  }

  /** Compares the result of a new probe with the open content. If the content has changed, closes and reopens it. */
  learn(content: WebContent): void {
    const before = this.#version.content;
    const isSame =
      before.kind === content.kind && before.size === content.size && before.validator === content.validator;
    if (isSame || this.#isStopped) return;
    this.#version.close(
      new SluiceError("broken_media", "the file on the server has changed; start it again"),
    );
    this.#version = new WebVersion(this.#deps, this.infohash, content);
  }

  get segmentSource(): ((signal: AbortSignal, options: SourceOptions) => Promise<SegmentSource>) | undefined {
    const version = this.#version;
    return version.content.kind === "file"
      ? undefined
      : (signal, options) => version.segments(signal, options);
  }

  async ready(): Promise<void> {
    if (this.#isStopped) throw stopped();
  }

  get isUnreachable(): boolean {
    return this.#version.stream?.isUnreachable === true;
  }

  setIdle(isIdle: boolean): void {
    if (isIdle) this.#version.stream?.rest();
  }

  source(fileIndex: number): ByteSource {
    return this.#version.file(fileIndex).source();
  }

  media(fileIndex: number, audio: AudioRequest, signal?: AbortSignal): Promise<Media> {
    return this.#version.media(fileIndex, audio, signal);
  }

  progress(): number {
    return this.#version.progress;
  }

  headBytes(): number {
    return Math.min(
      this.#version.client.received.total,
      this.#version.files[0]?.size || Number.MAX_SAFE_INTEGER,
    );
  }

  addTrackers(): void {}

  addPeers(): void {}

  transportFile(): undefined {
    return undefined;
  }

  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#version.close(stopped());
    this.#onStop();
  }
}

/** One version of the content with its connections; replaced as a whole when the content changes on the server. */
class WebVersion {
  readonly content: WebContent;
  readonly client: WebClient;
  readonly files: readonly ContentFile[];
  readonly #deps: WebTransferDependencies;
  readonly #file: RangeFile | undefined;
  readonly #media = new Map<string, SharedMedia>();
  /** Exactly one of `#file`, `#hls` and `stream` is set. */
  readonly #hls: HlsStream | undefined;
  readonly stream: TsSource | undefined;

  constructor(deps: WebTransferDependencies, infohash: Infohash, content: WebContent) {
    this.content = content;
    this.#deps = deps;
    this.client = new WebClient(deps, content);
    const { name, size, mime, kind } = content;
    this.files = [{ index: 0, name, size, offset: 0, mime, isPlayable: true }];
    if (kind === "file") this.#file = new RangeFile(this.client, content);
    if (kind === "hls") this.#hls = new HlsStream(this.client, content, infohash);
    if (kind === "stream") this.stream = new TsSource(this.client, content, infohash);
  }

  get progress(): number {
    return this.#file?.progress ?? 0;
  }

  file(index: number): RangeFile {
    if (index === 0 && this.#file) return this.#file;
    const what =
      index === 0 ? "this is a live stream, which has no file" : `expected the file index 0, got ${index}`;
    throw new SluiceError("no_such_file", what);
  }

  media(index: number, audio: AudioRequest, signal: AbortSignal | undefined): Promise<Media> {
    const source = this.file(index).source();
    const key = audioKey(audio);
    let shared = this.#media.get(key);
    if (!shared) {
      shared = new SharedMedia(this.#deps.openMedia, source, audio, this.#deps.settings.segmentSeconds);
      this.#media.set(key, shared);
    }
    return shared.get(signal);
  }

  /** Returns the segment source for `options`; sessions with equal options share it. */
  segments(signal: AbortSignal, options: SourceOptions): Promise<SegmentSource> {
    if (this.#hls) return orAborted(openHls(this.#hls, options), signal);
    return Promise.resolve(this.stream!);
  }

  close(reason: SluiceError): void {
    this.client.stopped.abort(reason);
    this.#file?.close(reason);
    for (const media of this.#media.values()) media.close(reason);
  }
}

function stopped(): SluiceError {
  return new SluiceError("session_stopped", "the transfer was stopped");
}
