import { addressText } from "../base/address.ts";
import { DecodeError, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { isInNetwork } from "../base/network.ts";
import { after, type Instant } from "../base/time.ts";
import type { Runtime } from "../runtime/contract.ts";
import { isTunerRequest, tunerReply } from "../wire/tuner/discovery.ts";
import { TUNER_PORT } from "../wire/tuner/frame.ts";

export interface TunerDiscoveryDependencies {
  readonly runtime: Pick<Runtime, "net" | "clock" | "surroundings">;
  readonly tunerId: string;
  readonly tunerCount: number;
  /** The port of the HTTP interface. */
  readonly httpPort: number;
  /** Returns true while clients of the local network may use the engine. */
  readonly isAllowed: () => boolean;
  readonly log: Log;
}

/**
 * Answers clients that look for a network tuner (HDHomeRun) by a UDP broadcast. Only senders of the machine's own networks get an answer,
 * with the address of the engine in that network. Another program on the port is logged. Returns a function that stops it.
 */
export function startTunerDiscovery(dependencies: TunerDiscoveryDependencies): () => void {
  const { runtime, tunerId, tunerCount, httpPort, isAllowed, log } = dependencies;
  let isClosed = false;
  let close = () => {};
  const mayReply = replyLimit();
  const baseUrlFor = (sender: string): string | undefined => {
    const own = runtime.surroundings.networks().find((network) => isInNetwork(sender, network));
    return own && `http://${addressText({ host: own.host, port: httpPort })}`;
  };
  const bound = runtime.net.bindUdp({ host: "0.0.0.0", port: TUNER_PORT }, (bytes, from) => {
    const baseUrl = baseUrlFor(from.host);
    if (baseUrl === undefined || !isAllowed()) return;
    try {
      if (!isTunerRequest(bytes, tunerId)) return;
    } catch (error) {
      if (error instanceof DecodeError) return; // Other programs use this port too.
      throw error;
    }
    if (!mayReply(runtime.clock.now())) return;
    void bound.then((socket) => socket.send(tunerReply({ id: tunerId, tunerCount, baseUrl }), from));
  });
  bound.then(
    (socket) => {
      close = () => socket.close();
      if (isClosed) close();
    },
    (error: unknown) => {
      log.warn("cannot answer clients that look for a network tuner; add it in the client by its address", {
        port: TUNER_PORT,
        reason: messageOf(error),
      });
    },
  );
  return () => {
    isClosed = true;
    close();
  };
}

/** A household has a few clients, which repeat a request a few times. */
const MAX_REPLIES_PER_SECOND = 20;

/** Returns a function that permits `MAX_REPLIES_PER_SECOND` replies within each second. */
export function replyLimit(): (now: Instant) => boolean {
  let [since, count] = [undefined as Instant | undefined, 0];
  return (now) => {
    if (since === undefined || after(since, 1_000) <= now) [since, count] = [now, 0];
    return ++count <= MAX_REPLIES_PER_SECOND;
  };
}
