import { concatBytes } from "../base/bytes.ts";
import type { HttpClient, OutboundRequest } from "../runtime/contract.ts";
import {
  decodeSoapResponse,
  encodeSoapCall,
  MAX_SOAP_BYTES,
  type SoapCall,
  type SoapResponse,
  soapHeaders,
} from "../wire/upnp/soap.ts";

/** Devices of the local network answer within a second; a television that wakes up takes a few. */
const TIMEOUT_MS = 8_000;
/** Status of service errors (UPnP Device Architecture 1.1, section 3.2.2). */
const SERVICE_ERROR = 500;

/** The answer of a device, held in memory. */
interface LanResponse {
  readonly status: number;
  readonly bytes: Uint8Array;
}

/**
 * Sends a request to a device of the local network. The host of the URL must be an IP literal that the caller has verified; redirects
 * are not followed. Rejects if the device does not answer within 8 s, or with more than `limitBytes`.
 */
export async function lanRequest(
  http: Pick<HttpClient, "request">,
  request: Omit<OutboundRequest, "connectTo" | "timeoutMs" | "signal">,
  limitBytes: number,
  signal?: AbortSignal,
): Promise<LanResponse> {
  signal?.throwIfAborted();
  const { status, body } = await http.request({
    ...request,
    connectTo: request.url.hostname,
    timeoutMs: TIMEOUT_MS,
    ...(signal && { signal }),
  });
  return { status, bytes: await readWhole(body, limitBytes) };
}

/** Calls an action of a UPnP service at a verified URL. Rejects if the answer is neither a result nor a service error. */
export async function callUpnpService(
  http: Pick<HttpClient, "request">,
  url: URL,
  call: SoapCall,
  signal?: AbortSignal,
): Promise<SoapResponse> {
  const request = { url, method: "POST", headers: soapHeaders(call), body: encodeSoapCall(call) } as const;
  const { status, bytes } = await lanRequest(http, request, MAX_SOAP_BYTES, signal);
  if (status !== 200 && status !== SERVICE_ERROR)
    throw new Error(`the device answered ${call.action} with status ${status}`);
  return decodeSoapResponse(bytes, call.action);
}

async function readWhole(body: ReadableStream<Uint8Array>, limitBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return concatBytes(chunks);
    length += value.length;
    if (length > limitBytes) {
      const error = new Error(`the response exceeds ${limitBytes} bytes`);
      await reader.cancel(error).catch(() => {}); // The size error is more useful than one of cancelling.
      throw error;
    }
    chunks.push(value);
  }
}
