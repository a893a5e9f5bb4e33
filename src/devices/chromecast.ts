import type { PeerAddress } from "../base/address.ts";
import { CAST, CastChannel, type CastPayload, DEVICE } from "./cast-channel.ts";
import type { Device, DeviceControl, DeviceMedia, DeviceRuntime, DeviceStatus } from "./contract.ts";
import { deviceUrl } from "./device-networks.ts";
import type { Sighting } from "./device-search.ts";

/** The Default Media Receiver, which plays HLS on every Chromecast. */
const APPLICATION = "CC1AD845";
const MAX_NAME = 100;
/** The first text track. Other numbers would serve as well. */
const FIRST_TRACK = 1;

/**
 * Returns the Chromecast, or group of Chromecasts, that a sighting announces; undefined if its address is not in the network. A group has
 * its own id and a port other than 8009, at the address of one of its members.
 */
export function castDevice(
  runtime: Pick<DeviceRuntime, "connectTls" | "clock">,
  { service, host, network }: Extract<Sighting, { kind: "mdns" }>,
): Device | undefined {
  const { port, texts, instance } = service;
  const id = texts.get("id") ?? "";
  if (!/^[\w-]{1,64}$/.test(id) || deviceUrl(`http://${host}:${port}/`, host, network) === undefined)
    return undefined;
  const shown = (text: string | undefined) => (text ?? "").replace(/\p{Cc}/gu, " ").slice(0, MAX_NAME);
  return {
    id: `chromecast:${id}`,
    kind: "chromecast",
    name: shown(texts.get("fn")) || shown(instance),
    model: shown(texts.get("md")),
    iconUrl: undefined,
    host,
    network,
    connect: async () => {
      const control = new CastControl(runtime, { host, port });
      await control.status();
      return control;
    },
  };
}

/** The application on the device that this engine talks to. */
interface Application {
  readonly transportId: string;
  readonly sessionId: string;
}

/** Controls the Default Media Receiver of a Chromecast. The connection opens when it is needed. */
class CastControl implements DeviceControl {
  readonly #runtime: Pick<DeviceRuntime, "connectTls" | "clock">;
  readonly #address: PeerAddress;
  #channel: Promise<CastChannel> | undefined;
  #mediaSessionId: number | undefined;
  /** The duration is sent only with the first status of a film. */
  #durationSeconds: number | undefined;

  constructor(runtime: Pick<DeviceRuntime, "connectTls" | "clock">, address: PeerAddress) {
    this.#runtime = runtime;
    this.#address = address;
  }

  plays(): boolean {
    return true; // It gets HLS, with audio in AAC.
  }

  async play(media: DeviceMedia): Promise<void> {
    const application = applicationIn(await this.#device({ type: "LAUNCH", appId: APPLICATION }));
    if (application === undefined) throw new Error("the device did not start its media player");
    this.#durationSeconds = undefined;
    const answer = await this.#call(
      CAST.media,
      application.transportId,
      loadRequest(media, application.sessionId),
    );
    if (answer.type !== "MEDIA_STATUS")
      throw new Error(`the device did not load the stream (${String(answer.type)})`);
    this.#take(answer);
  }

  resume(): Promise<void> {
    return this.#command({ type: "PLAY" });
  }

  pause(): Promise<void> {
    return this.#command({ type: "PAUSE" });
  }

  /** Closes the media player, so that the device shows its own screen again. */
  async stop(): Promise<void> {
    const application = applicationIn(await this.#device({ type: "GET_STATUS" }));
    this.#mediaSessionId = undefined;
    if (application) await this.#device({ type: "STOP", sessionId: application.sessionId });
  }

  seek(seconds: number): Promise<void> {
    return this.#command({ type: "SEEK", currentTime: seconds });
  }

  async setVolume(volume: number): Promise<void> {
    await this.#device({ type: "SET_VOLUME", volume: { level: volume } });
  }

  async status(): Promise<DeviceStatus> {
    const device = await this.#device({ type: "GET_STATUS" });
    const level = object(object(device.status).volume).level;
    const application = applicationIn(device);
    const idle = {
      state: "idle",
      volume: typeof level === "number" ? level : undefined,
      positionSeconds: undefined,
      durationSeconds: undefined,
    } as const;
    if (application === undefined) return idle;
    const media = this.#take(await this.#call(CAST.media, application.transportId, { type: "GET_STATUS" }));
    if (media === undefined) return idle;
    return {
      ...idle,
      state: stateOf(media.playerState),
      positionSeconds: seconds(media.currentTime),
      durationSeconds: this.#durationSeconds,
    };
  }

  close(): void {
    this.#channel?.then(
      (channel) => channel.close(),
      () => {},
    );
    this.#channel = undefined;
  }

  /** Keeps the media session of a status. Returns its facts; undefined if nothing is loaded. */
  #take(answer: CastPayload): CastPayload | undefined {
    const [first] = Array.isArray(answer.status) ? answer.status : [];
    if (first === undefined) return undefined;
    const media = object(first);
    if (typeof media.mediaSessionId === "number") this.#mediaSessionId = media.mediaSessionId;
    this.#durationSeconds = seconds(object(media.media).duration) || this.#durationSeconds;
    return media;
  }

  async #command(payload: CastPayload): Promise<void> {
    const application = applicationIn(await this.#device({ type: "GET_STATUS" }));
    if (application === undefined || this.#mediaSessionId === undefined)
      throw new Error("the device plays nothing");
    const mediaSessionId = this.#mediaSessionId;
    const answer = await this.#call(CAST.media, application.transportId, { ...payload, mediaSessionId });
    if (answer.type !== "MEDIA_STATUS")
      throw new Error(`the device refused ${String(payload.type)} (${String(answer.type)})`);
  }

  async #device(payload: CastPayload): Promise<CastPayload> {
    const answer = await this.#call(CAST.receiver, DEVICE, payload);
    if (answer.type === "RECEIVER_STATUS") return answer;
    throw new Error(`the device refused ${String(payload.type)} (${String(answer.reason ?? answer.type)})`);
  }

  async #call(namespace: string, destination: string, payload: CastPayload): Promise<CastPayload> {
    const open = await this.#channel?.catch(() => undefined);
    if (!open?.isOpen) this.#channel = CastChannel.open(this.#runtime, this.#address);
    return (await this.#channel!).request(namespace, destination, payload);
  }
}

function loadRequest(media: DeviceMedia, sessionId: string): CastPayload {
  const tracks = media.subtitles.map(({ title, language, vttUrl }, i) => ({
    trackId: FIRST_TRACK + i,
    type: "TEXT",
    subtype: "SUBTITLES",
    trackContentId: vttUrl,
    trackContentType: "text/vtt",
    name: title,
    language,
  }));
  const images = media.pictureUrl === undefined ? [] : [{ url: media.pictureUrl }];
  return {
    type: "LOAD",
    sessionId,
    autoplay: true,
    media: {
      contentId: media.url,
      contentType: media.mime,
      streamType: media.isLive ? "LIVE" : "BUFFERED",
      hlsSegmentFormat: "ts",
      hlsVideoSegmentFormat: "mpeg2_ts",
      metadata: { metadataType: 0, title: media.title, images },
      ...(tracks.length > 0 && { tracks }),
    },
    // A live stream starts at its edge, which the device finds itself.
    ...(!media.isLive && { currentTime: 0 }),
    // The viewer turns subtitles on with the remote control of the device.
    ...(tracks.length > 0 && { activeTrackIds: [] }),
  };
}

/** Returns the media player that a device runs; undefined if it runs another application or none. */
function applicationIn({ status }: CastPayload): Application | undefined {
  const { applications } = object(status);
  const running: readonly CastPayload[] = Array.isArray(applications) ? applications.map(object) : [];
  const found = running.find(({ appId }) => appId === APPLICATION);
  if (typeof found?.transportId !== "string" || typeof found.sessionId !== "string") return undefined;
  return { transportId: found.transportId, sessionId: found.sessionId };
}

function stateOf(text: unknown): DeviceStatus["state"] {
  if (text === "PLAYING") return "playing";
  if (text === "PAUSED") return "paused";
  return text === "BUFFERING" || text === "LOADING" ? "buffering" : "idle";
}

function seconds(value: unknown): number | undefined {
  return typeof value === "number" && value >= 0 && Number.isFinite(value) ? value : undefined;
}

function object(value: unknown): CastPayload {
  return typeof value === "object" && value !== null ? (value as CastPayload) : {};
}
