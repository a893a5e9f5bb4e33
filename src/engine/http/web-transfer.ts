import { SluiceError } from "../../base/errors.ts";
import type { Infohash } from "../../base/ids.ts";
import type { Media, OpenMedia } from "../../remux/contract.ts";
import type { SwarmFigures } from "../../swarm/contract.ts";
import { NO_FIGURES } from "../../swarm/figures.ts";
import type { ActiveTransfer, ByteSource, ContentFile, EngineSettings } from "../contract.ts";
import { orAborted } from "../segment-cache.ts";
import type { SegmentSource, SourceWish } from "../segment-source.ts";
import { SharedMedia } from "../shared-media.ts";
import { HlsStream } from "./hls-programme.ts";
import { openHls } from "./hls-source.ts";
import { RangeFile } from "./range-file.ts";
import { TsSource } from "./ts-source.ts";
import { WebClient, type WebParts } from "./web-client.ts";
import type { WebContent } from "./web-content.ts";

/** What all content of web servers shares. */
export interface WebHouse extends WebParts {
  readonly openMedia: OpenMedia;
  readonly settings: Pick<EngineSettings, "segmentSeconds">;
}

/** Content of a web server, as players and the engine know content: a file read by ranges, or a source of segments. */
export class WebTransfer implements ActiveTransfer {
  readonly infohash: Infohash;
  readonly #house: WebHouse;
  readonly #leave: () => void;
  #state: WebState;
  #isStopped = false;

  /** `leave` is called when it stops. */
  constructor(house: WebHouse, infohash: Infohash, content: WebContent, leave: () => void) {
    this.infohash = infohash;
    this.#house = house;
    this.#leave = leave;
    this.#state = new WebState(house, infohash, content);
  }

  get name(): string {
    return this.#state.content.name;
  }

  get files(): readonly ContentFile[] {
    return this.#state.files;
  }

  get transportType(): "hls" | "wrapper" {
    return this.#state.content.kind === "hls" ? "hls" : "wrapper";
  }

  get contentId(): undefined {
    return undefined;
  }

  /** There are no peers; what came from the server counts as downloaded. */
  get figures(): SwarmFigures {
    const { received, clock } = this.#state.client;
    const bytesPerSecondDown = received.bytesPerSecond(clock.now());
    return { ...NO_FIGURES, hasMetadata: true, bytesPerSecondDown, downloaded: received.total };
  }

  /** What the server says now, where it is asked again: what has changed is read anew. */
  learn(content: WebContent): void {
    const before = this.#state.content;
    const isSame =
      before.kind === content.kind && before.size === content.size && before.validator === content.validator;
    if (isSame || this.#isStopped) return;
    this.#state.close(new SluiceError("broken_media", "the file on the server has changed; start it again"));
    this.#state = new WebState(this.#house, this.infohash, content);
  }

  get segmentSource(): ((signal: AbortSignal, wish: SourceWish) => Promise<SegmentSource>) | undefined {
    const state = this.#state;
    return state.content.kind === "file" ? undefined : (signal, wish) => state.segments(signal, wish);
  }

  async ready(): Promise<void> {
    if (this.#isStopped) throw stopped();
  }

  source(fileIndex: number): ByteSource {
    return this.#state.file(fileIndex).source();
  }

  media(fileIndex: number, language: string | undefined, signal?: AbortSignal): Promise<Media> {
    return this.#state.media(fileIndex, language, signal);
  }

  progress(): number {
    return this.#state.progress;
  }

  headBytes(): number {
    return Math.min(this.#state.client.received.total, this.#state.files[0]?.size || Number.MAX_SAFE_INTEGER);
  }

  addTrackers(): void {}

  addPeers(): void {}

  transportFile(): undefined {
    return undefined;
  }

  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#state.close(stopped());
    this.#leave();
  }
}

/** One state of the content: it goes as a whole when the server has something else there. */
class WebState {
  readonly content: WebContent;
  readonly client: WebClient;
  readonly files: readonly ContentFile[];
  readonly #house: WebHouse;
  readonly #file: RangeFile | undefined;
  readonly #media = new Map<string, SharedMedia>();
  /** One of the two, for what comes as segments. */
  readonly #hls: HlsStream | undefined;
  readonly #stream: TsSource | undefined;

  constructor(house: WebHouse, infohash: Infohash, content: WebContent) {
    this.content = content;
    this.#house = house;
    this.client = new WebClient(house, content);
    const { name, size, mime, kind } = content;
    this.files = [{ index: 0, name, size, offset: 0, mime, isPlayable: true }];
    if (kind === "file") this.#file = new RangeFile(this.client, content);
    if (kind === "hls") this.#hls = new HlsStream(this.client, content, infohash);
    if (kind === "stream") this.#stream = new TsSource(this.client, content, infohash);
  }

  get progress(): number {
    return this.#file?.progress ?? 0;
  }

  file(index: number): RangeFile {
    if (index === 0 && this.#file) return this.#file;
    const what =
      index === 0
        ? "this is a stream, which has no file of its own"
        : `expected the file index 0, got ${index}`;
    throw new SluiceError("no_such_file", what);
  }

  media(index: number, language: string | undefined, signal: AbortSignal | undefined): Promise<Media> {
    const source = this.file(index).source();
    const key = language ?? "";
    let shared = this.#media.get(key);
    if (!shared) {
      shared = new SharedMedia(this.#house.openMedia, source, language, this.#house.settings.segmentSeconds);
      this.#media.set(key, shared);
    }
    return shared.get(signal);
  }

  /** What suits the wish; shared by all with the same one. */
  segments(signal: AbortSignal, wish: SourceWish): Promise<SegmentSource> {
    if (this.#hls) return orAborted(openHls(this.#hls, wish), signal);
    return Promise.resolve(this.#stream!);
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
