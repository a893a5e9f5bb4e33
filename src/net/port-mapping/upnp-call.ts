import { messageOf } from "../../base/errors.ts";
import { callUpnpService, lanRequest } from "../../outbound/lan-http.ts";
import type { SoapCall, SoapResponse } from "../../wire/upnp/soap.ts";
import { type RouterDependencies, RouterError } from "./contract.ts";

/** Calls an action of a UPnP service. `url` must be at the router's address. Rejects with `RouterError`. */
export function callService(
  { runtime }: Pick<RouterDependencies, "runtime">,
  url: URL,
  call: SoapCall,
  signal: AbortSignal,
): Promise<SoapResponse> {
  return asRouterError(() => callUpnpService(runtime.http, url, call, signal), signal);
}

/** Fetches and decodes a device description. `url` must be at the router's address. Rejects with `RouterError`. */
export function fetchDescription<T>(
  { runtime }: Pick<RouterDependencies, "runtime">,
  url: URL,
  limitBytes: number,
  decode: (bytes: Uint8Array) => T,
  signal: AbortSignal,
): Promise<T> {
  return asRouterError(async () => {
    const request = { url, method: "GET", headers: {} } as const;
    const { status, bytes } = await lanRequest(runtime.http, request, limitBytes, signal);
    if (status !== 200) throw new RouterError(`the device description was answered with status ${status}`);
    return decode(bytes);
  }, signal);
}

async function asRouterError<T>(run: () => Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    return await run();
  } catch (thrown) {
    signal.throwIfAborted();
    throw thrown instanceof RouterError ? thrown : new RouterError(messageOf(thrown));
  }
}
