import type { PeerMessageHandler } from "../../wire/peer-message.ts";

/** Takes extended messages alone (BEP 10): those of the files' network have no meaning in a live one, and are ignored. */
export function extendedOnly(extended: (id: number, payload: Uint8Array) => void): PeerMessageHandler {
  const nothing = () => {};
  return {
    keepAlive: nothing,
    choke: nothing,
    unchoke: nothing,
    interested: nothing,
    notInterested: nothing,
    have: nothing,
    bitfield: nothing,
    request: nothing,
    cancel: nothing,
    port: nothing,
    suggest: nothing,
    haveAll: nothing,
    haveNone: nothing,
    reject: nothing,
    allowedFast: nothing,
    extended,
    hash: nothing,
    block: () => undefined,
    blockDone: nothing,
  };
}
