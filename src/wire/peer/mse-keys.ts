import { assert } from "../../base/assert.ts";
import { fromHex, toHex } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";

/** Length of a public key and of the shared secret (MSE: 768 bits). */
export const MSE_KEY_BYTES = 96;
/** Length of a private key. MSE requires at least 128 bits and recommends 160; a longer key only costs time. */
export const MSE_PRIVATE_BYTES = 20;

/** The prime of MSE ("Diffie Hellman Parameters"). */
const PRIME = BigInt(
  "0xffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74020bbea63b139b22514a08798e3404ddef9519b3cd" +
    "3a431b302b0a6df25f14374fe1356d6d51c245e485b576625e7ec6f44c42e9a63a36210000000000090563",
);
const GENERATOR = 2n;

/** The key pair of one side of an exchange. */
export interface MseKeyPair {
  readonly privateKey: Uint8Array;
  /** {@link MSE_KEY_BYTES} long, in wire format. */
  readonly publicKey: Uint8Array;
}

/**
 * Derives a key pair from {@link MSE_PRIVATE_BYTES} random bytes. Uses `bigint`, because the Diffie-Hellman functions of the
 * runtimes test the prime on each call and take a hundred times as long.
 */
export function mseKeyPair(privateKey: Uint8Array): MseKeyPair {
  assert(
    privateKey.length === MSE_PRIVATE_BYTES,
    `expected a private key of ${MSE_PRIVATE_BYTES} bytes, not ${privateKey.length}`,
  );
  return { privateKey, publicKey: toKeyBytes(modularPower(GENERATOR, toBigInt(privateKey))) };
}

/** Computes the shared secret, {@link MSE_KEY_BYTES} long, from the own private key and the public key of the other side. Throws
 * `DecodeError` if that key would give a secret that anyone can guess. */
export function mseSecret(privateKey: Uint8Array, theirs: Uint8Array): Uint8Array {
  const base = toBigInt(theirs);
  if (theirs.length !== MSE_KEY_BYTES || base < 2n || base > PRIME - 2n) {
    throw new DecodeError("MSE", 0, "expected a public key");
  }
  return toKeyBytes(modularPower(base, toBigInt(privateKey)));
}

function modularPower(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  let square = base;
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if ((rest & 1n) === 1n) result = (result * square) % PRIME;
    square = (square * square) % PRIME;
  }
  return result;
}

function toBigInt(bytes: Uint8Array): bigint {
  return BigInt(`0x0${toHex(bytes)}`);
}

function toKeyBytes(value: bigint): Uint8Array {
  return fromHex(value.toString(16).padStart(2 * MSE_KEY_BYTES, "0"))!;
}
