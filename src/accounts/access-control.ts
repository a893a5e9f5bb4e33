import * as v from "valibot";
import { changeRecord, followRecords } from "../async/records.ts";
import { SerialQueue } from "../async/serial-queue.ts";
import { toHex } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import type { KeyValueStore } from "../runtime/contract.ts";
import type { AccessControl } from "./account-contract.ts";
import { sameSecret } from "./same-secret.ts";

interface AccessControlDependencies {
  readonly store: KeyValueStore;
  readonly randomBytes: (length: number) => Uint8Array;
  /** The token from the settings; if given, none is generated. */
  readonly fixedToken?: string | undefined;
}

const TOKEN_KEY = "access/token";
const SWITCHES_KEY = "access/switches";
const TOKEN_BYTES = 32;

const tokenRecord = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/));
const switchesRecord = v.object({ intranet: v.boolean(), remote: v.boolean() });
type Switches = v.InferOutput<typeof switchesRecord>;

/** Interface: Authentication 3. */
const DEFAULT_SWITCHES: Switches = { intranet: true, remote: false };
/** Used if the record is damaged, so that no client gets access by accident. */
const CLOSED: Switches = { intranet: false, remote: false };

/** Loads the access switches and the access token. */
export async function createAccessControl(dependencies: AccessControlDependencies): Promise<AccessControl> {
  const { store } = dependencies;
  const access = new StoredAccessControl(dependencies, readSwitches(await store.get(SWITCHES_KEY)));
  followRecords(store, SWITCHES_KEY, (_key, value) => access.changedElsewhere(readSwitches(value)));
  return access;
}

function readSwitches(stored: unknown): Switches {
  const read = v.safeParse(switchesRecord, stored);
  return stored === undefined ? DEFAULT_SWITCHES : read.success ? read.output : CLOSED;
}

class StoredAccessControl implements AccessControl {
  readonly #dependencies: AccessControlDependencies;
  #switches: Switches;
  readonly #queue = new SerialQueue();
  #switched: () => void = () => {};

  constructor(dependencies: AccessControlDependencies, switches: Switches) {
    this.#dependencies = dependencies;
    this.#switches = switches;
  }

  get allowsIntranet(): boolean {
    return this.#switches.intranet;
  }

  get allowsRemote(): boolean {
    return this.#switches.remote;
  }

  setAllowsIntranet(value: boolean): Promise<void> {
    return this.#set({ intranet: value });
  }

  setAllowsRemote(value: boolean): Promise<void> {
    return this.#set({ remote: value });
  }

  onSwitched(switched: () => void): void {
    const before = this.#switched;
    this.#switched = () => {
      before();
      switched();
    };
  }

  async token(): Promise<string> {
    const { fixedToken, store } = this.#dependencies;
    if (fixedToken !== undefined) return fixedToken;
    const stored = await store.get(TOKEN_KEY);
    if (v.is(tokenRecord, stored)) return stored;
    const token = this.#newToken();
    // If another process has stored a token meanwhile, that one is used.
    const isDone = await store.commit({ check: [[TOKEN_KEY, stored]], set: [[TOKEN_KEY, token]] });
    return isDone ? token : this.token();
  }

  async isToken(token: string): Promise<boolean> {
    const { fixedToken, store } = this.#dependencies;
    if (fixedToken !== undefined) return sameSecret(token, fixedToken);
    const stored = await store.get(TOKEN_KEY);
    return v.is(tokenRecord, stored) && (await sameSecret(token, stored));
  }

  async renewToken(): Promise<string> {
    if (this.#dependencies.fixedToken !== undefined)
      throw new SluiceError("bad_configuration", "the setting access-token fixes the token; change it there");
    const token = this.#newToken();
    await this.#dependencies.store.commit({ set: [[TOKEN_KEY, token]] });
    return token;
  }

  #newToken(): string {
    return toHex(this.#dependencies.randomBytes(TOKEN_BYTES));
  }

  #set(change: Partial<Switches>): Promise<void> {
    return this.#queue.run(async () => {
      let switches = this.#switches;
      await changeRecord(this.#dependencies.store, SWITCHES_KEY, (stored) => {
        switches = { ...readSwitches(stored), ...change };
        return switches;
      });
      this.#switches = switches;
      this.#switched();
    });
  }

  /** Another engine has changed the switches. */
  changedElsewhere(switches: Switches): void {
    this.#switches = switches;
    this.#switched();
  }
}
