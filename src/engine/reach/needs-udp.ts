import type { ReachSettings } from "./contract.ts";
import { whatIsCarried } from "./inside/proxy.ts";

/** Whether the peer network is spoken to over UDP too: something wants it, and the way out carries it. */
export function needsUdp(reach: ReachSettings): boolean {
  return whatIsCarried(reach).udp && (reach.dht || reach.utp || reach.tracker !== "off");
}
