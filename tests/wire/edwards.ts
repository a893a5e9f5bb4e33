import { createHash } from "node:crypto";
import { concatBytes, latin1Bytes } from "../../src/base/bytes.ts";

/** A point of the curve of Ed25519 in extended coordinates (RFC 8032 5.1.4). */
type Point = readonly [x: bigint, y: bigint, z: bigint, t: bigint];

const P = 2n ** 255n - 19n;
/** The order of the base point. */
export const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
const D = mod(-121665n * inverse(121666n));
const IDENTITY: Point = [0n, 1n, 1n, 0n];
const BASE = pointOf(mod(4n * inverse(5n)), 0n);
/** A point of order 8. */
const TORSION = pointOf(
  numberOf(Buffer.from("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05", "hex")),
  0n,
);

/** A signature on which implementations of RFC 8032 may disagree, and what the live protocol says. */
export interface EdgeSignature {
  readonly what: string;
  readonly key: Uint8Array;
  readonly message: Uint8Array;
  readonly signature: Uint8Array;
  readonly isValid: boolean;
}

/** Makes edge cases with the key of `seed`. */
export function edgeSignatures(seed: Uint8Array): EdgeSignature[] {
  const secret = secretOf(seed);
  const key = bytesOf(times(secret, BASE));
  const nonce = 12345678901234567890n;
  const commitment = times(nonce, BASE);
  const text = (index: number) => latin1Bytes(`sluice ${index}`);
  const made = (what: string, isValid: boolean, r: Uint8Array, s: bigint, message = text(0), by = key) => ({
    ...{ what, key: by, message, isValid },
    signature: concatBytes([r, bytesOfNumber(s)]),
  });
  /** The second half that makes [s]B - [k]A equal to [nonce]B. */
  const answer = (r: Uint8Array, of = nonce, message = text(0), by = key) =>
    (of + challenge(r, by, message) * secret) % ORDER;

  const plain = bytesOf(commitment);
  const shifted = bytesOf(sum(commitment, TORSION));
  const identity = bytesOf(IDENTITY);
  const negativeZero = Uint8Array.from(identity, (byte, i) => (i === 31 ? byte | 0x80 : byte));
  const unreduced = bytesOfNumber(P + 1n);
  const mixed = bytesOf(sum(times(secret, BASE), TORSION));
  const challengeOf = (index: number) => challenge(plain, mixed, text(index));
  const indexOf = (fits: (k: bigint) => boolean) => {
    let index = 0;
    while (!fits(challengeOf(index))) index++;
    return index;
  };
  const even = text(indexOf((k) => k % 8n === 0n));
  const odd = text(indexOf((k) => k % 8n !== 0n));
  return [
    made("an ordinary signature", true, plain, answer(plain)),
    made("S is not below the order", false, plain, answer(plain) + ORDER),
    made("S is far above the order", false, plain, answer(plain) + 8n * ORDER),
    made("S = 0", false, identity, 0n),
    made("R has a part of small order: valid only with a cofactor", false, shifted, answer(shifted)),
    made("R is the identity", false, identity, answer(identity, 0n)),
    made("R is the identity, not reduced", false, unreduced, answer(unreduced, 0n)),
    made("R is the identity with the sign bit", false, negativeZero, answer(negativeZero, 0n)),
    made(
      "the key has a part of small order, which the challenge cancels",
      true,
      plain,
      answer(plain, nonce, even, mixed),
      even,
      mixed,
    ),
    made(
      "the key has a part of small order: valid only with a cofactor",
      false,
      plain,
      answer(plain, nonce, odd, mixed),
      odd,
      mixed,
    ),
  ];
}

function challenge(r: Uint8Array, key: Uint8Array, message: Uint8Array): bigint {
  const hash = createHash("sha512")
    .update(concatBytes([r, key, message]))
    .digest();
  return numberOf(hash) % ORDER;
}

/** RFC 8032 5.1.5. */
function secretOf(seed: Uint8Array): bigint {
  const hash = createHash("sha512").update(seed).digest().subarray(0, 32);
  hash[0]! &= 248;
  hash[31] = (hash[31]! & 127) | 64;
  return numberOf(hash);
}

/** RFC 8032 5.1.4. */
function sum([x1, y1, z1, t1]: Point, [x2, y2, z2, t2]: Point): Point {
  const a = mod((y1 - x1) * (y2 - x2));
  const b = mod((y1 + x1) * (y2 + x2));
  const c = mod(2n * D * t1 * t2);
  const d = mod(2n * z1 * z2);
  const [e, f, g, h] = [b - a, d - c, d + c, b + a];
  return [mod(e * f), mod(g * h), mod(f * g), mod(e * h)];
}

function times(factor: bigint, point: Point): Point {
  let result = IDENTITY;
  for (let bit = factor.toString(2).length - 1; bit >= 0; bit--) {
    result = sum(result, result);
    if ((factor >> BigInt(bit)) & 1n) result = sum(result, point);
  }
  return result;
}

/** The point with this y and sign (RFC 8032 5.1.3). */
function pointOf(y: bigint, sign: bigint): Point {
  const square = mod((y * y - 1n) * inverse(D * y * y + 1n));
  let x = power(square, (P + 3n) / 8n);
  if (mod(x * x - square) !== 0n) x = mod(x * power(2n, (P - 1n) / 4n));
  if ((x & 1n) !== sign) x = P - x;
  return [x, y, 1n, mod(x * y)];
}

function bytesOf([x, y, z]: Point): Uint8Array {
  const by = inverse(z);
  return bytesOfNumber(mod(y * by) | ((mod(x * by) & 1n) << 255n));
}

function mod(value: bigint): bigint {
  const rest = value % P;
  return rest < 0n ? rest + P : rest;
}

function inverse(value: bigint): bigint {
  return power(value, P - 2n);
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  for (let square = mod(base), rest = exponent; rest > 0n; rest >>= 1n, square = mod(square * square))
    if (rest & 1n) result = mod(result * square);
  return result;
}

function numberOf(littleEndian: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(littleEndian).reverse().toString("hex")}`);
}

function bytesOfNumber(value: bigint): Uint8Array {
  return Uint8Array.from(Buffer.from(value.toString(16).padStart(64, "0"), "hex").reverse());
}
