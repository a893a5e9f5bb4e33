import type { AddressScope } from "../base/address.ts";

/** Options of every request. */
interface RequestOptions {
  /** Longest accepted body after decompression; `Infinity` if the reader has its own limit. */
  readonly limitBytes: number;
  /** Allows loopback, private and link-local addresses. Other non-global addresses are always refused. */
  readonly allowPrivate: boolean;
  /** Restricts the request to addresses of this IP version. */
  readonly family?: 4 | 6;
  readonly headers?: Readonly<Record<string, string>>;
  /** Headers that only the origin of the URL receives: a redirect to another origin drops them. */
  readonly originHeaders?: Readonly<Record<string, string>>;
  /** Sent to the origin of the URL only (RFC 7617); overrides credentials within the URL. */
  readonly basic?: BasicCredentials;
  readonly signal?: AbortSignal | undefined;
  /** Sent instead of a GET request; such a request does not follow redirects. */
  readonly upload?: Upload;
  /** What is fetched, for log and error messages: `transport file`. */
  readonly purpose: string;
  /** An additional rule, checked at each hop: returns why the request is refused, or undefined if it is allowed. */
  readonly check?: (url: URL, scope: AddressScope) => string | undefined;
}

/** A request that changes what is at the URL. */
export interface Upload {
  readonly method: "PUT" | "DELETE";
  readonly body?: Uint8Array;
}

/** Options of a request that reads the whole body. */
export interface OutboundOptions extends RequestOptions {
  /** Limit of the whole request: name lookup, redirects and body. */
  readonly timeoutMs: number;
}

/** Options of a request that returns the body as a stream. */
export interface OpenOptions extends RequestOptions {
  /** Limit for name lookup, redirects and the response head. */
  readonly headTimeoutMs: number;
  /** Longest wait for the next bytes of the body. Time without a pending read does not count. */
  readonly idleTimeoutMs: number;
  /** Limit of the whole request including the body; unlimited by default. */
  readonly timeoutMs?: number;
  /** Requests the bytes `[start, end)`, or from `start` to the end. The server may send the whole body instead. */
  readonly range?: { readonly start: number; readonly end?: number };
  /** Accepts a compressed body and decompresses it; true by default. Range requests are never compressed. */
  readonly decode?: boolean;
}

/** Login and password of HTTP Basic authentication. */
interface BasicCredentials {
  readonly login: string;
  readonly password: string;
}

/** A response with its whole body. */
export interface OutboundAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The URL after all redirects, without credentials. */
  readonly finalUrl: string;
}

/** A response with its body as a stream. */
export interface OutboundStream {
  readonly status: number;
  readonly headers: Headers;
  readonly body: ReadableStream<Uint8Array>;
  /** The URL after all redirects, without credentials. */
  readonly finalUrl: string;
  /** True if URLs in the body may use private addresses: the request allowed them and the response came from one. */
  readonly allowPrivate?: boolean;
}
