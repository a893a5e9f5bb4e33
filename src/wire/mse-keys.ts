import { assert } from "../base/assert.ts";
import { fromHex, toHex } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";

/** The length of a public key, and of the secret that two make (MSE: 768 bits). */
export const MSE_KEY_BYTES = 96;
/** The length of a private key: MSE asks for 128 bits at least and calls 160 enough. A longer one only costs time. */
export const MSE_PRIVATE_BYTES = 20;

/** The prime that all programs share (MSE, "Diffie Hellman Parameters"). */
const PRIME = BigInt(
  "0xffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74020bbea63b139b22514a08798e3404ddef9519b3cd" +
    "3a431b302b0a6df25f14374fe1356d6d51c245e485b576625e7ec6f44c42e9a63a36210000000000090563",
);
const GENERATOR = 2n;

/** Our half of an exchange. */
export interface MseKeyPair {
  readonly privateKey: Uint8Array;
  /** {@link MSE_KEY_BYTES}, as it is sent. */
  readonly publicKey: Uint8Array;
}

/**
 * The pair that follows from {@link MSE_PRIVATE_BYTES} of chance. With numbers of the language itself: what the runtimes
 * have for it tests the prime anew each time, which costs a hundred times as much.
 */
export function mseKeyPair(privateKey: Uint8Array): MseKeyPair {
  assert(privateKey.length === MSE_PRIVATE_BYTES, `a private key of ${privateKey.length} bytes`);
  return { privateKey, publicKey: toKeyBytes(powerOf(GENERATOR, toNumber(privateKey))) };
}

/** The secret of our private and their public key. Throws `DecodeError` where their key is none: it leads to a secret that
 * everybody knows, and no program makes it. */
export function mseSecret(privateKey: Uint8Array, theirs: Uint8Array): Uint8Array {
  const base = toNumber(theirs);
  if (theirs.length !== MSE_KEY_BYTES || base < 2n || base > PRIME - 2n) {
    throw new DecodeError("MSE", 0, "expected a public key");
  }
  return toKeyBytes(powerOf(base, toNumber(privateKey)));
}

function powerOf(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  let square = base;
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if ((rest & 1n) === 1n) result = (result * square) % PRIME;
    square = (square * square) % PRIME;
  }
  return result;
}

function toNumber(bytes: Uint8Array): bigint {
  return BigInt(`0x0${toHex(bytes)}`);
}

function toKeyBytes(value: bigint): Uint8Array {
  return fromHex(value.toString(16).padStart(2 * MSE_KEY_BYTES, "0"))!;
}
