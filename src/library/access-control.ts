import * as v from "valibot";
import { toHex } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import type { KeyValueStore } from "../runtime/contract.ts";
import type { AccessControl } from "./contract.ts";
import { sameSecret } from "./same-secret.ts";

/** What the switches and the token need. */
export interface AccessControlParts {
  readonly store: KeyValueStore;
  readonly randomBytes: (length: number) => Uint8Array;
  /** The token that the settings say; none is made then. */
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
/** What a record that cannot be read counts as: nobody is let in who was not meant to be. */
const SHUT: Switches = { intranet: false, remote: false };

/** Opens the switches and the token that are kept. */
export async function createAccessControl(parts: AccessControlParts): Promise<AccessControl> {
  const kept = await parts.store.get(SWITCHES_KEY);
  const read = v.safeParse(switchesRecord, kept);
  return new KeptAccess(parts, kept === undefined ? DEFAULT_SWITCHES : read.success ? read.output : SHUT);
}

class KeptAccess implements AccessControl {
  readonly #parts: AccessControlParts;
  #switches: Switches;
  /** Changes of the switches, one after another: each keeps what the one before it has done. */
  #turn: Promise<void> = Promise.resolve();

  constructor(parts: AccessControlParts, switches: Switches) {
    this.#parts = parts;
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

  async token(): Promise<string> {
    const { fixedToken, store } = this.#parts;
    if (fixedToken !== undefined) return fixedToken;
    const kept = await store.get(TOKEN_KEY);
    if (v.is(tokenRecord, kept)) return kept;
    const made = this.#newToken();
    // Where another process was quicker, its token counts.
    const isOurs = await store.commit({ check: [[TOKEN_KEY, kept]], set: [[TOKEN_KEY, made]] });
    return isOurs ? made : this.token();
  }

  async isToken(token: string): Promise<boolean> {
    const { fixedToken, store } = this.#parts;
    if (fixedToken !== undefined) return sameSecret(token, fixedToken);
    const kept = await store.get(TOKEN_KEY);
    return v.is(tokenRecord, kept) && (await sameSecret(token, kept));
  }

  async renewToken(): Promise<string> {
    if (this.#parts.fixedToken !== undefined)
      throw new SluiceError("bad_configuration", "the setting access-token fixes the token: change it there");
    const made = this.#newToken();
    await this.#parts.store.commit({ set: [[TOKEN_KEY, made]] });
    return made;
  }

  #newToken(): string {
    return toHex(this.#parts.randomBytes(TOKEN_BYTES));
  }

  #set(change: Partial<Switches>): Promise<void> {
    const done = this.#turn.then(async () => {
      const switches = { ...this.#switches, ...change };
      await this.#parts.store.commit({ set: [[SWITCHES_KEY, switches]] });
      this.#switches = switches;
    });
    this.#turn = done.catch(() => {}); // Who asked for it hears of it; the next one tries anew.
    return done;
  }
}
