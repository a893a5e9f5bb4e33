import * as v from "valibot";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { householdOf } from "../base/network.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { Clock, KeyValueStore } from "../runtime/contract.ts";
import { AttemptLimit } from "./account-attempts.ts";
import {
  ACCOUNT_PREFIX,
  type AccountRecord,
  accountRecord,
  normalEmail,
  PASSWORD_CHARACTERS,
  requireEmail,
  requirePassword,
  SESSION_KEY,
  type SessionRecord,
  sessionRecord,
} from "./account-records.ts";
import { signAuthToken } from "./account-token.ts";
import type { Accounts, AuthStatus } from "./contract.ts";
import { type GoogleSettings, GoogleSignIn } from "./google-sign-in.ts";
import { hashPassword, isPassword, type PasswordParts } from "./password.ts";

/** What accounts need. */
export interface AccountsParts extends PasswordParts {
  readonly store: KeyValueStore;
  readonly clock: Clock;
  readonly outbound: Pick<Outbound, "get">;
  readonly google: GoogleSettings;
  readonly log: Log;
}

/** One household, and room to spare. */
const MAX_ACCOUNTS = 1_000;
/** Passwords that wait for their turn: each costs 32 MiB for a third of a second, so one at a time. */
const MAX_WAITING = 16;
/** A change that met another one is tried again. */
const MAX_TRIES = 10;

/** Local accounts, and who is signed in at this engine. */
export function createAccounts(parts: AccountsParts): Accounts {
  return new KeptAccounts(parts);
}

class KeptAccounts implements Accounts {
  readonly #parts: AccountsParts;
  readonly #log: Log;
  readonly #google: GoogleSignIn;
  readonly #attempts = new AttemptLimit();
  #turn: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(parts: AccountsParts) {
    this.#parts = parts;
    this.#log = parts.log.named("accounts");
    this.#google = new GoogleSignIn({ settings: parts.google, outbound: parts.outbound, clock: parts.clock });
  }

  async signInByPassword(email: string, password: string, asker: string): Promise<boolean> {
    const login = normalEmail(email);
    return this.#attempt([askerKey(asker), `account ${login ?? "?"}`], async () => {
      const { record: kept, raw } = await this.#account(login ?? "?");
      const isPossible = password.length <= 2 * PASSWORD_CHARACTERS.most;
      const isRight = await this.#oneAtATime(() =>
        isPassword(isPossible ? password : "", isPossible ? kept?.password : undefined, this.#parts),
      );
      if (kept === undefined) throw new SluiceError("auth_error", "there is no such account");
      if (!isRight) throw new SluiceError("auth_error", "wrong password");
      await this.#open("engine", kept.email, [[accountKey(kept.email), raw]]);
    });
  }

  async signInByGoogle(idToken: string, asker: string): Promise<boolean> {
    return this.#attempt([askerKey(asker)], async () => {
      await this.#open("google", await this.#google.emailOf(idToken), []);
    });
  }

  async signOut(): Promise<void> {
    await this.#parts.store.commit({ delete: [SESSION_KEY] });
  }

  async status(): Promise<AuthStatus> {
    const session = await this.#session();
    if (session === undefined) return { method: "none", login: null, authToken: null };
    const authToken = await signAuthToken(session, this.#parts);
    return { method: session.method, login: session.login, authToken };
  }

  async add(email: string, password: string): Promise<void> {
    const login = requireEmail(email);
    requirePassword(password);
    if ((await this.list()).length >= MAX_ACCOUNTS)
      throw new SluiceError("too_many", `at most ${MAX_ACCOUNTS} accounts`);
    const record = {
      email: login,
      password: await hashPassword(password, this.#parts),
      createdAt: this.#parts.clock.unixSeconds(),
    };
    const key = accountKey(login);
    if (!(await this.#parts.store.commit({ check: [[key, undefined]], set: [[key, record]] })))
      throw new SluiceError("bad_parameter", `there is an account ${login} already`);
  }

  async setPassword(email: string, password: string): Promise<void> {
    const login = requireEmail(email);
    requirePassword(password);
    const hashed = await hashPassword(password, this.#parts);
    await this.#change(login, (record) => ({ ...record, password: hashed }));
  }

  async remove(email: string): Promise<void> {
    await this.#change(requireEmail(email), () => undefined);
  }

  async list(): Promise<readonly string[]> {
    const emails: string[] = [];
    for await (const [, value] of this.#parts.store.list(ACCOUNT_PREFIX)) {
      if (v.is(accountRecord, value)) emails.push(value.email);
    }
    return emails;
  }

  /** Makes an attempt, unless there were too many; why it failed is told to the log alone. */
  async #attempt(keys: readonly string[], signIn: () => Promise<void>): Promise<boolean> {
    const began = this.#parts.clock.now();
    if (!this.#attempts.begin(keys, began)) {
      this.#log.warn("a sign-in was refused", { reason: "too many failures; try again in a minute" });
      return false;
    }
    try {
      await signIn();
    } catch (thrown) {
      // A full disk is no wrong password.
      if (thrown instanceof SluiceError && thrown.code === "disk_full") throw thrown;
      this.#log.warn("a sign-in was refused", { reason: messageOf(thrown) });
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
    const session: SessionRecord = { method, login, since: this.#parts.clock.unixSeconds() };
    if (!(await this.#parts.store.commit({ check, set: [[SESSION_KEY, session]] })))
      throw new SluiceError("auth_error", "the account was changed meanwhile");
    this.#log.info("signed in", { method });
  }

  /** Changes or removes an account; whoever is signed in with it is so no more. */
  async #change(login: string, change: (record: AccountRecord) => AccountRecord | undefined): Promise<void> {
    const { store } = this.#parts;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const [{ record, raw }, session] = [await this.#account(login), await store.get(SESSION_KEY)];
      if (record === undefined) throw new SluiceError("bad_parameter", `there is no account ${login}`);
      const read = v.safeParse(sessionRecord, session);
      const isOpen = read.success && read.output.method === "engine" && read.output.login === login;
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
    throw new SluiceError("too_many", `others change the account ${login} all the time`);
  }

  /** An account, and the very value that is kept, which a commit compares with. */
  async #account(login: string): Promise<{ record: AccountRecord | undefined; raw: unknown }> {
    const raw = await this.#parts.store.get(accountKey(login));
    const read = v.safeParse(accountRecord, raw);
    return { record: read.success ? read.output : undefined, raw };
  }

  async #session(): Promise<SessionRecord | undefined> {
    const read = v.safeParse(sessionRecord, await this.#parts.store.get(SESSION_KEY));
    if (!read.success) return undefined;
    const { method, login } = read.output;
    const isThere = method === "google" || (await this.#account(login)).record !== undefined;
    return isThere ? read.output : undefined;
  }

  async #oneAtATime<T>(work: () => Promise<T>): Promise<T> {
    if (this.#waiting >= MAX_WAITING) throw new SluiceError("auth_error", "too many sign-ins at once");
    this.#waiting++;
    const done = this.#turn.then(work).finally(() => this.#waiting--);
    this.#turn = done.catch(() => {}); // Whoever waits for it hears of it.
    return done;
  }
}

function accountKey(login: string): string {
  return ACCOUNT_PREFIX + login;
}

function askerKey(host: string): string {
  return `asker ${householdOf(host)}`;
}
