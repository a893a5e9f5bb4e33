import { DecodeError } from "../../base/errors.ts";
import { escapeXml } from "../../base/escape-xml.ts";
import { decodeUtf8, encodeUtf8 } from "../../base/utf8.ts";
import { childText, elementsNamed, readXml } from "../xml.ts";

/** An action call on a service (UPnP Device Architecture 1.1, 3.2.1). */
export interface SoapCall {
  readonly serviceType: string;
  readonly action: string;
  /** In the order of the service description; some routers require it. */
  readonly parameters: readonly (readonly [name: string, value: string | number])[];
}

/** The response to a call: output values by name, or an error. */
export type SoapResponse =
  | { readonly ok: true; readonly values: ReadonlyMap<string, string> }
  | { readonly ok: false; readonly code: number; readonly text: string };

/** Error codes that port mapping handles (WANIPConnection:2 2.5), and those of the media server (ContentDirectory:1 2.7). */
export const SOAP_ERRORS = {
  invalidAction: 401,
  invalidArguments: 402,
  notAuthorised: 606,
  noSuchObject: 701,
  noSuchEntry: 714,
  conflict: 718,
  samePortsOnly: 724,
  permanentOnly: 725,
} as const;

/** Larger responses are refused. Televisions list hundreds of formats in one. */
export const MAX_SOAP_BYTES = 64 * 1024;
const MAX_VALUES = 32;
const FORMAT = "UPnP response";

/** Encodes the body of a call as UTF-8. */
export function encodeSoapCall({ serviceType, action, parameters }: SoapCall): Uint8Array<ArrayBuffer> {
  const inner = parameters.map(([name, value]) => `<${name}>${escapeXml(String(value))}</${name}>`).join("");
  const type = escapeXml(serviceType);
  return encodeUtf8(envelopeOf(`<u:${action} xmlns:u="${type}">${inner}</u:${action}>`));
}

/** Returns the HTTP headers of a call. */
export function soapHeaders({ serviceType, action }: SoapCall): Readonly<Record<string, string>> {
  return { "content-type": 'text/xml; charset="utf-8"', soapaction: `"${serviceType}#${action}"` };
}

/** Decodes the response to a call of `action`. Throws `DecodeError` if it is neither a result nor an error. */
export function decodeSoapResponse(bytes: Uint8Array, action: string): SoapResponse {
  if (bytes.length > MAX_SOAP_BYTES)
    throw new DecodeError(FORMAT, bytes.length, `expected at most ${MAX_SOAP_BYTES} bytes`);
  const envelope = readXml(decodeUtf8(bytes));
  const body = envelope.children.find(({ name }) => name === "Body");
  if (envelope.name !== "Envelope" || body === undefined)
    throw new DecodeError(FORMAT, 0, "expected an envelope with a body");
  const result = body.children.find(({ name }) => name === `${action}Response`);
  if (result) {
    const values = result.children.slice(0, MAX_VALUES).map(({ name, text }) => [name, text] as const);
    return { ok: true, values: new Map(values) };
  }
  const [error] = elementsNamed(body, "UPnPError");
  const code = error && childText(error, "errorCode");
  if (error === undefined || code === undefined || !/^\d{1,5}$/.test(code))
    throw new DecodeError(FORMAT, 0, `expected ${action}Response or an error`);
  return { ok: false, code: Number(code), text: (childText(error, "errorDescription") ?? "").slice(0, 100) };
}

/** Decodes the body of a call. Throws `DecodeError`. */
export function decodeSoapCall(bytes: Uint8Array): {
  readonly action: string;
  readonly values: ReadonlyMap<string, string>;
} {
  const envelope = readXml(decodeUtf8(bytes));
  const call = envelope.children.find(({ name }) => name === "Body")?.children[0];
  if (envelope.name !== "Envelope" || call === undefined)
    throw new DecodeError(FORMAT, 0, "expected an envelope with a call");
  const values = call.children.slice(0, MAX_VALUES).map(({ name, text }) => [name, text] as const);
  return { action: call.name, values: new Map(values) };
}

/** Encodes the result of a call; the values are in the order of the service description. */
export function encodeSoapResult(
  serviceType: string,
  action: string,
  values: SoapCall["parameters"],
): string {
  const inner = values.map(([name, value]) => `<${name}>${escapeXml(String(value))}</${name}>`).join("");
  const type = escapeXml(serviceType);
  return envelopeOf(`<u:${action}Response xmlns:u="${type}">${inner}</u:${action}Response>`);
}

/** Encodes an error of a service (UPnP Device Architecture 1.1, 3.2.2). */
export function encodeSoapError(code: number, text: string): string {
  return envelopeOf(
    "<s:Fault><faultcode>s:Client</faultcode><faultstring>UPnPError</faultstring><detail>" +
      `<UPnPError xmlns="urn:schemas-upnp-org:control-1-0"><errorCode>${code}</errorCode>` +
      `<errorDescription>${escapeXml(text)}</errorDescription></UPnPError></detail></s:Fault>`,
  );
}

function envelopeOf(body: string): string {
  return (
    '<?xml version="1.0" encoding="utf-8"?>\r\n' +
    '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" ' +
    `s:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/"><s:Body>${body}</s:Body></s:Envelope>\r\n`
  );
}
