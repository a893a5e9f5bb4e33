import { decodeUtf8 } from "../base/utf8.ts";
import { viewBencode } from "./bencode-view.ts";

/** Nodes that are read of one transport file. */
const MAX_NODES = 20;

/** The nodes of the DHT that a transport file names (BEP 5 `nodes`), as `host:port`; the host may be a name. Entries of another form
 * are passed over. Throws `DecodeError` where the file is none. */
export function readFileNodes(transportFile: Uint8Array): string[] {
  const nodes: string[] = [];
  for (const entry of viewBencode(transportFile).get("nodes")?.items() ?? []) {
    const [name, number] = entry.items();
    const host = decodeUtf8(name?.bytes()?.subarray(0, 256) ?? new Uint8Array(0));
    const port = number?.integer() ?? 0;
    if (!/^[\w.:-]+$/.test(host) || port < 1 || port > 65_535) continue;
    nodes.push(host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`);
    if (nodes.length >= MAX_NODES) break;
  }
  return nodes;
}
