import { addressScope, canonicalAddress, type PeerAddress } from "../../base/address.ts";
import { SluiceError } from "../../base/errors.ts";

/** A source of a broadcast. */
export type LivePlace =
  | { readonly kind: "http"; readonly url: string }
  | { readonly kind: "hls"; readonly url: string }
  | UdpPlace
  | RtmpPlace
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "pipe" }
  | { readonly kind: "test-pattern" };

/** A local UDP port, or a multicast group. */
export interface UdpPlace {
  readonly kind: "udp";
  readonly bind: PeerAddress;
  /** The group to join. */
  readonly group?: string;
  /** The local address of the network on which the group is joined. */
  readonly networkAddress?: string;
}

/** An address of this machine to which a program publishes by RTMP, with the stream key. */
export interface RtmpPlace {
  readonly kind: "rtmp";
  readonly bind: PeerAddress;
  readonly app: string;
}

const RTMP_PORT = 1935;
const RTMP_APP = "live";

/** The supported sources, for error messages. */
const SUPPORTED =
  "an http or https URL, udp://address:port, rtmp://address:port/app (an address of this machine), a file, or - for standard input (ffmpeg … -f mpegts - | sluice broadcast -)";

/** Parses the source that the user named: `udp://@239.1.1.1:1234`, `udp://0.0.0.0:1234`, `udp://@:1234`, the same with
 * `rtp://`; `?localaddr=` selects the network of a group; `rtmp://0.0.0.0:1935/live`. Throws `bad_parameter`. */
export function readLivePlace(text: string): LivePlace {
  if (text === "-") return { kind: "pipe" };
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(text)?.[1]?.toLowerCase();
  if (scheme === undefined) return { kind: "file", path: text };
  if (scheme === "http" || scheme === "https") return readWebPlace(text);
  if (scheme === "udp" || scheme === "rtp") return readUdpPlace(text);
  if (scheme === "rtmp") return readRtmpPlace(text);
  throw new SluiceError(
    "bad_parameter",
    `${scheme}: sources are not supported; expected ${SUPPORTED}. Use ffmpeg to read ${scheme} and pipe it in`,
  );
}

function readWebPlace(text: string): LivePlace {
  if (!URL.canParse(text)) throw new SluiceError("bad_parameter", `not a valid URL: ${text.slice(0, 200)}`);
  const isHls = /\.m3u8?$/i.test(new URL(text).pathname);
  return { kind: isHls ? "hls" : "http", url: text };
}

function readUdpPlace(text: string): UdpPlace {
  const match = /^(?:udp|rtp):\/\/@?(\[[^\]]*\]|[^:/?#[\]]*):(\d{1,5})\/?(?:\?([^#]*))?$/i.exec(text);
  const port = Number(match?.[2]);
  const name = match?.[1]?.replace(/^\[(.*)\]$/, "$1") ?? "";
  const host = name === "" ? "0.0.0.0" : canonicalAddress(name);
  if (!match || host === undefined || port < 1 || port > 65_535)
    throw new SluiceError(
      "bad_parameter",
      `expected udp://address:port, such as udp://@239.1.1.1:1234 or udp://0.0.0.0:1234, not ${text.slice(0, 200)}`,
    );
  if (addressScope(host) !== "multicast") return { kind: "udp", bind: { host, port } };
  const local = new URLSearchParams(match[3] ?? "").get("localaddr");
  const networkAddress = local === null ? undefined : canonicalAddress(local);
  if (local !== null && networkAddress === undefined)
    throw new SluiceError("bad_parameter", `localaddr: expected an address of this machine, not ${local}`);
  // Binding to the group itself would exclude packets of other senders to this port, but not every system supports
  // that; all support this.
  const bind = { host: host.includes(":") ? "::" : "0.0.0.0", port };
  return { kind: "udp", bind, group: host, ...(networkAddress && { networkAddress }) };
}

/** `rtmp://0.0.0.0`, with or without port and app. */
function readRtmpPlace(text: string): RtmpPlace {
  const match = /^rtmp:\/\/@?(\[[^\]]*\]|[^:/?#[\]]*)(?::(\d{1,5}))?(?:\/([\w-]{0,64}))?\/?$/i.exec(text);
  const port = Number(match?.[2] ?? RTMP_PORT);
  const name = match?.[1]?.replace(/^\[(.*)\]$/, "$1") ?? "";
  const host = name === "" ? "0.0.0.0" : canonicalAddress(name);
  if (!match || host === undefined || port < 1 || port > 65_535)
    throw new SluiceError(
      "bad_parameter",
      `expected rtmp://address:port/app with an address of this machine, such as rtmp://0.0.0.0:${RTMP_PORT}/${RTMP_APP}, not ${text.slice(0, 200)}; the stream key is made by Sluice`,
    );
  return { kind: "rtmp", bind: { host, port }, app: match[3] || RTMP_APP };
}
