import { concatBytes, readU16, readU32, writeU16, writeU32 } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import {
  MSE_HASH_BYTES,
  MSE_MAX_PAD_BYTES,
  MSE_METHOD,
  MSE_VC_BYTES,
  type MseCiphers,
  type MseMethod,
  mseCiphers,
  req1Hash,
  req3Hash,
  xorBytes,
} from "../../wire/peer/mse.ts";
import { MSE_KEY_BYTES, MSE_PRIVATE_BYTES, mseKeyPair, mseSecret } from "../../wire/peer/mse-keys.ts";
import type { MseDependencies, MseHandshake, MseOutcome } from "./contract.ts";
import { MseInbox } from "./inbox.ts";
import { randomPadding, readPaddingBytes } from "./padding.ts";
import { mseStream } from "./stream.ts";

/** Options of the responding side. */
interface MseResponderOptions {
  /** Returns the infohash (20 bytes) whose `req2Hash` is `hash`; undefined if the engine has no such content. */
  readonly find: (hash: Uint8Array) => Uint8Array | undefined;
  /** Accepted methods, preferred first. */
  readonly methods: readonly MseMethod[];
}

/** The responding side of MSE: exchanges keys; reads the obfuscated infohash and the offer; then chooses a method. */
export class MseResponder implements MseHandshake {
  readonly #options: MseResponderOptions;
  readonly #dependencies: MseDependencies;
  readonly #inbox = new MseInbox();
  readonly #padding = { left: MSE_MAX_PAD_BYTES };
  #stage: "key" | "mark" | "infohash" | "offer" | "padding" | "done" = "key";
  #output: Uint8Array | undefined;
  #secret = new Uint8Array(0);
  #mark = new Uint8Array(0);
  #infohash = new Uint8Array(0);
  #ciphers: MseCiphers | undefined;
  #method: MseMethod = MSE_METHOD.rc4;
  #paddingBytes = 0;

  constructor(options: MseResponderOptions, dependencies: MseDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
  }

  take(): Uint8Array | undefined {
    const output = this.#output;
    this.#output = undefined;
    return output;
  }

  receive(bytes: Uint8Array): MseOutcome | undefined {
    this.#inbox.add(bytes);
    if (this.#stage === "key" && !this.#readKey()) return undefined;
    if (this.#stage === "mark" && !this.#readMark()) return undefined;
    if (this.#stage === "infohash" && !this.#readInfohash()) return undefined;
    if (this.#stage === "offer" && !this.#readOffer()) return undefined;
    return this.#readPadding();
  }

  #readKey(): boolean {
    const theirs = this.#inbox.take(MSE_KEY_BYTES);
    if (!theirs) return false;
    const { privateKey, publicKey } = mseKeyPair(this.#dependencies.randomBytes(MSE_PRIVATE_BYTES));
    this.#secret = Uint8Array.from(mseSecret(privateKey, theirs));
    this.#mark = Uint8Array.from(req1Hash(this.#secret, this.#dependencies.sha1));
    this.#output = concatBytes([publicKey, randomPadding(this.#dependencies)]);
    this.#stage = "mark";
    return true;
  }

  #readMark(): boolean {
    if (!this.#inbox.skipPast(this.#mark, this.#padding)) return false;
    this.#stage = "infohash";
    return true;
  }

  #readInfohash(): boolean {
    const hidden = this.#inbox.take(MSE_HASH_BYTES);
    if (!hidden) return false;
    const { sha1 } = this.#dependencies;
    const infohash = this.#options.find(xorBytes(hidden, req3Hash(this.#secret, sha1)));
    if (!infohash) throw new DecodeError("MSE", MSE_HASH_BYTES, "unknown content");
    this.#infohash = Uint8Array.from(infohash);
    this.#ciphers = mseCiphers(this.#secret, this.#infohash, false, sha1);
    this.#stage = "offer";
    return true;
  }

  #readOffer(): boolean {
    const head = this.#inbox.take(MSE_VC_BYTES + 4 + 2);
    if (!head) return false;
    this.#ciphers!.theirs.apply(head, head);
    if (head.subarray(0, MSE_VC_BYTES).some((byte) => byte !== 0)) {
      throw new DecodeError("MSE", 0, "expected the verification constant");
    }
    const offered = readU32(head, MSE_VC_BYTES);
    const method = this.#options.methods.find((each) => (each & offered) !== 0);
    if (method === undefined) throw new DecodeError("MSE", MSE_VC_BYTES, `no accepted method in ${offered}`);
    this.#method = method;
    this.#paddingBytes = readPaddingBytes(head, MSE_VC_BYTES + 4);
    this.#stage = "padding";
    return true;
  }

  #readPadding(): MseOutcome | undefined {
    const tail = this.#stage === "padding" ? this.#inbox.take(this.#paddingBytes + 2) : undefined;
    if (!tail) return undefined;
    this.#stage = "done";
    const ciphers = this.#ciphers!;
    ciphers.theirs.apply(tail, tail);
    this.#output = this.#choice(ciphers.ours);
    const stream = mseStream(this.#method, ciphers, readU16(tail, this.#paddingBytes));
    return { method: this.#method, infohash: this.#infohash, stream, rest: this.#inbox.rest() };
  }

  #choice(ours: MseCiphers["ours"]): Uint8Array {
    const padding = randomPadding(this.#dependencies);
    const choice = new Uint8Array(MSE_VC_BYTES + 4 + 2 + padding.length);
    writeU32(choice, MSE_VC_BYTES, this.#method);
    writeU16(choice, MSE_VC_BYTES + 4, padding.length);
    choice.set(padding, MSE_VC_BYTES + 4 + 2);
    ours.apply(choice, choice);
    return choice;
  }
}
