import { concatBytes } from "../../base/bytes.ts";
import { DecodeError, messageOf } from "../../base/errors.ts";
import type { OutboundRequest } from "../../runtime/contract.ts";
import {
  decodeSoapResponse,
  encodeSoapCall,
  MAX_SOAP_BYTES,
  type SoapCall,
  type SoapResponse,
  soapHeaders,
} from "../../wire/router/upnp-soap.ts";
import { type RouterDependencies, RouterError } from "./contract.ts";

const TIMEOUT_MS = 8_000;
/** Status of service errors (UPnP Device Architecture 1.1, section 3.2.2). */
const SERVICE_ERROR = 500;

/** Calls an action of a UPnP service. `url` must be at the router's address. Rejects with `RouterError`. */
export async function callService(
  dependencies: Pick<RouterDependencies, "runtime">,
  url: URL,
  call: SoapCall,
  signal: AbortSignal,
): Promise<SoapResponse> {
  const request = { url, method: "POST", headers: soapHeaders(call), body: encodeSoapCall(call) } as const;
  const { status, bytes } = await fetchFrom(dependencies, request, MAX_SOAP_BYTES, signal);
  if (status !== 200 && status !== SERVICE_ERROR)
    throw new RouterError(`the router answered ${call.action} with status ${status}`);
  return asRouterError(() => decodeSoapResponse(bytes, call.action));
}

/** Fetches and decodes a device description. `url` must be at the router's address. Rejects with `RouterError`. */
export async function fetchDescription<T>(
  dependencies: Pick<RouterDependencies, "runtime">,
  url: URL,
  limitBytes: number,
  decode: (bytes: Uint8Array) => T,
  signal: AbortSignal,
): Promise<T> {
  const request = { url, method: "GET", headers: {} } as const;
  const { status, bytes } = await fetchFrom(dependencies, request, limitBytes, signal);
  if (status !== 200) throw new RouterError(`the device description was answered with status ${status}`);
  return asRouterError(() => decode(bytes));
}

/** Redirects are not followed. The host of the URL is a verified address. */
async function fetchFrom(
  { runtime }: Pick<RouterDependencies, "runtime">,
  request: Omit<OutboundRequest, "connectTo" | "timeoutMs" | "signal">,
  limitBytes: number,
  signal: AbortSignal,
): Promise<{ status: number; bytes: Uint8Array }> {
  signal.throwIfAborted();
  try {
    const { status, body } = await runtime.http.request({
      ...request,
      connectTo: request.url.hostname,
      timeoutMs: TIMEOUT_MS,
      signal,
    });
    return { status, bytes: await readWhole(body, limitBytes) };
  } catch (thrown) {
    signal.throwIfAborted();
    throw thrown instanceof RouterError ? thrown : new RouterError(messageOf(thrown));
  }
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
      const error = new RouterError(`the response exceeds ${limitBytes} bytes`);
      await reader.cancel(error).catch(() => {}); // The size error is more useful than one of cancelling.
      throw error;
    }
    chunks.push(value);
  }
}

function asRouterError<T>(decode: () => T): T {
  try {
    return decode();
  } catch (thrown) {
    if (thrown instanceof DecodeError) throw new RouterError(thrown.message);
    throw thrown;
  }
}
