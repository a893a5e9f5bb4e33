import { latin1Bytes, toHex } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";

/** Calls the HTTP interface on behalf of the client, with the client's rights. Resolves to the JSON response. */
export type CallInterface = (path: string, body?: string) => Promise<InterfaceAnswer>;

/** A JSON response of the HTTP interface. */
export interface InterfaceAnswer {
  readonly response?: unknown;
  readonly result?: unknown;
  readonly error?: unknown;
}

/** Dependencies of {@link TcpApiSession}. */
export interface TcpApiSessionDependencies {
  readonly clock: Clock;
  readonly call: CallInterface;
  readonly randomBytes: (length: number) => Uint8Array;
  readonly httpPort: number;
  /** Sends one line. */
  send(line: string): void;
  /** Ends the connection. */
  close(): void;
}

/** Interval of STATUS lines while content plays: clients treat a silent connection as dead after 30 s. */
const STATUS_MS = 1_000;
/** Limit of LOADASYNC commands in progress: each may ask a swarm for a minute. */
const MAX_LOADS = 4;
/** Parameters of START that are passed on to the HTTP interface. */
const START_OPTIONS = new Set([
  "transcode_audio",
  "transcode_mp3",
  "transcode_ac3",
  "preferred_audio_language",
  "stream_id",
]);
/** The parameter of the HTTP interface for each kind of content. */
const CONTENT_KINDS: Readonly<Record<string, string>> = {
  TORRENT: "url",
  URL: "url",
  EFILE: "url",
  INFOHASH: "infohash",
  PID: "content_id",
};
/** The states of the STATE line. */
const STATE = { idle: 0, prebuffering: 1, downloading: 2, error: 6 } as const;

/** Content that the client plays. */
interface Playing {
  readonly playbackUrl: string;
  readonly statPath: string;
  readonly commandPath: string;
  hasStarted: boolean;
}

/**
 * One client of the TCP API of older engines (docs/tcp-api.md). Each command becomes a request to the HTTP interface, so
 * the same access rules and limits apply.
 */
export class TcpApiSession {
  readonly #dependencies: TcpApiSessionDependencies;
  readonly #playerId: string;
  #playing: Playing | undefined;
  #isReady = false;
  #isClosed = false;
  #loads = 0;
  #cancelTimer: () => void = () => {};

  constructor(dependencies: TcpApiSessionDependencies) {
    this.#dependencies = dependencies;
    this.#playerId = `tcp-${toHex(dependencies.randomBytes(8))}`;
  }

  /** Handles one line without its end. Unknown commands are ignored, as in older engines. */
  async handle(line: string): Promise<void> {
    const [command = "", ...words] = line.trim().split(/\s+/);
    const { send, close } = this.#dependencies;
    switch (command.toUpperCase()) {
      case "HELLOBG":
        await this.#hello();
        return;
      case "READY":
        this.#isReady = true;
        send("AUTH 1");
        return;
      case "SHUTDOWN":
        await this.end();
        send("SHUTDOWN");
        close();
        return;
    }
    if (!this.#isReady) {
      if (command !== "") send("NOTREADY");
      return;
    }
    switch (command.toUpperCase()) {
      case "LOADASYNC":
        void this.#load(words);
        return;
      case "START":
        await this.#start(words);
        return;
      case "STOP":
        await this.#stop();
        return;
      case "LIVESEEK":
        await this.#seek(words[0] ?? "-1");
        return;
      case "GETCID":
      case "GETPID":
        await this.#contentId(words);
        return;
    }
  }

  /** Stops what the client plays. Called when the connection closes. */
  async end(): Promise<void> {
    this.#isClosed = true;
    await this.#stopPlaying();
  }

  async #hello(): Promise<void> {
    const { call, send, randomBytes, httpPort } = this.#dependencies;
    const { result } = await call("/webui/api/service?method=get_version");
    const { version, code } = result as { version: string; code: number };
    const key = toHex(randomBytes(5));
    send(`HELLOTS version=${version} version_code=${code} key=${key} http_port=${httpPort}`);
  }

  async #load([id = "0", kind = "", value = ""]: readonly string[]): Promise<void> {
    const answer = (result: object) => this.#send(`LOADRESP ${id.slice(0, 20)} ${JSON.stringify(result)}`);
    if (this.#loads >= MAX_LOADS) {
      answer({ status: 100, message: encodeURIComponent("too many requests at once") });
      return;
    }
    this.#loads++;
    try {
      const { query, body } = contentQuery(kind, value);
      const path = `/server/api?method=get_media_files&api_version=3&mode=brief&${query}`;
      const found = resultOf(await this.#dependencies.call(path, body)) as {
        infohash: string;
        files: readonly { index: number; filename: string }[];
      };
      const files = found.files.map(({ filename, index }) => [encodeURIComponent(filename), index]);
      const { infohash } = found;
      answer({ status: Math.min(files.length, 2), files, infohash, checksum: infohash });
    } catch (thrown) {
      answer({ status: 100, message: encodeURIComponent(textOf(thrown)) });
    } finally {
      this.#loads--;
    }
  }

  async #start([kind = "", value = "", ...rest]: readonly string[]): Promise<void> {
    await this.#stopPlaying();
    const options = new URLSearchParams(rest.filter((word) => word.includes("=")).join("&"));
    const isHls = options.get("output_format") === "hls";
    try {
      const { query, body } = contentQuery(kind, value);
      query.set("format", "json");
      query.set("pid", this.#playerId);
      const [fileIndex] = /^\d+/.exec(rest[0] ?? "") ?? [];
      if (fileIndex !== undefined) query.set("_idx", fileIndex);
      for (const [name, text] of options) if (START_OPTIONS.has(name)) query.set(name, text);
      const path = isHls ? "/ace/manifest.m3u8" : "/ace/getstream";
      this.#send(`STATE ${STATE.prebuffering}`);
      const session = responseOf(await this.#dependencies.call(`${path}?${query}`, body)) as {
        playback_url: string;
        stat_url: string;
        command_url: string;
      };
      this.#playing = {
        playbackUrl: session.playback_url,
        statPath: new URL(session.stat_url).pathname,
        commandPath: new URL(session.command_url).pathname,
        hasStarted: false,
      };
    } catch (thrown) {
      this.#failed(textOf(thrown));
      return;
    }
    if (this.#isClosed) await this.#stopPlaying();
    else await this.#report();
  }

  async #stop(): Promise<void> {
    if (!this.#playing) return;
    await this.#stopPlaying();
    this.#send("STOP");
    this.#send(`STATE ${STATE.idle}`);
  }

  async #stopPlaying(): Promise<void> {
    const playing = this.#playing;
    this.#playing = undefined;
    this.#cancelTimer();
    if (playing) await this.#dependencies.call(`${playing.commandPath}?method=stop`).catch(() => {});
  }

  /** Moves the player of a live stream. The client opens the URL of the second START. */
  async #seek(position: string): Promise<void> {
    const playing = this.#playing;
    if (!playing?.hasStarted || !/^-?\d{1,12}$/.test(position)) return;
    const answer = await this.#dependencies.call(`${playing.commandPath}?method=liveseek&pos=${position}`);
    if (answer.error !== null && answer.error !== undefined) return;
    this.#send("STOP");
    playing.hasStarted = false;
    await this.#report();
  }

  /** The answer has no name: two number signs and the id. */
  async #contentId(words: readonly string[]): Promise<void> {
    const infohash = new URLSearchParams(words.join("&")).get("infohash") ?? "";
    const path = `/server/api?method=get_content_id&infohash=${encodeURIComponent(infohash)}`;
    const { result } = await this.#dependencies.call(path);
    this.#send(`##${(result as { content_id?: string } | null)?.content_id ?? ""}`);
  }

  /** Reports the state of the session now and then every second. */
  async #report(): Promise<void> {
    const playing = this.#playing;
    if (!playing) return;
    try {
      const stat = responseOf(await this.#dependencies.call(playing.statPath)) as SessionStat;
      if (this.#playing !== playing) return;
      if (stat.status === "err")
        throw new SluiceError("start_timeout", String(stat.error_message ?? "failed"));
      this.#tell(playing, stat);
    } catch (thrown) {
      if (this.#playing !== playing) return;
      this.#playing = undefined;
      this.#failed(textOf(thrown));
      this.#send("STOP");
      return;
    }
    const { clock } = this.#dependencies;
    this.#cancelTimer = clock.at(after(clock.now(), STATUS_MS), () => void this.#report());
  }

  #tell(playing: Playing, stat: SessionStat): void {
    const { peers, speed_down, speed_up, downloaded, uploaded, total_progress, progress } = stat;
    const isPlaying = stat.status === "dl";
    const figures = [total_progress, 0, speed_down, 0, speed_up, peers, 0, downloaded, 0, uploaded].join(";");
    if (isPlaying && !playing.hasStarted) {
      playing.hasStarted = true;
      const live = stat.is_live === 1 ? " stream=1" : "";
      this.#send(`START url=${playing.playbackUrl} infohash=${stat.infohash}${live}`);
      this.#send(`STATE ${STATE.downloading}`);
    }
    this.#send(`STATUS main:${isPlaying ? "dl" : `prebuf;${progress};0`};${figures}`);
    if (!isPlaying || !stat.livepos) return;
    const position = Object.entries(stat.livepos).map(([name, value]) => `${name}=${value}`);
    this.#send(`EVENT livepos ${position.join(" ")}`);
  }

  #failed(text: string): void {
    this.#send(`STATE ${STATE.error}`);
    this.#send(`STATUS main:err;0;${encodeURIComponent(text)}`);
    this.#send(`STATE ${STATE.idle}`);
  }

  #send(line: string): void {
    if (!this.#isClosed) this.#dependencies.send(line);
  }
}

/** The members of a stat response that the API reports. */
interface SessionStat {
  readonly status: string;
  readonly error_message?: unknown;
  readonly infohash: string;
  readonly is_live: number;
  readonly progress: number;
  readonly total_progress: number;
  readonly peers: number;
  readonly speed_down: number;
  readonly speed_up: number;
  readonly downloaded: number;
  readonly uploaded: number;
  readonly livepos?: Readonly<Record<string, string>>;
}

/** Returns the query and the body that name content. Throws `bad_selector`. */
function contentQuery(kind: string, value: string): { query: URLSearchParams; body?: string } {
  if (kind.toUpperCase() === "RAW")
    return { query: new URLSearchParams(), body: JSON.stringify({ transport_file_data: value }) };
  const name = CONTENT_KINDS[kind.toUpperCase()];
  if (name === undefined || value === "")
    throw new SluiceError("bad_selector", "expected a kind of content and its name");
  return { query: new URLSearchParams({ [name]: value }) };
}

function resultOf({ result, error }: InterfaceAnswer): unknown {
  if (result === null || result === undefined) throw new Error(messageIn(error));
  return result;
}

function responseOf({ response, error }: InterfaceAnswer): unknown {
  if (response === null || response === undefined) throw new Error(messageIn(error));
  return response;
}

function messageIn(error: unknown): string {
  return typeof error === "string"
    ? error
    : String((error as { message?: unknown } | null)?.message ?? "failed");
}

/** Returns a text of one line and limited length. */
function textOf(thrown: unknown): string {
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  return text.replace(/\s+/g, " ").slice(0, 300);
}

/** Encodes a line of the protocol. Everything that is not ASCII has been percent-encoded. */
export function encodeLine(line: string): Uint8Array {
  return latin1Bytes(`${line.replace(/[^\x20-\x7e]/g, "?")}\r\n`);
}
