import { SluiceError } from "../../src/base/errors.ts";
import { encodeUtf8 } from "../../src/base/utf8.ts";

/** The begin of signed paths. */
export const SIGNED = "/signed";

/** Signed links to HLS without sessions. */
export interface SignedLinks {
  /** Returns the path of a link to content (`/live/<infohash>` or `/vod/<infohash>/<file>`) that expires at a UNIX time. */
  sign(content: string, expires: number): Promise<string>;
  /** Rejects with `access_denied` unless the signature is that of the content and has not expired. */
  verify(content: string, expires: string, signature: string): Promise<void>;
}

/**
 * Creates links whose signature is HMAC-SHA256 (RFC 2104) of the expiry, a line feed and the content's path, in base64url without padding (RFC 4648).
 */
export function createSignedLinks(key: string, unixSeconds: () => number): SignedLinks {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const secret = crypto.subtle.importKey("raw", encodeUtf8(key), algorithm, false, ["sign", "verify"]);
  const textOf = (content: string, expires: string) => encodeUtf8(`${expires}\n${content}`);
  return {
    async sign(content, expires) {
      const signature = await crypto.subtle.sign("HMAC", await secret, textOf(content, String(expires)));
      return `${SIGNED}/${expires}/${Buffer.from(signature).toString("base64url")}${content}`;
    },
    async verify(content, expires, signature) {
      const isForm = /^[1-9]\d{0,11}$/.test(expires) && /^[\w-]{43}$/.test(signature);
      const given = new Uint8Array(Buffer.from(isForm ? signature : "", "base64url"));
      if (!isForm || !(await crypto.subtle.verify("HMAC", await secret, given, textOf(content, expires))))
        throw new SluiceError("access_denied", "the signature of this link is wrong");
      if (Number(expires) <= unixSeconds())
        throw new SluiceError("access_denied", "this link has expired; get a new one");
    },
  };
}
