import type { PeerAddress } from "../../base/address.ts";
import { equalBytes } from "../../base/bytes.ts";
import { DecodeError, messageOf, SluiceError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Ed25519Sign } from "../../base/signature.ts";
import type { Runtime } from "../../runtime/contract.ts";
import { decodeEndpoints, ENDPOINT_BYTES, encodeEndpoints } from "../../wire/live-address.ts";
import { type LiveInfo, parseLiveInfo } from "../../wire/live-info.ts";
import { MAX_LIVE_FILE_BYTES } from "../../wire/live-limits.ts";
import { parseLiveTransportFile } from "../../wire/live-transport.ts";
import { StateFile } from "./identity-state.ts";

/** What an identity needs of the machine. */
export interface IdentityParts {
  readonly runtime: Pick<
    Runtime,
    "files" | "randomBytes" | "sha1" | "sha256" | "ed25519Key" | "ed25519Verifier"
  >;
  readonly log: Log;
  /** Takes a lock that ends with the process, and gives the function that ends it before; undefined where another holds it. */
  lock(path: string): Promise<(() => void) | undefined>;
}

/** What makes a broadcast the same stream after a restart. Nobody else has it while it is open. */
export interface BroadcastIdentity {
  readonly publicKey: Uint8Array;
  readonly sign: Ed25519Sign;
  /** Decided at the first start and kept, since the infohash is made of it. */
  readonly info: LiveInfo | undefined;
  readonly state: StateFile;
  /** Peers of before, to be called again. */
  readonly knownPeers: readonly PeerAddress[];
  /** Where the transport file lies, for people to pass on. */
  readonly transportFilePath: string;
  /** Keep for good; durable when they resolve. Reject with `disk_full`. */
  keepInfo(infoBytes: Uint8Array): Promise<void>;
  keepTransportFile(bytes: Uint8Array): Promise<void>;
  keepPeers(addresses: readonly PeerAddress[]): Promise<void>;
  /** Writes the state down for good, and lets others have the identity. */
  close(): Promise<void>;
}

/** The secret: the seed of an Ed25519 key (RFC 8032). */
const SEED_BYTES = 32;
/** Those who may read or write it besides its owner. */
const OTHERS_RIGHTS = 0o077;
const MAX_KNOWN_PEERS = 32;

/**
 * Opens the identity in `folder`, made where there is none. What can be made anew is (a lost state is a new epoch), what cannot is never
 * overwritten: rejects with `bad_configuration` where the key is damaged, lost, or open to others, and where another process has it.
 */
export async function openIdentity(
  folder: string,
  name: string,
  parts: IdentityParts,
): Promise<BroadcastIdentity> {
  // Makes the folder, which the lock needs.
  await (await parts.runtime.files.open(`${folder}/state`)).close();
  const unlock = await parts.lock(`${folder}/lock`);
  if (!unlock)
    throw new SluiceError(
      "bad_configuration",
      `${name} is being broadcast by another Sluice; stop that one first`,
    );
  try {
    return await readIdentity(folder, name, parts, unlock);
  } catch (thrown) {
    unlock();
    throw thrown;
  }
}

async function readIdentity(
  folder: string,
  name: string,
  parts: IdentityParts,
  unlock: () => void,
): Promise<BroadcastIdentity> {
  const { files, ed25519Key, sha256 } = parts.runtime;
  const transportFilePath = `${folder}/${name}.sluice`;
  const infoPath = `${folder}/info`;
  const peersPath = `${folder}/peers`;
  const isNew = !(await files.stat(infoPath)) && !(await files.stat(transportFilePath));
  const { publicKey, sign } = ed25519Key(await seedAt(`${folder}/key`, parts, isNew));
  const info = await infoAt(infoPath, transportFilePath, parts);
  if (info && !equalBytes(info.publicKey, publicKey))
    throw new SluiceError(
      "bad_configuration",
      `${folder}/key is not the key of ${infoPath}: one of them is damaged or of another stream. Put the right one back from a backup, or move ${folder} away to begin another stream`,
    );
  const state = await StateFile.open(`${folder}/state`, files, sha256);
  if (state.found.isDamaged)
    parts.log.warn("the state of a broadcast is damaged: it goes on with a new epoch", { name });
  return {
    publicKey,
    sign,
    info,
    state,
    knownPeers: await peersAt(peersPath, parts),
    transportFilePath,
    keepInfo: (infoBytes) => kept(files, infoPath, infoBytes),
    keepTransportFile: (bytes) => kept(files, transportFilePath, bytes),
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

/** Keeps a small file. What is there already is not written again: a stream that was on air is so again on a full disk, too. */
async function kept(
  files: IdentityParts["runtime"]["files"],
  path: string,
  bytes: Uint8Array,
): Promise<void> {
  const before = await files.read(path, MAX_LIVE_FILE_BYTES).catch(() => undefined); // Damaged, then: it is written anew.
  if (!before || !equalBytes(before, bytes)) await files.replace(path, bytes);
}

/** The secret at `path`; made where the stream is new. */
async function seedAt(path: string, { runtime }: IdentityParts, isNew: boolean): Promise<Uint8Array> {
  const { files } = runtime;
  const facts = await files.stat(path);
  if (facts === undefined) {
    if (!isNew)
      throw new SluiceError(
        "bad_configuration",
        `${path} is gone, and without it the stream cannot go on. Put it back from a backup, or move its folder away to begin another stream`,
      );
    const seed = runtime.randomBytes(SEED_BYTES);
    await files.replace(path, seed);
    return seed;
  }
  const rights = facts.rights ?? 0;
  if ((rights & OTHERS_RIGHTS) !== 0)
    throw new SluiceError(
      "bad_configuration",
      `${path} is a secret, and others may use it (its rights are ${rights.toString(8)}): say chmod 600 ${path}; whoever has read it can broadcast in your name`,
    );
  if (facts.size !== SEED_BYTES)
    throw new SluiceError(
      "bad_configuration",
      `${path} is damaged: expected ${SEED_BYTES} bytes, not ${facts.size}. Put it back from a backup, or move its folder away to begin another stream`,
    );
  return (await files.read(path, SEED_BYTES))!;
}

/** The info dictionary that was kept, else that of the transport file; undefined where there is neither. */
async function infoAt(
  path: string,
  transportFilePath: string,
  { runtime, log }: IdentityParts,
): Promise<LiveInfo | undefined> {
  const { files, sha1, ed25519Verifier } = runtime;
  const kept = await unlessDamaged(async () => {
    const bytes = await files.read(path, MAX_LIVE_FILE_BYTES);
    return bytes && parseLiveInfo(bytes);
  });
  if (kept.value) return kept.value;
  const passedOn = await unlessDamaged(async () => {
    const bytes = await files.read(transportFilePath, MAX_LIVE_FILE_BYTES);
    return bytes && parseLiveTransportFile(bytes, sha1, ed25519Verifier).info;
  });
  if (passedOn.value) {
    log.warn("what a broadcast is made of was lost, and taken from its transport file", { path });
    return passedOn.value;
  }
  const problem = kept.problem ?? passedOn.problem;
  if (problem === undefined) return undefined;
  throw new SluiceError(
    "bad_configuration",
    `${path} is damaged (${problem}), and the infohash follows from it. Put it or the transport file back from a backup, or remove both to go on with another infohash`,
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

/** Peers are only a help: what cannot be read is none. */
async function peersAt(path: string, { runtime, log }: IdentityParts): Promise<readonly PeerAddress[]> {
  try {
    const bytes = await runtime.files.read(path, MAX_KNOWN_PEERS * ENDPOINT_BYTES);
    return bytes ? decodeEndpoints(bytes, MAX_KNOWN_PEERS) : [];
  } catch (thrown) {
    log.warn("the peers of before cannot be read", { path, reason: messageOf(thrown) });
    return [];
  }
}
