import { latin1Bytes, latin1Text } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";

/** Multicast group and port for searching devices (UPnP Device Architecture 1.1, 1.3.2). */
export const SSDP_GROUP = "239.255.255.250";
export const SSDP_PORT = 1900;

/** The response of a device to a search. Only its syntax has been checked. */
interface SsdpResponse {
  /** Device or service type (`ST`). */
  readonly target: string;
  /** URL of the device description. */
  readonly location: string;
}

const FORMAT = "SSDP";
/** Messages of real devices are much shorter. */
const MAX_BYTES = 2048;
/** Time over which devices spread their responses (`MX`); short, because few devices respond. */
const RESPONSE_SECONDS = 2;

/**
 * Encodes a search for devices of a type; `host` is the group or the address of a device, `responseSeconds` the time over which the
 * devices spread their responses.
 */
export function encodeSsdpSearch(
  target: string,
  host: string,
  responseSeconds = RESPONSE_SECONDS,
): Uint8Array<ArrayBuffer> {
  const lines = [
    "M-SEARCH * HTTP/1.1",
    `HOST: ${host}:${SSDP_PORT}`,
    'MAN: "ssdp:discover"',
    `MX: ${responseSeconds}`,
    `ST: ${target}`,
  ];
  return latin1Bytes(`${lines.join("\r\n")}\r\n\r\n`);
}

/** Decodes the response to a search. Throws `DecodeError`, also if it has no location. */
export function decodeSsdpResponse(bytes: Uint8Array): SsdpResponse {
  const { start, headers } = readMessage(bytes);
  if (!/^HTTP\/1\.[01] 200( |$)/.test(start)) throw new DecodeError(FORMAT, 0, "expected HTTP/1.1 200 OK");
  const location = headers.get("location");
  if (location === undefined || !/^[!-~]+$/.test(location))
    throw new DecodeError(FORMAT, bytes.length, "expected a location");
  return { target: headers.get("st") ?? "", location };
}

/** Decodes a search of a client. Returns its target; undefined for other messages of the group. Throws `DecodeError`. */
export function decodeSsdpSearch(bytes: Uint8Array): string | undefined {
  const { start, headers } = readMessage(bytes);
  const isSearch = /^M-SEARCH \* HTTP\/1\.[01]$/.test(start) && headers.get("man") === '"ssdp:discover"';
  return isSearch ? headers.get("st") : undefined;
}

/** What a device tells about itself, or about one of its services. */
interface SsdpFacts {
  readonly target: string;
  /** The unique service name: the device name, with the target behind it unless they are the same. */
  readonly usn: string;
  /** The URL of the device description. */
  readonly location: string;
}

/** Encodes the response to a search. */
export function encodeSsdpResponse({ target, usn, location }: SsdpFacts): Uint8Array<ArrayBuffer> {
  const lines = ["HTTP/1.1 200 OK", ...freshness(location), "EXT:", `ST: ${target}`, `USN: ${usn}`];
  return latin1Bytes(`${lines.join("\r\n")}\r\n\r\n`);
}

/** Encodes an announcement to the group, or a goodbye. */
export function encodeSsdpNotify(
  { target, usn, location }: SsdpFacts,
  isAlive: boolean,
): Uint8Array<ArrayBuffer> {
  const lines = [
    "NOTIFY * HTTP/1.1",
    `HOST: ${SSDP_GROUP}:${SSDP_PORT}`,
    ...(isAlive ? freshness(location) : []),
    `NT: ${target}`,
    `NTS: ssdp:${isAlive ? "alive" : "byebye"}`,
    `USN: ${usn}`,
  ];
  return latin1Bytes(`${lines.join("\r\n")}\r\n\r\n`);
}

/** Announcements expire after this time unless they are repeated (UPnP Device Architecture 1.0, section 1.1.2). */
const MAX_AGE_SECONDS = 1800;

function freshness(location: string): string[] {
  return [
    `CACHE-CONTROL: max-age=${MAX_AGE_SECONDS}`,
    `LOCATION: ${location}`,
    "SERVER: Linux/1.0 UPnP/1.0 Sluice/1.0",
  ];
}

function readMessage(bytes: Uint8Array): { start: string; headers: ReadonlyMap<string, string> } {
  if (bytes.length > MAX_BYTES)
    throw new DecodeError(FORMAT, MAX_BYTES, `expected at most ${MAX_BYTES} bytes`);
  const [start = "", ...lines] = latin1Text(bytes).split("\r\n");
  const headers = new Map<string, string>();
  let offset = start.length + 2;
  for (const line of lines) {
    if (line === "") break;
    const colon = line.indexOf(":");
    if (colon < 1) throw new DecodeError(FORMAT, offset, "expected a header");
    const name = line.slice(0, colon).trim().toLowerCase();
    if (!headers.has(name)) headers.set(name, line.slice(colon + 1).trim());
    offset += line.length + 2;
  }
  return { start, headers };
}
