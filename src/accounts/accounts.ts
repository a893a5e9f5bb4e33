import * as v from "valibot";
import { SerialQueue } from "../async/serial-queue.ts";
import { concatBytes, toHex } from "../base/bytes.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { householdOf } from "../base/network.ts";
import { trimOldest } from "../base/trim-oldest.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { Clock, KeyValueStore } from "../runtime/contract.ts";
import { AttemptLimit } from "./account-attempts.ts";
import type { AccountLimits, Accounts, AuthStatus } from "./account-contract.ts";
import {
  ACCOUNT_PREFIX,
  type AccountRecord,
  accountRecord,
  normalEmail,
  PASSWORD_CHARACTERS,
  requireEmail,
  requireLimits,
  requirePassword,
  SESSION_KEY,
  type SessionRecord,
  SIGNING_KEY,
  type SigningKey,
  sessionRecord,
  signingKeyRecord,
} from "./account-records.ts";
import { type GoogleSettings, GoogleSignIn } from "./google-sign-in.ts";
import { hashPassword, isPassword, type PasswordDependencies } from "./password.ts";

/** Dependencies of {@link createAccounts}. */
export interface AccountsDependencies extends PasswordDependencies {
  readonly store: KeyValueStore;
  readonly clock: Clock;
  readonly outbound: Pick<Outbound, "get">;
  readonly google: GoogleSettings;
  readonly log: Log;
}

/** More than a household needs. */
const MAX_ACCOUNTS = 1_000;
/** Queue limit of password checks. Each needs 32 MiB for a third of a second, so they run one at a time. */
const MAX_WAITING = 16;
/** Passwords that are remembered as right: those of the televisions of a house. */
const MAX_VERIFIED = 100;
const SALT_BYTES = 32;
/** Attempts at a change that conflicts with another one. */
const MAX_TRIES = 10;
/** Validity of a token; clients request a new one with `check_auth`. */
const TOKEN_SECONDS = 24 * 3600;

/** Creates the local accounts and the sign-in state of this engine. */
export function createAccounts(dependencies: AccountsDependencies): Accounts {
  return new LocalAccounts(dependencies);
}

class LocalAccounts implements Accounts {
  readonly #dependencies: AccountsDependencies;
  readonly #log: Log;
  readonly #google: GoogleSignIn;
  readonly #attempts = new AttemptLimit();
  readonly #queue = new SerialQueue();
  /** Passwords that were right: their salted hash, and the key in the record of their account. */
  readonly #verified = new Map<string, string>();
  readonly #salt: Uint8Array;
  #waiting = 0;

  constructor(dependencies: AccountsDependencies) {
    this.#dependencies = dependencies;
    this.#salt = dependencies.randomBytes(SALT_BYTES);
    this.#log = dependencies.log.named("accounts");
    this.#google = new GoogleSignIn({
      settings: dependencies.google,
      outbound: dependencies.outbound,
      clock: dependencies.clock,
    });
  }

  async signInByPassword(email: string, password: string, client: string): Promise<boolean> {
    const login = normalEmail(email);
    return this.#attempt([clientKey(client), `account ${login ?? "?"}`], async () => {
      const { record, raw } = await this.#checked(login, password);
      await this.#open("engine", record.email, [[accountKey(record.email), raw]]);
    });
  }

  async isPassword(email: string, password: string, client: string): Promise<boolean> {
    const login = normalEmail(email);
    const digest = await this.#digestOf(JSON.stringify([login, password]));
    // A hash counts only as long as the account has the password that it was made with.
    const known = this.#verified.get(digest);
    if (known !== undefined && known === (await this.#account(login ?? "?")).record?.password.key)
      return true;
    return this.#attempt([clientKey(client), `account ${login ?? "?"}`], async () => {
      const { record } = await this.#checked(login, password);
      this.#verified.set(digest, record.password.key);
      trimOldest(this.#verified, MAX_VERIFIED);
    });
  }

  async signInByGoogle(idToken: string, client: string): Promise<boolean> {
    return this.#attempt([clientKey(client)], async () => {
      await this.#open("google", await this.#google.emailOf(idToken), []);
    });
  }

  async signOut(): Promise<void> {
    await this.#dependencies.store.commit({ delete: [SESSION_KEY] });
  }

  async status(): Promise<AuthStatus> {
    const session = await this.#session();
    if (session === undefined) return { method: "none", login: null, authToken: null };
    const authToken = await this.#signToken(session);
    return { method: session.method, login: session.login, authToken };
  }

  async add(email: string, password: string): Promise<void> {
    const login = requireEmail(email);
    requirePassword(password);
    if ((await this.list()).length >= MAX_ACCOUNTS)
      throw new SluiceError("too_many", `at most ${MAX_ACCOUNTS} accounts`);
    const record = {
      email: login,
      password: await hashPassword(password, this.#dependencies),
      createdAt: this.#dependencies.clock.unixSeconds(),
      maxStreams: 0,
      groups: [],
    };
    const key = accountKey(login);
    if (!(await this.#dependencies.store.commit({ check: [[key, undefined]], set: [[key, record]] })))
      throw new SluiceError("bad_parameter", `the account ${login} already exists`);
  }

  async setPassword(email: string, password: string): Promise<void> {
    const login = requireEmail(email);
    requirePassword(password);
    const hashed = await hashPassword(password, this.#dependencies);
    await this.#change(login, (record) => ({ ...record, password: hashed }));
  }

  async setLimits(email: string, { maxStreams, groups }: AccountLimits): Promise<void> {
    requireLimits({ maxStreams, groups });
    const limited = (record: AccountRecord) => ({ ...record, maxStreams, groups: [...groups] });
    await this.#change(requireEmail(email), limited, false);
  }

  async limits(email: string): Promise<AccountLimits> {
    const { record } = await this.#account(normalEmail(email) ?? "?");
    return { maxStreams: record?.maxStreams ?? 0, groups: record?.groups ?? [] };
  }

  async remove(email: string): Promise<void> {
    await this.#change(requireEmail(email), () => undefined);
  }

  async list(): Promise<readonly string[]> {
    const emails: string[] = [];
    for await (const [, value] of this.#dependencies.store.list(ACCOUNT_PREFIX)) {
      if (v.is(accountRecord, value)) emails.push(value.email);
    }
    return emails;
  }

  /** Returns the account if the password is right; rejects with `auth_error` otherwise. */
  async #checked(
    login: string | undefined,
    password: string,
  ): Promise<{ readonly record: AccountRecord; readonly raw: unknown }> {
    const { record, raw } = await this.#account(login ?? "?");
    const isPossible = password.length <= 2 * PASSWORD_CHARACTERS.most;
    const isRight = await this.#oneAtATime(() =>
      isPassword(isPossible ? password : "", isPossible ? record?.password : undefined, this.#dependencies),
    );
    if (record === undefined) throw new SluiceError("auth_error", "the account does not exist");
    if (!isRight) throw new SluiceError("auth_error", "wrong password");
    return { record, raw };
  }

  /** Returns a hash that is useless without this process. */
  async #digestOf(text: string): Promise<string> {
    const salted = concatBytes([this.#salt, encodeUtf8(text)]);
    return toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", salted)));
  }

  /** Runs a sign-in attempt unless there were too many. Logs why it failed; the client does not learn the reason. */
  async #attempt(keys: readonly string[], signIn: () => Promise<void>): Promise<boolean> {
    const began = this.#dependencies.clock.now();
    if (!this.#attempts.begin(keys, began)) {
      this.#log.warn("sign-in refused", { reason: "too many failures; try again in a minute" });
      return false;
    }
    try {
      await signIn();
    } catch (thrown) {
      // A full disk does not mean that the password is wrong.
      if (thrown instanceof SluiceError && thrown.code === "disk_full") throw thrown;
      this.#log.warn("sign-in refused", { reason: messageOf(thrown) });
      return false;
    }
    this.#attempts.succeeded(keys, began);
    return true;
  }

  async #open(
    method: SessionRecord["method"],
    login: string,
    check: readonly (readonly [string, unknown])[],
  ): Promise<void> {
    const session: SessionRecord = { method, login, since: this.#dependencies.clock.unixSeconds() };
    if (!(await this.#dependencies.store.commit({ check, set: [[SESSION_KEY, session]] })))
      throw new SluiceError("auth_error", "the account was changed during the sign-in");
    this.#log.info("signed in", { method });
  }

  /** Changes or removes an account and, by default, ends its session. */
  async #change(
    login: string,
    change: (record: AccountRecord) => AccountRecord | undefined,
    endsSession = true,
  ): Promise<void> {
    const { store } = this.#dependencies;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const [{ record, raw }, session] = [await this.#account(login), await store.get(SESSION_KEY)];
      if (record === undefined) throw new SluiceError("bad_parameter", `the account ${login} does not exist`);
      const read = v.safeParse(sessionRecord, session);
      const isOpen =
        endsSession && read.success && read.output.method === "engine" && read.output.login === login;
      const changed = change(record);
      const isDone = await store.commit({
        check: [
          [accountKey(login), raw],
          [SESSION_KEY, session],
        ],
        set: changed === undefined ? [] : [[accountKey(login), changed]],
        delete: [...(changed === undefined ? [accountKey(login)] : []), ...(isOpen ? [SESSION_KEY] : [])],
      });
      if (isDone) return;
    }
    throw new SluiceError(
      "too_many",
      `the account ${login} was changed by others ${MAX_TRIES} times; try again`,
    );
  }

  /** Signs a JWT (RFC 7519, EdDSA) for the session. */
  async #signToken({ login }: SessionRecord): Promise<string> {
    const { store, clock } = this.#dependencies;
    // Loaded at the first sign-in: most engines have no accounts.
    const { importJWK, SignJWT } = await import("jose");
    const key = await importJWK(await signingKey(store), "EdDSA");
    const now = clock.unixSeconds();
    return new SignJWT({})
      .setProtectedHeader({ alg: "EdDSA", typ: "JWT" })
      .setSubject(login)
      .setIssuer("sluice")
      .setIssuedAt(now)
      .setExpirationTime(now + TOKEN_SECONDS)
      .sign(key);
  }

  /** Reads an account, and the raw record for the check of a commit. */
  async #account(login: string): Promise<{ record: AccountRecord | undefined; raw: unknown }> {
    const raw = await this.#dependencies.store.get(accountKey(login));
    const read = v.safeParse(accountRecord, raw);
    return { record: read.success ? read.output : undefined, raw };
  }

  async #session(): Promise<SessionRecord | undefined> {
    const read = v.safeParse(sessionRecord, await this.#dependencies.store.get(SESSION_KEY));
    if (!read.success) return undefined;
    const { method, login } = read.output;
    const exists = method === "google" || (await this.#account(login)).record !== undefined;
    return exists ? read.output : undefined;
  }

  async #oneAtATime<T>(work: () => Promise<T>): Promise<T> {
    if (this.#waiting >= MAX_WAITING) throw new SluiceError("auth_error", "too many sign-ins at once");
    this.#waiting++;
    return this.#queue.run(work).finally(() => this.#waiting--);
  }
}

/** Returns the stored signing key, or generates and stores one. */
async function signingKey(store: KeyValueStore): Promise<SigningKey> {
  const stored = await store.get(SIGNING_KEY);
  const read = v.safeParse(signingKeyRecord, stored);
  if (read.success) return read.output;
  const pair = (await crypto.subtle.generateKey({ name: "Ed25519" }, true, [
    "sign",
    "verify",
  ])) as CryptoKeyPair;
  const key = v.parse(signingKeyRecord, await crypto.subtle.exportKey("jwk", pair.privateKey));
  const isDone = await store.commit({ check: [[SIGNING_KEY, stored]], set: [[SIGNING_KEY, key]] });
  return isDone ? key : signingKey(store);
}

function accountKey(login: string): string {
  return ACCOUNT_PREFIX + login;
}

function clientKey(host: string): string {
  return `client ${householdOf(host)}`;
}
