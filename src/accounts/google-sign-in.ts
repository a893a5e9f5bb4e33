import type { JSONWebKeySet, JWTPayload } from "jose";
import * as v from "valibot";
import { messageOf, SluiceError } from "../base/errors.ts";
import { after, type Instant } from "../base/time.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { Clock } from "../runtime/contract.ts";
import { normalEmail } from "./account-records.ts";

/** Settings of the sign-in with ID tokens. */
export interface GoogleSettings {
  readonly issuer: string;
  /** The required audience (client id); empty: this sign-in is disabled. */
  readonly audience: string;
  /** URL of the issuer's public keys. */
  readonly keysUrl: string;
}

interface GoogleDependencies {
  readonly settings: GoogleSettings;
  readonly outbound: Pick<Outbound, "get">;
  readonly clock: Clock;
}

const MAX_TOKEN_LENGTH = 8 * 1024;
const MAX_KEYS_BYTES = 64 * 1024;
const MAX_KEYS = 32;
const FETCH_TIMEOUT_MS = 8_000;
/** Issuers announce new keys days before they use them. */
const CACHE_MS = 3_600_000;
/** A token with an unknown key triggers another fetch of the keys, at most this often. */
const REFETCH_MS = 60_000;
const CLOCK_TOLERANCE_SECONDS = 60;
/** Asymmetric algorithms only: a symmetric key would be public. */
const ALGORITHMS = ["RS256", "PS256", "ES256", "EdDSA"];

const keySet = v.object({
  keys: v.pipe(v.array(v.looseObject({ kty: v.string() })), v.maxLength(MAX_KEYS)),
});

/** Verifies ID tokens (OpenID Connect Core 3.1.3.7). */
export class GoogleSignIn {
  readonly #dependencies: GoogleDependencies;
  #keys: { readonly set: JSONWebKeySet; readonly at: Instant } | undefined;
  #triedAt: Instant | undefined;
  #fetching: Promise<JSONWebKeySet> | undefined;

  constructor(dependencies: GoogleDependencies) {
    this.#dependencies = dependencies;
  }

  /** Returns the verified e-mail address of a token; rejects with `auth_error` if the token is invalid. */
  async emailOf(idToken: string): Promise<string> {
    if (this.#dependencies.settings.audience === "") throw refused("the setting google-audience is empty");
    if (idToken.length > MAX_TOKEN_LENGTH) throw refused("the token is too long");
    const { email, email_verified: isVerified } = await this.#payload(idToken);
    const login = typeof email === "string" ? normalEmail(email) : undefined;
    // Some issuers send `email_verified` as text.
    if (login === undefined || (isVerified !== true && isVerified !== "true"))
      throw refused("the token has no verified e-mail address");
    return login;
  }

  async #payload(idToken: string): Promise<JWTPayload> {
    try {
      return await this.#verified(idToken, await this.#keySet(false));
    } catch (thrown) {
      const { errors } = await import("jose");
      if (!(thrown instanceof errors.JWKSNoMatchingKey) || !this.#mayRefetch()) throw thrown;
      return this.#verified(idToken, await this.#keySet(true));
    }
  }

  async #verified(idToken: string, keys: JSONWebKeySet): Promise<JWTPayload> {
    const { settings, clock } = this.#dependencies;
    // Loaded at the first sign-in: most engines have no accounts.
    const { createLocalJWKSet, jwtVerify } = await import("jose");
    const { payload } = await jwtVerify(idToken, createLocalJWKSet(keys), {
      // Google sends its issuer name with and without the scheme.
      issuer: [settings.issuer, settings.issuer.replace(/^https:\/\//, "")],
      audience: settings.audience,
      algorithms: ALGORITHMS,
      requiredClaims: ["exp", "iat", "sub"],
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      currentDate: new Date(clock.unixSeconds() * 1000),
    });
    return payload;
  }

  async #keySet(isStale: boolean): Promise<JSONWebKeySet> {
    const known = this.#keys;
    if (known !== undefined && !isStale && this.#dependencies.clock.now() < after(known.at, CACHE_MS))
      return known.set;
    this.#fetching ??= this.#fetch().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  #mayRefetch(): boolean {
    return this.#triedAt === undefined || this.#dependencies.clock.now() >= after(this.#triedAt, REFETCH_MS);
  }

  async #fetch(): Promise<JSONWebKeySet> {
    const { outbound, clock, settings } = this.#dependencies;
    this.#triedAt = clock.now();
    const response = await outbound.get(settings.keysUrl, {
      limitBytes: MAX_KEYS_BYTES,
      timeoutMs: FETCH_TIMEOUT_MS,
      // The URL is a setting of the user's and may name a local server.
      allowPrivate: true,
      purpose: "keys of the sign-in",
    });
    if (response.status !== 200)
      throw refused(`the keys of the sign-in could not be fetched: status ${response.status}`);
    const set = keysOf(response.bytes);
    this.#keys = { set, at: clock.now() };
    return set;
  }
}

function keysOf(bytes: Uint8Array): JSONWebKeySet {
  try {
    return v.parse(keySet, JSON.parse(decodeUtf8(bytes))) as JSONWebKeySet;
  } catch (thrown) {
    throw refused(`the keys of the sign-in are invalid: ${messageOf(thrown)}`);
  }
}

function refused(why: string): SluiceError {
  return new SluiceError("auth_error", why);
}
