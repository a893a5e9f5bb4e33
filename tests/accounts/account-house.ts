import { createHash, randomBytes } from "node:crypto";
import { createAccounts } from "../../src/accounts/accounts.ts";
import type { GoogleSettings } from "../../src/accounts/google-sign-in.ts";
import type { Log } from "../../src/base/log.ts";
import type { Outbound } from "../../src/outbound/outbound.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { MapStore } from "../library/map-store.ts";

const NO_WEB: Pick<Outbound, "get"> = {
  get: () => Promise.reject(new Error("nothing may be fetched here")),
};

/** Accounts in memory with a fast, counted hash and a recorded log. */
export function accountHouse(
  options: { google?: Partial<GoogleSettings>; outbound?: Pick<Outbound, "get">; store?: MapStore } = {},
) {
  const clock = new FakeClock();
  const store = options.store ?? new MapStore();
  const lines: string[] = [];
  const say = (message: string, fields: object = {}) =>
    void lines.push(`${message} ${JSON.stringify(fields)}`);
  const log: Log = { error: say, warn: say, info: say, debug: say, named: () => log };
  let hashes = 0;
  const accounts = createAccounts({
    store,
    clock,
    log,
    randomBytes: (length) => new Uint8Array(randomBytes(length)),
    async scrypt(password, salt) {
      hashes++;
      return new Uint8Array(createHash("sha256").update(salt).update(password).digest());
    },
    outbound: options.outbound ?? NO_WEB,
    google: { issuer: "https://accounts.example", audience: "", keysUrl: "", ...options.google },
  });
  return { accounts, clock, store, lines, hashes: () => hashes };
}
