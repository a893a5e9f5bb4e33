import { canonicalAddress, familyOf, type PeerAddress } from "../../../base/address.ts";
import { equalBytes } from "../../../base/bytes.ts";
import { DecodeError } from "../../../base/errors.ts";
import type { Log } from "../../../base/log.ts";
import { after } from "../../../base/time.ts";
import type { Runtime } from "../../../runtime/contract.ts";
import { decodeKrpc } from "../../../wire/krpc-decode.ts";
import { encodeKrpc } from "../../../wire/krpc-encode.ts";
import type { DiagnosisRow } from "../../diagnosis/contract.ts";
import { type InsideSettings, stayInside } from "../inside.ts";

/** So long an answer is waited for, asked again each second: datagrams get lost. */
const ANSWER_MS = 6_000;
const AGAIN_MS = 1_000;
/** Nodes that are asked; the first answer counts. */
const MAX_NODES = 4;
const SILENT: Log = { error() {}, warn() {}, info() {}, debug() {}, named: () => SILENT };

type Asker = Pick<Runtime, "net" | "lookup" | "clock" | "randomBytes">;

/**
 * Compares at which address nodes of the DHT see us (BEP 42): inside, and past all that keeps us inside. So it shows this
 * machine's address to them, and is for who asks for it. `nodes` are `host:port`.
 */
export async function seenRow(
  runtime: Runtime,
  settings: InsideSettings,
  nodes: readonly string[],
): Promise<DiagnosisRow> {
  const name = "Seen at";
  const [inside, outside] = await Promise.all([
    seenAddress(stayInside(runtime, settings, SILENT), nodes),
    seenAddress(runtime, nodes),
  ]);
  if (inside === undefined)
    return { name, level: "note", text: "No node of the DHT answered inside, so that cannot be told." };
  if (settings.bind === "" && settings.proxy === "")
    return { name, level: "ok", text: `Nodes of the DHT see us at ${inside}.` };
  if (inside !== outside)
    return { name, level: "ok", text: `Inside we are seen at ${inside}, else at ${outside ?? "none"}.` };
  return {
    name,
    level: "warn",
    text: `We are seen at ${inside} inside as well as past it: nothing is hidden.`,
    advice: "Look whether the VPN or the proxy leads anywhere else than this machine's own way.",
  };
}

/** The address that a node sees us at; undefined where none answers. */
async function seenAddress(runtime: Asker, nodes: readonly string[]): Promise<string | undefined> {
  const places = await placesOf(runtime, nodes);
  const transaction = runtime.randomBytes(4);
  const question = { kind: "query", transaction, isReadOnly: true, ask: { method: "ping" } } as const;
  const bytes = encodeKrpc({ ...question, id: runtime.randomBytes(20) });
  let found = (_address: string | undefined) => {};
  const seen = new Promise<string | undefined>((resolve) => {
    found = resolve;
  });
  const heard = (answer: Uint8Array) => {
    const address = addressIn(answer, transaction);
    if (address !== undefined) found(address);
  };
  const socket = await runtime.net.bindUdp({ host: "0.0.0.0", port: 0 }, heard).catch(() => undefined);
  if (!socket || places.length === 0) {
    socket?.close();
    return undefined;
  }
  const { clock } = runtime;
  const due = after(clock.now(), ANSWER_MS);
  let cancel = () => {};
  const ask = () => {
    if (clock.now() >= due) return found(undefined);
    for (const place of places) socket.send(bytes, place);
    cancel = clock.at(after(clock.now(), AGAIN_MS), ask);
  };
  ask();
  const address = await seen;
  cancel();
  socket.close();
  return address;
}

/** Where an answer to our question says that we are; undefined where it is none, or does not say. */
function addressIn(answer: Uint8Array, transaction: Uint8Array): string | undefined {
  try {
    const message = decodeKrpc(answer);
    if (message.kind !== "reply" || !equalBytes(message.transaction, transaction)) return undefined;
    return message.yourAddress?.host;
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    return undefined;
  }
}

async function placesOf(runtime: Asker, nodes: readonly string[]): Promise<PeerAddress[]> {
  const found = await Promise.all(
    nodes.slice(0, MAX_NODES).map(async (node) => {
      const colon = node.lastIndexOf(":");
      const name = node.slice(0, colon).replace(/^\[|\]$/g, "");
      const literal = canonicalAddress(name);
      const hosts = literal === undefined ? await runtime.lookup(name).catch(() => []) : [literal];
      return hosts.map((host) => ({ host, port: Number(node.slice(colon + 1)) }));
    }),
  );
  return found.flat().filter(({ host }) => familyOf(host) === 4);
}
