import { concatBytes } from "../../../base/bytes.ts";
import { DecodeError, messageOf } from "../../../base/errors.ts";
import type { OutboundRequest } from "../../../runtime/contract.ts";
import {
  decodeSoapAnswer,
  encodeSoapCall,
  MAX_SOAP_BYTES,
  type SoapAnswer,
  type SoapCall,
  soapHeaders,
} from "../../../wire/upnp-soap.ts";
import { RouterError, type RouterParts } from "./contract.ts";

/** Routers are slow machines, but near. */
const TIMEOUT_MS = 8_000;
/** UPnP Device Architecture 1.1, 3.2.2: errors of a service come with this status. */
const SERVICE_ERROR = 500;

/** Calls an action of a service at a URL of the router's own. Rejects with `RouterError`. */
export async function callService(
  parts: Pick<RouterParts, "runtime">,
  url: URL,
  call: SoapCall,
  signal: AbortSignal,
): Promise<SoapAnswer> {
  const request = { url, method: "POST", headers: soapHeaders(call), body: encodeSoapCall(call) } as const;
  const { status, bytes } = await fetchFrom(parts, request, MAX_SOAP_BYTES, signal);
  if (status !== 200 && status !== SERVICE_ERROR)
    throw new RouterError(`it answers ${call.action} with status ${status}`);
  return asRouterError(() => decodeSoapAnswer(bytes, call.action));
}

/** The description at a URL of the router's own. Rejects with `RouterError`. */
export async function fetchDescription<T>(
  parts: Pick<RouterParts, "runtime">,
  url: URL,
  limitBytes: number,
  decode: (bytes: Uint8Array) => T,
  signal: AbortSignal,
): Promise<T> {
  const request = { url, method: "GET", headers: {} } as const;
  const { status, bytes } = await fetchFrom(parts, request, limitBytes, signal);
  if (status !== 200) throw new RouterError(`its description comes with status ${status}`);
  return asRouterError(() => decode(bytes));
}

/** Redirects are not followed: they come as what they are. The URL's host is an address that has been checked. */
async function fetchFrom(
  { runtime }: Pick<RouterParts, "runtime">,
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
  const parts: Uint8Array[] = [];
  let length = 0;
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return concatBytes(parts);
    length += value.length;
    if (length > limitBytes) {
      const error = new RouterError(`it answers with more than ${limitBytes} bytes`);
      await reader.cancel(error).catch(() => {}); // The error at hand says more than that of cancelling.
      throw error;
    }
    parts.push(value);
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
