import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { InfohashIndex } from "../protocol/mse/infohash-index.ts";
import type { Runtime } from "../runtime/contract.ts";
import { MSE_BOTH, MSE_METHOD } from "../wire/peer/mse.ts";
import type { PeerNet, ReachSettings } from "./contract.ts";
import { DecryptBuffer, HandshakeLimit, ModeCache, type MseContext } from "./mse-context.ts";
import { MseIncoming } from "./mse-incoming.ts";
import { MseOutgoing } from "./mse-outgoing.ts";

export interface EncryptedNetDependencies {
  readonly runtime: Pick<Runtime, "clock" | "sha1" | "randomBytes">;
  readonly mode: ReachSettings["encryption"];
  readonly log: Log;
  /** The open content, which encrypted handshakes identify by a hash of the infohash. */
  readonly infohashes: () => Iterable<Infohash>;
}

/**
 * Wraps `net` so that connections use plain text or message stream encryption (MSE), as `mode` requires. Callers see one
 * connection, even if several attempts were needed. See docs/design/encryption.md.
 */
export function encryptedNet(
  net: PeerNet,
  { runtime, mode, log, infohashes }: EncryptedNetDependencies,
): PeerNet {
  if (mode === "off") return net;
  const { clock, sha1, randomBytes } = runtime;
  const { plain, rc4 } = MSE_METHOD;
  const context: MseContext = {
    clock,
    log,
    crypto: { sha1, randomBytes },
    decryptBuffer: new DecryptBuffer(),
    index: new InfohashIndex(infohashes, sha1),
    handshakeLimit: new HandshakeLimit(),
    modes: new ModeCache(),
    outgoingModes:
      mode === "require"
        ? ["encrypted"]
        : mode === "prefer"
          ? ["encrypted", "plain"]
          : ["plain", "encrypted"],
    encryptedModes: mode === "require" ? ["encrypted"] : ["encrypted", "plain"],
    acceptsPlain: mode !== "require",
    // With `allow`, an encrypted handshake followed by plain data is enough and costs no CPU.
    methods: mode === "require" ? [rc4] : mode === "prefer" ? [rc4, plain] : [plain, rc4],
    offered: mode === "require" ? rc4 : MSE_BOTH,
  };
  return {
    connect: (address, handlers, options) => new MseOutgoing(context, net, address, handlers, options),
    listen: (address, accept) =>
      net.listen(address, (socket) => new MseIncoming(context, socket, accept).handlers),
  };
}
