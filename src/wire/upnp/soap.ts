import { DecodeError } from "../../base/errors.ts";
import { escapeXml } from "../../base/escape-xml.ts";
import { decodeUtf8, encodeUtf8 } from "../../base/utf8.ts";
import { childText, elementsNamed, readXml } from "./xml.ts";

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

/** Error codes that port mapping handles (WANIPConnection:2 2.5). */
export const SOAP_ERRORS = {
  invalidAction: 401,
  invalidArguments: 402,
  notAuthorised: 606,
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
  return encodeUtf8(
    '<?xml version="1.0"?>\r\n' +
      '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" ' +
      's:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/"><s:Body>' +
      `<u:${action} xmlns:u="${escapeXml(serviceType)}">${inner}</u:${action}>` +
      "</s:Body></s:Envelope>\r\n",
  );
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
