import type { PlayerClient, PlayerMedia, PlayerStatus } from "../../routes/http/dependencies.ts";
import { addressText } from "../base/address.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Device, DeviceControl, DeviceMedia, DeviceSubtitles } from "../devices/contract.ts";
import type { HttpHandler } from "../runtime/contract.ts";

/** Parts of the engine's HTTP interface that a device plays from. */
export interface DevicePlayerDependencies {
  readonly fetch: HttpHandler;
  /** The port at which a device in the network of `host` reaches the HTTP interface. Throws `player_failed` if it cannot. */
  readonly portAt: (host: string) => number;
}

/** Clients ask for the status often; a device is asked at most twice a second. */
const STATUS_EVERY_MS = 500;
/** Subtitle tracks that a device can choose from. */
const MAX_SUBTITLES = 16;

/** A session of the engine that a device plays. */
interface Casting {
  readonly title: string;
  readonly commandUrl: string;
}

/** One device that plays, or has played, content of this engine. */
export class DevicePlayer {
  readonly device: Device;
  readonly #dependencies: DevicePlayerDependencies;
  #control: Promise<DeviceControl> | undefined;
  #casting: Casting | undefined;
  #status: { readonly at: number; readonly status: Promise<PlayerStatus> } | undefined;

  constructor(device: Device, dependencies: DevicePlayerDependencies) {
    this.device = device;
    this.#dependencies = dependencies;
  }

  /** Starts a session with the rights of the client, and lets the device play it. Rejects with `player_failed`. */
  async play({ url, title = "Sluice" }: PlayerMedia, client: PlayerClient): Promise<void> {
    const control = await this.#connected();
    const engine = new EngineAt(this.device, this.#dependencies, client);
    let started = await engine.start(url, this.device.kind === "chromecast" ? "hls" : "raw");
    if (!control.plays(started.mime)) started = await engine.start(url, "ts");
    const { commandUrl, ...facts } = started;
    const subtitles = await engine.subtitles(started);
    const media: DeviceMedia = { ...facts, title, pictureUrl: undefined, subtitles };
    this.#casting = { title, commandUrl };
    this.#status = undefined;
    await this.#ask((device) => device.play(media));
  }

  /** Runs a command on the device. `stop` ends the session as well. Rejects with `player_failed`. */
  async command(run: (control: DeviceControl) => Promise<void>): Promise<void> {
    this.#status = undefined;
    await this.#ask(run);
  }

  async stop(): Promise<void> {
    await this.command((control) => control.stop());
    const casting = this.#casting;
    this.#casting = undefined;
    if (casting)
      await new EngineAt(this.device, this.#dependencies, undefined).command(casting.commandUrl, "stop");
  }

  /** Reads the status; several callers within half a second share one answer. */
  status(): Promise<PlayerStatus> {
    const now = performance.now();
    if (this.#status === undefined || now - this.#status.at > STATUS_EVERY_MS)
      this.#status = { at: now, status: this.#readStatus() };
    return this.#status.status;
  }

  /** Closes the connection to the device, which continues to play. */
  close(): void {
    this.#control?.then(
      (control) => control.close(),
      () => {},
    );
    this.#control = undefined;
  }

  async #readStatus(): Promise<PlayerStatus> {
    const status = await this.#ask((control) => control.status());
    return { ...status, title: status.state === "idle" ? undefined : this.#casting?.title };
  }

  async #connected(): Promise<DeviceControl> {
    this.#control ??= this.device.connect();
    try {
      return await this.#control;
    } catch (thrown) {
      this.#control = undefined;
      throw failed(this.device, thrown);
    }
  }

  /** Calls the device. */
  async #ask<T>(run: (control: DeviceControl) => Promise<T>): Promise<T> {
    const control = await this.#connected();
    try {
      return await run(control);
    } catch (thrown) {
      throw failed(this.device, thrown);
    }
  }
}

function failed({ name }: Device, thrown: unknown): SluiceError {
  return thrown instanceof SluiceError
    ? thrown
    : new SluiceError("player_failed", `${name}: ${messageOf(thrown)}`);
}

interface Started {
  readonly url: string;
  readonly commandUrl: string;
  readonly statUrl: string;
  readonly infohash: string;
  readonly mime: string;
  readonly isLive: boolean;
  readonly bytes: number | undefined;
}

/** The engine's own HTTP interface at its address in the network of a device. */
class EngineAt {
  readonly #device: Device;
  readonly #fetch: HttpHandler;
  readonly #base: string;
  readonly #port: number;
  readonly #client: PlayerClient | undefined;

  constructor(device: Device, { fetch, portAt }: DevicePlayerDependencies, client: PlayerClient | undefined) {
    this.#device = device;
    this.#fetch = fetch;
    this.#client = client;
    this.#port = portAt(device.network.host);
    this.#base = `http://${addressText({ host: device.network.host, port: this.#port })}`;
  }

  /**
   * Starts a session of a playback URL and waits for its first bytes, so that the device does not run into its own timeout. `raw` is the
   * file itself where possible.
   */
  async start(playbackUrl: string, format: "raw" | "ts" | "hls"): Promise<Started> {
    const { pathname, searchParams } = new URL(playbackUrl);
    const isItem = pathname.startsWith("/play/");
    const path = format === "hls" && !isItem ? "/ace/manifest.m3u8" : pathname;
    searchParams.delete("container");
    if (format !== "hls") searchParams.set("container", format);
    else searchParams.set("transcode_audio", "1");
    if (format === "hls" && isItem) searchParams.set("protocol", "hls");
    searchParams.set("format", "json");
    // The device replaces what it played before.
    searchParams.set("pid", `cast-${this.#device.id}`.slice(0, 100));
    const session = (await this.#json(`${path}?${searchParams}`)) as Record<string, unknown>;
    const url = String(session.playback_url);
    const response = await this.#get(url, { range: "bytes=0-1" });
    await response.body?.cancel();
    if (!response.ok)
      throw new SluiceError("player_failed", `the content does not start (status ${response.status})`);
    const size = Number(/\/(\d{1,16})$/.exec(response.headers.get("content-range") ?? "")?.[1] ?? Number.NaN);
    const type = response.headers.get("content-type") ?? "video/mp2t";
    return {
      url,
      commandUrl: String(session.command_url),
      statUrl: String(session.stat_url),
      infohash: String(session.infohash),
      mime: type.split(";")[0]!.trim(),
      isLive: session.is_live === 1,
      bytes: Number.isFinite(size) ? size : undefined,
    };
  }

  /** The text subtitles of a film; none if it has none, or if they cannot be read. */
  async subtitles({ infohash, isLive, statUrl }: Started): Promise<DeviceSubtitles[]> {
    if (isLive) return [];
    try {
      const { selected_file_index: index } = (await this.#json(statUrl)) as { selected_file_index?: number };
      const answer = await this.#get(`${this.#base}/subtitles/${infohash}/${index ?? 0}`);
      const { subtitles } = (await answer.json()) as { subtitles?: Record<string, string | null>[] };
      return (subtitles ?? []).slice(0, MAX_SUBTITLES).map(({ language, title, vtt, srt }) => ({
        language: language || "und",
        title: title || language || "Subtitles",
        vttUrl: String(vtt),
        srtUrl: String(srt),
      }));
    } catch {
      return []; // Web content and broken files have no list; the film plays without subtitles.
    }
  }

  /** Sends a command to a session; it may have ended already. */
  async command(commandUrl: string, method: string): Promise<void> {
    const response = await this.#get(`${commandUrl}?method=${method}`);
    await response.body?.cancel();
  }

  async #json(target: string): Promise<unknown> {
    const answer = await this.#get(target);
    const { response, error } = (await answer.json()) as { response?: unknown; error?: unknown };
    if (error) throw new SluiceError("player_failed", String(error).slice(0, 300));
    return response;
  }

  async #get(target: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    const url = new URL(target, this.#base);
    const local = { host: this.#device.network.host, port: this.#port };
    const caller = this.#client?.origin;
    const remote = this.#client?.isLocal ? local : (caller?.remote ?? local);
    const origin = { ...caller, remote, local };
    return this.#fetch(new Request(url, { headers: { ...headers, host: url.host } }), origin);
  }
}
