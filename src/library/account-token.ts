import { importJWK, SignJWT } from "jose";
import * as v from "valibot";
import type { Clock, KeyValueStore } from "../runtime/contract.ts";
import { type SessionRecord, SIGNING_KEY, type SigningKey, signingKeyRecord } from "./account-records.ts";

/** A token that leaks is good for so long; whoever needs one longer asks check_auth again. */
const VALID_SECONDS = 24 * 3600;

/** What signing needs. */
export interface AuthTokenParts {
  readonly store: KeyValueStore;
  readonly clock: Pick<Clock, "unixSeconds">;
}

/** The signed token of who is signed in: a JWT (RFC 7519) by EdDSA, with sub, iat, exp and iss. */
export async function signAuthToken(session: SessionRecord, parts: AuthTokenParts): Promise<string> {
  const key = await importJWK(await signingKey(parts.store), "EdDSA");
  const now = parts.clock.unixSeconds();
  return new SignJWT({})
    .setProtectedHeader({ alg: "EdDSA", typ: "JWT" })
    .setSubject(session.login)
    .setIssuer("sluice")
    .setIssuedAt(now)
    .setExpirationTime(now + VALID_SECONDS)
    .sign(key);
}

/** The key that is kept, or a new one, kept before it signs anything. */
async function signingKey(store: KeyValueStore): Promise<SigningKey> {
  const kept = await store.get(SIGNING_KEY);
  const read = v.safeParse(signingKeyRecord, kept);
  if (read.success) return read.output;
  const pair = (await crypto.subtle.generateKey({ name: "Ed25519" }, true, [
    "sign",
    "verify",
  ])) as CryptoKeyPair;
  const made = v.parse(signingKeyRecord, await crypto.subtle.exportKey("jwk", pair.privateKey));
  const isOurs = await store.commit({ check: [[SIGNING_KEY, kept]], set: [[SIGNING_KEY, made]] });
  return isOurs ? made : signingKey(store);
}
