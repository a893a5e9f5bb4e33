import { sleep } from "../async/sleep.ts";
import { mimeNames } from "../base/mime.ts";
import { callUpnpService, lanRequest } from "../outbound/lan-http.ts";
import type { HttpClient } from "../runtime/contract.ts";
import {
  clockSeconds,
  clockText,
  decodeRendererDescription,
  decodeServiceLimits,
  didlDocument,
  didlItem,
  MAX_RENDERER_BYTES,
  protocolInfo,
  type SeekMode,
  type ServiceLimits,
  sinkTypes,
} from "../wire/upnp/media-renderer.ts";
import type { SoapCall } from "../wire/upnp/soap.ts";
import type { Device, DeviceControl, DeviceMedia, DeviceRuntime, DeviceStatus } from "./contract.ts";
import { deviceUrl } from "./device-networks.ts";
import type { Sighting } from "./device-search.ts";

/** A service at a verified URL. */
interface Endpoint {
  readonly type: string;
  readonly url: URL;
  readonly scpdUrl: URL | undefined;
}

/** The services of a renderer. */
interface Endpoints {
  readonly transport: Endpoint;
  readonly volume: Endpoint | undefined;
  readonly formats: Endpoint | undefined;
}

/** Most renderers use 0 to 100. */
const USUAL_MAX_VOLUME = 100;
/** Errors of a renderer that accepts a new address only after a stop (AVTransport:1 2.4.1). */
const NEEDS_STOP = [701, 705, 715];
/** A pause is checked after this time, and sent again if the device still plays: Kodi reports that it plays, accepts a pause and ignores
 * it, until its player is open. */
const PAUSE_CHECK_MS = 500;
const PAUSE_ATTEMPTS = 6;

/** What the control of a renderer needs of the runtime. */
type RendererRuntime = Pick<DeviceRuntime, "http" | "clock">;

/** Fetches the description of a renderer. Rejects if it is not a usable one. */
export async function describeRenderer(
  runtime: RendererRuntime,
  { location, host, network }: Extract<Sighting, { kind: "upnp" }>,
  signal: AbortSignal,
): Promise<Device> {
  const { udn, name, model, baseUrl, iconUrl, services } = decodeRendererDescription(
    await fetchDocument(runtime.http, location, signal),
  );
  const base = (baseUrl === undefined ? undefined : deviceUrl(baseUrl, host, network)) ?? location;
  const urlOf = (text: string | undefined) => (text ? deviceUrl(text, host, network, base) : undefined);
  const endpoint = (service: typeof services.volume): Endpoint | undefined => {
    const url = urlOf(service?.controlUrl);
    return service && url && { type: service.type, url, scpdUrl: urlOf(service.scpdUrl) };
  };
  const transport = endpoint(services.transport);
  if (transport === undefined) throw new Error("its services are at another address");
  const endpoints = { transport, volume: endpoint(services.volume), formats: endpoint(services.formats) };
  const connect = () => connectRenderer(runtime, endpoints);
  return {
    id: `dlna:${udn}`,
    kind: "dlna",
    name,
    model,
    iconUrl: urlOf(iconUrl)?.href,
    host,
    network,
    connect,
  };
}

async function fetchDocument(
  http: Pick<HttpClient, "request">,
  url: URL,
  signal?: AbortSignal,
): Promise<Uint8Array> {
  const request = { url, method: "GET", headers: {} } as const;
  const { status, bytes } = await lanRequest(http, request, MAX_RENDERER_BYTES, signal);
  if (status !== 200) throw new Error(`the device description was answered with status ${status}`);
  return bytes;
}

/** Reads what the renderer supports. A renderer without these documents gets the usual values. */
async function connectRenderer(runtime: RendererRuntime, endpoints: Endpoints): Promise<DeviceControl> {
  const { http } = runtime;
  const limitsOf = async (endpoint: Endpoint | undefined): Promise<ServiceLimits> => {
    if (endpoint?.scpdUrl === undefined) return { seekModes: [], maxVolume: undefined };
    const document = await fetchDocument(http, endpoint.scpdUrl).catch(() => undefined);
    return document === undefined ? { seekModes: [], maxVolume: undefined } : decodeServiceLimits(document);
  };
  const { transport, volume, formats } = endpoints;
  const [transportLimits, volumeLimits, sink] = await Promise.all([
    limitsOf(transport),
    limitsOf(volume),
    formats === undefined ? "" : sinkOf(http, formats),
  ]);
  const { seekModes } = transportLimits;
  const seekMode =
    !seekModes.includes("REL_TIME") && seekModes.includes("ABS_TIME") ? "ABS_TIME" : "REL_TIME";
  return new DlnaControl(
    runtime,
    endpoints,
    seekMode,
    volumeLimits.maxVolume ?? USUAL_MAX_VOLUME,
    sinkTypes(sink),
  );
}

async function sinkOf(http: Pick<HttpClient, "request">, { url, type }: Endpoint): Promise<string> {
  const call = { serviceType: type, action: "GetProtocolInfo", parameters: [] };
  const answer = await callUpnpService(http, url, call).catch(() => undefined);
  return answer?.ok ? (answer.values.get("Sink") ?? "") : "";
}

/** Controls a DLNA renderer (AVTransport:1, RenderingControl:1). */
class DlnaControl implements DeviceControl {
  readonly #runtime: RendererRuntime;
  readonly #closing = new AbortController();
  readonly #endpoints: Endpoints;
  readonly #seekMode: SeekMode;
  readonly #maxVolume: number;
  readonly #sink: ReadonlySet<string>;

  constructor(
    runtime: RendererRuntime,
    endpoints: Endpoints,
    seekMode: SeekMode,
    maxVolume: number,
    sink: ReadonlySet<string>,
  ) {
    this.#runtime = runtime;
    this.#endpoints = endpoints;
    this.#seekMode = seekMode;
    this.#maxVolume = maxVolume;
    this.#sink = sink;
  }

  plays(mime: string): boolean {
    // A renderer without a list is asked to play; it refuses what it cannot.
    return (
      this.#sink.size === 0 || this.#sink.has("*") || mimeNames(mime).some((name) => this.#sink.has(name))
    );
  }

  async play(media: DeviceMedia): Promise<void> {
    const mime = mimeNames(media.mime).find((name) => this.#sink.has(name)) ?? media.mime;
    const url = new URL(media.url);
    // Rygel asks for the head of the URL, and refuses a type that it does not list.
    if (mime !== media.mime) url.searchParams.set("mime", mime);
    const item = didlItem({
      id: "0",
      parentId: "-1",
      title: media.title,
      url: url.href,
      protocolInfo: protocolInfo(mime, media.isLive),
      kind: media.mime.startsWith("audio/") ? "music" : media.isLive ? "channel" : "film",
      bytes: media.bytes,
      pictureUrl: media.pictureUrl,
      subtitlesUrl: media.subtitles[0]?.srtUrl,
    });
    const address = [
      ["CurrentURI", url.href],
      ["CurrentURIMetaData", didlDocument([item])],
    ] as const;
    const first = await this.#call("SetAVTransportURI", address);
    if (!first.ok) {
      if (!NEEDS_STOP.includes(first.code)) throw refusal(first);
      await this.stop();
      await this.#run("SetAVTransportURI", address);
    }
    await this.#run("Play", [["Speed", 1]]);
  }

  async resume(): Promise<void> {
    await this.#run("Play", [["Speed", 1]]);
  }

  async pause(): Promise<void> {
    await this.#run("Pause");
    for (let attempt = 1; !this.#closing.signal.aborted; attempt++) {
      await sleep(this.#runtime.clock, PAUSE_CHECK_MS, this.#closing.signal);
      const transport = await this.#run("GetTransportInfo");
      if (transport.get("CurrentTransportState") !== "PLAYING") return;
      if (attempt === PAUSE_ATTEMPTS) throw new Error("the device accepts the pause, but continues to play");
      await this.#call("Pause");
    }
  }

  async stop(): Promise<void> {
    await this.#run("Stop");
  }

  async seek(seconds: number): Promise<void> {
    await this.#run("Seek", [
      ["Unit", this.#seekMode],
      ["Target", clockText(seconds)],
    ]);
  }

  async setVolume(volume: number): Promise<void> {
    const endpoint = this.#endpoints.volume;
    if (endpoint === undefined) throw new Error("the device has no volume control");
    const value = Math.round(volume * this.#maxVolume);
    const answer = await this.#send(endpoint, "SetVolume", [
      ["Channel", "Master"],
      ["DesiredVolume", value],
    ]);
    if (!answer.ok) throw refusal(answer);
  }

  async status(): Promise<DeviceStatus> {
    const { volume: endpoint } = this.#endpoints;
    const [transport, position, volume] = await Promise.all([
      this.#run("GetTransportInfo"),
      this.#call("GetPositionInfo"),
      endpoint && this.#send(endpoint, "GetVolume", [["Channel", "Master"]]),
    ]);
    const values = position.ok ? position.values : new Map<string, string>();
    const duration = clockSeconds(values.get("TrackDuration") ?? "");
    const level = volume?.ok ? Number(volume.values.get("CurrentVolume")) : Number.NaN;
    return {
      state: stateOf(transport.get("CurrentTransportState") ?? ""),
      volume: level >= 0 ? Math.min(1, level / this.#maxVolume) : undefined,
      positionSeconds: clockSeconds(values.get("RelTime") ?? "") ?? clockSeconds(values.get("AbsTime") ?? ""),
      durationSeconds: duration || undefined,
    };
  }

  close(): void {
    this.#closing.abort();
  }

  /** Calls an action of the transport; rejects if the renderer refuses it. */
  async #run(action: string, parameters: SoapCall["parameters"] = []): Promise<ReadonlyMap<string, string>> {
    const answer = await this.#call(action, parameters);
    if (!answer.ok) throw refusal(answer);
    return answer.values;
  }

  #call(action: string, parameters: SoapCall["parameters"] = []) {
    return this.#send(this.#endpoints.transport, action, parameters);
  }

  #send({ type, url }: Endpoint, action: string, parameters: SoapCall["parameters"]) {
    const all = [["InstanceID", 0], ...parameters] as const;
    return callUpnpService(this.#runtime.http, url, { serviceType: type, action, parameters: all });
  }
}

function stateOf(text: string): DeviceStatus["state"] {
  if (text === "PLAYING") return "playing";
  if (text.startsWith("PAUSED")) return "paused";
  return text === "TRANSITIONING" ? "buffering" : "idle";
}

function refusal({ code, text }: { readonly code: number; readonly text: string }): Error {
  return new Error(`the device refused: ${text === "" ? `error ${code}` : `${text} (${code})`}`);
}
