import { join, resolve } from "node:path";
import { fromHex, readU48, toHex } from "../base/bytes.ts";
import { DecodeError, SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import { checkedBroadcastName } from "../live/broadcast/broadcast-name.ts";
import type { Runtime } from "../runtime/contract.ts";
import type { Config } from "../settings/settings.ts";
import { MAX_LIVE_FILE_BYTES } from "../wire/live/limits.ts";
import { encodeCertificate, type RoleKey } from "../wire/live/role-proof.ts";
import { parseLiveTransportFile } from "../wire/live/transport-file.ts";
import type { Context } from "./context.ts";
import { printable } from "./log.ts";

/** A pass lets a relay prove its role to viewers: a key of its own, certified by the stream's key (live protocol: Roles). */
export interface RelayPass {
  readonly infohash: Infohash;
  readonly key: RoleKey;
}

const VALID_MS = 365 * 24 * 3600_000;
const SEED_BYTES = 32;
const MAX_PASS_BYTES = 4096;
/** Offset of the time of expiry in a certificate. */
const UNTIL_AT = 32;

/** `sluice broadcast --name NAME --relay-pass FILE`: writes a pass for a relay of the stream. Resolves to the exit code. */
export async function writeRelayPass(
  { runtime, stdout }: Context,
  { dataDir }: Config,
  name: string,
  file: string,
): Promise<number> {
  const { text, untilMs } = await makeRelayPass(runtime, dataDir, name);
  await runtime.files.replace(resolve(file), new TextEncoder().encode(text));
  const until = new Date(untilMs).toISOString().slice(0, 10);
  stdout.write(
    `Relay pass of ${printable(name)}, valid until ${until}: ${printable(file)}\n` +
      "Give it to the operator of one relay, who starts: sluice relay LINK --pass FILE\n" +
      "A program with the file can act as a relay of this stream, but cannot change the stream.\n",
  );
  return 0;
}

/** Makes a pass for a relay of the stream `named`. Rejects with `bad_parameter` if the stream has no key on this machine. */
export async function makeRelayPass(
  runtime: Runtime,
  dataDir: string,
  named: string,
): Promise<{ readonly text: string; readonly untilMs: number }> {
  const name = checkedBroadcastName(named);
  const folder = join(dataDir, "broadcasts", name);
  const seed = await runtime.files.read(join(folder, "key"), SEED_BYTES);
  const transportFile = await runtime.files.read(join(folder, `${name}.sluice`), MAX_LIVE_FILE_BYTES);
  if (!seed || !transportFile)
    throw new SluiceError(
      "bad_parameter",
      `${printable(name)} was never on air on this machine: start it once first`,
    );
  const { infohash } = parseLiveTransportFile(transportFile, runtime.sha1, runtime.ed25519Verifier);
  const relaySeed = runtime.randomBytes(SEED_BYTES);
  const untilMs = Date.now() + VALID_MS;
  const { publicKey } = runtime.ed25519Key(relaySeed);
  const certificate = encodeCertificate({ publicKey, untilMs }, infohash, runtime.ed25519Key(seed).sign);
  const pass = {
    type: "sluice relay pass",
    infohash,
    key: toHex(relaySeed),
    certificate: toHex(certificate),
  };
  return { text: `${JSON.stringify(pass, undefined, 2)}\n`, untilMs };
}

/** Reads the pass of a relay. Rejects with `bad_parameter`. */
export async function readRelayPass(file: string, { files, ed25519Key }: Runtime): Promise<RelayPass> {
  const name = `--pass: ${printable(file)}`;
  const bytes = await files.read(resolve(file), MAX_PASS_BYTES).catch(() => {
    throw new SluiceError("bad_parameter", `${name} cannot be read, or is no relay pass`);
  });
  if (!bytes) throw new SluiceError("bad_parameter", `${name} does not exist`);
  return relayPassOf(new TextDecoder().decode(bytes), name, { ed25519Key });
}

/** Parses the pass of a relay. `name` begins an error message. Throws `bad_parameter`. */
export function relayPassOf(
  text: string,
  name: string,
  { ed25519Key }: Pick<Runtime, "ed25519Key">,
): RelayPass {
  const fault = (reason: string) => new SluiceError("bad_parameter", `${name} ${reason}`);
  const { infohash, seed, certificate } = parsePass(text) ?? {};
  if (!infohash || !seed || !certificate)
    throw fault("is no relay pass; the broadcaster makes it with --relay-pass");
  if (readU48(certificate, UNTIL_AT) < Date.now())
    throw fault("has expired; ask the broadcaster for another one");
  return { infohash, key: { role: "relay", sign: ed25519Key(seed).sign, certificate } };
}

function parsePass(text: string) {
  try {
    const { type, infohash, key, certificate } = JSON.parse(text) as Record<string, unknown>;
    if (type !== "sluice relay pass" || typeof infohash !== "string" || !/^[0-9a-f]{40}$/.test(infohash))
      return undefined;
    return {
      infohash: infohash as Infohash,
      seed: hexOf(key, SEED_BYTES),
      certificate: hexOf(certificate, UNTIL_AT + 6 + 64),
    };
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError || error instanceof DecodeError)
      return undefined;
    throw error;
  }
}

function hexOf(value: unknown, length: number): Uint8Array | undefined {
  const bytes = typeof value === "string" ? fromHex(value) : undefined;
  return bytes?.length === length ? bytes : undefined;
}
