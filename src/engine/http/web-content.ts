import { latin1Bytes } from "../../base/bytes.ts";
import { type Infohash, infohashOf, type Sha1 } from "../../base/ids.ts";

/** Content at a URL of a web server, and what the server said of it when it was first asked. */
export interface WebContent {
  /** With credentials, where the asker gave some. */
  readonly url: string;
  /** Whether it, and what it names, may lead to loopback and private addresses. */
  readonly allowPrivate: boolean;
  readonly kind: "file" | "stream" | "hls";
  /** What people may call it. */
  readonly name: string;
  readonly mime: string;
  /** Of a file, in bytes; 0 for what has no end. */
  readonly size: number;
  /** What tells one state of the file from another (RFC 9110 8.8): a strong ETag, else a date; undefined where neither came. */
  readonly validator: string | undefined;
}

/**
 * CHOICE(web-id): content of a web server has no infohash; where one is shown, it is the SHA-1 of its URL. Where the URL may
 * lead home, a secret of this run goes into it: whoever may not name such a URL must not reach it by its id either.
 */
export function webId(sha1: Sha1, secret: string, url: string, allowPrivate: boolean): Infohash {
  const { href } = new URL(url);
  return infohashOf(sha1(latin1Bytes(allowPrivate ? `${secret} ${href}` : href)));
}
