import { addressText, canonicalAddress } from "../../base/address.ts";
import { concatBytes } from "../../base/bytes.ts";
import { decodeHttpConnectResponse, encodeHttpConnect } from "../../wire/http-connect.ts";
import {
  decodeSocksMethod,
  decodeSocksPasswordReply,
  decodeSocksReply,
  encodeSocksGreeting,
  encodeSocksPassword,
  encodeSocksRequest,
  SOCKS_COMMAND_NOT_SUPPORTED,
  type SocksAddress,
  socksErrorText,
} from "../../wire/socks5.ts";
import { basicCredentials, type ProxyServer } from "./proxy.ts";

/** A request to a proxy: a connection to `to`, or a UDP association. */
export interface ProxyRequest {
  readonly command: "connect" | "associate";
  readonly to: SocksAddress;
}

/** Result of processing received bytes. */
export type HandshakeStep =
  | { readonly kind: "wait" }
  | { readonly kind: "send"; readonly bytes: Uint8Array }
  /** The handshake is complete; `rest` already belongs to the connection. */
  | { readonly kind: "done"; readonly bound: SocksAddress | undefined; readonly rest: Uint8Array };

/** Cause of a refusal: the credentials, a missing feature of the proxy, or the destination. */
export type RefusalKind = "login" | "unsupported" | "destination";

/** The proxy refused the request. The message contains neither login nor password. */
export class ProxyRefusal extends Error {
  override readonly name = "ProxyRefusal";
  readonly kind: RefusalKind;

  constructor(kind: RefusalKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** The handshake with a proxy (SOCKS5, RFC 1928; HTTP CONNECT, RFC 9110 section 9.3.6). */
export interface ProxyHandshake {
  /** The first bytes to send. */
  readonly first: Uint8Array;
  /** Processes received bytes. Throws `DecodeError` if they are malformed, `ProxyRefusal` if the proxy refuses. */
  received(bytes: Uint8Array): HandshakeStep;
}

const WAIT: HandshakeStep = { kind: "wait" };

/** Creates the handshake for the protocol of the proxy. */
export function startProxyHandshake(proxy: ProxyServer, request: ProxyRequest): ProxyHandshake {
  return proxy.kind === "http" ? httpHandshake(proxy, request) : socksHandshake(proxy, request);
}

function httpHandshake(proxy: ProxyServer, { command, to }: ProxyRequest): ProxyHandshake {
  if (command === "associate") throw new ProxyRefusal("unsupported", "HTTP proxies do not support UDP");
  let head = new Uint8Array(512);
  let seen = 0;
  const literal = canonicalAddress(to.host);
  const authority = literal === undefined ? `${to.host}:${to.port}` : addressText({ ...to, host: literal });
  return {
    first: encodeHttpConnect(authority, basicCredentials(proxy)),
    received(bytes) {
      const before = seen;
      seen += bytes.length;
      if (seen > head.length)
        head = concatBytes([head.subarray(0, before), new Uint8Array(2 * seen - before)]);
      head.set(bytes, before);
      const answer = decodeHttpConnectResponse(head.subarray(0, seen), before);
      if (answer === undefined) return WAIT;
      const { status, reason, length } = answer;
      if (status === 407) throw wrongLogin(proxy);
      if (status < 200 || status > 299)
        throw new ProxyRefusal("destination", `the proxy answered ${status} ${reason}`.trim());
      return { kind: "done", bound: undefined, rest: head.subarray(length, seen) };
    },
  };
}

function socksHandshake(proxy: ProxyServer, { command, to }: ProxyRequest): ProxyHandshake {
  const { login } = proxy;
  let buffer: Uint8Array = new Uint8Array(0);
  let phase: "method" | "password" | "reply" = "method";
  const request = (): HandshakeStep => {
    phase = "reply";
    return { kind: "send", bytes: encodeSocksRequest(command, to) };
  };
  const method = (): HandshakeStep => {
    const chosen = decodeSocksMethod(buffer);
    if (chosen === undefined) return WAIT;
    buffer = buffer.subarray(2);
    if (chosen === "none") return request();
    if (chosen === "no_acceptable" || login === undefined) throw wrongLogin(proxy);
    phase = "password";
    return { kind: "send", bytes: encodeSocksPassword(login.name, login.password) };
  };
  const passwordReply = (): HandshakeStep => {
    const isAccepted = decodeSocksPasswordReply(buffer);
    if (isAccepted === undefined) return WAIT;
    buffer = buffer.subarray(2);
    if (!isAccepted) throw wrongLogin(proxy);
    return request();
  };
  const reply = (): HandshakeStep => {
    const answer = decodeSocksReply(buffer);
    if (answer === undefined) return WAIT;
    const { code, bound, length } = answer;
    if (code !== 0) {
      const kind = code === SOCKS_COMMAND_NOT_SUPPORTED ? "unsupported" : "destination";
      throw new ProxyRefusal(kind, `the proxy refused: ${socksErrorText(code)}`);
    }
    return { kind: "done", bound, rest: buffer.subarray(length) };
  };
  return {
    first: encodeSocksGreeting(login !== undefined),
    received(bytes) {
      // No reply is longer than 262 bytes; further bytes belong to the connection.
      buffer = concatBytes([buffer, bytes]);
      return phase === "method" ? method() : phase === "password" ? passwordReply() : reply();
    },
  };
}

function wrongLogin({ login }: ProxyServer): ProxyRefusal {
  const problem = login === undefined ? "requires a login and a password" : "rejected the login and password";
  return new ProxyRefusal("login", `the proxy ${problem}`);
}
