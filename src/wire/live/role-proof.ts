import { concatBytes, latin1Bytes, readU16, readU48, writeU16, writeU48 } from "../../base/bytes.ts";
import { type Infohash, infohashBytes } from "../../base/ids.ts";
import {
  type Ed25519Sign,
  type Ed25519VerifierOf,
  isValidPublicKey,
  SIGNATURE_BYTES,
} from "../../base/signature.ts";
import { expectAtLeast, expectBytes, LIVE_KIND, liveMessageError } from "./message-kind.ts";
import type { LiveRole } from "./peer-info.ts";
import { signedBytes } from "./trust.ts";

/** Key of the relay, time of expiry, signature of the stream key. */
const CERTIFICATE_BYTES = 32 + 6 + SIGNATURE_BYTES;
const CERTIFICATE_PURPOSE = "sluice-relay:";
const PROOF_PURPOSE = latin1Bytes("sluice-role:");
const HEAD_BYTES = 4;

/** The roles that a peer can prove; the index is the number on the wire. */
const PROVED_ROLES = [undefined, "relay", "source"] as const;

/** The peers and the values that a proof of a role signs (live protocol: Roles). */
export interface RoleParties {
  readonly infohash: Infohash;
  /** The peer id of the peer that proves its role, and of the peer that asked. */
  readonly prover: Uint8Array;
  readonly verifier: Uint8Array;
  /** The challenge of the verifier. */
  readonly challenge: Uint8Array;
}

/** What a peer needs to prove its role: the key of the stream; or a key of its own, and the certificate for it. */
export interface RoleKey {
  readonly role: Exclude<LiveRole, "viewer">;
  readonly sign: Ed25519Sign;
  readonly certificate?: Uint8Array;
}

/** Encodes the certificate of a relay: its key, valid until a time in UNIX ms, signed with the stream key. */
export function encodeCertificate(
  { publicKey, untilMs }: { readonly publicKey: Uint8Array; readonly untilMs: number },
  infohash: Infohash,
  sign: Ed25519Sign,
): Uint8Array<ArrayBuffer> {
  const certificate = new Uint8Array(CERTIFICATE_BYTES);
  certificate.set(publicKey);
  writeU48(certificate, 32, untilMs);
  certificate.set(sign(signedBytes(certificate, infohash, CERTIFICATE_PURPOSE)), 38);
  return certificate;
}

/** Encodes a PROOF: the answer to a challenge. */
export function encodeProof(
  { role, sign, certificate }: RoleKey,
  parties: RoleParties,
): Uint8Array<ArrayBuffer> {
  const body = certificate ?? new Uint8Array(0);
  const head = new Uint8Array(HEAD_BYTES);
  head[0] = LIVE_KIND.proof;
  head[1] = PROVED_ROLES.indexOf(role);
  writeU16(head, 2, body.length);
  return concatBytes([head, body, sign(challengedBytes(parties, head[1]!))]);
}

/** Returns the role that a PROOF proves; undefined if it proves none: its signature or certificate is invalid, or the
 * certificate has expired. Throws `DecodeError` if it is malformed. */
export function provedRole(
  bytes: Uint8Array,
  parties: RoleParties,
  streamKey: Uint8Array,
  verifierOf: Ed25519VerifierOf,
  nowUnixMs: number,
): RoleKey["role"] | undefined {
  expectAtLeast(bytes, HEAD_BYTES + SIGNATURE_BYTES);
  const length = readU16(bytes, 2);
  if (length !== 0 && length !== CERTIFICATE_BYTES)
    throw liveMessageError(LIVE_KIND.proof, 2, `expected a certificate of ${CERTIFICATE_BYTES} bytes`);
  expectBytes(bytes, HEAD_BYTES + length + SIGNATURE_BYTES);
  const role = PROVED_ROLES[bytes[1]!];
  if (!role || (role === "source" && length > 0)) return undefined;
  const key = length === 0 ? streamKey : certifiedKey(bytes.slice(HEAD_BYTES, -SIGNATURE_BYTES));
  if (!key) return undefined;
  const signature = bytes.slice(-SIGNATURE_BYTES);
  return verifierOf(key)(challengedBytes(parties, bytes[1]!), signature) ? role : undefined;

  function certifiedKey(certificate: Uint8Array): Uint8Array | undefined {
    const relayKey = certificate.slice(0, 32);
    if (!isValidPublicKey(relayKey) || readU48(certificate, 32) < nowUnixMs) return undefined;
    const message = signedBytes(certificate, parties.infohash, CERTIFICATE_PURPOSE);
    return verifierOf(streamKey)(message, certificate.slice(38)) ? relayKey : undefined;
  }
}

function challengedBytes({ infohash, prover, verifier, challenge }: RoleParties, role: number): Uint8Array {
  return concatBytes([
    PROOF_PURPOSE,
    infohashBytes(infohash),
    Uint8Array.of(role),
    prover,
    verifier,
    challenge,
  ]);
}
