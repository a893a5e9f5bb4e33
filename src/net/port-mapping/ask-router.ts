import { onAbort } from "../../async/abort.ts";
import { deferred } from "../../async/deferred.ts";
import { DecodeError } from "../../base/errors.ts";
import { after } from "../../base/time.ts";
import { ROUTER_PORT } from "../../wire/router/nat-pmp.ts";
import { type RouterDependencies, RouterError, type RouterLocation } from "./contract.ts";
import { bindLocal } from "./find-router.ts";

/** The first response timeout; it doubles with each attempt (RFC 6886 section 3.1). */
const FIRST_WAIT_MS = 250;
/** Routers respond in milliseconds; after two seconds the protocol counts as unsupported (RFC 6886 waits 64 s). */
const ATTEMPTS = 3;
/** Unexpected datagrams from the router; more are ignored. */
const MAX_UNEXPECTED = 50;

/**
 * Sends a NAT-PMP or PCP request to the router until it responds. `read` decodes a response and returns undefined for one to
 * another request. Rejects with `RouterError` if no response arrives.
 */
export async function askRouter<T>(
  { runtime }: Pick<RouterDependencies, "runtime">,
  { router, own }: RouterLocation,
  request: Uint8Array,
  read: (response: Uint8Array) => T | undefined,
  signal: AbortSignal,
): Promise<T> {
  signal.throwIfAborted();
  const { clock, net } = runtime;
  const response = deferred<T>();
  let unexpected = 0;
  const socket = await bindLocal(net, own.host, (bytes, from) => {
    if (from.host !== router || from.port !== ROUTER_PORT || unexpected >= MAX_UNEXPECTED) return;
    const value = tryRead(read, bytes);
    if (value === undefined) unexpected++;
    else response.resolve(value);
  });
  let cancel = () => {};
  const attempt = (number: number, waitMs: number) => {
    if (number === ATTEMPTS) {
      response.reject(new RouterError(`the router at ${router} does not respond`, "silent"));
      return;
    }
    socket.send(request, { host: router, port: ROUTER_PORT });
    cancel = clock.at(after(clock.now(), waitMs), () => attempt(number + 1, 2 * waitMs));
  };
  const release = onAbort(signal, () => response.reject(signal.reason));
  attempt(0, FIRST_WAIT_MS);
  try {
    return await response.promise;
  } finally {
    cancel();
    release();
    socket.close();
  }
}

function tryRead<T>(read: (response: Uint8Array) => T | undefined, bytes: Uint8Array): T | undefined {
  try {
    return read(bytes);
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    return undefined;
  }
}
