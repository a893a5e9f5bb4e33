import { DecodeError } from "../../base/errors.ts";
import { decodeUtf8 } from "../../base/utf8.ts";
import { childText, elementsNamed, readXml } from "../xml.ts";

/** A port mapping service of a router. */
export interface WanService {
  readonly type: WanServiceType;
  /** Unmodified control URL; resolve it against the base URL. */
  readonly controlUrl: string;
}

/** The parts of a device description that port mapping needs. */
export interface RouterDescription {
  /** Name of the device, for the log. */
  readonly name: string;
  /** Base of relative URLs; undefined for the URL of the description (UPnP Device Architecture 1.0, 2.1). */
  readonly baseUrl: string | undefined;
  /** Preferred services first. */
  readonly services: readonly WanService[];
}

/** UPnP IGD 2 (WANIPConnection:2), then IGD 1 over IP and over PPP; in order of preference. */
const TYPES = [
  "urn:schemas-upnp-org:service:WANIPConnection:2",
  "urn:schemas-upnp-org:service:WANIPConnection:1",
  "urn:schemas-upnp-org:service:WANPPPConnection:1",
] as const;

type WanServiceType = (typeof TYPES)[number];

/** Larger descriptions are refused. */
export const MAX_DESCRIPTION_BYTES = 64 * 1024;
/** Routers have one to three WAN connections. */
const MAX_SERVICES = 8;
const MAX_URL_LENGTH = 1024;
const MAX_NAME_LENGTH = 64;
const FORMAT = "UPnP description";

/** Decodes a device description; without services if the device is not a router. Throws `DecodeError`. */
export function decodeRouterDescription(bytes: Uint8Array): RouterDescription {
  if (bytes.length > MAX_DESCRIPTION_BYTES)
    throw new DecodeError(FORMAT, bytes.length, `expected at most ${MAX_DESCRIPTION_BYTES} bytes`);
  const root = readXml(decodeUtf8(bytes));
  if (root.name !== "root") throw new DecodeError(FORMAT, 0, `expected root, got ${root.name}`);
  const services: WanService[] = [];
  for (const service of elementsNamed(root, "service")) {
    const type = TYPES.find((known) => known === childText(service, "serviceType"));
    const controlUrl = childText(service, "controlURL") ?? "";
    const isUrl = controlUrl !== "" && controlUrl.length <= MAX_URL_LENGTH && /^[!-~]*$/.test(controlUrl);
    if (type !== undefined && isUrl && services.length < MAX_SERVICES) services.push({ type, controlUrl });
  }
  const baseUrl = childText(root, "URLBase");
  const device = root.children.find(({ name }) => name === "device");
  const name = (device && (childText(device, "friendlyName") || childText(device, "modelName"))) ?? "";
  return {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they must not reach the log
    name: name.replace(/[\0-\x1f\x7f]/g, " ").slice(0, MAX_NAME_LENGTH),
    baseUrl: baseUrl === "" ? undefined : baseUrl,
    services: services.sort((a, b) => TYPES.indexOf(a.type) - TYPES.indexOf(b.type)),
  };
}
