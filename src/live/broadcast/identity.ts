import type { PeerAddress } from "../../base/address.ts";
import { equalBytes, toHex } from "../../base/bytes.ts";
import { DecodeError, messageOf, SluiceError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Ed25519Sign } from "../../base/signature.ts";
import type { Runtime } from "../../runtime/contract.ts";
import { decodeEndpoints, ENDPOINT_BYTES, encodeEndpoints } from "../../wire/live/endpoint.ts";
import { type LiveInfo, parseLiveInfo } from "../../wire/live/info.ts";
import { MAX_LIVE_FILE_BYTES } from "../../wire/live/limits.ts";
import { parseLiveTransportFile } from "../../wire/live/transport-file.ts";
import { StateFile } from "./identity-state.ts";

/** What an identity depends on. */
export interface IdentityDependencies {
  readonly runtime: Pick<
    Runtime,
    "files" | "randomBytes" | "sha1" | "sha256" | "ed25519Key" | "ed25519Verifier"
  >;
  readonly log: Log;
  /** Takes a lock that ends with the process. Resolves with the function that releases it; undefined if another
   * process holds it. */
  lock(path: string): Promise<(() => void) | undefined>;
}

/** The key and state of a broadcast, which make it the same stream after a restart. Opened by one process at a time. */
export interface BroadcastIdentity {
  readonly publicKey: Uint8Array;
  readonly sign: Ed25519Sign;
  /** With this key, a program publishes to the stream by RTMP or SRT. It is derived from the private key, so it is the same on a standby. */
  readonly streamKey: string;
  /** Determined at the first start and permanent, because the infohash depends on it. */
  readonly info: LiveInfo | undefined;
  readonly state: StateFile;
  /** Peers of an earlier run. */
  readonly knownPeers: readonly PeerAddress[];
  /** Path of the transport file, which users share. */
  readonly transportFilePath: string;
  /** Save a file; durable when they resolve. Reject with `disk_full`. */
  keepInfo(infoBytes: Uint8Array): Promise<void>;
  keepTransportFile(bytes: Uint8Array): Promise<void>;
  keepPeers(addresses: readonly PeerAddress[]): Promise<void>;
  /** Syncs the state, and unlocks the identity. */
  close(): Promise<void>;
}

/** The private key: an Ed25519 seed (RFC 8032). */
const SEED_BYTES = 32;
/** Permission bits of users other than the owner. */
const OTHER_USERS = 0o077;
const MAX_KNOWN_PEERS = 32;
/** Signed to derive the stream key; no message of the protocol begins like this. */
const STREAM_KEY_CONTEXT = new TextEncoder().encode("sluice stream key");
/** 96 bits: short enough to type on a phone. */
const STREAM_KEY_DIGITS = 24;

/**
 * Opens the identity in `folder`, and creates it if it is missing. Lost data that can be replaced is (a lost state
 * starts a new epoch); the rest is never overwritten. Rejects with `bad_configuration` if the key is damaged, lost,
 * or readable by others, or if another process has it open.
 */
export async function openIdentity(
  folder: string,
  name: string,
  dependencies: IdentityDependencies,
): Promise<BroadcastIdentity> {
  // Creates the folder for the lock.
  await (await dependencies.runtime.files.open(`${folder}/state`)).close();
  const unlock = await dependencies.lock(`${folder}/lock`);
  if (!unlock) throw inUseError(name);
  try {
    return await readIdentity(folder, name, dependencies, unlock);
  } catch (thrown) {
    unlock();
    throw thrown;
  }
}

/** The error if another process has the identity open. */
export function inUseError(name: string): SluiceError {
  return new SluiceError(
    "bad_configuration",
    `${name} is being broadcast by another Sluice process; stop that one first`,
  );
}

async function readIdentity(
  folder: string,
  name: string,
  dependencies: IdentityDependencies,
  unlock: () => void,
): Promise<BroadcastIdentity> {
  const { files, ed25519Key, sha256 } = dependencies.runtime;
  const transportFilePath = `${folder}/${name}.sluice`;
  const infoPath = `${folder}/info`;
  const peersPath = `${folder}/peers`;
  const isNew = !(await files.stat(infoPath)) && !(await files.stat(transportFilePath));
  const { publicKey, sign } = ed25519Key(await seedAt(`${folder}/key`, dependencies, isNew));
  const info = await infoAt(infoPath, transportFilePath, dependencies);
  if (info && !equalBytes(info.publicKey, publicKey))
    throw new SluiceError(
      "bad_configuration",
      `${folder}/key does not belong to ${infoPath}: one of them is damaged, or belongs to another stream. Restore the right one from a backup, or move ${folder} away to start another stream`,
    );
  const state = await StateFile.open(`${folder}/state`, files, sha256);
  if (state.found.isDamaged)
    dependencies.log.warn("the state of a broadcast is damaged; continuing with a new epoch", { name });
  return {
    publicKey,
    sign,
    streamKey: toHex(sha256(sign(STREAM_KEY_CONTEXT))).slice(0, STREAM_KEY_DIGITS),
    info,
    state,
    knownPeers: await peersAt(peersPath, dependencies),
    transportFilePath,
    keepInfo: (infoBytes) => saveFile(files, infoPath, infoBytes),
    keepTransportFile: (bytes) => saveFile(files, transportFilePath, bytes),
    keepPeers: (addresses) => files.replace(peersPath, encodeEndpoints(addresses.slice(0, MAX_KNOWN_PEERS))),
    async close() {
      try {
        await state.sync();
      } finally {
        await state.close();
        unlock();
      }
    },
  };
}

/** Saves a small file, unless it is unchanged: a known stream can then be broadcast even if the disk is full. */
async function saveFile(
  files: IdentityDependencies["runtime"]["files"],
  path: string,
  bytes: Uint8Array,
): Promise<void> {
  const before = await files.read(path, MAX_LIVE_FILE_BYTES).catch(() => undefined); // A damaged file is replaced.
  if (!before || !equalBytes(before, bytes)) await files.replace(path, bytes);
}

/** Reads the private key; creates it for a new stream. */
async function seedAt(path: string, { runtime }: IdentityDependencies, isNew: boolean): Promise<Uint8Array> {
  const { files } = runtime;
  const facts = await files.stat(path);
  if (facts === undefined) {
    if (!isNew)
      throw new SluiceError(
        "bad_configuration",
        `${path} is missing, and the stream cannot continue without it. Restore it from a backup, or move its folder away to start another stream`,
      );
    const seed = runtime.randomBytes(SEED_BYTES);
    await files.replace(path, seed);
    return seed;
  }
  const permissions = facts.permissions ?? 0;
  if ((permissions & OTHER_USERS) !== 0)
    throw new SluiceError(
      "bad_configuration",
      `${path} is a private key that other users can access (permissions ${permissions.toString(8)}): run chmod 600 ${path}. Anyone who has read it can broadcast as you`,
    );
  if (facts.size !== SEED_BYTES)
    throw new SluiceError(
      "bad_configuration",
      `${path} is damaged: expected ${SEED_BYTES} bytes, not ${facts.size}. Restore it from a backup, or move its folder away to start another stream`,
    );
  return (await files.read(path, SEED_BYTES))!;
}

/** Reads the info dictionary, or else that in the transport file; undefined if both are missing. */
async function infoAt(
  path: string,
  transportFilePath: string,
  { runtime, log }: IdentityDependencies,
): Promise<LiveInfo | undefined> {
  const { files, sha1, ed25519Verifier } = runtime;
  const ofInfo = await unlessDamaged(async () => {
    const bytes = await files.read(path, MAX_LIVE_FILE_BYTES);
    return bytes && parseLiveInfo(bytes);
  });
  if (ofInfo.value) return ofInfo.value;
  const ofTransportFile = await unlessDamaged(async () => {
    const bytes = await files.read(transportFilePath, MAX_LIVE_FILE_BYTES);
    return bytes && parseLiveTransportFile(bytes, sha1, ed25519Verifier).info;
  });
  if (ofTransportFile.value) {
    log.warn("info dictionary of a broadcast is missing or damaged; using that of its transport file", {
      path,
    });
    return ofTransportFile.value;
  }
  const problem = ofInfo.problem ?? ofTransportFile.problem;
  if (problem === undefined) return undefined;
  throw new SluiceError(
    "bad_configuration",
    `${path} is damaged (${problem}), and the infohash depends on it. Restore it or the transport file from a backup, or delete both to continue with another infohash`,
  );
}

async function unlessDamaged<T>(read: () => Promise<T>): Promise<{ value?: T; problem?: string }> {
  try {
    return { value: await read() };
  } catch (thrown) {
    if (thrown instanceof DecodeError) return { problem: thrown.message };
    throw thrown;
  }
}

/** Reads the known peers. They are optional, so errors are only logged. */
async function peersAt(
  path: string,
  { runtime, log }: IdentityDependencies,
): Promise<readonly PeerAddress[]> {
  try {
    const bytes = await runtime.files.read(path, MAX_KNOWN_PEERS * ENDPOINT_BYTES);
    return bytes ? decodeEndpoints(bytes, MAX_KNOWN_PEERS) : [];
  } catch (thrown) {
    log.warn("cannot read the known peers of a broadcast", { path, reason: messageOf(thrown) });
    return [];
  }
}
