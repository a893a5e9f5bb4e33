import type { UdpSocket } from "../../../runtime/contract.ts";
import type { RouterParts } from "./contract.ts";

/** Where routers tell that they have restarted or have another address (RFC 6886 3.2.1, RFC 6887 14.1). */
const NEWS = { group: "224.0.0.1", port: 5350 } as const;

/** Listens to what routers tell everybody: `heard` is told who spoke, and is to ask him. Undefined where that cannot be:
 * then the next renewal shows it. */
export async function listenToRouter(
  { runtime, log }: Pick<RouterParts, "runtime" | "log">,
  heard: (from: string) => void,
): Promise<UdpSocket | undefined> {
  const { group, port } = NEWS;
  try {
    const listener = (_: Uint8Array, from: { readonly host: string }) => heard(from.host);
    return await runtime.net.bindUdp({ host: "0.0.0.0", port }, listener, { multicast: { group } });
  } catch {
    log.debug("another program listens to the router's news");
    return undefined;
  }
}
