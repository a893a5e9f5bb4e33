import type { Infohash } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { Clock, Runtime } from "../../runtime/contract.ts";
import type { MseTools } from "../../swarm/mse/contract.ts";
import { InfohashIndex } from "../../swarm/mse/infohash-index.ts";
import { MSE_BOTH, MSE_METHOD, type MseMethod } from "../../wire/mse.ts";
import type { PeerNet, ReachSettings } from "./contract.ts";
import { EncryptedAnswer } from "./encrypted-answer.ts";
import { EncryptedCall } from "./encrypted-call.ts";
import { HandshakeFlood } from "./handshake-flood.ts";
import { KnownWays } from "./known-ways.ts";
import { Scratch } from "./scratch.ts";

/** What it takes to speak encrypted. */
export interface EncryptedNetParts {
  readonly runtime: Pick<Runtime, "clock" | "sha1" | "randomBytes">;
  readonly mode: ReachSettings["encryption"];
  readonly log: Log;
  /** The content that we have, which those who call us encrypted name by a hash. */
  readonly infohashes: () => Iterable<Infohash>;
}

/** How a connection is spoken on. */
export type Way = "plain" | "encrypted";

/** What all connections of an encrypted net share. */
export interface EncryptedHouse {
  readonly clock: Clock;
  readonly tools: MseTools;
  readonly scratch: Scratch;
  readonly log: Log;
  readonly index: InfohashIndex;
  readonly flood: HandshakeFlood;
  readonly ways: KnownWays;
  /** The ways to call, the first one first; and whether we let in who calls in the clear. */
  readonly calls: readonly Way[];
  readonly letsInPlain: boolean;
  /** The methods of MSE that we go on with, the best first, and as the bits of an offer. */
  readonly methods: readonly MseMethod[];
  readonly offered: number;
}

/**
 * Peers called and let in as `mode` says: in the clear, or with message stream encryption (MSE). Who uses it sees one
 * connection, whatever it took. See docs/design/encryption.md.
 */
export function encryptedNet(net: PeerNet, { runtime, mode, log, infohashes }: EncryptedNetParts): PeerNet {
  if (mode === "off") return net;
  const { clock, sha1, randomBytes } = runtime;
  const { plain, rc4 } = MSE_METHOD;
  const house: EncryptedHouse = {
    ...{ clock, log, tools: { sha1, randomBytes } },
    scratch: new Scratch(),
    index: new InfohashIndex(infohashes, sha1),
    flood: new HandshakeFlood(),
    ways: new KnownWays(),
    calls:
      mode === "require"
        ? ["encrypted"]
        : mode === "prefer"
          ? ["encrypted", "plain"]
          : ["plain", "encrypted"],
    letsInPlain: mode !== "require",
    // Who only allows it is content with a hidden greeting, which costs nothing afterwards.
    methods: mode === "require" ? [rc4] : mode === "prefer" ? [rc4, plain] : [plain, rc4],
    offered: mode === "require" ? rc4 : MSE_BOTH,
  };
  return {
    connect: (address, handlers, options) => new EncryptedCall(house, net, address, handlers, options),
    listen: (address, accept) =>
      net.listen(address, (socket) => new EncryptedAnswer(house, socket, accept).handlers),
  };
}
