import { DecodeError } from "../base/errors.ts";
import { decodeUtf8, encodeUtf8 } from "../base/utf8.ts";
import { childText, elementsNamed, readXml } from "./upnp-xml.ts";

/** What a router's service is asked to do (UPnP Device Architecture 1.1, 3.2.1). */
export interface SoapCall {
  readonly serviceType: string;
  readonly action: string;
  /** In the order that the service's description has: some routers mind. */
  readonly parameters: readonly (readonly [name: string, value: string | number])[];
}

/** What it answers: what it gives back by name, or an error of the service. */
export type SoapAnswer =
  | { readonly ok: true; readonly values: ReadonlyMap<string, string> }
  | { readonly ok: false; readonly code: number; readonly text: string };

/** Errors that are more than a refusal (WANIPConnection:2 2.5). */
export const SOAP_ERRORS = {
  invalidAction: 401,
  invalidArguments: 402,
  notAuthorised: 606,
  noSuchEntry: 714,
  conflict: 718,
  samePortsOnly: 724,
  permanentOnly: 725,
} as const;

/** An answer names some values; more is none. */
export const MAX_SOAP_BYTES = 16 * 1024;
const MAX_VALUES = 32;
const FORMAT = "UPnP answer";

/** The body of a call, as UTF-8. */
export function encodeSoapCall({ serviceType, action, parameters }: SoapCall): Uint8Array<ArrayBuffer> {
  const inner = parameters.map(([name, value]) => `<${name}>${escaped(String(value))}</${name}>`).join("");
  return encodeUtf8(
    '<?xml version="1.0"?>\r\n' +
      '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" ' +
      's:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/"><s:Body>' +
      `<u:${action} xmlns:u="${escaped(serviceType)}">${inner}</u:${action}>` +
      "</s:Body></s:Envelope>\r\n",
  );
}

/** The headers of a call. */
export function soapHeaders({ serviceType, action }: SoapCall): Readonly<Record<string, string>> {
  return { "content-type": 'text/xml; charset="utf-8"', soapaction: `"${serviceType}#${action}"` };
}

/** Reads the answer to a call of `action`. Throws `DecodeError` where it is neither an answer nor an error. */
export function decodeSoapAnswer(bytes: Uint8Array, action: string): SoapAnswer {
  if (bytes.length > MAX_SOAP_BYTES)
    throw new DecodeError(FORMAT, bytes.length, `expected at most ${MAX_SOAP_BYTES} bytes`);
  const envelope = readXml(decodeUtf8(bytes));
  const body = envelope.children.find(({ name }) => name === "Body");
  if (envelope.name !== "Envelope" || body === undefined)
    throw new DecodeError(FORMAT, 0, "expected an envelope with a body");
  const answer = body.children.find(({ name }) => name === `${action}Response`);
  if (answer) {
    const values = answer.children.slice(0, MAX_VALUES).map(({ name, text }) => [name, text] as const);
    return { ok: true, values: new Map(values) };
  }
  const [error] = elementsNamed(body, "UPnPError");
  const code = error && childText(error, "errorCode");
  if (error === undefined || code === undefined || !/^\d{1,5}$/.test(code))
    throw new DecodeError(FORMAT, 0, `expected ${action}Response or an error`);
  return { ok: false, code: Number(code), text: (childText(error, "errorDescription") ?? "").slice(0, 100) };
}

function escaped(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}
