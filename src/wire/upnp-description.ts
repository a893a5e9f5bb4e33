import { DecodeError } from "../base/errors.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import { childText, elementsNamed, readXml } from "./upnp-xml.ts";

/** A service of a router that maps ports, or that says what it has mapped. */
export interface WanService {
  readonly type: WanServiceType;
  /** As the description has it: to be resolved against its base. */
  readonly controlUrl: string;
}

/** What a description says of a router. */
export interface RouterDescription {
  /** For the log: what the maker calls it. */
  readonly name: string;
  /** What its URLs are relative to; undefined: the description's own (UPnP Device Architecture 1.0, 2.1). */
  readonly baseUrl: string | undefined;
  /** The best first. */
  readonly services: readonly WanService[];
}

/** UPnP IGD 2 (WANIPConnection:2), IGD 1 over IP and over PPP; the order is that of our liking. */
const TYPES = [
  "urn:schemas-upnp-org:service:WANIPConnection:2",
  "urn:schemas-upnp-org:service:WANIPConnection:1",
  "urn:schemas-upnp-org:service:WANPPPConnection:1",
] as const;

export type WanServiceType = (typeof TYPES)[number];

/** More is no description of a router. */
export const MAX_DESCRIPTION_BYTES = 64 * 1024;
/** A router has one way out, some have two or three. */
const MAX_SERVICES = 8;
const MAX_URL_LENGTH = 1024;
const MAX_NAME_LENGTH = 64;
const FORMAT = "UPnP description";

/** Reads a device description. Throws `DecodeError` where it is none; it has no services where the device is no router. */
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
  const said = (device && (childText(device, "friendlyName") || childText(device, "modelName"))) ?? "";
  return {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they must not reach the log
    name: said.replace(/[\0-\x1f\x7f]/g, " ").slice(0, MAX_NAME_LENGTH),
    baseUrl: baseUrl === "" ? undefined : baseUrl,
    services: services.sort((a, b) => TYPES.indexOf(a.type) - TYPES.indexOf(b.type)),
  };
}
