import { contentFeatures } from "../../base/content-features.ts";
import { DecodeError } from "../../base/errors.ts";
import { escapeXml } from "../../base/escape-xml.ts";
import { decodeUtf8 } from "../../base/utf8.ts";
import { childText, elementsNamed, readXml } from "../xml.ts";

/** A service of a media renderer. The URLs are unmodified; resolve them against the base URL. */
interface RendererService {
  readonly type: string;
  readonly controlUrl: string;
  readonly scpdUrl: string;
}

/** The parts of the description of a media renderer that casting needs (UPnP Device Architecture 1.1, section 2.3). */
export interface RendererDescription {
  /** The unique device name, such as `uuid:…`. */
  readonly udn: string;
  readonly name: string;
  readonly model: string;
  /** Base of relative URLs; undefined for the URL of the description. */
  readonly baseUrl: string | undefined;
  /** The URL of the largest picture of the device; undefined if it has none. */
  readonly iconUrl: string | undefined;
  readonly services: {
    readonly transport: RendererService;
    readonly volume: RendererService | undefined;
    readonly formats: RendererService | undefined;
  };
}

/** How a renderer seeks (AVTransport:1 2.2.19): by the time in the track, or on the whole medium. */
export type SeekMode = "REL_TIME" | "ABS_TIME";

/** Descriptions of televisions have up to 20 kB. */
export const MAX_RENDERER_BYTES = 128 * 1024;
const MAX_TEXT = 100;
const MAX_URL_LENGTH = 1024;
const FORMAT = "UPnP renderer";

/** Decodes a device description. Throws `DecodeError` if it is not that of a media renderer with the AVTransport service. */
export function decodeRendererDescription(bytes: Uint8Array): RendererDescription {
  const root = readDocument(bytes, "root");
  // A renderer may be an embedded device of another one, for example of a media server.
  const device = [...elementsNamed(root, "device")].find((each) =>
    /^urn:schemas-upnp-org:device:MediaRenderer:\d{1,2}$/.test(childText(each, "deviceType") ?? ""),
  );
  if (device === undefined) throw new DecodeError(FORMAT, 0, "the device is not a media renderer");
  const services = (device.children.find(({ name }) => name === "serviceList")?.children ?? []).map(
    (each) => ({
      type: childText(each, "serviceType") ?? "",
      controlUrl: urlText(childText(each, "controlURL")),
      scpdUrl: urlText(childText(each, "SCPDURL")),
    }),
  );
  const service = (kind: string) =>
    services.find(
      ({ type, controlUrl }) => controlUrl !== "" && type.startsWith(`urn:schemas-upnp-org:service:${kind}:`),
    );
  const transport = service("AVTransport");
  const udn = childText(device, "UDN") ?? "";
  if (transport === undefined || !/^[!-~]{1,128}$/.test(udn))
    throw new DecodeError(FORMAT, 0, "expected the AVTransport service and a device name");
  return {
    udn,
    name:
      shown(childText(device, "friendlyName")) || shown(childText(device, "modelName")) || "Media renderer",
    model: shown(childText(device, "modelName")),
    baseUrl: urlText(childText(root, "URLBase")) || undefined,
    iconUrl: largestIcon(device),
    services: { transport, volume: service("RenderingControl"), formats: service("ConnectionManager") },
  };
}

type XmlElement = ReturnType<typeof readXml>;

function largestIcon(device: XmlElement): string | undefined {
  const icons = [...elementsNamed(device, "icon")]
    .map((icon) => ({ width: Number(childText(icon, "width")) || 0, url: urlText(childText(icon, "url")) }))
    .filter(({ url }) => url !== "");
  return icons.sort((a, b) => b.width - a.width)[0]?.url;
}

/** The ranges that the service descriptions of a renderer declare. */
export interface ServiceLimits {
  /** The allowed values of `A_ARG_TYPE_SeekMode`. */
  readonly seekModes: readonly string[];
  /** The maximum of `Volume`; undefined if there is none. */
  readonly maxVolume: number | undefined;
}

/** Decodes a service description (UPnP Device Architecture 1.1, section 2.5). Throws `DecodeError`. */
export function decodeServiceLimits(bytes: Uint8Array): ServiceLimits {
  const root = readDocument(bytes, "scpd");
  const variable = (name: string) =>
    [...elementsNamed(root, "stateVariable")].find((each) => childText(each, "name") === name);
  const modes = variable("A_ARG_TYPE_SeekMode")?.children.find(({ name }) => name === "allowedValueList");
  const range = variable("Volume")?.children.find(({ name }) => name === "allowedValueRange");
  const maximum = Number(range && childText(range, "maximum"));
  return {
    seekModes: (modes?.children ?? []).map(({ text }) => text),
    maxVolume: maximum > 0 && maximum <= 65_535 ? maximum : undefined,
  };
}

/** A film, a channel or a piece of music that a device plays. */
export interface MediaResource {
  readonly id: string;
  readonly parentId: string;
  readonly title: string;
  readonly url: string;
  /** The third and fourth field of the protocol information: see {@link protocolInfo}. */
  readonly protocolInfo: string;
  readonly kind: "film" | "channel" | "music";
  readonly bytes?: number | undefined;
  readonly durationSeconds?: number | undefined;
  readonly pictureUrl?: string | undefined;
  /** Subtitles in the SRT format. */
  readonly subtitlesUrl?: string | undefined;
}

const CLASSES = {
  film: "object.item.videoItem.movie",
  channel: "object.item.videoItem.videoBroadcast",
  music: "object.item.audioItem.musicTrack",
} as const;

/** The XML namespaces of DIDL-Lite documents, with those of Samsung (`sec`) and PacketVideo (`pv`) for subtitles. */
const DIDL_NAMESPACES =
  'xmlns="urn:schemas-upnp-org:metadata-1-0/DIDL-Lite/" xmlns:dc="http://purl.org/dc/elements/1.1/" ' +
  'xmlns:upnp="urn:schemas-upnp-org:metadata-1-0/upnp/" xmlns:dlna="urn:schemas-dlna-org:metadata-1-0/" ' +
  'xmlns:sec="http://www.sec.co.kr/" xmlns:pv="http://www.pv.com/pvns/"';

/** Wraps items and containers in a DIDL-Lite document (ContentDirectory:1 2.8). */
export function didlDocument(elements: readonly string[]): string {
  return `<DIDL-Lite ${DIDL_NAMESPACES}>${elements.join("")}</DIDL-Lite>`;
}

/** Builds the DIDL-Lite element of a folder. */
export function didlFolder(folder: {
  readonly id: string;
  readonly parentId: string;
  readonly title: string;
  readonly childCount: number;
}): string {
  const { id, parentId, title, childCount } = folder;
  return (
    `<container id="${escapeXml(id)}" parentID="${escapeXml(parentId)}" childCount="${childCount}" restricted="1">` +
    `<dc:title>${escapeXml(title)}</dc:title><upnp:class>object.container.storageFolder</upnp:class></container>`
  );
}

/** Builds the DIDL-Lite element of an item. */
export function didlItem(media: MediaResource): string {
  const { id, parentId, title, url, kind, bytes, durationSeconds, pictureUrl, subtitlesUrl } = media;
  const subtitles = subtitlesUrl === undefined ? "" : escapeXml(subtitlesUrl);
  const attributes = [
    `protocolInfo="${escapeXml(media.protocolInfo)}"`,
    ...(bytes === undefined ? [] : [`size="${bytes}"`]),
    ...(durationSeconds === undefined ? [] : [`duration="${clockText(durationSeconds)}.000"`]),
    ...(subtitles ? [`pv:subtitleFileUri="${subtitles}" pv:subtitleFileType="SRT"`] : []),
  ];
  return (
    `<item id="${escapeXml(id)}" parentID="${escapeXml(parentId)}" restricted="1">` +
    `<dc:title>${escapeXml(title)}</dc:title><upnp:class>${CLASSES[kind]}</upnp:class>` +
    (pictureUrl === undefined ? "" : `<upnp:albumArtURI>${escapeXml(pictureUrl)}</upnp:albumArtURI>`) +
    (subtitles && `<sec:CaptionInfoEx sec:type="srt">${subtitles}</sec:CaptionInfoEx>`) +
    `<res ${attributes.join(" ")}>${escapeXml(url)}</res>` +
    (subtitles && `<res protocolInfo="http-get:*:text/srt:*">${subtitles}</res>`) +
    "</item>"
  );
}

/** Returns the protocol information of a resource that is fetched by HTTP (ConnectionManager:1 2.5.2). */
export function protocolInfo(mime: string, isLive: boolean): string {
  return `http-get:*:${mime}:${contentFeatures(isLive)}`;
}

/** Formats seconds as `H:MM:SS` (AVTransport:1 2.2.14). */
export function clockText(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const two = (value: number) => String(value).padStart(2, "0");
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}

/** Parses `H:MM:SS` with an optional fraction to seconds; undefined for `NOT_IMPLEMENTED` and anything else. */
export function clockSeconds(text: string): number | undefined {
  const [, hours, minutes, seconds] = /^\+?(\d{1,5}):([0-5]?\d):([0-5]?\d(?:\.\d{1,9})?)$/.exec(text) ?? [];
  return hours === undefined ? undefined : 3600 * Number(hours) + 60 * Number(minutes) + Number(seconds);
}

/** The MIME types of the list `Sink` of GetProtocolInfo (ConnectionManager:1 2.5.2), in lower case; `*` for any. */
export function sinkTypes(sink: string): ReadonlySet<string> {
  const types = sink.split(",").map((entry) => entry.trim().toLowerCase().split(":"));
  return new Set(types.filter(([protocol]) => protocol === "http-get").map(([, , mime = ""]) => mime));
}

function readDocument(bytes: Uint8Array, name: string): XmlElement {
  if (bytes.length > MAX_RENDERER_BYTES)
    throw new DecodeError(FORMAT, bytes.length, `expected at most ${MAX_RENDERER_BYTES} bytes`);
  const root = readXml(decodeUtf8(bytes));
  if (root.name !== name) throw new DecodeError(FORMAT, 0, `expected ${name}, got ${root.name}`);
  return root;
}

function shown(text = ""): string {
  return text
    .replace(/\p{Cc}/gu, " ")
    .slice(0, MAX_TEXT)
    .toWellFormed();
}

function urlText(text = ""): string {
  return text.length <= MAX_URL_LENGTH && /^[!-~]*$/.test(text) ? text : "";
}
