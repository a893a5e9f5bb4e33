import { canonicalAddress, type PeerAddress } from "../../base/address.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";

/** The addresses of `host:port` texts, names looked up; names that have none are told of in the log. */
export async function resolveNodes(
  nodes: readonly string[],
  lookup: (name: string) => Promise<string[]>,
  log: Log,
): Promise<PeerAddress[]> {
  const found = await Promise.all(
    nodes.map(async (text) => {
      const { host, port } = splitNode(text);
      const literal = canonicalAddress(host);
      if (literal !== undefined) return [{ host: literal, port }];
      try {
        return (await lookup(host)).map((address) => ({ host: address, port }));
      } catch (thrown) {
        log.info("a node to begin with has no address", { node: text, reason: messageOf(thrown) });
        return [];
      }
    }),
  );
  return found.flat();
}

/** The settings have seen to it that there is a port. */
function splitNode(text: string): PeerAddress {
  const colon = text.lastIndexOf(":");
  return { host: text.slice(0, colon).replace(/^\[|\]$/g, ""), port: Number(text.slice(colon + 1)) };
}
