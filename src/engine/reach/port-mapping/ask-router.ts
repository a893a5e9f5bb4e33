import { DecodeError } from "../../../base/errors.ts";
import { after } from "../../../base/time.ts";
import { ROUTER_PORT } from "../../../wire/nat-pmp.ts";
import { deferred } from "../../deferred.ts";
import { bindTo } from "./bind-to.ts";
import { RouterError, type RouterParts, type RouterPlace } from "./contract.ts";

/** The first wait for an answer; each further one is twice as long (RFC 6886 3.1). */
const FIRST_WAIT_MS = 250;
/** A router answers in milliseconds: who is silent for two seconds does not speak this (RFC 6886 would wait for 64). */
const TRIES = 3;
/** Datagrams of our own making that nobody asked for: with more somebody plays with us. */
const MAX_ODD_ANSWERS = 50;

/**
 * Sends a question of NAT-PMP or PCP to the router until it answers. `read` says what an answer means, undefined where it is
 * to another question. Rejects with `RouterError` where none comes.
 */
export async function askRouter<T>(
  { runtime }: Pick<RouterParts, "runtime">,
  { router, own }: RouterPlace,
  question: Uint8Array,
  read: (answer: Uint8Array) => T | undefined,
  signal: AbortSignal,
): Promise<T> {
  signal.throwIfAborted();
  const { clock, net } = runtime;
  const answer = deferred<T>();
  let odd = 0;
  const socket = await bindTo(net, own.host, (bytes, from) => {
    if (from.host !== router || from.port !== ROUTER_PORT || odd >= MAX_ODD_ANSWERS) return;
    const value = readable(read, bytes);
    if (value === undefined) odd++;
    else answer.resolve(value);
  });
  let cancel = () => {};
  const attempt = (tries: number, waitMs: number) => {
    if (tries === TRIES) {
      answer.reject(new RouterError(`the router at ${router} does not answer`, "silent"));
      return;
    }
    socket.send(question, { host: router, port: ROUTER_PORT });
    cancel = clock.at(after(clock.now(), waitMs), () => attempt(tries + 1, 2 * waitMs));
  };
  const abort = () => answer.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  attempt(0, FIRST_WAIT_MS);
  try {
    return await answer.promise;
  } finally {
    cancel();
    signal.removeEventListener("abort", abort);
    socket.close();
  }
}

function readable<T>(read: (answer: Uint8Array) => T | undefined, bytes: Uint8Array): T | undefined {
  try {
    return read(bytes);
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    return undefined;
  }
}
