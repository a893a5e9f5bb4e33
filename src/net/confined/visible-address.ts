import { canonicalAddress, familyOf, type PeerAddress } from "../../base/address.ts";
import { equalBytes } from "../../base/bytes.ts";
import type { DiagnosisRow } from "../../base/diagnosis.ts";
import { DecodeError } from "../../base/errors.ts";
import { SILENT_LOG } from "../../base/log.ts";
import { after } from "../../base/time.ts";
import type { Runtime } from "../../runtime/contract.ts";
import { decodeKrpc } from "../../wire/dht/krpc-decode.ts";
import { encodeKrpc } from "../../wire/dht/krpc-encode.ts";
import { type ConfinementSettings, confineRuntime } from "./confined.ts";

/** Response timeout; the query is repeated each second, because datagrams can be lost. */
const RESPONSE_MS = 6_000;
const REPEAT_MS = 1_000;
/** Queried nodes; the first response is used. */
const MAX_NODES = 4;

type QueryRuntime = Pick<Runtime, "net" | "lookup" | "clock" | "randomBytes">;

/**
 * Compares the addresses at which DHT nodes see this machine (BEP 42): with the confinement, and without it. The second query
 * reveals the real address, so this runs only on request. `nodes` are `host:port`.
 */
export async function visibleAddressRow(
  runtime: Runtime,
  settings: ConfinementSettings,
  nodes: readonly string[],
): Promise<DiagnosisRow> {
  const name = "Visible address";
  const [confined, direct] = await Promise.all([
    visibleAddress(confineRuntime(runtime, settings, SILENT_LOG), nodes),
    visibleAddress(runtime, nodes),
  ]);
  if (confined === undefined)
    return { name, level: "note", text: "No DHT node responded, so the visible address is unknown." };
  if (settings.bind === "" && settings.proxy === "")
    return { name, level: "ok", text: `DHT nodes see this machine at ${confined}.` };
  if (confined !== direct)
    return {
      name,
      level: "ok",
      text: `Confined traffic is visible at ${confined}; direct traffic at ${direct ?? "no address"}.`,
    };
  return {
    name,
    level: "warn",
    text: `Confined and direct traffic are visible at the same address, ${confined}: it is not hidden.`,
    advice: "Check that the VPN or the proxy uses another Internet connection.",
  };
}

/** Returns the address at which a node sees this machine; undefined if none responds. */
async function visibleAddress(runtime: QueryRuntime, nodes: readonly string[]): Promise<string | undefined> {
  const addresses = await resolveNodes(runtime, nodes);
  const transaction = runtime.randomBytes(4);
  const query = { kind: "query", transaction, isReadOnly: true, request: { method: "ping" } } as const;
  const bytes = encodeKrpc({ ...query, id: runtime.randomBytes(20) });
  let found = (_address: string | undefined) => {};
  const result = new Promise<string | undefined>((resolve) => {
    found = resolve;
  });
  const received = (response: Uint8Array) => {
    const address = addressIn(response, transaction);
    if (address !== undefined) found(address);
  };
  const socket = await runtime.net.bindUdp({ host: "0.0.0.0", port: 0 }, received).catch(() => undefined);
  if (!socket || addresses.length === 0) {
    socket?.close();
    return undefined;
  }
  const { clock } = runtime;
  const due = after(clock.now(), RESPONSE_MS);
  let cancel = () => {};
  const send = () => {
    if (clock.now() >= due) return found(undefined);
    for (const node of addresses) socket.send(bytes, node);
    cancel = clock.at(after(clock.now(), REPEAT_MS), send);
  };
  send();
  const address = await result;
  cancel();
  socket.close();
  return address;
}

/** Returns our address from a response to our query; undefined if it is another message or has no address. */
function addressIn(response: Uint8Array, transaction: Uint8Array): string | undefined {
  try {
    const message = decodeKrpc(response);
    if (message.kind !== "reply" || !equalBytes(message.transaction, transaction)) return undefined;
    return message.yourAddress?.host;
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    return undefined;
  }
}

async function resolveNodes(runtime: QueryRuntime, nodes: readonly string[]): Promise<PeerAddress[]> {
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
