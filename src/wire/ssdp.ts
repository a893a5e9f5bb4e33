import { latin1Bytes, latin1Text } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";

/** Where devices of a network are looked for (UPnP Device Architecture 1.1, 1.3.2). */
export const SSDP_GROUP = "239.255.255.250";
export const SSDP_PORT = 1900;

/** What a device answers to a search. Nothing of it is checked but its form. */
export interface SsdpAnswer {
  /** What it is (`ST`). */
  readonly target: string;
  /** Where its description is. */
  readonly location: string;
}

const FORMAT = "SSDP answer";
/** A datagram that is not cut to pieces; devices stay far below. */
const MAX_BYTES = 2048;
/** Devices spread their answers over so many seconds: routers are few. */
const WAIT_SECONDS = 2;

/** Asks all devices of a kind to answer; `host` is the group, or the device itself. */
export function encodeSsdpSearch(target: string, host: string): Uint8Array<ArrayBuffer> {
  const lines = [
    "M-SEARCH * HTTP/1.1",
    `HOST: ${host}:${SSDP_PORT}`,
    'MAN: "ssdp:discover"',
    `MX: ${WAIT_SECONDS}`,
    `ST: ${target}`,
  ];
  return latin1Bytes(`${lines.join("\r\n")}\r\n\r\n`);
}

/** Reads the answer to a search. Throws `DecodeError` where it is none, or names no location. */
export function decodeSsdpAnswer(bytes: Uint8Array): SsdpAnswer {
  if (bytes.length > MAX_BYTES)
    throw new DecodeError(FORMAT, MAX_BYTES, `expected at most ${MAX_BYTES} bytes`);
  const [status, ...lines] = latin1Text(bytes).split("\r\n");
  if (!/^HTTP\/1\.[01] 200( |$)/.test(status!)) throw new DecodeError(FORMAT, 0, "expected HTTP/1.1 200 OK");
  const headers = new Map<string, string>();
  let offset = status!.length + 2;
  for (const line of lines) {
    if (line === "") break;
    const colon = line.indexOf(":");
    if (colon < 1) throw new DecodeError(FORMAT, offset, "expected a header");
    const name = line.slice(0, colon).trim().toLowerCase();
    if (!headers.has(name)) headers.set(name, line.slice(colon + 1).trim());
    offset += line.length + 2;
  }
  const location = headers.get("location");
  if (location === undefined || !/^[!-~]+$/.test(location))
    throw new DecodeError(FORMAT, offset, "expected a location");
  return { target: headers.get("st") ?? "", location };
}
