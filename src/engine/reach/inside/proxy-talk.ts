import { addressText, canonicalAddress } from "../../../base/address.ts";
import { concatBytes } from "../../../base/bytes.ts";
import { decodeHttpConnect, encodeHttpConnect } from "../../../wire/http-connect.ts";
import {
  decodeSocksMethod,
  decodeSocksReply,
  decodeSocksVerdict,
  encodeSocksGreeting,
  encodeSocksPassword,
  encodeSocksRequest,
  SOCKS_NO_SUCH_COMMAND,
  type SocksPlace,
  socksRefusal,
} from "../../../wire/socks5.ts";
import { basicOf, type ProxyServer } from "./proxy.ts";

/** What is wanted of a proxy: a connection to a place, or an association for datagrams. */
export interface ProxyWish {
  readonly command: "connect" | "associate";
  readonly to: SocksPlace;
}

/** What a proxy's answer led to. */
export type TalkStep =
  | { readonly kind: "wait" }
  | { readonly kind: "say"; readonly bytes: Uint8Array }
  /** It is done; `rest` came behind the answer and belongs to the connection. */
  | { readonly kind: "done"; readonly bound: SocksPlace | undefined; readonly rest: Uint8Array };

/** Whose fault it is that a proxy refused: ours (who we are), its own (what it can), or the place's. */
export type RefusalKind = "login" | "unable" | "place";

/** A proxy that says no. The message names neither login nor password. */
export class ProxyRefusal extends Error {
  override readonly name = "ProxyRefusal";
  readonly kind: RefusalKind;

  constructor(kind: RefusalKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** The talk with a proxy until it carries what was wished. */
export interface ProxyTalk {
  /** What is said first. */
  readonly first: Uint8Array;
  /** Takes what the proxy said. Throws `DecodeError` where it is no proxy, `ProxyRefusal` where it says no. */
  received(bytes: Uint8Array): TalkStep;
}

const WAIT: TalkStep = { kind: "wait" };

/** Begins the talk with a proxy of its kind. */
export function talkTo(proxy: ProxyServer, wish: ProxyWish): ProxyTalk {
  return proxy.kind === "http" ? httpTalk(proxy, wish) : socksTalk(proxy, wish);
}

function httpTalk(proxy: ProxyServer, { command, to }: ProxyWish): ProxyTalk {
  if (command === "associate") throw new ProxyRefusal("unable", "an HTTP proxy carries no datagrams");
  let head = new Uint8Array(512);
  let seen = 0;
  const literal = canonicalAddress(to.host);
  const authority = literal === undefined ? `${to.host}:${to.port}` : addressText({ ...to, host: literal });
  return {
    first: encodeHttpConnect(authority, basicOf(proxy)),
    received(bytes) {
      const before = seen;
      seen += bytes.length;
      if (seen > head.length)
        head = concatBytes([head.subarray(0, before), new Uint8Array(2 * seen - before)]);
      head.set(bytes, before);
      const answer = decodeHttpConnect(head.subarray(0, seen), before);
      if (answer === undefined) return WAIT;
      const { status, reason, length } = answer;
      if (status === 407) throw wrongLogin(proxy);
      if (status < 200 || status > 299)
        throw new ProxyRefusal("place", `the proxy answered ${status} ${reason}`.trim());
      return { kind: "done", bound: undefined, rest: head.subarray(length, seen) };
    },
  };
}

function socksTalk(proxy: ProxyServer, { command, to }: ProxyWish): ProxyTalk {
  const { login } = proxy;
  let heard: Uint8Array = new Uint8Array(0);
  let phase: "method" | "verdict" | "reply" = "method";
  const request = (): TalkStep => {
    phase = "reply";
    return { kind: "say", bytes: encodeSocksRequest(command, to) };
  };
  const method = (): TalkStep => {
    const chosen = decodeSocksMethod(heard);
    if (chosen === undefined) return WAIT;
    heard = heard.subarray(2);
    if (chosen === "none") return request();
    if (chosen === "no_acceptable" || login === undefined) throw wrongLogin(proxy);
    phase = "verdict";
    return { kind: "say", bytes: encodeSocksPassword(login.name, login.password) };
  };
  const verdict = (): TalkStep => {
    const isTaken = decodeSocksVerdict(heard);
    if (isTaken === undefined) return WAIT;
    heard = heard.subarray(2);
    if (!isTaken) throw wrongLogin(proxy);
    return request();
  };
  const reply = (): TalkStep => {
    const answer = decodeSocksReply(heard);
    if (answer === undefined) return WAIT;
    const { code, bound, length } = answer;
    if (code !== 0) {
      const kind = code === SOCKS_NO_SUCH_COMMAND ? "unable" : "place";
      throw new ProxyRefusal(kind, `the proxy says no: ${socksRefusal(code)}`);
    }
    return { kind: "done", bound, rest: heard.subarray(length) };
  };
  return {
    first: encodeSocksGreeting(login !== undefined),
    received(bytes) {
      // No answer is longer than 262 bytes: what is more belongs to the connection.
      heard = concatBytes([heard, bytes]);
      return phase === "method" ? method() : phase === "verdict" ? verdict() : reply();
    },
  };
}

function wrongLogin({ login }: ProxyServer): ProxyRefusal {
  const why = login === undefined ? "wants a login and a password" : "does not take the login and password";
  return new ProxyRefusal("login", `the proxy ${why}`);
}
