import type { PeerAddress } from "../../../base/address.ts";
import { messageOf } from "../../../base/errors.ts";
import type { Net, UdpSocket } from "../../../runtime/contract.ts";
import { RouterError } from "./contract.ts";

/** A socket at our address in the router's network. Rejects with `RouterError`: addresses come and go. */
export async function bindTo(
  net: Pick<Net, "bindUdp">,
  host: string,
  received: (bytes: Uint8Array, from: PeerAddress) => void,
): Promise<UdpSocket> {
  try {
    return await net.bindUdp({ host, port: 0 }, received);
  } catch (thrown) {
    throw new RouterError(messageOf(thrown));
  }
}
