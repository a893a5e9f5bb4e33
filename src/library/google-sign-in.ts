import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTPayload, jwtVerify } from "jose";
import * as v from "valibot";
import { messageOf, SluiceError } from "../base/errors.ts";
import { after, type Instant } from "../base/time.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { Clock } from "../runtime/contract.ts";
import { normalEmail } from "./account-records.ts";

/** Whose ID tokens are taken, and for whom they must be made. */
export interface GoogleSettings {
  readonly issuer: string;
  /** The client id that the token must be meant for; empty: nobody signs in so. */
  readonly audience: string;
  /** Where the issuer's public keys are. */
  readonly keysUrl: string;
}

/** What checking needs. */
export interface GoogleParts {
  readonly settings: GoogleSettings;
  readonly outbound: Pick<Outbound, "get">;
  readonly clock: Clock;
}

const MAX_TOKEN_LENGTH = 8 * 1024;
const MAX_KEYS_BYTES = 64 * 1024;
const MAX_KEYS = 32;
const FETCH_TIMEOUT_MS = 8_000;
/** Issuers announce new keys days before they use them. */
const FRESH_MS = 3_600_000;
/** A token that names a key we do not know makes us look again, but not more often. */
const AGAIN_MS = 60_000;
const CLOCK_TOLERANCE_SECONDS = 60;
/** Those that issuers use; never a symmetric one, whose key would be public. */
const ALGORITHMS = ["RS256", "PS256", "ES256", "EdDSA"];

const keySet = v.object({
  keys: v.pipe(v.array(v.looseObject({ kty: v.string() })), v.maxLength(MAX_KEYS)),
});

/** Checks ID tokens (OpenID Connect Core 3.1.3.7). */
export class GoogleSignIn {
  readonly #parts: GoogleParts;
  #keys: { readonly set: JSONWebKeySet; readonly at: Instant } | undefined;
  #triedAt: Instant | undefined;
  #fetching: Promise<JSONWebKeySet> | undefined;

  constructor(parts: GoogleParts) {
    this.#parts = parts;
  }

  /** The verified e-mail address of a token; rejects with the reason where it is not good. */
  async emailOf(idToken: string): Promise<string> {
    if (this.#parts.settings.audience === "") throw refused("there is no google-audience in the settings");
    if (idToken.length > MAX_TOKEN_LENGTH) throw refused("the token is too long");
    const { email, email_verified: isVerified } = await this.#payload(idToken);
    const login = typeof email === "string" ? normalEmail(email) : undefined;
    // Some issuers write it as text.
    if (login === undefined || (isVerified !== true && isVerified !== "true"))
      throw refused("the token has no verified e-mail address");
    return login;
  }

  async #payload(idToken: string): Promise<JWTPayload> {
    try {
      return await this.#verified(idToken, await this.#keySet(false));
    } catch (thrown) {
      if (!(thrown instanceof errors.JWKSNoMatchingKey) || !this.#mayLookAgain()) throw thrown;
      return this.#verified(idToken, await this.#keySet(true));
    }
  }

  async #verified(idToken: string, keys: JSONWebKeySet): Promise<JWTPayload> {
    const { settings, clock } = this.#parts;
    const { payload } = await jwtVerify(idToken, createLocalJWKSet(keys), {
      // Google writes its name with and without the scheme.
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
    if (known !== undefined && !isStale && this.#parts.clock.now() < after(known.at, FRESH_MS))
      return known.set;
    this.#fetching ??= this.#fetch().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  #mayLookAgain(): boolean {
    return this.#triedAt === undefined || this.#parts.clock.now() >= after(this.#triedAt, AGAIN_MS);
  }

  async #fetch(): Promise<JSONWebKeySet> {
    const { outbound, clock, settings } = this.#parts;
    this.#triedAt = clock.now();
    const answer = await outbound.get(settings.keysUrl, {
      limitBytes: MAX_KEYS_BYTES,
      timeoutMs: FETCH_TIMEOUT_MS,
      // The user's own setting: it may well be a server at home.
      allowPrivate: true,
      purpose: "keys of the sign-in",
    });
    if (answer.status !== 200) throw refused(`the keys of the sign-in were answered with ${answer.status}`);
    const set = keysOf(answer.bytes);
    this.#keys = { set, at: clock.now() };
    return set;
  }
}

function keysOf(bytes: Uint8Array): JSONWebKeySet {
  try {
    return v.parse(keySet, JSON.parse(decodeUtf8(bytes))) as JSONWebKeySet;
  } catch (thrown) {
    throw refused(`the keys of the sign-in cannot be read: ${messageOf(thrown)}`);
  }
}

function refused(why: string): SluiceError {
  return new SluiceError("auth_error", why);
}
